package eval

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// compareFloats is the manual's table of comparisons.
var compareFloats = map[string]func(a, b float64) bool{
	"eq": func(a, b float64) bool { return a == b }, "ne": func(a, b float64) bool { return a < b || a > b },
	"lt": func(a, b float64) bool { return a < b }, "le": func(a, b float64) bool { return a <= b },
	"gt": func(a, b float64) bool { return a > b }, "ge": func(a, b float64) bool { return a >= b },
	"equ": func(a, b float64) bool { return !(a < b || a > b) }, "neu": func(a, b float64) bool { return a != b },
	"ltu": func(a, b float64) bool { return !(a >= b) }, "leu": func(a, b float64) bool { return !(a > b) },
	"gtu": func(a, b float64) bool { return !(a <= b) }, "geu": func(a, b float64) bool { return !(a < b) },
	"num": func(a, b float64) bool { return a == a && b == b }, "nan": func(a, b float64) bool { return a != a || b != b },
}

func TestCompareFloats(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, typ := range []ir.Type{ir.F16, ir.BF16, ir.F32, ir.F64} {
		f := formatOf(typ)
		for name, want := range compareFloats {
			code := "setp." + name + "." + typ.String()
			g, as := of(t, code, 2), of(t, "set."+name+".u32."+typ.String(), 2)
			for range fewer(1000) {
				v := [2]uint64{operand(rng, f), operand(rng, f)}
				for i := range v {
					switch rng.IntN(8) {
					case 0:
						v[i] = f.nan
					case 1:
						v[i] = f.inf() | rng.Uint64()&f.sign()
					case 2:
						v[i] = rng.Uint64() & f.sign()
					case 3:
						v[0] = v[1]
					}
				}
				x, y := f.float64(v[0]), f.float64(v[1])
				require.Equalf(t, truth(want(x, y)), g(v[0], v[1], 0, 0), "%s %g %g", code, x, y)
				require.Equal(t, 0xffffffff*truth(want(x, y)), as(v[0], v[1], 0, 0))
			}
		}
	}
	require.EqualValues(t, 1, of(t, "setp.eq.ftz.f32", 2)(0x00400000, 0x80000001, 0, 0))
	require.EqualValues(t, 0, of(t, "setp.eq.f32", 2)(0x00400000, 0x80000001, 0, 0))
	require.EqualValues(t, 0x3f800000, of(t, "set.ne.f32.s32", 2)(1, 2, 0, 0))
	require.EqualValues(t, 0x3c00_0000, of(t, "set.gt.f16x2.f16x2", 2)(0x4000_0000, 0x3c00_0000, 0, 0))
	require.EqualValues(t, 0xffff, of(t, "set.geu.s32.f16x2", 2)(0x0000_7e00, 0x3c00_0000, 0, 0)&0xffffffff)
}

func TestCompareIntegers(t *testing.T) {
	rng := ptxtest.Random(t)
	names := map[string]func(c int) bool{
		"eq": func(c int) bool { return c == 0 }, "ne": func(c int) bool { return c != 0 }, "lt": func(c int) bool { return c < 0 },
		"le": func(c int) bool { return c <= 0 }, "gt": func(c int) bool { return c > 0 }, "ge": func(c int) bool { return c >= 0 },
		"lo": func(c int) bool { return c < 0 }, "ls": func(c int) bool { return c <= 0 }, "hi": func(c int) bool { return c > 0 },
		"hs": func(c int) bool { return c >= 0 },
	}
	for _, typ := range integers() {
		for name, want := range names {
			if typ.IsSigned() && (name[1] == 'o' || name[0] == 'h' || name == "ls") {
				continue
			}
			in := instr("setp."+name+"."+typ.String(), 2)
			g, err := Of(in)
			require.NoError(t, err)
			in.Args[0].Kind = ir.PairOperand
			pair, err := Of(in)
			require.NoError(t, err)
			for range 500 {
				a, b := word(rng), word(rng)
				if rng.IntN(3) == 0 {
					b = a
				}
				p := truth(want(bigOf(a, typ).Cmp(bigOf(b, typ))))
				require.Equalf(t, p, g(a, b, 0, 0), "%s %s %#x %#x", name, typ, a, b)
				require.Equal(t, p|(1-p)<<32, pair(a, b, 0, 0))
			}
		}
	}
	// With a further predicate: p = cmp op c, q = !cmp op c.
	for op, f := range map[string]func(p, c uint64) uint64{
		"and": func(p, c uint64) uint64 { return p & c }, "or": func(p, c uint64) uint64 { return p | c },
		"xor": func(p, c uint64) uint64 { return p ^ c },
	} {
		in := instr("setp.lt."+op+".s32", 3)
		in.Args[0].Kind = ir.PairOperand
		g, err := Of(in)
		require.NoError(t, err)
		for i := range uint64(4) {
			p, c := i&1, i>>1
			require.Equal(t, f(p, c)|f(1-p, c)<<32, g(5, 5+p, c, 0), op)
		}
	}
	in := instr("setp.gt.f16x2", 2)
	in.Args[0].Kind = ir.PairOperand
	g, err := Of(in)
	require.NoError(t, err)
	require.EqualValues(t, 1<<32, g(0x4000_0000, 0x3c00_3c00, 0, 0))
	require.EqualValues(t, 1, g(0x0000_4000, 0x3c00_3c00, 0, 0))
}

