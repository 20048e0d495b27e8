package eval

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// TestArithmetic compares every operation, format and rounding with integers of any size.
func TestArithmetic(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, test := range []struct {
		typ   ir.Type
		modes string
		ops   string
	}{
		{ir.F32, "rn rz rm rp", "add sub mul fma div rcp sqrt"},
		{ir.F64, "rn rz rm rp", "add sub mul fma div rcp sqrt"},
		{ir.F16, "rn", "add sub mul fma"},
		{ir.BF16, "rn", "add sub mul fma"},
	} {
		f := formatOf(test.typ)
		for _, op := range fields(test.ops) {
			n := map[string]int{"fma": 3, "rcp": 1, "sqrt": 1}[op]
			if n == 0 {
				n = 2
			}
			for _, mode := range fields(test.modes) {
				code := op + "." + mode + "." + test.typ.String()
				g := of(t, code, n)
				for range fewer(10_000) {
					v := [3]uint64{operand(rng, f), operand(rng, f), operand(rng, f)}
					if rng.IntN(4) == 0 { // cancellation
						v[1] = v[0] ^ f.sign() + rng.Uint64N(3) - 1
						v[1] = min(v[1]&(f.sign()-1), f.largest()) | v[1]&f.sign()
					}
					switch {
					case op == "sqrt":
						v[0] &= f.sign() - 1
					case op == "div" && v[1]&(f.sign()-1) == 0, op == "rcp" && v[0]&(f.sign()-1) == 0:
						continue
					}
					if n < 3 {
						v[2] = 0
					}
					want := reference(op, f, ir.Mod(mode), v)
					if got := g(v[0], v[1], v[2], 0); got != want {
						require.FailNowf(t, code, "of %x: %x, want %x", v, got, want)
					}
				}
			}
		}
	}
}

// TestFMA32 puts the addend where rounding decides: just beside the middle of two numbers.
func TestFMA32(t *testing.T) {
	rng := ptxtest.Random(t)
	fma, double := of(t, "fma.rn.f32", 3), 0
	for range fewer(300_000) {
		a, b, c := operand(rng, f32), operand(rng, f32), operand(rng, f32)
		if rng.IntN(2) == 0 {
			// The product is 2^e·(1 ± 2^-2i), a little beside half a unit of c: too little for float64 to keep. c may be subnormal.
			i, e := 12+rng.IntN(12), rng.IntN(250)-149
			a = bits32(float32(math.Ldexp(1, e/2) * (1 + math.Ldexp(1, -i))))
			b = bits32(float32(math.Ldexp(1, e-e/2) * (1 - math.Ldexp(1, -i))))
			if rng.IntN(2) == 0 { // or two ulps of what that is not
				b = a
			}
			a ^= rng.Uint64() & 0x80000000
			c = rng.Uint64N(1<<23) | uint64(max(0, e+1+23+127))<<23 | rng.Uint64()&0x80000000
			if e+1 < -149 || e+151 > 254 {
				continue
			}
			if e+1+23 < -126 { // half of the last unit of subnormal numbers
				c &= 0x807fffff
			}
		}
		want := reference("fma", f32, ir.RN, [3]uint64{a, b, c})
		got := fma(a, b, c, 0)
		if got != want {
			require.FailNowf(t, "fma", "of %x %x %x: %x, want %x", a, b, c, got, want)
		}
		x, y, z := float64(from32(a)), float64(from32(b)), float64(from32(c))
		if bits32(float32(math.FMA(x, y, z))) != want {
			double++
		}
	}
	t.Logf("rounding twice would have been wrong in %d cases", double)
	require.Positive(t, double)
}

