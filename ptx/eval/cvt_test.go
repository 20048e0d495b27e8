package eval

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// TestWidening decodes all numbers of all small formats, by the definition of their bits.
func TestWidening(t *testing.T) {
	for _, test := range []struct {
		f      *format
		bits   int
		decode func(v uint64) float32
		code   string
	}{
		{f16, 16, func(v uint64) float32 { return F16ToF32(uint16(v)) }, "cvt.f32.f16"},
		{bf16, 16, func(v uint64) float32 { return BF16ToF32(uint16(v)) }, "cvt.f32.bf16"},
		{e4m3, 8, func(v uint64) float32 { return E4M3ToF32(uint8(v)) }, ""},
		{e5m2, 8, func(v uint64) float32 { return E5M2ToF32(uint8(v)) }, ""},
	} {
		for v := range uint64(1) << test.bits {
			man, exp := test.f.man, test.f.exp
			e, m := int(v>>man&(1<<exp-1)), float64(v&(1<<man-1))
			want := math.Ldexp(m, 1-(1<<(exp-1)-1)-int(man))
			if e > 0 {
				want = math.Ldexp(m+float64(uint64(1)<<man), e-(1<<(exp-1)-1)-int(man))
			}
			switch {
			case test.f == e4m3 && v&0x7f == 0x7f, test.f != e4m3 && e == 1<<exp-1 && m != 0:
				want = math.NaN()
			case test.f != e4m3 && e == 1<<exp-1:
				want = math.Inf(1)
			}
			if v>>(test.bits-1) == 1 {
				want = -want
			}
			require.Equalf(t, bits32(float32(want)), bits32(test.decode(v)), "%#x", v)
			if test.code != "" {
				require.Equal(t, bits32(float32(want)), of(t, test.code, 1)(v, 0, 0, 0))
			}
		}
	}
}

// TestNarrowing rounds each number of a small format, the middle to the next one and what is beside the middle, in all roundings.
func TestNarrowing(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, test := range []struct {
		f     *format
		codes string
	}{
		{f16, "cvt.rn.f16.f32 cvt.rz.f16.f32 cvt.rm.f16.f32 cvt.rp.f16.f32 cvt.rn.satfinite.f16.f32 cvt.rn.relu.f16.f32"},
		{bf16, "cvt.rn.bf16.f32 cvt.rz.bf16.f32 cvt.rn.relu.satfinite.bf16.f32"},
		{tf32, "cvt.rna.tf32.f32 cvt.rn.tf32.f32 cvt.rz.relu.tf32.f32"},
		{e4m3, "cvt.rn.satfinite.e4m3x2.f32 cvt.rn.satfinite.relu.e4m3x2.f32"},
		{e5m2, "cvt.rn.satfinite.e5m2x2.f32"},
	} {
		for _, code := range fields(test.codes) {
			in := instr(code, 1+int(truth(test.f.man < 7)))
			g, err := Of(in)
			require.NoError(t, err)
			// All numbers of 16 bits once, of wider formats and for further roundings those of a stride with a fresh start.
			step, start := uint64(1), uint64(0)
			if mode := in.Rounding(); mode != ir.RN || test.f.man+test.f.exp > 15 || testing.Short() {
				step = 97
				start = rng.Uint64N(step)
			}
			for v := start; v <= test.f.largest()>>test.f.pad; v += step {
				for _, sign := range []uint64{0, 1 << 31} {
					x := f32.round(test.f.unpack(v<<test.f.pad), ir.RN)
					for _, low := range []uint64{0, 1, 1<<(22-test.f.man) - 1, 1 << (22 - test.f.man), 1<<(22-test.f.man) + 1, 1<<(23-test.f.man) - 1} {
						y := x | low | sign
						if y&0x7f800000 == 0x7f800000 {
							continue
						}
						want := nearestTo(test.f, whatIs(f32, y), in.Rounding())
						if in.Has("satfinite") && want&^test.f.sign() > test.f.largest() {
							want = want&test.f.sign() | test.f.largest()
						}
						if in.Has(ir.Relu) && sign != 0 {
							want = 0
						}
						if len(in.Args) == 3 {
							want |= want << 8
						}
						if got := g(y, y, 0, 0); got != want {
							require.FailNowf(t, code, "of %#x: %#x, want %#x", y, got, want)
						}
					}
				}
			}
			special := func(v uint64) uint64 { return g(v, 0, 0, 0) >> (8 * truth(len(in.Args) == 3)) }
			require.Equal(t, test.f.nan, special(0x7f800001), code)
			require.Equal(t, test.f.nan, special(0xffc00000), code)
			if in.Has("satfinite") {
				require.Equal(t, test.f.largest(), special(0x7f800000), code)
			} else {
				require.Equal(t, test.f.inf(), special(0x7f800000), code)
			}
		}
	}
	require.EqualValues(t, 0x7bff, F32ToF16(65519))
	require.EqualValues(t, 0x7c00, F32ToF16(65520))
	require.EqualValues(t, 0x3f81, F32ToBF16(math.Float32frombits(0x3f808001)))
	require.EqualValues(t, 0x7e, F32ToE4M3(1e9))
	require.EqualValues(t, 0xfb, F32ToE5M2(float32(math.Inf(-1))))
	require.Equal(t, math.Float32frombits(0x3f802000), F32ToTF32(math.Float32frombits(0x3f801000)))
}

