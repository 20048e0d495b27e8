package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// trial is operands and what the kernel must make of them, which the portable fallback says.
type trial struct {
	k     *kernel
	s     *spec
	n     int
	x     [3][]float32
	p     [2]float32
	want  call
	total float64 // of a sum, in float64
	sizes float64 // the sum of its finite terms' absolute values

	memory [4][]float32 // of y, of inputs
}

func specOf(t testing.TB, k *kernel) *spec {
	s, ok := specs[k.name]
	require.True(t, ok, "%s has no specification in this test", k.name)
	if s.low == 0 && s.high == 0 {
		s.low, s.high = -10, 10
	}
	return &s
}

// newTrial draws n elements of each input, and parameters.
func newTrial(t testing.TB, k *kernel, r *rand.Rand, n int, m mix) *trial {
	s := specOf(t, k)
	tr := &trial{k: k, s: s, n: n}
	for j := range k.inputs {
		tr.x[j] = make([]float32, n)
		fill(r, tr.x[j], m, s.low, s.high)
	}
	if s.params != nil {
		tr.p = s.params(r)
	}
	tr.expect()
	return tr
}

// expect brings operands into the kernel's domain and runs the portable fallback.
func (tr *trial) expect() {
	if tr.s.domain != nil {
		tr.s.domain(tr.x[0], &tr.p)
	}
	c := &tr.want
	*c = call{p: tr.p, in: tr.x}
	if tr.k.store {
		c.y = make([]float32, tr.n)
	}
	tr.k.portable(c)
	tr.total, tr.sizes = 0, 0
	if tr.s.term != nil {
		for i := range tr.n {
			x, p := tr.at(i)
			v := tr.s.term(x, p)
			tr.total += v
			if v-v == 0 {
				tr.sizes += math.Abs(v)
			}
		}
	}
}

// repeat makes the operands longer without asking the portable fallback again. A search ends in the first part or not at all.
func (tr *trial) repeat(times int) {
	if tr.k.search() && tr.want.n == tr.n {
		tr.want.n *= times
	}
	for j := range tr.k.inputs {
		tr.x[j] = slices.Repeat(tr.x[j], times)
	}
	tr.want.y = slices.Repeat(tr.want.y, times)
	tr.n *= times
	tr.total *= float64(times)
	tr.sizes *= float64(times)
}

func (tr *trial) at(i int) (x [3]float64, p [2]float64) {
	for j := range tr.k.inputs {
		x[j] = float64(tr.x[j][i])
	}
	return x, [2]float64{float64(tr.p[0]), float64(tr.p[1])}
}

// place is where operands lie.
type place struct {
	offsets [4]int // elements after a multiple of 64 bytes: of y, of inputs
	over    int    // 1 + the input that y overlaps; 0 for none
	by      int    // elements that y begins before that input
	same    bool   // all inputs are one slice
}

// String shows it.
func (p place) String() string {
	s := fmt.Sprintf("offsets %v", p.offsets)
	if p.over > 0 {
		s += fmt.Sprintf(", y begins %d before input %d", p.by, p.over-1)
	}
	if p.same {
		s += ", inputs are one slice"
	}
	return s
}

const margin = 256 // elements around operands that must stay

var (
	canary   = math.Float32frombits(0x7fc0dead)
	canaries = slices.Repeat([]float32{canary}, 2*margin)
)

// newField returns canaries with a margin, 16 offsets and n elements of room; element margin is at a multiple of 64 bytes.
func newField(n int) []float32 {
	var memory []float32
	return field(&memory, n)
}

// field is newField in memory that is used again.
func field(memory *[]float32, n int) []float32 {
	if len(*memory) < n+2*margin+32 {
		*memory = make([]float32, n+2*margin+32)
	}
	f := *memory
	skip := -int(uintptr(unsafe.Pointer(&f[margin]))/4) & 15
	f = f[skip : skip+n+2*margin+16]
	for i := 0; i < len(f); {
		i += copy(f[i:], canaries)
	}
	return f
}

// run runs the kernel on operands in a place and fails the test if a result is wrong or anything around them has changed.
func (tr *trial) run(t testing.TB, p place) {
	var c call
	c.p = tr.p
	var fields [4][]float32 // of y, of inputs
	start := margin + p.offsets[0]
	for j := range tr.k.inputs {
		at := margin + p.offsets[1+j]
		if p.same && j > 0 {
			c.in[j] = c.in[0]
			continue
		}
		fields[1+j] = field(&tr.memory[1+j], tr.n)
		c.in[j] = fields[1+j][at : at+tr.n : at+tr.n]
		copy(c.in[j], tr.x[j])
	}
	if tr.k.store {
		if p.over > 0 {
			fields[0], start = fields[p.over], margin+p.offsets[p.over]-p.by
		} else {
			fields[0] = field(&tr.memory[0], tr.n)
		}
		c.y = fields[0][start : start+tr.n : start+tr.n]
	}
	tr.k.run(&c)
	tr.check(t, &c, p)
	unchanged := func(operand int, got, want []float32) {
		if !slices.Equal(bits(got), bits(want)) {
			t.Fatalf("%s on %s, %d elements, %v: the memory of operand %d was overwritten", tr.k.name, Active(), tr.n, p, operand)
		}
	}
	for f, field := range fields {
		if field == nil || f == 0 && p.over > 0 {
			continue
		}
		at := margin + p.offsets[f] // where what is left of the operand begins
		first, end := at, at+tr.n
		if tr.k.store && f == p.over {
			first, at = start, max(at, start+tr.n)
			unchanged(f, field[start+tr.n:at], canaries[:at-start-tr.n])
		}
		if f > 0 {
			unchanged(f, field[at:end], tr.x[f-1][tr.n-(end-at):])
		}
		unchanged(f, field[:first], canaries[:first])
		unchanged(f, field[end:], canaries[:len(field)-end])
	}
}

func bits(x []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

func (tr *trial) describe(i int) string {
	x, _ := tr.at(i)
	return fmt.Sprintf("element %d, of %v,", i, x[:tr.k.inputs])
}

// check compares the results of a call.
func (tr *trial) check(t testing.TB, c *call, where any) {
	fail := func(what string, got, want any) {
		t.Helper()
		t.Fatalf("%s on %s, %d elements, %v, parameters %v: %s is %v, want %v",
			tr.k.name, Active(), tr.n, where, tr.p, what, got, want)
	}
	for i, got := range c.y {
		want := tr.want.y[i]
		if math.Float32bits(got) == math.Float32bits(want) {
			continue
		}
		if x, p := tr.at(i); math.Float32bits(got) == math.Float32bits(canary) || !tr.s.accepts(got, want, x, p) {
			fail(tr.describe(i), got, want)
		}
	}
	switch {
	case c.n != tr.want.n:
		fail("index", c.n, tr.want.n)
	case tr.k.lanes:
		if got := KahanTotal(&c.lanes); !acceptsSum(got, tr.total, tr.sizes, tr.s.abs, 1, 0) {
			fail("sum", got, tr.total)
		}
	case tr.s.term != nil:
		if got := float64(c.out[0]); !acceptsSum(got, float64(float32(tr.total)), tr.sizes, tr.s.abs, tr.n, additions(tr.n)) {
			fail("sum", got, tr.total)
		}
	case !tr.s.accepts(c.out[0], tr.want.out[0], [3]float64{}, [2]float64{}):
		fail("result", c.out[0], tr.want.out[0])
	}
}
