package eval

import (
	"errors"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// word is an integer, often one at which something ends.
func word(rng *rand.Rand) uint64 {
	switch rng.IntN(4) {
	case 0:
		return rng.Uint64N(5) - 2
	case 1:
		return 1<<rng.IntN(64) + rng.Uint64N(3) - 1
	case 2:
		return rng.Uint64() >> rng.IntN(64)
	}
	return rng.Uint64()
}

func bigOf(v uint64, t ir.Type) *big.Int {
	w := uint(t.Bits())
	x := new(big.Int).SetUint64(v & (1<<w - 1))
	if t.IsSigned() && x.Bit(int(w)-1) == 1 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), w))
	}
	return x
}

// lowBits are the w low bits in two's complement.
func lowBits(x *big.Int, w uint) uint64 {
	return new(big.Int).And(x, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), w), big.NewInt(1))).Uint64()
}

func integers() []ir.Type { return []ir.Type{ir.U16, ir.U32, ir.U64, ir.S16, ir.S32, ir.S64} }

// TestIntegers compares with integers of any size, for all widths.
func TestIntegers(t *testing.T) {
	rng := ptxtest.Random(t)
	type big3 func(a, b, c *big.Int, w uint) *big.Int
	shift := func(f func(*big.Int, uint) *big.Int, w uint) func(*big.Int) *big.Int {
		return func(x *big.Int) *big.Int { return f(x, w) }
	}
	rsh := func(x *big.Int, w uint) *big.Int { return new(big.Int).Rsh(x, w) }
	mul := func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }
	plus := func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }
	ones := big.NewInt(-1)
	for _, test := range []struct {
		code    string
		sources int
		wide    uint // result's width by the type's
		f       big3
	}{
		{"add.", 2, 1, func(a, b, _ *big.Int, _ uint) *big.Int { return plus(a, b) }},
		{"sub.", 2, 1, func(a, b, _ *big.Int, _ uint) *big.Int { return new(big.Int).Sub(a, b) }},
		{"mul.lo.", 2, 1, func(a, b, _ *big.Int, _ uint) *big.Int { return mul(a, b) }},
		{"mul.hi.", 2, 1, func(a, b, _ *big.Int, w uint) *big.Int { return shift(rsh, w)(mul(a, b)) }},
		{"mul.wide.", 2, 2, func(a, b, _ *big.Int, _ uint) *big.Int { return mul(a, b) }},
		{"mad.lo.", 3, 1, func(a, b, c *big.Int, _ uint) *big.Int { return plus(mul(a, b), c) }},
		{"mad.hi.", 3, 1, func(a, b, c *big.Int, w uint) *big.Int { return plus(rsh(mul(a, b), w), c) }},
		{"mad.wide.", 3, 2, func(a, b, c *big.Int, _ uint) *big.Int { return plus(mul(a, b), c) }},
		{"sad.", 3, 1, func(a, b, c *big.Int, _ uint) *big.Int { return plus(c, new(big.Int).Abs(new(big.Int).Sub(a, b))) }},
		{"div.", 2, 1, func(a, b, _ *big.Int, _ uint) *big.Int {
			if b.Sign() == 0 {
				return ones
			}
			return new(big.Int).Quo(a, b)
		}},
		{"rem.", 2, 1, func(a, b, _ *big.Int, _ uint) *big.Int {
			if b.Sign() == 0 {
				return ones
			}
			return new(big.Int).Rem(a, b)
		}},
		{"min.", 2, 1, func(a, b, _ *big.Int, _ uint) *big.Int {
			if a.Cmp(b) < 0 {
				return a
			}
			return b
		}},
		{"max.", 2, 1, func(a, b, _ *big.Int, _ uint) *big.Int {
			if a.Cmp(b) > 0 {
				return a
			}
			return b
		}},
		{"abs.", 1, 1, func(a, _, _ *big.Int, _ uint) *big.Int { return new(big.Int).Abs(a) }},
		{"neg.", 1, 1, func(a, _, _ *big.Int, _ uint) *big.Int { return new(big.Int).Neg(a) }},
	} {
		for _, typ := range integers() {
			w := uint(typ.Bits())
			code := test.code + typ.String()
			if test.sources == 1 && !typ.IsSigned() || test.wide == 2 && w == 64 {
				_, err := Of(instr(code, test.sources))
				require.Error(t, err, code)
				continue
			}
			f := of(t, code, test.sources)
			for range fewer(2000) {
				a, b, c := word(rng), word(rng), word(rng)
				ct := typ
				if test.wide == 2 {
					ct = ir.U64
				}
				want := lowBits(test.f(bigOf(a, typ), bigOf(b, typ), bigOf(c, ct), w), w*test.wide)
				require.Equalf(t, want, f(a, b, c, 0), "%s of %#x, %#x, %#x", code, a, b, c)
			}
		}
	}
}

