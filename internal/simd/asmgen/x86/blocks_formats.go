package x86

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// nibbles is for the formats of 32 values, with a fifth bit or without, and with a half that is added or an offset.
func (b *blocks) nibbles(u use, format string, fifth, pairs bool) {
	f := b.unpack(u, format, 32, fifth)
	p, scales := planes{16, 2}, func(at [3]operand.Mem, put put) { b.halfScales(at[1], put) }
	if fifth {
		p, scales = planes{16, 4, 2}, func(at [3]operand.Mem, put put) { b.halfScales(at[2], put) }
	}
	last := len(p) - 1
	if !fifth {
		last = 1
	}
	if pairs {
		f.affine = true
		p[last], scales = 4, func(at [3]operand.Mem, put put) { b.pairScales(at[last], put) }
	} else if f.offset = 8; fifth {
		f.offset = 16
	}
	shifts, low := b.c.YMM(), b.bytes(15)
	by := make([]byte, 32)
	by[16], by[24] = 4, 4
	b.c.VMOVDQU(b.table("blocksNibbleShifts", by...), shifts)
	var spread, bit operand.Mem
	if fifth {
		var to, of []byte
		for i := range 32 {
			to, of = append(to, byte(i/8)), append(of, 1<<(i%8))
		}
		spread, bit = b.table("blocksSpread", to...), b.table("blocksBits", of...)
	}
	f.each(p, 32, scales, func(from operand.Mem, group int) {
		v := b.c.YMM()
		b.c.VBROADCASTI128(from, v)
		b.c.VPSRLVQ(shifts, v, v)
		b.c.VPAND(low, v, v)
		if fifth {
			h, bits := b.c.YMM(), b.load(bit)
			b.c.VPBROADCASTD(at(f.plane1, 4*group), h)
			b.c.VPSHUFB(spread, h, h)
			b.c.VPAND(bits, h, h)
			b.c.VPCMPEQB(bits, h, h)
			b.c.VPAND(b.repeated(32, 16), h, h)
			b.c.VPOR(h, v, v)
		}
		f.take(group, v)
	})
}

// eights is for Q8_0, whose integers are signed bytes.
func (b *blocks) eights(u use) {
	f := b.unpack(u, "Q8_0", 32, false)
	f.signed, f.wide = true, u == bytesVNNI
	var raise reg.VecVirtual
	if u.dots() { // which want integers that are not negative
		raise, f.offset = b.c.YMM(), 128
		if f.wide {
			raise = b.c.ZMM()
		}
		b.c.VPBROADCASTB(b.table("blocksBytes80", 0x80), raise)
	}
	f.each(planes{32, 2}, 32, func(at [3]operand.Mem, put put) { b.halfScales(at[1], put) }, func(from operand.Mem, group int) {
		switch {
		case u.floats():
			f.multiplyFloats(group, func(at int) operand.Op { return from.Offset(at) }, b.c.VPMOVSXBD)
		case u == bytesAVX2:
			v, x := b.load(from), b.load(at(f.to, 32*group))
			b.c.VPSIGNB(v, x, x)
			b.c.VPABSB(v, v)
			b.c.VPMADDUBSW(x, v, v)
			b.c.VPMADDWD(f.ones, v, v)
			f.weighted(group, v, f.sums[group%4])
		case u == bytesAVXVNNI:
			v := b.c.YMM()
			b.c.VPXOR(from, raise, v)
			f.multiply(group, v)
		case f.alone:
			v, w := b.load(from), b.c.YMM()
			b.zero(w)
			b.c.VPXOR(raise.AsY(), v, v)
			b.dotBytes(at(f.to, 0), v, w)
			f.weighted(0, w, f.minima())
		default:
			v := b.c.ZMM()
			b.c.VPXORD(from, raise, v)
			f.multiplyWide(group, v)
		}
	})
}

// multiplyWide adds the products of the 64 integers of groups of 32 values i and i+1.
func (f *unpacked) multiplyWide(i int, v reg.VecVirtual) {
	w, scale := f.c.ZMM(), f.c.ZMM()
	f.zero(w)
	f.dotBytes(at(f.to, 32*i), v, w)
	f.c.VCVTDQ2PS(w, w)
	// Each is loaded from what one store wrote, which then need not reach the cache first.
	m := f.scales.Offset(4 * 32 / f.width * i)
	if f.width == 16 {
		f.c.VBROADCASTF32X4(m, scale)
	} else {
		f.c.VBROADCASTSD(m, scale)
	}
	f.c.VPERMILPS(f.pick, scale, scale)
	f.c.VFMADD231PS(scale, w, f.sums[i/2%4])
}

