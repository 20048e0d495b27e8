package eval

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

func carry(t *testing.T, code string, sources int) CarryFunc {
	t.Helper()
	f, err := Carry(instr(code, sources))
	require.NoError(t, err)
	return f
}

// TestCarry adds, subtracts and multiplies numbers of four words by chains.
func TestCarry(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, typ := range []string{"u32", "s64"} {
		typed, _ := ir.TypeNamed(typ)
		w := uint(typed.Bits())
		addCC, addc := carry(t, "add.cc."+typ, 2), carry(t, "addc.cc."+typ, 2)
		subCC, subc := carry(t, "sub.cc."+typ, 2), carry(t, "subc.cc."+typ, 2)
		for range 2000 {
			var a, b, sum, difference [4]uint64
			var carry, kept bool
			x, y := new(big.Int), new(big.Int)
			for i := range a {
				a[i], b[i] = word(rng)&mask(w), word(rng)&mask(w)
				x.Or(x, new(big.Int).Lsh(new(big.Int).SetUint64(a[i]), w*uint(i)))
				y.Or(y, new(big.Int).Lsh(new(big.Int).SetUint64(b[i]), w*uint(i)))
				f, g := addc, subc
				if i == 0 {
					f, g = addCC, subCC
					carry, kept = rng.IntN(2) == 1, rng.IntN(2) == 1 // not read
				}
				sum[i], carry = f(a[i], b[i], 0, carry)
				difference[i], kept = g(a[i], b[i], 0, kept)
			}
			whole := func(v [4]uint64) *big.Int {
				r := new(big.Int)
				for i := range v {
					r.Or(r, new(big.Int).Lsh(new(big.Int).SetUint64(v[i]), w*uint(i)))
				}
				return r
			}
			modulus := new(big.Int).Lsh(big.NewInt(1), 4*w)
			s, d := new(big.Int).Add(x, y), new(big.Int).Sub(x, y)
			require.Equal(t, s.Cmp(modulus) >= 0, carry)
			require.Equal(t, d.Sign() >= 0, kept, "no borrow")
			require.Zero(t, whole(sum).Cmp(s.Mod(s, modulus)))
			require.Zero(t, whole(difference).Cmp(d.Mod(d, modulus)))
		}
	}
	// What a subtraction leaves behind is a carry to an addition, and the other way round.
	for _, c := range []struct{ a, b, sum, difference uint64 }{{5, 3, 1, 0}, {3, 5, 0, 1<<32 - 1}} {
		_, cc := carry(t, "sub.cc.u32", 2)(c.a, c.b, 0, false)
		sum, _ := carry(t, "addc.u32", 2)(0, 0, 0, cc)
		difference, _ := carry(t, "subc.u32", 2)(0, 0, 0, cc)
		require.Equal(t, [2]uint64{c.sum, c.difference}, [2]uint64{sum, difference})
	}
	// (hi:lo) + a·b over two words
	lo, hi := carry(t, "mad.lo.cc.u64", 3), carry(t, "madc.hi.u64", 3)
	for range 2000 {
		a, b, c, d := word(rng), word(rng), word(rng), word(rng)
		low, cc := lo(a, b, c, false)
		high, after := hi(a, b, d, cc)
		require.Equal(t, cc, after)
		x := new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
		x.Add(x, new(big.Int).SetUint64(c))
		x.Add(x, new(big.Int).Lsh(new(big.Int).SetUint64(d), 64))
		require.Equal(t, lowBits(x, 64), low)
		require.Equal(t, lowBits(new(big.Int).Rsh(x, 64), 64), high)
	}
	for _, code := range fields("add.u32 add.cc.u16 addc.f32 mad.cc.u32 mul.cc.u32 sub.cc.sat.s32") {
		_, err := Carry(instr(code, 2))
		require.Error(t, err, code)
	}
}

func TestAtom(t *testing.T) {
	for _, test := range []struct {
		code         string
		old, b, c, r uint64
	}{
		{"atom.global.add.u32", 0xffffffff, 2, 0, 1}, {"red.shared.add.u64", 1<<63 | 1, 1 << 63, 0, 1},
		{"atom.global.min.s32", 0xffffffff, 1, 0, 0xffffffff}, {"atom.global.min.u32", 0xffffffff, 1, 0, 1},
		{"atom.max.s64", 1 << 63, 5, 0, 5},
		{"atom.and.b32", 6, 3, 0, 2}, {"atom.or.b64", 6, 3, 0, 7}, {"atom.xor.b32", 6, 3, 0, 5},
		{"atom.exch.b64", 6, 1 << 40, 0, 1 << 40},
		{"atom.acquire.cta.cas.b16", 6, 6, 3, 3}, {"atom.cas.b32", 6, 7, 3, 6},
		{"atom.inc.u32", 6, 7, 0, 7}, {"atom.inc.u32", 7, 7, 0, 0}, {"atom.dec.u32", 0, 7, 0, 7},
		{"atom.dec.u32", 9, 7, 0, 7}, {"atom.dec.u32", 7, 7, 0, 6},
		{"atom.global.add.f32", 0x3f800000, 0x3f800000, 0, 0x40000000}, {"atom.global.add.f32", 1, 1, 0, 0},
		{"atom.shared.add.f32", 1, 1, 0, 2},
		{"red.global.add.noftz.f16x2", 0x3c00_0001, 0x3c00_0001, 0, 0x4000_0002},
		{"atom.add.noftz.bf16", 0x3f80, 0x3f80, 0, 0x4000},
		{"atom.add.f64", 1, 1, 0, 2}, {"red.global.v2.max.noftz.bf16x2", 0x3f80_7fff, 0x4000_bf80, 0, 0x4000_bf80},
	} {
		f, err := Atom(instr(test.code, 2))
		require.NoError(t, err, test.code)
		require.Equalf(t, test.r, f(test.old, test.b, test.c), "%s %#x %#x %#x", test.code, test.old, test.b, test.c)
	}
	for _, code := range fields("atom.global.u32 atom.min.f32 atom.sub.u32 atom.min.b32 red.add.u8 atom.and.f32 atom.add.pred atom.add") {
		_, err := Atom(instr(code, 2))
		require.Error(t, err, code)
	}
}

func TestImmediate(t *testing.T) {
	f32, f64 := ir.Operand{Kind: ir.F32Operand, Bits: 0x40490fdb}, ir.Operand{Kind: ir.F64Operand, Bits: 0x400921fb54442d18}
	for _, test := range []struct {
		o ir.Operand
		t ir.Type
		r uint64
	}{
		{ir.Int(-1), ir.U16, 0xffff}, {ir.Int(-1), ir.S64, 1<<64 - 1}, {ir.Int(0x1_2345_6789), ir.B32, 0x23456789},
		{ir.Int(2), ir.Pred, 1},
		{f32, ir.F32, 0x40490fdb}, {f32, ir.B32, 0x40490fdb}, {f64, ir.F64, 0x400921fb54442d18},
		{f64, ir.F32, 0x40490fdb}, {f64, ir.B64, 0x400921fb54442d18},
		{f32, ir.F64, 0x400921fb60000000}, {f64, ir.F16, 0x4248}, {f64, ir.B32, 0x40490fdb}, {ir.Int(5), ir.NoType, 5},
		{ir.Int(-5), ir.F16x2, 0xfffffffb},
	} {
		require.Equalf(t, test.r, Immediate(test.o, test.t), "%x as %s", test.o.Bits, test.t)
	}
}