func clampTo(x *big.Int, t ir.Type) *big.Int {
	w := uint(t.Bits())
	lo, hi := big.NewInt(0), new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), w), big.NewInt(1))
	if t.IsSigned() {
		lo, hi = new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), w-1)), new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), w-1), big.NewInt(1))
	}
	switch {
	case x.Cmp(lo) < 0:
		return lo
	case x.Cmp(hi) > 0:
		return hi
	}
	return x
}

func TestSaturated(t *testing.T) {
	rng := ptxtest.Random(t)
	for range fewer(20_000) {
		a, b, c := word(rng), word(rng), word(rng)
		x, y, z := bigOf(a, ir.S32), bigOf(b, ir.S32), bigOf(c, ir.S32)
		sat := func(x *big.Int) uint64 { return lowBits(clampTo(x, ir.S32), 32) }
		require.Equal(t, sat(new(big.Int).Add(x, y)), of(t, "add.sat.s32", 2)(a, b, 0, 0))
		require.Equal(t, sat(new(big.Int).Sub(x, y)), of(t, "sub.sat.s32", 2)(a, b, 0, 0))
		hi := new(big.Int).Rsh(new(big.Int).Mul(x, y), 32)
		require.Equal(t, sat(hi.Add(hi, z)), of(t, "mad.hi.sat.s32", 3)(a, b, c, 0))
		p := int64(int32(a)<<8>>8) * int64(int32(b)<<8>>8)
		q := uint64(uint32(a)&0xffffff) * uint64(uint32(b)&0xffffff)
		require.EqualValues(t, uint32(p), of(t, "mul24.lo.s32", 2)(a, b, 0, 0))
		require.EqualValues(t, uint32(p>>16), of(t, "mul24.hi.s32", 2)(a, b, 0, 0))
		require.EqualValues(t, uint32(q), of(t, "mul24.lo.u32", 2)(a, b, 0, 0))
		require.EqualValues(t, uint32(q>>16)+uint32(c), of(t, "mad24.hi.u32", 3)(a, b, c, 0))
		require.Equal(t, sat(new(big.Int).Add(big.NewInt(int64(int32(p>>16))), z)), of(t, "mad24.hi.sat.s32", 3)(a, b, c, 0))
	}
}

// TestPacked: two halves of their own.
func TestPacked(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, code := range fields("add.u16x2 sub.s16x2 min.s16x2 max.u16x2 max.relu.s16x2 min.relu.s16x2") {
		f := of(t, code, 2)
		in := instr(code, 2)
		one, err := Of(instr(string(in.Op)+"."+in.Type(0).String()[:3], 2))
		require.NoError(t, err)
		for range 1000 {
			a, b := rng.Uint64(), rng.Uint64()
			half := func(a, b uint64) uint64 {
				r := one(a, b, 0, 0)
				if in.Has(ir.Relu) && r>>15 == 1 {
					r = 0
				}
				return r
			}
			require.Equal(t, half(a&0xffff, b&0xffff)|half(a>>16&0xffff, b>>16&0xffff)<<16, f(a, b, 0, 0)&0xffffffff, code)
		}
	}
	require.EqualValues(t, 0, of(t, "max.relu.s32", 2)(0xffffffff, 0x80000000, 0, 0))
}

