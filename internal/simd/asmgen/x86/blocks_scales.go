package x86

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const scalesDoc = "writes the scales a and the minima b of n ≥ 1 blocks. "

// pairScales is for a half that is the scale and one that is what is added, of eight blocks at a time.
func (b *blocks) pairScales() {
	p := b.begin("pairScalesAVX2", "func(a, b *float32, pairs *byte, n int)", scalesDoc+"A block is eight pairs here.",
		"a", "b", "pairs", "n")
	a, m, from, n := p[0], p[1], p[2], p[3]
	sort, sign, v := b.YMM(), b.YMM(), b.YMM()
	half := []byte{0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15}
	b.VMOVDQU(b.table("blocksPairs", append(half, half...)...), sort)
	b.VPCMPEQD(sign, sign, sign)
	b.VPSLLD(operand.U8(31), sign, sign)
	b.Label("block")
	b.VMOVDQU(at(from, 0), v)
	b.VPSHUFB(sort, v, v)
	b.VPERMQ(operand.U8(0b11011000), v, v)
	d, upper, h := b.YMM(), b.XMM(), b.YMM()
	b.VCVTPH2PS(v.AsX(), d)
	b.VMOVUPS(d, at(a, 0))
	b.VEXTRACTI128(operand.U8(1), v, upper)
	b.VCVTPH2PS(upper, h)
	b.VXORPS(sign, h, h)
	b.VMOVUPS(h, at(m, 0))
	for _, r := range []reg.Register{a, m, from} {
		b.ADDQ(operand.U8(32), r)
	}
	b.DECQ(n)
	b.JNE(operand.LabelRef("block"))
	b.end()
}

// half loads a half into all lanes.
func (b *blocks) half(m operand.Mem) reg.VecVirtual {
	r, x, y := b.GP32(), b.XMM(), b.YMM()
	b.MOVWLZX(m, r)
	b.VMOVD(r, x)
	b.VCVTPH2PS(x, x)
	b.VBROADCASTSS(x, y)
	return y
}

// times stores factors of eight bytes each, times d.
func (b *blocks) times(d reg.VecVirtual, from operand.Op, signed bool, to operand.Mem) {
	v := b.YMM()
	if signed {
		b.VPMOVSXBD(from, v)
	} else {
		b.VPMOVZXBD(from, v)
	}
	b.VCVTDQ2PS(v, v)
	b.VMULPS(d, v, v)
	b.VMOVUPS(v, to)
}

// upper is the upper eight bytes of x.
func (b *blocks) upper(x reg.Register) reg.VecVirtual {
	y := b.XMM()
	b.VPSRLDQ(operand.U8(8), x, y)
	return y
}

// scalesK4: the dwords s0 s1 s2 of a block become [sc0…3 m0…3] and [sc4…7 m4…7]; see quant.UnpackScalesK4.
func (b *blocks) scalesK4(name string, size int) {
	p := b.begin(name+"AVX2", "func(a, b *float32, block *byte, n int)", scalesDoc, "a", "b", "block", "n")
	a, m, from, n := p[0], p[1], p[2], p[3]
	six, four, two := b.bytes(63).AsX(), b.bytes(15).AsX(), b.bytes(0x30).AsX()
	b.Label("block")
	dm, dy, my := b.XMM(), b.YMM(), b.YMM()
	b.VMOVD(at(from, 0), dm)
	b.VCVTPH2PS(dm, dm)
	b.VBROADCASTSS(dm, dy)
	b.VMOVSHDUP(dm, dm)
	b.VBROADCASTSS(dm, my)
	s, t, u, v := b.XMM(), b.XMM(), b.XMM(), b.XMM()
	b.VMOVQ(at(from, 4), s)
	b.VMOVD(at(from, 12), t)
	b.VPSRLD(operand.U8(4), t, u)
	b.VPUNPCKLDQ(u, t, t) // s2, s2 >> 4
	b.VPAND(four, t, t)
	b.VPSRLD(operand.U8(2), s, v)
	b.VPAND(two, v, v)
	b.VPOR(v, t, t)
	b.VPAND(six, s, s)
	b.VPUNPCKLDQ(t, s, s)
	b.times(dy, s, false, at(a, 0))
	b.times(my, b.upper(s), false, at(m, 0))
	b.ADDQ(operand.U32(size), from)
	b.ADDQ(operand.U8(32), a)
	b.ADDQ(operand.U8(32), m)
	b.DECQ(n)
	b.JNE(operand.LabelRef("block"))
	b.end()
}