// TestSpecials has the tables of IEEE 754 and of the manual.
func TestSpecials(t *testing.T) {
	const (
		inf, ninf, nan, one, zero, nzero = 0x7f800000, 0xff800000, 0x7fffffff, 0x3f800000, 0, 0x80000000
		sub, largest, snan               = 0x00400000, 0x7f7fffff, 0x7f800001
	)
	for _, test := range []struct {
		code       string
		a, b, c, r uint64
	}{
		{"add.f32", inf, ninf, 0, nan}, {"add.f32", inf, inf, 0, inf}, {"add.f32", snan, one, 0, nan},
		{"add.rm.f32", one, 0xbf800000, 0, nzero}, {"add.f32", one, 0xbf800000, 0, zero}, {"add.f32", nzero, nzero, 0, nzero},
		{"add.rz.f32", largest, largest, 0, largest}, {"add.rp.f32", largest, 1, 0, inf},
		{"add.rm.f32", 0xff7fffff, nzero + 1, 0, ninf},
		{"mul.f32", inf, zero, 0, nan}, {"mul.rm.f32", zero, one, 0, zero}, {"mul.f32", nzero, one, 0, nzero},
		{"mul.rz.f32", 1, 1, 0, zero}, {"mul.rp.f32", 1, 1, 0, 1}, {"mul.rm.f32", 1, nzero + 1, 0, nzero + 1},
		{"fma.rn.f32", inf, zero, one, nan}, {"fma.rz.f32", inf, one, ninf, nan}, {"fma.rn.f32", one, one, ninf, ninf},
		{"fma.rm.f32", one, one, 0xbf800000, nzero}, {"fma.rn.f32", zero, one, nzero, zero},
		{"fma.rn.f32", nzero, one, nzero, nzero},
		{"div.rn.f32", zero, zero, 0, nan}, {"div.rn.f32", inf, inf, 0, nan}, {"div.rn.f32", one, nzero, 0, ninf},
		{"div.rz.f32", zero, zero, 0, nan}, {"div.rz.f32", one, nzero, 0, ninf}, {"div.rp.f32", one, ninf, 0, nzero},
		{"mul.ftz.f32", sub, 0x40000000, 0, zero}, {"mul.ftz.f32", 0x00800000, 0xbf000000, 0, nzero},
		{"mul.f32", 0x00800000, 0x3f000000, 0, sub},
		{"add.ftz.f32", nzero | sub, nzero | sub, 0, nzero}, {"fma.rn.ftz.f32", one, one, sub, one},
		{"add.sat.f32", one, one, 0, one}, {"add.sat.f32", 0xbf800000, zero, 0, zero}, {"add.sat.f32", snan, zero, 0, zero},
		{"add.sat.f32", nzero, nzero, 0, zero}, {"add.sat.f32", inf, zero, 0, one},
		{"min.f32", snan, one, 0, one}, {"min.f32", snan, snan, 0, nan}, {"min.NaN.f32", one, snan, 0, nan},
		{"min.f32", zero, nzero, 0, nzero},
		{"max.f32", nzero, zero, 0, zero}, {"max.f32", ninf, nan, 0, ninf}, {"max.ftz.f32", nzero | sub, nzero, 0, nzero},
		{"max.xorsign.abs.f32", 0xbf800000, 0x40000000, 0, 0xc0000000}, {"min.xorsign.abs.f32", 0xbf800000, 0xc0000000, 0, one},
		{"max.NaN.xorsign.abs.f32", 0xbf800000, snan, 0, nan},
		{"copysign.f32", nzero, one, 0, 0xbf800000}, {"copysign.f32", one, 0xffffffff, 0, 0x7fffffff},
		{"max.f16", 0x8000, 0x0000, 0, 0}, {"max.f16x2", 0x3c00_7e01, 0xbc00_c000, 0, 0x3c00_c000},
		{"min.NaN.bf16x2", 0x3f80_7fc1, 0xbf80_0000, 0, 0xbf80_7fff},
		{"fma.rn.relu.f16", 0x3c00, 0xbc00, 0, 0}, {"fma.rn.relu.f16", 0x7c00, 0, 0, 0x7fff},
		{"fma.rn.relu.bf16x2", 0x3f80_3f80, 0xbf80_3f80, 0, 0x0000_3f80},
		{"fma.rn.sat.f16x2", 0x4000_3800, 0x4000_3c00, 0, 0x3c00_3800}, {"add.ftz.f16", 0x0001, 0x0001, 0, 0},
		{"add.f16", 0x0001, 0x0001, 0, 2},
		{"add.f16", 0x7bff, 0x7bff, 0, 0x7c00}, {"add.rn.bf16", 0x7f7f, 0x7f7f, 0, 0x7f80}, {"mul.f16", 0x7c00, 0, 0, 0x7fff},
		{"add.f64", 0x7ff0000000000000, 0xfff0000000000000, 0, 0xfff8000000000000},
		{"mul.f64", 0x7ff0000000000001, 0x7ff8000000000002, 0, 0x7ff8000000000001}, // payloads stay
		{"fma.rz.f64", 0, 0, 0xfff0000000000007, 0xfff8000000000007},
	} {
		sources := 2
		if test.code[:3] == "fma" {
			sources = 3
		}
		require.Equalf(t, test.r, of(t, test.code, sources)(test.a, test.b, test.c, 0), "%s of %#x, %#x, %#x", test.code, test.a, test.b, test.c)
	}
	for _, test := range []struct {
		code string
		a, r uint64
	}{
		{"sqrt.rn.f32", nzero, nzero}, {"sqrt.rn.f32", 0xbf800000, nan}, {"sqrt.rm.f32", 0xbf800000, nan},
		{"sqrt.rp.f32", inf, inf},
		{"sqrt.rn.ftz.f32", sub, zero}, {"sqrt.rz.f32", nzero, nzero}, {"rcp.rn.f32", nzero, ninf}, {"rcp.rz.f32", ninf, nzero},
		{"rcp.rn.ftz.f32", 0x7f000000, zero}, {"rcp.rn.f32", 0x7f000000, sub}, {"neg.f32", snan, 0xff800001},
		{"abs.f32", 0xff800001, snan},
		{"neg.ftz.f32", sub, nzero}, {"abs.ftz.f32", nzero | sub, zero}, {"neg.f16x2", 0x3c00_8000, 0xbc00_0000},
		{"abs.bf16x2", 0xbf80_8000, 0x3f80_0000},
		{"neg.f64", 1 << 63, 0},
		{"ex2.approx.f32", ninf, zero}, {"ex2.approx.f32", nzero, one}, {"ex2.approx.f32", inf, inf},
		{"ex2.approx.f32", snan, nan},
		{"ex2.approx.f32", 0xc2fe0000, sub}, {"ex2.approx.ftz.f32", 0xc2fe0000, zero}, {"ex2.approx.ftz.f32", sub, one},
		{"lg2.approx.f32", ninf, nan}, {"lg2.approx.f32", nzero, ninf}, {"lg2.approx.f32", zero, ninf},
		{"lg2.approx.f32", inf, inf},
		{"lg2.approx.f32", sub, 0xc2fe0000}, {"lg2.approx.ftz.f32", sub, ninf}, {"lg2.approx.f32", one, zero},
		{"sin.approx.f32", ninf, nan}, {"sin.approx.f32", nzero, nzero}, {"cos.approx.f32", nzero, one},
		{"cos.approx.f32", inf, nan},
		{"sin.approx.ftz.f32", nzero | sub, nzero}, {"tanh.approx.f32", inf, one}, {"tanh.approx.f32", nzero, nzero},
		{"tanh.approx.f32", snan, nan},
		{"rcp.approx.f32", nzero, ninf}, {"rcp.approx.ftz.f32", sub, inf}, {"rcp.approx.f32", inf, zero},
		{"sqrt.approx.f32", nzero, nzero}, {"sqrt.approx.f32", 0xbf800000, nan}, {"rsqrt.approx.f32", nzero, ninf},
		{"rsqrt.approx.f32", inf, zero},
		{"rsqrt.approx.f32", 0xbf800000, nan}, {"rsqrt.approx.ftz.f32", nzero | sub, ninf},
		{"ex2.approx.f16", 0x4000, 0x4400}, {"ex2.approx.f16x2", 0x4c00_c000, 0x7c00_3400},
		{"ex2.approx.ftz.bf16", 0x4000, 0x4080},
		{"tanh.approx.bf16x2", 0x7f80_ff80, 0x3f80_bf80}, {"tanh.approx.f16", 0x7e00, 0x7fff},
		{"rcp.approx.ftz.f64", 0x3ff0000012345678, 0x3ff0000000000000}, {"rcp.approx.ftz.f64", 1, 0x7ff0000000000000},
		{"rcp.approx.ftz.f64", 0x7ff8000000000001, 0x7fffffff00000000}, {"rsqrt.approx.ftz.f64", 1 << 63, 0xfff0000000000000},
		{"rsqrt.approx.f64", 0x4010000000000000, 0x3fe0000000000000},
		{"rsqrt.approx.ftz.f64", 0xbff0000000000000, 0x7fffffff00000000},
	} {
		require.Equalf(t, test.r, of(t, test.code, 1)(test.a, 0, 0, 0), "%s of %#x", test.code, test.a)
	}
	div := of(t, "div.approx.f32", 2)
	for _, test := range [][3]uint64{
		{one, 0x40000000, 0x3f000000}, {0x7e800000, 0x7f000000, zero}, {0xfe800000, 0x7e800001, nzero}, {inf, 0x7f000000, nan},
		{0x7e800000, 0x7e800000, one}, {one, inf, zero}, {inf, inf, nan}, {snan, 0x7f000000, nan},
	} {
		require.Equalf(t, test[2], div(test[0], test[1], 0, 0), "%#x by %#x", test[0], test[1])
	}
	require.EqualValues(t, one, of(t, "div.full.f32", 2)(0x7f000000, 0x7f000000, 0, 0))
	require.EqualValues(t, 0x40000000_40400000, of(t, "add.rn.f32x2", 2)(0x3f800000_40000000, 0x3f800000_3f800000, 0, 0))
	require.EqualValues(t, 0xbf800000, of(t, "max.f32", 3)(0xbf800000, nan, 0xc0000000, 0))
}