// TestDots: the bytes of the manual's pseudo-code.
func TestDots(t *testing.T) {
	rng := ptxtest.Random(t)
	part := func(v uint64, bit, w int, typ string) int64 {
		v >>= bit
		switch {
		case typ == "u32" && w == 8:
			return int64(uint8(v))
		case typ == "u32":
			return int64(uint16(v))
		case w == 8:
			return int64(int8(v))
		}
		return int64(int16(v))
	}
	for _, ta := range fields("u32 s32") {
		for _, tb := range fields("u32 s32") {
			for range 2000 {
				a, b, c := word(rng), rng.Uint64(), word(rng)
				four, lo, hi := int64(c), int64(c), int64(c)
				for i := range 4 {
					four += part(a, 8*i, 8, ta) * part(b, 8*i, 8, tb)
				}
				for i := range 2 {
					lo += part(a, 16*i, 16, ta) * part(b, 8*i, 8, tb)
					hi += part(a, 16*i, 16, ta) * part(b, 8*i+16, 8, tb)
				}
				require.EqualValues(t, uint32(four), of(t, "dp4a."+ta+"."+tb, 3)(a, b, c, 0))
				require.EqualValues(t, uint32(lo), of(t, "dp2a.lo."+ta+"."+tb, 3)(a, b, c, 0))
				require.EqualValues(t, uint32(hi), of(t, "dp2a.hi."+ta+"."+tb, 3)(a, b, c, 0))
			}
		}
	}
}

// TestShifts tries every amount, within and beyond the width.
func TestShifts(t *testing.T) {
	rng := ptxtest.Random(t)
	for n := range uint64(300) {
		if n > 200 {
			n = rng.Uint64() & 0xffffffff
		}
		v, u := rng.Uint64(), rng.Uint64()
		sh := n | u<<32 // the amount has 32 bits
		require.EqualValues(t, uint16(v)<<n, of(t, "shl.b16", 2)(v, sh, 0, 0))
		require.EqualValues(t, uint32(v)<<n, of(t, "shl.b32", 2)(v, sh, 0, 0))
		require.EqualValues(t, v<<n, of(t, "shl.b64", 2)(v, sh, 0, 0))
		require.EqualValues(t, uint16(v)>>n, of(t, "shr.u16", 2)(v, sh, 0, 0))
		require.EqualValues(t, uint32(v)>>n, of(t, "shr.b32", 2)(v, sh, 0, 0))
		require.EqualValues(t, v>>n, of(t, "shr.u64", 2)(v, sh, 0, 0))
		require.EqualValues(t, uint16(int16(v)>>n), of(t, "shr.s16", 2)(v, sh, 0, 0))
		require.EqualValues(t, uint32(int32(v)>>n), of(t, "shr.s32", 2)(v, sh, 0, 0))
		require.EqualValues(t, uint64(int64(v)>>n), of(t, "shr.s64", 2)(v, sh, 0, 0))
	}
	for n := range uint64(80) {
		v, u := rng.Uint64(), rng.Uint64()
		for mode, k := range map[string]uint64{"clamp": min(n, 32), "wrap": n & 31} {
			var left, right uint64
			for i := range uint64(32) {
				left |= concatenated(u, v, i+32-k) << i
				right |= concatenated(u, v, i+k) << i
			}
			require.Equal(t, left, of(t, "shf.l."+mode+".b32", 3)(v, u, n|v<<32, 0))
			require.Equal(t, right, of(t, "shf.r."+mode+".b32", 3)(v, u, n|v<<32, 0))
		}
	}
}

// concatenated is bit i of the lower words of hi and lo.
func concatenated(hi, lo, i uint64) uint64 {
	if i < 32 {
		return lo >> i & 1
	}
	return hi >> (i - 32) & 1
}