// TestPairs converts all pairs of halves and of bytes: what is in one does not touch the other.
func TestPairs(t *testing.T) {
	rng := ptxtest.Random(t)
	down, relu, up := of(t, "cvt.rn.satfinite.e4m3x2.f16x2", 1), of(t, "cvt.rn.satfinite.relu.e5m2x2.f16x2", 1), of(t, "cvt.rn.f16x2.e5m2x2", 1)
	for v := range uint64(1 << 16) {
		u := rng.Uint64() & 0xffff
		x := F16ToF32(uint16(v))
		require.EqualValues(t, F32ToE4M3(x), down(v|u<<16, 0, 0, 0)&0xff)
		require.EqualValues(t, F32ToE4M3(x), down(v<<16|u, 0, 0, 0)>>8)
		want := F32ToE5M2(x)
		if x < 0 || x == 0 {
			want = 0
		}
		require.EqualValues(t, want, relu(v|u<<16, 0, 0, 0)&0xff)
		lo, hi := F32ToF16(E5M2ToF32(uint8(v))), F32ToF16(E5M2ToF32(uint8(v>>8)))
		require.EqualValues(t, uint64(hi)<<16|uint64(lo), up(v, 0, 0, 0))
	}
	require.EqualValues(t, 0x3c00_c000, of(t, "cvt.rn.f16x2.f32", 2)(0x3f800000, 0xc0000000, 0, 0))
	require.EqualValues(t, 0x3f80_0000, of(t, "cvt.rn.relu.bf16x2.f32", 2)(0x3f800000, 0xc0000000, 0, 0))
	require.EqualValues(t, 0x7fff_8000, of(t, "cvt.pack.sat.s16.s32", 2)(1<<20, 1<<31, 0, 0))
	require.EqualValues(t, 0xbbaa_ff00, of(t, "cvt.pack.sat.u8.s32.b32", 3)(300, 0xffffffff, 0xddccbbaa, 0))
	require.EqualValues(t, 0xccbbaa_78, of(t, "cvt.pack.sat.s4.s32.b32", 3)(7, 0xfffffff0, 0xddccbbaa, 0))
}

// TestIntegerConversions: all pairs of integer types, with and without .sat.
func TestIntegerConversions(t *testing.T) {
	rng := ptxtest.Random(t)
	types := append(integers(), ir.U8, ir.S8)
	for _, to := range types {
		for _, from := range types {
			plain, sat := of(t, "cvt."+to.String()+"."+from.String(), 1), of(t, "cvt.sat."+to.String()+"."+from.String(), 1)
			for range 500 {
				v := word(rng)
				x := bigOf(v, from)
				w := uint(to.Bits())
				// In a wider register the sign fills.
				fill := func(v uint64) uint64 { return lowBits(bigOf(v, to), 64) }
				require.Equalf(t, fill(lowBits(x, w)), plain(v, 0, 0, 0), "cvt.%s.%s %#x", to, from, v)
				require.Equalf(t, fill(lowBits(clampTo(x, to), w)), sat(v, 0, 0, 0), "cvt.sat.%s.%s %#x", to, from, v)
			}
		}
	}
}

// TestMixedConversions: all pairs of an integer and a floating-point type, in all roundings.
func TestMixedConversions(t *testing.T) {
	rng := ptxtest.Random(t)
	floats := []ir.Type{ir.F16, ir.BF16, ir.F32, ir.F64}
	for _, i := range append(integers(), ir.U8, ir.S8) {
		for _, ft := range floats {
			f := formatOf(ft)
			for _, mode := range fields("rn rz rm rp") {
				code := "cvt." + mode + "." + ft.String() + "." + i.String()
				g := of(t, code, 1)
				for range 300 {
					v := word(rng)
					x := bigOf(v, i)
					want := nearestTo(f, fraction{x.Sign() < 0, new(big.Int).Abs(x), big.NewInt(1), 0}, ir.Mod(mode))
					require.Equalf(t, want, g(v, 0, 0, 0), "%s %#x", code, v)
				}
				code = "cvt." + mode + "i." + i.String() + "." + ft.String()
				g = of(t, code, 1)
				for range 300 {
					v := operand(rng, f)
					if rng.IntN(2) == 0 { // of an integer's magnitude, with a fraction
						v = f.from64((rng.Float64() - 0.5) * math.Ldexp(1, rng.IntN(66)))
						if v&f.inf() == f.inf() {
							continue
						}
					}
					// A fixed-point number with 0 fractional bits, from the reference in a wide format.
					x := whatIs(f, v)
					n := integral(x, ir.Mod(mode))
					want := lowBits(bigOf(lowBits(clampTo(n, i), uint(i.Bits())), i), 64)
					require.Equalf(t, want, g(v, 0, 0, 0), "%s %#x", code, v)
				}
				nan := uint64(0)
				if ft == ir.F64 || i.Bits() == 64 {
					nan = lowBits(bigOf(1<<(i.Bits()-1), i), 64)
				}
				require.Equal(t, nan, g(f.nan, 0, 0, 0), code)
				top := lowBits(clampTo(new(big.Int).Lsh(big.NewInt(1), 100), i), 64)
				require.Equal(t, top, g(f.inf(), 0, 0, 0), code)
			}
		}
	}
}

