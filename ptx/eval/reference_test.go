package eval

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/ptx/ir"
)

// fewer is a third of n, a tenth with -short, or all with make proofs.
func fewer(n int) int {
	switch {
	case testing.Short():
		return n / 10
	case testseed.Whole():
		return n
	}
	return n / 3
}

// instr is an instruction with that many sources in registers.
func instr(code string, sources int) *ir.Instr {
	op, mods, _ := ir.SplitOpcode(code)
	in := &ir.Instr{Op: op, Mods: mods}
	for i := range sources + 1 {
		in.Args = append(in.Args, ir.R(ir.Reg(i+1)))
	}
	return in
}

func of(t testing.TB, code string, sources int) Func {
	t.Helper()
	key := [2]any{code, sources}
	if f, ok := functions.Load(key); ok {
		return f.(Func)
	}
	f, err := Of(instr(code, sources))
	require.NoError(t, err)
	functions.Store(key, f)
	return f
}

// functions keeps what of returns: tests ask for each thousands of times.
var functions sync.Map

// fraction is num/den · 2^exp, num and den positive: what any operation here gives exactly (a square root with a last bit for its rest).
type fraction struct {
	neg      bool
	num, den *big.Int
	exp      int
}

func whatIs(f *format, v uint64) fraction {
	e, m := int(v>>(f.man+f.pad))&(1<<f.exp-1), int64(v>>f.pad&mask(f.man))
	if e > 0 {
		m, e = m+1<<f.man, e-1
	}
	return fraction{v&f.sign() != 0, big.NewInt(m), big.NewInt(1), e + 1 - f.bias() - int(f.man)}
}

// nearestTo rounds a fraction to the format: the reference, in integers of any size.
func nearestTo(f *format, x fraction, mode ir.Mod) uint64 {
	sign := f.sign() * truth(x.neg)
	if x.num.Sign() == 0 {
		return sign
	}
	least := 1 - f.bias() - int(f.man) // of an ulp, as an exponent
	ulp := max(least, x.num.BitLen()-x.den.BitLen()+x.exp-int(f.man)-1)
	var n, rest, den *big.Int
	for ; ; ulp++ { // at most twice
		num := new(big.Int).Lsh(x.num, uint(max(0, x.exp-ulp)))
		den = new(big.Int).Lsh(x.den, uint(max(0, ulp-x.exp)))
		n, rest = new(big.Int).QuoRem(num, den, new(big.Int))
		if n.BitLen() <= int(f.man)+1 {
			break
		}
	}
	half := rest.Lsh(rest, 1).Cmp(den)
	up := false
	switch mode {
	case ir.RZ:
	case ir.RM:
		up = x.neg && rest.Sign() > 0
	case ir.RP:
		up = !x.neg && rest.Sign() > 0
	case ir.RNA:
		up = half >= 0
	default:
		up = half > 0 || half == 0 && n.Bit(0) == 1
	}
	v := n.Uint64()
	if up {
		v++
	}
	e := uint64(0)
	if v>>f.man > 0 {
		e = uint64(ulp-least) + 1
		if v>>(f.man+1) > 0 {
			v, e = v>>1, e+1
		}
		v -= 1 << f.man
	}
	if most := f.largest() >> f.pad; e >= 1<<f.exp || e<<f.man+v > most {
		if f.finite || mode == ir.RZ || mode == ir.RM && !x.neg || mode == ir.RP && x.neg {
			return sign | most<<f.pad
		}
		return sign | f.inf()
	}
	return sign | (e<<f.man+v)<<f.pad
}

// reference does an operation on finite operands, but for roots of negative numbers and divisions by zero.
func reference(op string, f *format, mode ir.Mod, v [3]uint64) uint64 {
	a, b, c := whatIs(f, v[0]), whatIs(f, v[1]), whatIs(f, v[2])
	plus := func(a, b fraction) fraction {
		e := min(a.exp, b.exp)
		x, y := new(big.Int).Lsh(a.num, uint(a.exp-e)), new(big.Int).Lsh(b.num, uint(b.exp-e))
		if a.neg {
			x.Neg(x)
		}
		if b.neg {
			y.Neg(y)
		}
		s := x.Add(x, y)
		neg := s.Sign() < 0
		if s.Sign() == 0 { // as IEEE 754, 6.3
			neg = a.neg && b.neg || a.neg != b.neg && mode == ir.RM
		}
		return fraction{neg, s.Abs(s), big.NewInt(1), e}
	}
	times := func(a, b fraction) fraction {
		return fraction{a.neg != b.neg, new(big.Int).Mul(a.num, b.num), big.NewInt(1), a.exp + b.exp}
	}
	over := func(a, b fraction) fraction { return fraction{a.neg != b.neg, a.num, b.num, a.exp - b.exp} }
	var r fraction
	switch op {
	case "add":
		r = plus(a, b)
	case "sub":
		b.neg = !b.neg
		r = plus(a, b)
	case "mul":
		r = times(a, b)
	case "fma":
		r = plus(times(a, b), c)
	case "div":
		r = over(a, b)
	case "rcp":
		r = over(fraction{false, big.NewInt(1), big.NewInt(1), 0}, a)
	case "sqrt":
		shift := 140 + a.exp&1
		num := new(big.Int).Lsh(a.num, uint(shift))
		s := new(big.Int).Sqrt(num)
		left := new(big.Int).Mul(s, s).Cmp(num)
		s.Lsh(s, 1)
		if left != 0 {
			s.SetBit(s, 0, 1)
		}
		r = fraction{a.neg, s, big.NewInt(1), (a.exp-shift)/2 - 1}
	}
	return nearestTo(f, r, mode)
}

// operand is a finite number of the format, often of an awkward kind.
func operand(rng *rand.Rand, f *format) uint64 {
	for {
		var v uint64
		switch rng.IntN(8) {
		case 0: // few bits set
			v = 1<<rng.IntN(64) | 1<<rng.IntN(64)
		case 1: // a run of ones
			v = mask(uint(1+rng.IntN(64))) << rng.IntN(64)
		case 2: // near one
			v = f.one() + (rng.Uint64N(64)-32)<<f.pad
		case 3: // subnormal and about
			v = rng.Uint64N(f.normal() * 2)
		case 4: // near an end
			v = []uint64{0, f.normal(), f.largest()}[rng.IntN(3)] + (rng.Uint64N(8)-4)<<f.pad
		case 5: // a small integer
			v = f.round(integer(false, rng.Uint64N(100)), ir.RN)
		default:
			v = rng.Uint64()
		}
		v ^= rng.Uint64() & f.sign()
		v &= (f.sign()<<1 - 1) &^ (1<<f.pad - 1)
		if v&(f.sign()-1) <= f.largest() {
			return v
		}
	}
}

func fields(s string) []string { return strings.Fields(s) }