// TestBitFields follows the manual's pseudo-code, bit by bit.
func TestBitFields(t *testing.T) {
	rng := ptxtest.Random(t)
	for range fewer(20_000) {
		v, u, pos, n := word(rng), word(rng), rng.Uint64N(80), rng.Uint64N(80)
		if rng.IntN(10) == 0 {
			pos, n = rng.Uint64N(256), rng.Uint64N(256)
		}
		for _, typ := range []ir.Type{ir.U32, ir.S32, ir.U64, ir.S64} {
			msb := uint64(typ.Bits() - 1)
			var sign, want uint64
			if typ.IsSigned() && n > 0 {
				sign = v >> min(pos+n-1, msb) & 1
			}
			for i := range msb + 1 {
				bit := sign
				if i < n && pos+i <= msb {
					bit = v >> (pos + i) & 1
				}
				want |= bit << i
			}
			require.Equalf(t, want, of(t, "bfe."+typ.String(), 3)(v, pos, n, 0), "bfe.%s %#x %d %d", typ, v, pos, n)
		}
		for _, msb := range []uint64{31, 63} {
			want := u & (1<<(msb+1) - 1)
			for i := uint64(0); i < n && pos+i <= msb; i++ {
				want = want&^(1<<(pos+i)) | v>>i&1<<(pos+i)
			}
			require.Equalf(t, want, of(t, map[uint64]string{31: "bfi.b32", 63: "bfi.b64"}[msb], 4)(v, u, pos, n), "bfi %#x %#x %d %d", v, u, pos, n)
		}
		for mode, limit := range map[string]func(uint64) uint64{
			"clamp": func(n uint64) uint64 { return min(n, 32) }, "wrap": func(n uint64) uint64 { return n & 31 },
		} {
			var field uint64
			for i := limit(pos); i < limit(pos)+limit(n) && i < 32; i++ {
				field |= 1 << i
			}
			require.Equal(t, field, of(t, "bmsk."+mode+".b32", 2)(pos, n, 0, 0))
			k := limit(n)
			var zext, sext uint32
			if k > 0 {
				zext = uint32(v) << (32 - k) >> (32 - k)
				sext = uint32(int32(v) << (32 - k) >> (32 - k))
			}
			require.EqualValues(t, zext, of(t, "szext."+mode+".u32", 2)(v, n, 0, 0))
			require.EqualValues(t, sext, of(t, "szext."+mode+".s32", 2)(v, n, 0, 0))
		}
		// fns
		base, nth := rng.Uint64N(32), rng.IntN(70)-35
		want := uint64(0xffffffff)
		if nth == 0 {
			if v>>base&1 == 1 {
				want = base
			}
		} else {
			step, left := 1, nth
			if nth < 0 {
				step, left = -1, -nth
			}
			for i := int(base); i >= 0 && i < 32; i += step {
				if v>>i&1 == 1 {
					if left--; left == 0 {
						want = uint64(i)
					}
				}
			}
		}
		require.Equal(t, want, of(t, "fns.b32", 3)(v&0xffffffff, base, uint64(nth), 0))
	}
}

func TestBitCounts(t *testing.T) {
	rng := ptxtest.Random(t)
	for range fewer(20_000) {
		v := word(rng)
		x, y := uint32(v), v
		require.EqualValues(t, bits.OnesCount32(x), of(t, "popc.b32", 1)(v, 0, 0, 0))
		require.EqualValues(t, bits.OnesCount64(y), of(t, "popc.b64", 1)(v, 0, 0, 0))
		require.EqualValues(t, bits.LeadingZeros32(x), of(t, "clz.b32", 1)(v, 0, 0, 0))
		require.EqualValues(t, bits.LeadingZeros64(y), of(t, "clz.b64", 1)(v, 0, 0, 0))
		require.EqualValues(t, bits.Reverse32(x), of(t, "brev.b32", 1)(v, 0, 0, 0))
		require.EqualValues(t, bits.Reverse64(y), of(t, "brev.b64", 1)(v, 0, 0, 0))
		mag := func(neg bool, v, m uint64) uint64 {
			if neg {
				return ^v & m
			}
			return v & m
		}
		for typ, m := range map[string]uint64{"u32": uint64(x), "u64": y, "s32": mag(int32(x) < 0, v, 1<<32-1), "s64": mag(int64(y) < 0, v, 1<<64-1)} {
			at, shift := uint64(0xffffffff), uint64(0xffffffff)
			if m != 0 {
				at = uint64(bits.Len64(m) - 1)
				shift = map[string]uint64{"2": 31, "4": 63}[typ[2:]] - at
			}
			require.Equalf(t, at, of(t, "bfind."+typ, 1)(v, 0, 0, 0), "%s %#x", typ, v)
			require.Equal(t, shift, of(t, "bfind.shiftamt."+typ, 1)(v, 0, 0, 0))
		}
		require.Equal(t, truth(x == 0), of(t, "cnot.b32", 1)(v, 0, 0, 0))
		u := word(rng)
		require.Equal(t, v&u&0xffff, of(t, "and.b16", 2)(v, u, 0, 0))
		require.EqualValues(t, x|uint32(u), of(t, "or.b32", 2)(v, u, 0, 0))
		require.Equal(t, v^u, of(t, "xor.b64", 2)(v, u, 0, 0))
		require.EqualValues(t, ^x, of(t, "not.b32", 1)(v, 0, 0, 0))
		require.Equal(t, 1-v&1, of(t, "not.pred", 1)(v&1, 0, 0, 0))
	}
}

