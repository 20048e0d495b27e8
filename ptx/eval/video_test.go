package eval

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// videoWord is how PTX's manual computes a video instruction: step by step, in whole numbers of any size.
func videoWord(in *ir.Instr, words [3]uint32) uint32 {
	var types []bool // signed
	for _, m := range in.Mods {
		if m == "u32" || m == "s32" {
			types = append(types, m == "s32")
		}
	}
	name := strings.TrimRight(string(in.Op), "24")
	if name == "vset" {
		types = append([]bool{false}, types...)
	}
	if name == string(in.Op) {
		return videoOne(in, name, types, words)
	}
	n := int(in.Op[len(in.Op)-1] - '0')
	size := 32 / n
	var bytes []uint32 // all parts of a, then all of b
	for _, w := range words[:2] {
		for i := range n {
			bytes = append(bytes, w>>(i*size)&(1<<size-1))
		}
	}
	whole := map[int][]string{2: {"", "h10", "h32"}, 4: {"", "b3210", "b7654"}}[n]
	choose := func(arg, i int) *big.Int {
		part := in.Args[arg].Part
		if part == "" {
			part = whole[arg]
		}
		return wholeOf(bytes[part[n-i]-'0'], size, types[arg])
	}
	result := words[2]
	for i := range n {
		if mask := in.Args[0].Part; mask != "" && !strings.Contains(mask[1:], fmt.Sprint(i)) {
			continue
		}
		v := operate(in, name, choose(1, i), choose(2, i))
		if in.Has("sat") {
			v = between(v, size, types[0])
		}
		if in.Has("add") {
			result += low(v)
			continue
		}
		m := uint32(1<<size-1) << (i * size)
		result = result&^m | low(v)<<(i*size)&m
	}
	return result
}

func videoOne(in *ir.Instr, name string, types []bool, words [3]uint32) uint32 {
	extract := func(i int) *big.Int {
		size, at := sizeAndPlace(in.Args[i].Part)
		return wholeOf(words[i-1]>>at&uint32(uint64(1)<<size-1), size, types[i])
	}
	a, b, c := extract(1), extract(2), words[2]
	if name == "vmad" {
		return videoMultiply(in, types, a, b, c)
	}
	v := operate(in, name, a, b)
	size, at := sizeAndPlace(in.Args[0].Part)
	if in.Has("sat") {
		v = between(v, size, types[0])
	}
	switch in.First("add", "min", "max") {
	case "add":
		return low(v) + c
	case "min":
		if wholeOf(low(v), 32, types[0]).Cmp(wholeOf(c, 32, types[0])) > 0 {
			return c
		}
		return low(v)
	case "max":
		if wholeOf(low(v), 32, types[0]).Cmp(wholeOf(c, 32, types[0])) < 0 {
			return c
		}
		return low(v)
	}
	if in.Args[0].Part == "" {
		return low(v)
	}
	m := uint32(1<<size-1) << at
	return c&^m | low(v)<<at&m
}

func videoMultiply(in *ir.Instr, types []bool, a, b *big.Int, c uint32) uint32 {
	v := new(big.Int).Mul(a, b)
	minus := in.Args[1].Neg != in.Args[2].Neg
	if minus {
		v.Neg(v)
	}
	signed := types[1] || types[2] || minus || in.Args[3].Neg
	if in.Args[3].Neg { // -c is ~c, extended, and 1
		v.Add(v, wholeOf(^c, 32, true)).Add(v, big.NewInt(1))
	} else {
		v.Add(v, wholeOf(c, 32, signed))
	}
	if in.Has("po") {
		v.Add(v, big.NewInt(1))
	}
	for mod, by := range map[ir.Mod]uint{"shr7": 7, "shr15": 15} {
		if in.Has(mod) { // to 64 bits
			v.Rsh(v, by)
			v = number64(v, signed)
		}
	}
	if in.Has("sat") {
		v = between(v, 32, signed)
	}
	return low(v)
}