// TestExtremes: a total order with −0 below +0 and NaN aside.
func TestExtremes(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, typ := range []ir.Type{ir.F16, ir.BF16, ir.F32, ir.F64} {
		f := formatOf(typ)
		lo, hi := of(t, "min."+typ.String(), 2), of(t, "max."+typ.String(), 2)
		for range fewer(5000) {
			a, b := operand(rng, f), operand(rng, f)
			x, y := f.float64(a), f.float64(b)
			require.Equal(t, math.Min(x, y), f.float64(lo(a, b, 0, 0)))
			require.Equal(t, math.Max(x, y), f.float64(hi(a, b, 0, 0)))
			require.Equal(t, math.Signbit(math.Min(x, y)), lo(a, b, 0, 0)&f.sign() != 0)
			require.Equal(t, a, lo(a, f.nan, 0, 0))
			require.Equal(t, a, hi(f.nan, a, 0, 0))
			if typ != ir.F64 {
				require.Equal(t, f.nan, of(t, "max.NaN."+typ.String(), 2)(a, f.nan, 0, 0))
				r := of(t, "max.xorsign.abs."+typ.String(), 2)(a, b, 0, 0)
				require.Equal(t, math.Max(math.Abs(x), math.Abs(y)), math.Abs(f.float64(r)))
				require.Equal(t, (a^b)&f.sign(), r&f.sign())
			}
		}
	}
}

func TestSelection(t *testing.T) {
	require.EqualValues(t, 0x15, of(t, "selp.b16", 3)(0xff0015, 0x26, 1, 0)&0xff)
	require.EqualValues(t, 0x26, of(t, "selp.u64", 3)(0x15, 0x26, 0, 0))
	slct := of(t, "slct.f32.s32", 3)
	require.EqualValues(t, 1, slct(1, 2, 0, 0))
	require.EqualValues(t, 2, slct(1, 2, 0x80000000, 0))
	slct = of(t, "slct.u64.f32", 3)
	require.EqualValues(t, 1, slct(1, 2, 0x80000000, 0)) // −0
	require.EqualValues(t, 2, slct(1, 2, 0x80000001, 0))
	require.EqualValues(t, 2, slct(1, 2, 0x7fc00000, 0))
	require.EqualValues(t, 1, of(t, "slct.ftz.u64.f32", 3)(1, 2, 0x80000001, 0))
	for name, values := range map[string][]uint64{
		"finite": {0, 1, 0xff7fffff}, "infinite": {0x7f800000, 0xff800000}, "number": {0, 1, 0x3f800000, 0x7f800000}, "notanumber": {0x7f800001, 0xffffffff},
		"normal": {0x00800000, 0xff7fffff}, "subnormal": {1, 0x807fffff},
	} {
		f := of(t, "testp."+name+".f32", 1)
		for _, v := range values {
			require.EqualValues(t, 1, f(v, 0, 0, 0), name)
		}
	}
	require.EqualValues(t, 0, of(t, "testp.normal.f64", 1)(0, 0, 0, 0))
	require.EqualValues(t, 0, of(t, "testp.finite.f64", 1)(0x7ff0000000000000, 0, 0, 0))
	require.EqualValues(t, 0x1234, of(t, "mov.u16", 1)(0xff1234, 0, 0, 0))
	require.EqualValues(t, 1, of(t, "mov.pred", 1)(1, 0, 0, 0))
}
