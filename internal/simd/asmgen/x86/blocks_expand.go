package x86

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vector is a register of n float32.
func (b *blocks) vector(lanes int) reg.VecVirtual {
	if lanes == 16 {
		return b.ZMM()
	}
	return b.YMM()
}

func tierOf(lanes int) string { return map[int]string{8: "AVX2", 16: "AVX512"}[lanes] }

// zero clears a register.
func (b *blocks) zero(v reg.VecVirtual) {
	if v.Size() == 64 { // it may be one of those that only AVX-512 has
		b.VPXORD(v, v, v)
		return
	}
	b.VPXOR(v, v, v)
}

// total is the sum of a vector's lanes.
func (b *blocks) total(v reg.VecVirtual) reg.Register {
	if v.Size() == 64 {
		h := b.YMM()
		b.VEXTRACTF64X4(operand.U8(1), v, h)
		b.VADDPS(h, v.AsY(), v.AsY())
	}
	x, h := v.AsX(), b.XMM()
	b.VEXTRACTF128(operand.U8(1), v.AsY(), h)
	b.VADDPS(h, x, x)
	b.VMOVHLPS(x, x, h)
	b.VADDPS(h, x, x)
	b.VMOVSHDUP(x, h)
	b.VADDSS(h, x, x)
	return x
}

// expand writes a·(q − offset) − b for n vectors, of which neighbouring ones share a and b.
func (b *blocks) expand(lanes int) {
	p := b.begin("expand"+tierOf(lanes), "func(y *float32, q *int8, a, b, offset *float32, width, n int)",
		fmt.Sprintf("computes n ≥ 1 groups of width values, a multiple of %d; see expandGo.", lanes),
		"y", "q", "a", "b", "offset", "width", "n")
	y, q, a, m, offset, width, n := p[0], p[1], p[2], p[3], p[4], p[5], p[6]
	off, scale, least, v, left := b.vector(lanes), b.vector(lanes), b.vector(lanes), b.vector(lanes), b.GP64()
	b.VBROADCASTSS(at(offset, 0), off)
	b.Label("group")
	b.VBROADCASTSS(at(a, 0), scale)
	b.VBROADCASTSS(at(m, 0), least)
	b.MOVQ(width, left)
	b.Label("vector")
	b.VPMOVSXBD(at(q, 0), v)
	b.VCVTDQ2PS(v, v)
	b.VSUBPS(off, v, v)
	b.VMULPS(scale, v, v)
	b.VSUBPS(least, v, v)
	b.VMOVUPS(v, at(y, 0))
	b.ADDQ(operand.U8(lanes), q)
	b.ADDQ(operand.U8(4*lanes), y)
	b.SUBQ(operand.U8(lanes), left)
	b.JNE(operand.LabelRef("vector"))
	b.ADDQ(operand.U8(4), a)
	b.ADDQ(operand.U8(4), m)
	b.DECQ(n)
	b.JNE(operand.LabelRef("group"))
	b.end()
}