func sizeAndPlace(part string) (size, at int) {
	switch {
	case part == "":
		return 32, 0
	case part[0] == 'h':
		return 16, 16 * int(part[1]-'0')
	}
	return 8, 8 * int(part[1]-'0')
}

func wholeOf(v uint32, size int, signed bool) *big.Int {
	n := big.NewInt(int64(v))
	if signed && n.Bit(size-1) == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(size)))
	}
	return n
}

func number64(v *big.Int, signed bool) *big.Int {
	whole := new(big.Int).Lsh(big.NewInt(1), 64)
	n := new(big.Int).Mod(v, whole)
	if signed && n.Bit(63) == 1 {
		n.Sub(n, whole)
	}
	return n
}

func low(v *big.Int) uint32 {
	return uint32(new(big.Int).Mod(v, new(big.Int).Lsh(big.NewInt(1), 32)).Uint64())
}

func between(v *big.Int, size int, signed bool) *big.Int {
	least, most := big.NewInt(0), new(big.Int).Lsh(big.NewInt(1), uint(size))
	if signed {
		most.Rsh(most, 1)
		least.Neg(most)
	}
	most.Sub(most, big.NewInt(1))
	switch {
	case v.Cmp(least) < 0:
		return least
	case v.Cmp(most) > 0:
		return most
	}
	return v
}

func operate(in *ir.Instr, name string, a, b *big.Int) *big.Int {
	v := new(big.Int)
	switch name {
	case "vadd":
		return v.Add(a, b)
	case "vsub":
		return v.Sub(a, b)
	case "vabsdiff":
		return v.Abs(v.Sub(a, b))
	case "vmin":
		if a.Cmp(b) < 0 {
			return a
		}
		return b
	case "vmax":
		if a.Cmp(b) > 0 {
			return a
		}
		return b
	case "vavrg":
		v.Add(a, b)
		if v.Sign() >= 0 {
			v.Add(v, big.NewInt(1))
		}
		return v.Rsh(v, 1)
	case "vshl", "vshr":
		by := uint(b.Uint64())
		if in.Has("wrap") {
			by %= 32
		}
		by = min(by, 32)
		if name == "vshr" {
			return v.Rsh(a, by)
		}
		v.Lsh(a, by) // and 34 bits of it
		v.Mod(v, new(big.Int).Lsh(big.NewInt(1), 34))
		if v.Bit(33) == 1 {
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), 34))
		}
		return v
	}
	order := a.Cmp(b)
	holds := map[ir.Mod]bool{"eq": order == 0, "ne": order != 0, "lt": order < 0, "le": order <= 0, "gt": order > 0, "ge": order >= 0}
	if holds[in.First("eq", "ne", "lt", "le", "gt", "ge")] {
		return big.NewInt(1)
	}
	return big.NewInt(0)
}

// videoOperand is a number that is often at a limit of words, halves or bytes.
func videoOperand(rng *rand.Rand) uint32 {
	limits := []uint32{0, 1, 31, 32, 33, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x80808080,
		0x7f7f7f7f, 0x80008000, 0x7fff7fff, 0x00ff00ff, 0xff00ff00}
	if rng.IntN(2) == 0 {
		return limits[rng.IntN(len(limits))]
	}
	return rng.Uint32()
}

