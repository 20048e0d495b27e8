package x86

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const scalesDoc = "writes the scales a and the minima b of n ≥ 1 blocks. "

// put takes eight scales, or eight minima, of the groups from 8·i on.
type put func(least bool, i int, v reg.VecVirtual)

// storing opens a function that writes the scales of blocks, and those of no minima if affine is false. What it is given writes
// those of a block, of so many groups.
func (b *blocks) storing(name, doc string, affine bool, sizes planes, groups int, block func(planes [3]operand.Mem, put put)) {
	params, more := []string{"n", "a"}, "a"
	if affine {
		params, more = append(params, "b"), "a, b"
	}
	var planes []string
	for i, size := range sizes {
		if size > 0 {
			planes = append(planes, fmt.Sprintf("plane%d", i))
		}
	}
	p := b.begin(name+"AVX2", fmt.Sprintf("func(%s *float32, %s *byte, n int)", more, strings.Join(planes, ", ")), scalesDoc+doc,
		append(params, planes...)...)
	n, to, from := p[0], p[1:len(params)], p[len(params):]
	b.c.Label("block")
	var at3 [3]operand.Mem
	for i, size := range sizes {
		if size > 0 {
			at3[i] = at(from[0], 0)
			from = from[1:]
		}
	}
	block(at3, func(least bool, i int, v reg.VecVirtual) {
		b.c.VMOVUPS(v, at(to[map[bool]int{true: 1}[least]], 32*i))
	})
	for i, size := range sizes {
		if size > 0 {
			b.c.ADDQ(operand.U32(size), at3[i].Base)
		}
	}
	for _, r := range to {
		b.c.ADDQ(operand.U8(4*groups), r)
	}
	b.c.DECQ(n)
	b.c.JNE(operand.LabelRef("block"))
	b.end()
}

// halfScales is for eight blocks with a half each.
func (b *blocks) halfScales(halves operand.Mem, put put) {
	d := b.c.YMM()
	b.c.VCVTPH2PS(halves, d)
	put(false, 0, d)
}

// pairScales is for eight blocks with a half that is the scale and one that is what is added.
func (b *blocks) pairScales(pairs operand.Mem, put put) {
	v := b.c.YMM()
	half := []byte{0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15}
	b.c.VMOVDQU(pairs, v)
	b.c.VPSHUFB(b.table("blocksPairs", append(half, half...)...), v, v)
	b.c.VPERMQ(operand.U8(0b11011000), v, v)
	d, upper, h := b.c.YMM(), b.c.XMM(), b.c.YMM()
	b.c.VCVTPH2PS(v.AsX(), d)
	put(false, 0, d)
	b.c.VEXTRACTI128(operand.U8(1), v, upper)
	b.c.VCVTPH2PS(upper, h)
	b.c.VXORPS(b.repeated(8, 0, 0, 0, 0x80), h, h)
	put(true, 0, h)
}

// repeated is a table of bytes, some times.
func (b *blocks) repeated(times int, data ...byte) operand.Mem {
	return b.table(fmt.Sprintf("blocksRepeated%dx%x", times, data), bytes.Repeat(data, times)...)
}

// half loads a half into all lanes.
func (b *blocks) half(m operand.Mem) reg.VecVirtual {
	r, x, y := b.c.GP32(), b.c.XMM(), b.c.YMM()
	b.c.MOVWLZX(m, r)
	b.c.VMOVD(r, x)
	b.c.VCVTPH2PS(x, x)
	b.c.VBROADCASTSS(x, y)
	return y
}

// times is eight factors of a byte each, times d.
func (b *blocks) times(d reg.VecVirtual, from operand.Op, signed bool) reg.VecVirtual {
	v := b.c.YMM()
	if signed {
		b.c.VPMOVSXBD(from, v)
	} else {
		b.c.VPMOVZXBD(from, v)
	}
	b.c.VCVTDQ2PS(v, v)
	b.c.VMULPS(d, v, v)
	return v
}

// upper is the upper eight bytes of x.
func (b *blocks) upper(x reg.Register) reg.VecVirtual {
	y := b.c.XMM()
	b.c.VPSRLDQ(operand.U8(8), x, y)
	return y
}

// scalesK4: the dwords s0 s1 s2 of a block become [sc0…3 m0…3] and [sc4…7 m4…7]; see quant.UnpackScalesK4.
func (b *blocks) scalesK4(block operand.Mem, put put) {
	dm, dy, my := b.c.XMM(), b.c.YMM(), b.c.YMM()
	b.c.VMOVD(block, dm)
	b.c.VCVTPH2PS(dm, dm)
	b.c.VBROADCASTSS(dm, dy)
	b.c.VMOVSHDUP(dm, dm)
	b.c.VBROADCASTSS(dm, my)
	s, t, u, v := b.c.XMM(), b.c.XMM(), b.c.XMM(), b.c.XMM()
	b.c.VMOVQ(block.Offset(4), s)
	b.c.VMOVD(block.Offset(12), t)
	b.c.VPSRLD(operand.U8(4), t, u)
	b.c.VPUNPCKLDQ(u, t, t) // s2, s2 >> 4
	b.c.VPAND(b.repeated(16, 15), t, t)
	b.c.VPSRLD(operand.U8(2), s, v)
	b.c.VPAND(b.repeated(16, 0x30), v, v)
	b.c.VPOR(v, t, t)
	b.c.VPAND(b.repeated(16, 63), s, s)
	b.c.VPUNPCKLDQ(t, s, s)
	put(false, 0, b.times(dy, s, false))
	put(true, 0, b.times(my, b.upper(s), false))
}

func (b *blocks) scalesQ2K(block, halves operand.Mem, put put) {
	v, w, low := b.c.XMM(), b.c.XMM(), b.repeated(16, 15)
	b.c.VMOVDQU(block, v)
	b.c.VPSRLW(operand.U8(4), v, w)
	b.c.VPAND(low, v, v)
	b.c.VPAND(low, w, w)
	d := b.half(halves)
	put(false, 0, b.times(d, v, false))
	put(false, 1, b.times(d, b.upper(v), false))
	d = b.half(halves.Offset(2))
	put(true, 0, b.times(d, w, false))
	put(true, 1, b.times(d, b.upper(w), false))
}

func (b *blocks) scalesQ3K(scales, halves operand.Mem, put put) {
	v, w, h := b.c.XMM(), b.c.XMM(), b.c.XMM()
	b.c.VMOVQ(scales, v)
	b.c.VPSRLW(operand.U8(4), v, w)
	b.c.VPUNPCKLQDQ(w, v, v)
	b.c.VPAND(b.repeated(16, 15), v, v)
	b.c.VPBROADCASTD(scales.Offset(8), h)
	b.c.VPSRLVD(b.table("blocksPairShifts", 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 6, 0, 0, 0), h, h)
	b.c.VPAND(b.repeated(16, 3), h, h)
	b.c.VPSLLW(operand.U8(4), h, h)
	b.c.VPOR(h, v, v)
	b.c.VPSUBB(b.repeated(16, 32), v, v)
	d := b.half(halves)
	put(false, 0, b.times(d, v, true))
	put(false, 1, b.times(d, b.upper(v), true))
}

func (b *blocks) scalesQ6K(scales, halves operand.Mem, put put) {
	d := b.half(halves)
	put(false, 0, b.times(d, scales, true))
	put(false, 1, b.times(d, scales.Offset(8), true))
}