func (b *blocks) scalesQ2K() {
	p := b.begin("scalesQ2KAVX2", "func(a, b *float32, block *byte, n int, halves *byte)", scalesDoc,
		"a", "b", "block", "n", "halves")
	a, m, from, n, halves := p[0], p[1], p[2], p[3], p[4]
	low := b.bytes(15).AsX()
	b.Label("block")
	v, w := b.XMM(), b.XMM()
	b.VMOVDQU(at(from, 0), v)
	b.VPSRLW(operand.U8(4), v, w)
	b.VPAND(low, v, v)
	b.VPAND(low, w, w)
	d, dmin := b.half(at(halves, 0)), b.half(at(halves, 2))
	b.times(d, v, false, at(a, 0))
	b.times(d, b.upper(v), false, at(a, 32))
	b.times(dmin, w, false, at(m, 0))
	b.times(dmin, b.upper(w), false, at(m, 32))
	b.ADDQ(operand.U32(80), from)
	b.ADDQ(operand.U8(4), halves)
	b.ADDQ(operand.U8(64), a)
	b.ADDQ(operand.U8(64), m)
	b.DECQ(n)
	b.JNE(operand.LabelRef("block"))
	b.end()
}

func (b *blocks) scalesQ3K() {
	p := b.begin("scalesQ3KAVX2", "func(a *float32, block *byte, n int, halves *byte)", scalesDoc, "a", "block", "n", "halves")
	a, from, n, halves := p[0], p[1], p[2], p[3]
	low, two, bias := b.bytes(15).AsX(), b.bytes(3).AsX(), b.bytes(32).AsX()
	shifts := b.XMM()
	b.VMOVDQU(b.table("blocksPairShifts", 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 6, 0, 0, 0), shifts)
	b.Label("block")
	v, w, h := b.XMM(), b.XMM(), b.XMM()
	b.VMOVQ(at(from, 0), v)
	b.VPSRLW(operand.U8(4), v, w)
	b.VPUNPCKLQDQ(w, v, v)
	b.VPAND(low, v, v)
	b.VPBROADCASTD(at(from, 8), h)
	b.VPSRLVD(shifts, h, h)
	b.VPAND(two, h, h)
	b.VPSLLW(operand.U8(4), h, h)
	b.VPOR(h, v, v)
	b.VPSUBB(bias, v, v)
	d := b.half(at(halves, 0))
	b.times(d, v, true, at(a, 0))
	b.times(d, b.upper(v), true, at(a, 32))
	b.ADDQ(operand.U8(12), from)
	b.ADDQ(operand.U8(2), halves)
	b.ADDQ(operand.U8(64), a)
	b.DECQ(n)
	b.JNE(operand.LabelRef("block"))
	b.end()
}

func (b *blocks) scalesQ6K() {
	p := b.begin("scalesQ6KAVX2", "func(a *float32, block *byte, n int, halves *byte)", scalesDoc, "a", "block", "n", "halves")
	a, from, n, halves := p[0], p[1], p[2], p[3]
	b.Label("block")
	d := b.half(at(halves, 0))
	b.times(d, at(from, 192), true, at(a, 0))
	b.times(d, at(from, 200), true, at(a, 32))
	b.ADDQ(operand.U32(208), from)
	b.ADDQ(operand.U8(2), halves)
	b.ADDQ(operand.U8(64), a)
	b.DECQ(n)
	b.JNE(operand.LabelRef("block"))
	b.end()
}
