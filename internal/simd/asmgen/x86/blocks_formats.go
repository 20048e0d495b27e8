package x86

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// nibbles is for the formats of 32 values, with a fifth bit or without.
func (b *blocks) nibbles(u unpacking, fifth bool) {
	f := b.unpack(u, map[bool]string{false: "Nibbles", true: "Fifths"}[fifth], 32, fifth)
	low, shifts := b.bytes(15), b.YMM()
	by := make([]byte, 32)
	by[16], by[24] = 4, 4
	b.VMOVDQU(b.table("blocksNibbleShifts", by...), shifts)
	var spread, bit, sixteen reg.VecVirtual
	if fifth {
		spread, bit, sixteen = b.YMM(), b.YMM(), b.bytes(16)
		var to, of []byte
		for i := range 32 {
			to, of = append(to, byte(i/8)), append(of, 1<<(i%8))
		}
		b.VMOVDQU(b.table("blocksSpread", to...), spread)
		b.VMOVDQU(b.table("blocksBits", of...), bit)
	}
	f.each(16, 32, 4, func(from operand.Mem, group int) {
		v := b.YMM()
		b.VBROADCASTI128(from, v)
		b.VPSRLVQ(shifts, v, v)
		b.VPAND(low, v, v)
		if fifth {
			h := b.YMM()
			b.VPBROADCASTD(at(f.high, 0), h)
			b.ADDQ(operand.U8(4), f.high)
			b.VPSHUFB(spread, h, h)
			b.VPAND(bit, h, h)
			b.VPCMPEQB(bit, h, h)
			b.VPAND(sixteen, h, h)
			b.VPOR(h, v, v)
		}
		f.use(group, v)
	})
}

// pairs is for two bits, and a third if high is where it is.
func (b *blocks) pairs(u unpacking, format string, size, quants, high int) {
	f := b.unpack(u, format, 16, false)
	three, four := b.bytes(3), b.bytes(4)
	f.each(size, 256, 1, func(from operand.Mem, _ int) {
		var top reg.VecVirtual
		if high >= 0 {
			top = b.load(from.Offset(high))
		}
		for h := range 2 {
			v := b.load(from.Offset(quants + 32*h))
			for j := range 4 {
				x := b.masked(v, 2*j, three)
				if high >= 0 {
					b.VPOR(b.masked(top, 4*h+j-2, four), x, x)
				}
				f.use(4*h+j, x)
			}
		}
	})
}

// fours is for four bits, and a fifth if high is where it is.
func (b *blocks) fours(u unpacking, format string, size, high int) {
	f := b.unpack(u, format, 32, false)
	low, fifth := b.bytes(15), b.bytes(16)
	f.each(size, 256, 1, func(from operand.Mem, _ int) {
		var top reg.VecVirtual
		if high >= 0 {
			top = b.load(from.Offset(high))
		}
		for g := range 4 {
			v := b.load(from.Offset(size - 128 + 32*g))
			for half := range 2 {
				x := b.masked(v, 4*half, low)
				if high >= 0 {
					b.VPOR(b.masked(top, 2*g+half-4, fifth), x, x)
				}
				f.use(2*g+half, x)
			}
		}
	})
}

// sixes is for Q6_K.
func (b *blocks) sixes(u unpacking) {
	f := b.unpack(u, "Q6K", 16, false)
	if u == addedVNNI {
		f.sixesWide()
		return
	}
	low, two := b.bytes(15), b.bytes(0x30)
	f.each(208, 256, 1, func(from operand.Mem, _ int) {
		for h := range 2 {
			v := []reg.VecVirtual{b.load(from.Offset(64 * h)), b.load(from.Offset(64*h + 32))}
			top := b.load(from.Offset(128 + 32*h))
			for j := range 4 {
				x := b.masked(v[j%2], j/2*4, low)
				b.VPOR(b.masked(top, 2*j-4, two), x, x)
				f.use(4*h+j, x)
			}
		}
	})
}

// sixesWide takes 64 integers at a time, whose low bits lie together: unpacking is most of the work here.
func (f *unpacked) sixesWide() {
	low, two, left, right, pick := f.ZMM(), f.ZMM(), f.ZMM(), f.ZMM(), f.ZMM()
	f.VPBROADCASTB(f.table("blocksBytes0f", 15), low)
	f.VPBROADCASTB(f.table("blocksBytes30", 0x30), two)
	shifts := func(name string, first, second byte) operand.Mem {
		var t []byte
		for i := range 32 {
			t = append(t, map[bool]byte{true: first, false: second}[i < 16], 0)
		}
		return f.table(name, t...)
	}
	f.VMOVDQU32(shifts("blocksShiftsLeft", 4, 2), left)
	f.VMOVDQU32(shifts("blocksShiftsRight", 0, 2), right)
	f.VMOVDQU32(f.picks(16), pick)
	for range 4 {
		v := f.ZMM()
		f.zero(v)
		f.sums = append(f.sums, v)
	}
	const orAnd = 0xf8 // a | b & c
	f.each(208, 256, 1, func(from operand.Mem, _ int) {
		for h := range 2 {
			v, top := f.ZMM(), f.ZMM()
			f.VMOVDQU32(from.Offset(64*h), v)
			f.VBROADCASTI64X4(from.Offset(128+32*h), top)
			for half := range 2 {
				x, t, w, scale := f.ZMM(), f.ZMM(), f.ZMM(), f.ZMM()
				if half == 0 {
					f.VPANDD(low, v, x)
					f.VPSLLVW(left, top, t)
				} else {
					f.VPSRLW(operand.U8(4), v, x)
					f.VPANDD(low, x, x)
					f.VPSRLVW(right, top, t)
				}
				f.VPTERNLOGD(operand.U8(orAnd), two, t, x)
				f.zero(w)
				f.VPDPBUSD(at(f.to, 128*h+64*half), x, w)
				f.VCVTDQ2PS(w, w)
				f.VPERMPS(at(f.s, 32*h+16*half), pick, scale)
				f.VFMADD231PS(scale, w, f.sums[2*h+half])
			}
		}
	})
}