// TestPerturbed samples the errors: within the bound, not all zero, and none where PTX lists an exact result.
func TestPerturbed(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, code := range fields(`ex2.approx.f32 lg2.approx.f32 sin.approx.f32 cos.approx.f32 tanh.approx.f32 sqrt.approx.f32
		rsqrt.approx.f32 rcp.approx.f32 div.full.f32 div.approx.ftz.f32 ex2.approx.f16 ex2.approx.ftz.bf16 tanh.approx.f16 tanh.approx.bf16`) {
		sources := 1
		if code[:3] == "div" {
			sources = 2
		}
		in := instr(code, sources)
		f := formatOf(in.Type(0))
		g, err := Perturbed(in, rng)
		require.NoError(t, err)
		right := of(t, code, sources)
		ap := approximations[in.Op]
		if b, ok := halfBounds[in.Op][f]; ok {
			ap.bound = always(b)
		}
		moved := 0
		for range fewer(20_000) {
			x, y := 4*rng.NormFloat64(), math.Exp(3*rng.NormFloat64())
			if op := in.Op; op == "lg2" || op == "sqrt" || op == "rsqrt" {
				x = math.Abs(x)
			}
			a, b := f.from64(x), f.from64(y)
			x, y = f.float64(a), f.float64(b)
			exact, got := ap.exact(x, y), g(a, b, 0, 0)
			bd := ap.bound(x, exact)
			r := right(a, b, 0, 0)
			if r&(f.sign()-1) == f.inf() {
				require.Equal(t, r, got, code)
				continue
			}
			ulp := math.Abs(f.float64(r^1) - f.float64(r))
			reach := max(bd.absolute, bd.relative*math.Abs(exact), bd.ulps*ulp, ulp/2)
			require.LessOrEqualf(t, math.Abs(f.float64(got)-exact), reach, "%s of %g, %g", code, x, y)
			if got != r {
				moved++
			}
		}
		require.Positive(t, moved, code)
		for _, special := range []uint64{0, f.sign(), f.inf(), f.inf() | f.sign(), f.nan} {
			require.Equal(t, right(special, f.one(), 0, 0), g(special, f.one(), 0, 0), code)
		}
	}
	plain, err := Perturbed(instr("add.f32", 2), rng)
	require.NoError(t, err)
	require.EqualValues(t, 0x40000000, plain(0x3f800000, 0x3f800000, 0, 0))
	f64, err := Perturbed(instr("rcp.approx.ftz.f64", 1), rng)
	require.NoError(t, err)
	require.InEpsilon(t, 0.25, math.Float64frombits(f64(math.Float64bits(4), 0, 0, 0)), 1e-5)
}

