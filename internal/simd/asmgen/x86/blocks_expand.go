package x86

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vector is a register of n float32.
func (b *blocks) vector(lanes int) reg.VecVirtual {
	if lanes == 16 {
		return b.c.ZMM()
	}
	return b.c.YMM()
}

func tierOf(lanes int) string { return map[int]string{8: "AVX2", 16: "AVX512"}[lanes] }

// zero clears a register.
func (b *blocks) zero(v reg.VecVirtual) {
	if v.Size() == 64 { // it may be one of those that only AVX-512 has
		b.c.VPXORD(v, v, v)
		return
	}
	b.c.VPXOR(v, v, v)
}

// total is the sum of a vector's lanes.
func (b *blocks) total(v reg.VecVirtual) reg.Register {
	if v.Size() == 64 {
		h := b.c.YMM()
		b.c.VEXTRACTF64X4(operand.U8(1), v, h)
		b.c.VADDPS(h, v.AsY(), v.AsY())
	}
	x, h := v.AsX(), b.c.XMM()
	b.c.VEXTRACTF128(operand.U8(1), v.AsY(), h)
	b.c.VADDPS(h, x, x)
	b.c.VMOVHLPS(x, x, h)
	b.c.VADDPS(h, x, x)
	b.c.VMOVSHDUP(x, h)
	b.c.VADDSS(h, x, x)
	return x
}

// expand writes a·(q − offset) − b for n vectors, of which neighbouring ones share a and b.
func (b *blocks) expand(lanes int) {
	p := b.begin("expand"+tierOf(lanes), "func(y *float32, q *int8, a, b, offset *float32, width, n int)",
		fmt.Sprintf("computes n ≥ 1 groups of width values, a multiple of %d; see expandGo.", lanes),
		"y", "q", "a", "b", "offset", "width", "n")
	y, q, a, m, offset, width, n := p[0], p[1], p[2], p[3], p[4], p[5], p[6]
	off, scale, least, v, left := b.vector(lanes), b.vector(lanes), b.vector(lanes), b.vector(lanes), b.c.GP64()
	b.c.VBROADCASTSS(at(offset, 0), off)
	b.c.Label("group")
	b.c.VBROADCASTSS(at(a, 0), scale)
	b.c.VBROADCASTSS(at(m, 0), least)
	b.c.MOVQ(width, left)
	b.c.Label("vector")
	b.c.VPMOVSXBD(at(q, 0), v)
	b.c.VCVTDQ2PS(v, v)
	b.c.VSUBPS(off, v, v)
	b.c.VMULPS(scale, v, v)
	b.c.VSUBPS(least, v, v)
	b.c.VMOVUPS(v, at(y, 0))
	b.c.ADDQ(operand.U8(lanes), q)
	b.c.ADDQ(operand.U8(4*lanes), y)
	b.c.SUBQ(operand.U8(lanes), left)
	b.c.JNE(operand.LabelRef("vector"))
	b.c.ADDQ(operand.U8(4), a)
	b.c.ADDQ(operand.U8(4), m)
	b.c.DECQ(n)
	b.c.JNE(operand.LabelRef("group"))
	b.end()
}