// pairs is for two bits, and a third if there are more of them.
func (b *blocks) pairs(u use, format string, p planes, third bool, scales func(at [3]operand.Mem, put put)) {
	f := b.unpack(u, format, 16, false)
	if f.affine = !third; third {
		f.offset = 4
	}
	three, four := b.bytes(3), b.repeated(32, 4)
	f.each(p, 256, scales, func(from operand.Mem, _ int) {
		var top reg.VecVirtual
		if third {
			top = b.load(from)
		}
		for h := range 2 {
			v := b.load(from.Offset(p[0] - 64 + 32*h))
			for j := range 4 {
				x := b.masked(v, 2*j, three)
				if third {
					b.c.VPOR(b.masked(top, 4*h+j-2, four), x, x)
				}
				f.take(4*h+j, x)
			}
		}
	})
}

// fours is for four bits, and a fifth if high is where it is.
func (b *blocks) fours(u use, format string, size, high int) {
	f := b.unpack(u, format, 32, false)
	f.affine = true
	low, fifth := b.bytes(15), b.repeated(32, 16)
	f.each(planes{size}, 256, func(at [3]operand.Mem, put put) { b.scalesK4(at[0], put) }, func(from operand.Mem, _ int) {
		var top reg.VecVirtual
		if high >= 0 {
			top = b.load(from.Offset(high))
		}
		for g := range 4 {
			v := b.load(from.Offset(size - 128 + 32*g))
			for half := range 2 {
				x := b.masked(v, 4*half, low)
				if high >= 0 {
					b.c.VPOR(b.masked(top, 2*g+half-4, fifth), x, x)
				}
				f.take(2*g+half, x)
			}
		}
	})
}

func (b *blocks) sixScales(at [3]operand.Mem, put put) { b.scalesQ6K(at[0].Offset(192), at[1], put) }

// sixes is for Q6_K.
func (b *blocks) sixes(u use) {
	f := b.unpack(u, "Q6K", 16, false)
	f.offset = 32
	if u == bytesVNNI {
		f.sixesWide()
		return
	}
	low, two := b.bytes(15), b.repeated(32, 0x30)
	f.each(planes{208, 2}, 256, b.sixScales, func(from operand.Mem, _ int) {
		for h := range 2 {
			v := []reg.VecVirtual{b.load(from.Offset(64 * h)), b.load(from.Offset(64*h + 32))}
			top := b.load(from.Offset(128 + 32*h))
			for j := range 4 {
				x := b.masked(v[j%2], j/2*4, low)
				b.c.VPOR(b.masked(top, 2*j-4, two), x, x)
				f.take(4*h+j, x)
			}
		}
	})
}

// sixesWide takes 64 integers at a time, whose low bits lie together: unpacking is most of the work here.
func (f *unpacked) sixesWide() {
	low, two, left, right := f.c.ZMM(), f.c.ZMM(), f.c.ZMM(), f.c.ZMM()
	f.c.VPBROADCASTB(f.table("blocksBytes0f", 15), low)
	f.c.VPBROADCASTB(f.table("blocksBytes30", 0x30), two)
	shifts := func(name string, first, second byte) operand.Mem {
		var t []byte
		for i := range 32 {
			t = append(t, map[bool]byte{true: first, false: second}[i < 16], 0)
		}
		return f.table(name, t...)
	}
	f.c.VMOVDQU32(shifts("blocksShiftsLeft", 4, 2), left)
	f.c.VMOVDQU32(shifts("blocksShiftsRight", 0, 2), right)
	f.wide = true
	const orAnd = 0xf8 // a | b & c
	f.each(planes{208, 2}, 256, f.sixScales, func(from operand.Mem, _ int) {
		for h := range 2 {
			v, top := f.c.ZMM(), f.c.ZMM()
			f.c.VMOVDQU32(from.Offset(64*h), v)
			f.c.VBROADCASTI64X4(from.Offset(128+32*h), top)
			for half := range 2 {
				x, t := f.c.ZMM(), f.c.ZMM()
				if half == 0 {
					f.c.VPANDD(low, v, x)
					f.c.VPSLLVW(left, top, t)
				} else {
					f.c.VPSRLW(operand.U8(4), v, x)
					f.c.VPANDD(low, x, x)
					f.c.VPSRLVW(right, top, t)
				}
				f.c.VPTERNLOGD(operand.U8(orAnd), two, t, x)
				f.multiplyWide(4*h+2*half, x)
			}
		}
	})
}