func BenchmarkFMA32(b *testing.B) {
	f, err := Of(instr("fma.rn.f32", 3))
	require.NoError(b, err)
	for _, bench := range []struct {
		name string
		x, y uint64
	}{{"any", 0x3f9d70a4, 0x3f7d70a3}, {"integers", 0x40400000, 0x40800000}} {
		b.Run(bench.name, func(b *testing.B) {
			acc := uint64(0)
			for i := range b.N {
				if i&63 == 0 {
					acc = 0
				}
				acc = f(bench.x, bench.y, acc, 0)
			}
			sink = acc
		})
	}
	b.Run("direct", func(b *testing.B) {
		acc := float32(0)
		for i := range b.N {
			if i&63 == 0 {
				acc = 0
			}
			acc = FMA32(1.23, 0.99, acc)
		}
		sink = uint64(math.Float32bits(acc))
	})
}

var sink uint64

func BenchmarkOf(b *testing.B) {
	for _, bench := range []struct {
		code    string
		sources int
	}{{"add.s32", 2}, {"mad.lo.s32", 3}, {"add.f32", 2}, {"fma.rz.f32", 3}, {"fma.rn.f64", 3}, {"fma.rz.f64", 3},
		{"fma.rn.f16x2", 3},
		{"cvt.rn.f16.f32", 1}, {"cvt.rzi.s32.f32", 1}, {"setp.lt.s32", 2}, {"setp.lt.f32", 2}, {"max.f32", 2},
		{"ex2.approx.f32", 1}} {
		b.Run(bench.code, func(b *testing.B) {
			f, err := Of(instr(bench.code, bench.sources))
			require.NoError(b, err)
			for i := range b.N {
				sink += f(0x3f9d70a4+uint64(i&1023), 0x3f7d70a3, 0x3e7d70a3, 0)
			}
		})
	}
}