// integral rounds a fraction to an integer.
func integral(x fraction, mode ir.Mod) *big.Int {
	num, den := new(big.Int).Set(x.num), new(big.Int).Set(x.den)
	if x.exp > 0 {
		num.Lsh(num, uint(x.exp))
	} else {
		den.Lsh(den, uint(-x.exp))
	}
	if x.neg {
		num.Neg(num)
	}
	floor, rest := new(big.Int).DivMod(num, den, new(big.Int))
	if rest.Sign() == 0 {
		return floor
	}
	half := rest.Lsh(rest, 1).Cmp(den)
	if mode == ir.RP || mode == ir.RZ && x.neg || mode == ir.RN && (half > 0 || half == 0 && floor.Bit(0) == 1) {
		floor.Add(floor, big.NewInt(1))
	}
	return floor
}

// TestFloatConversions: all pairs of floating-point types, and rounding to whole numbers in each.
func TestFloatConversions(t *testing.T) {
	rng := ptxtest.Random(t)
	floats := []ir.Type{ir.F16, ir.BF16, ir.F32, ir.F64}
	for _, to := range floats {
		for _, from := range floats {
			for _, mode := range fields("rn rz rm rp") {
				code := "cvt." + mode + "." + to.String() + "." + from.String()
				f, sf := formatOf(to), formatOf(from)
				g := of(t, code, 1)
				for range fewer(3000) {
					v := operand(rng, sf)
					want := nearestTo(f, whatIs(sf, v), ir.Mod(mode))
					require.Equalf(t, want, g(v, 0, 0, 0), "%s %#x", code, v)
				}
				require.Equal(t, f.inf()|f.sign(), g(sf.inf()|sf.sign(), 0, 0, 0), code)
				require.True(t, f.isNaN(g(sf.nan, 0, 0, 0)), code)
				if to != from {
					continue
				}
				code = "cvt." + mode + "i." + to.String() + "." + from.String()
				g = of(t, code, 1)
				for range fewer(3000) {
					v := operand(rng, sf)
					x := whatIs(sf, v)
					n := integral(x, ir.Mod(mode))
					want := nearestTo(f, fraction{x.neg, n.Abs(n), big.NewInt(1), 0}, ir.RN)
					require.Equalf(t, want, g(v, 0, 0, 0), "%s %#x", code, v)
				}
			}
		}
	}
	for _, test := range []struct {
		code string
		v, r uint64
	}{
		{"cvt.ftz.f32.f16", 0x0001, 0x33800000}, {"cvt.rn.ftz.f16.f32", 0x80000001, 0x8000},
		{"cvt.rn.ftz.f32.f64", 0x3690000000000000, 0},
		{"cvt.rn.f32.f64", 0x36a0000000000000, 1}, {"cvt.rpi.ftz.s32.f32", 1, 0}, {"cvt.rpi.s32.f32", 1, 1},
		{"cvt.ftz.f64.f32", 1, 0},
		{"cvt.sat.f32.f32", 0x40000000, 0x3f800000}, {"cvt.sat.f32.f32", 0xbf800000, 0}, {"cvt.sat.f32.f32", 0x7fc00000, 0},
		{"cvt.rn.sat.f16.f32", 0x40000000, 0x3c00}, {"cvt.rn.sat.f32.s32", 5, 0x3f800000},
		{"cvt.rni.f32.f32", 0xbe800000, 0x80000000},
		{"cvt.f64.f32", 0xffc00001, 0xfff8000020000000}, {"cvt.rn.f32.f64", 0xfff8000020000000, 0x7fffffff},
		{"cvt.rn.relu.f16.f32", 0x80000000, 0}, {"cvt.rn.relu.f16.f32", 0xffc00000, 0x7fff},
	} {
		require.Equalf(t, test.r, of(t, test.code, 1)(test.v, 0, 0, 0), "%s %#x", test.code, test.v)
	}
}