func TestLop3(t *testing.T) {
	rng := ptxtest.Random(t)
	for table := range 256 {
		in := instr("lop3.b32", 4)
		in.Args[4] = ir.Int(int64(table))
		f, err := Of(in)
		require.NoError(t, err)
		a, b, c := rng.Uint64(), rng.Uint64(), rng.Uint64()
		var want uint64
		for i := range 32 { // the table is what the function makes of 0xf0, 0xcc and 0xaa
			place := a>>i&1<<2 | b>>i&1<<1 | c>>i&1
			want |= uint64(table) >> place & 1 << i
		}
		require.Equal(t, want, f(a, b, c, 0))
	}
	in := instr("lop3.or.b32", 5)
	in.Args[4] = ir.Int(0x80)
	f, err := Of(in)
	require.NoError(t, err)
	require.EqualValues(t, 1<<32, f(1, 2, 4, 1))
	require.EqualValues(t, 1<<32|4, f(4, 4, 4, 0))
	require.Zero(t, f(1, 2, 4, 0))
	in.Mods[0] = "and"
	f, err = Of(in)
	require.NoError(t, err)
	require.EqualValues(t, 4, f(4, 4, 4, 0))
	require.EqualValues(t, 1<<32|4, f(4, 4, 4, 1))
}

// TestPrmt: the manual's table of modes, the bytes of b:a numbered from the lowest.
func TestPrmt(t *testing.T) {
	const a, b = 0x13_12_11_10, 0x17_16_15_14
	for mode, rows := range map[string][4]uint64{
		"f4e": {0x13121110, 0x14131211, 0x15141312, 0x16151413}, "b4e": {0x15161710, 0x16171011, 0x17101112, 0x10111213},
		"rc8": {0x10101010, 0x11111111, 0x12121212, 0x13131313}, "ecl": {0x13121110, 0x13121111, 0x13121212, 0x13131313},
		"ecr": {0x10101010, 0x11111110, 0x12121110, 0x13121110}, "rc16": {0x11101110, 0x13121312, 0x11101110, 0x13121312},
	} {
		for c, want := range rows {
			require.Equalf(t, want, of(t, "prmt.b32."+mode, 3)(a, b, uint64(c)+4, 0), "%s %d", mode, c)
		}
	}
	f := of(t, "prmt.b32", 3)
	require.EqualValues(t, 0x17101511, f(a, b, 0x7051, 0))
	require.EqualValues(t, 0xff_00_80_ff, of(t, "prmt.b32", 3)(0x80, 0x7f000000, 0x8_f_0_8, 0)) // signs repeated
}

// TestErrors: what is not here says so.
func TestErrors(t *testing.T) {
	for _, code := range fields(`add.s16.sat add.sat.u32 add.rn.s32 add.frobnicate.f32 mul.s32 mul.wide.u64 shf.b32 prmt.b32.x4 ld.f32
		add.cc.u32 lop3.b32 div.f32 ex2.f32 ex2.approx.f64 rcp.approx.f64 min.ftz.f64 max.NaN.f64 abs.u32 cvta.global.u64 vmad.u32.u32.u32.add
		max.xorsign.f32 bfe.b32 setp.f32 setp.lt.b32 setp.lo.s32 setp.num.s32 cvt.f32 slct.f32.u32 dp4a.u32 testp.f32 add`) {
		for sources := range 5 {
			f, err := Of(instr(code, sources))
			require.Nil(t, f, code)
			require.Truef(t, errors.Is(err, compute.ErrUnsupported) || errors.Is(err, compute.ErrArgument), "%s: %v", code, err)
			require.ErrorContains(t, err, code)
		}
	}
	_, err := Of(instr("add.f32", 3))
	require.ErrorIs(t, err, compute.ErrArgument)
}