// randomParts selects parts where there are some in the sample of a form, or leaves the selection out.
func randomParts(rng *rand.Rand, in *ir.Instr) {
	digits := func(c string, n, below int) string {
		for range n {
			c += fmt.Sprint(rng.IntN(below))
		}
		return c
	}
	for i := range in.Args {
		in.Args[i].Reg = ir.Reg(i + 1)
		o := &in.Args[i]
		if o.Part == "" {
			continue
		}
		merged := i == 0 && !strings.ContainsAny(string(in.Op), "24")
		switch {
		case rng.IntN(3) == 0 && !merged:
			o.Part = ""
		case i == 0 && in.Op[len(in.Op)-1] == '2':
			o.Part = []string{"h0", "h1", "h10"}[rng.IntN(3)]
		case i == 0 && in.Op[len(in.Op)-1] == '4':
			o.Part = "b"
			for k := 3; k >= 0; k-- {
				if rng.IntN(2) == 0 {
					o.Part += fmt.Sprint(k)
				}
			}
			if o.Part == "b" {
				o.Part = "b3210"
			}
		case in.Op[len(in.Op)-1] == '2':
			o.Part = digits("h", 2, 4)
		case in.Op[len(in.Op)-1] == '4':
			o.Part = digits("b", 4, 8)
		default:
			o.Part = []string{"b0", "b1", "b2", "b3", "h0", "h1"}[rng.IntN(6)]
		}
	}
	if in.Op == "vmad" && !in.Has("po") {
		in.Args[1].Neg, in.Args[2].Neg = rng.IntN(2) == 0, rng.IntN(2) == 0
		in.Args[3].Neg = in.Args[1].Neg == in.Args[2].Neg && rng.IntN(2) == 0
	}
}

// TestVideo compares every variant of every video instruction, with random parts selected, with the manual's way to compute it.
func TestVideo(t *testing.T) {
	rng := ptxtest.Random(t)
	f := &ir.Func{Regs: []ir.RegDecl{{}, {Name: "d"}, {Name: "a"}, {Name: "b"}, {Name: "c"}}}
	n := 0
	for form := range ir.Forms() {
		if form.Op[0] != 'v' || strings.HasPrefix(string(form.Op), "vote") {
			continue
		}
		for mods := range form.Variants() {
			for range fewer(20) {
				in := form.Samples(mods, func(ir.Type) ir.Reg { return 1 })[0]
				randomParts(rng, &in)
				_, err := ir.FormOf(&in)
				require.NoError(t, err, f.InstrString(&in))
				got, err := Of(&in)
				require.NoError(t, err, f.InstrString(&in))
				for range 10 {
					a, b, c := videoOperand(rng), videoOperand(rng), videoOperand(rng)
					want := videoWord(&in, [3]uint32{a, b, c})
					require.Equal(t, want, uint32(got(uint64(a), uint64(b), uint64(c), 0)), "%s with a = %#x, b = %#x, c = %#x",
						f.InstrString(&in), a, b, c)
					n++
				}
			}
		}
	}
	require.Greater(t, n, 10000)
	t.Logf("%d results", n)
}

// TestVideoExamples has results as they are on hardware: those that machine code made by ptxas computes.
func TestVideoExamples(t *testing.T) {
	for _, c := range []struct {
		code    string
		parts   [3]string
		a, b, c uint32
		want    uint32
	}{
		{"vadd2.u32.u32.u32.add", [3]string{}, 0x0001ffff, 0x00020001, 100, 0x10067}, // sums are added with all their bits
		{"vadd.u32.u32.u32", [3]string{"b1", "b0", "h1"}, 0x0001ffff, 0x00020001, 100, 0x00000164},
		{"vset4.u32.u32.lt.add", [3]string{}, 0x0001ffff, 0x00020001, 100, 101},
		{"vsub2.s32.u32.u32.sat", [3]string{"h1", "h31", "h00"}, 0x00020001, 0xffff0000, 7, 0x7fff0007},
		{"vadd.u32.s32.s32.sat", [3]string{}, 0xffffffff, 0, 0, 0},
		{"vabsdiff4.u32.u32.u32.add", [3]string{}, 0x00ff10f0, 0xff0020f0, 5, 0x0ff + 0xff + 0x10 + 5},
	} {
		in := instr(c.code, 3)
		for i, p := range c.parts {
			in.Args[i].Part = p
		}
		f, err := Of(in)
		require.NoError(t, err)
		require.Equal(t, c.want, uint32(f(uint64(c.a), uint64(c.b), uint64(c.c), 0)), c.code)
	}
}
