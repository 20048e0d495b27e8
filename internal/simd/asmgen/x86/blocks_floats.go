package x86

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// floats is the dot product of x with values of n ≥ 1 times 32 integers: a·q − b if they have minima, else a·(q − offset).
// Q8_0 has no offset.
func (b *blocks) floats(format string, width, lanes int) {
	name := fmt.Sprintf("floats%s%d%s", format, width, tierOf(lanes))
	params := []string{"q", "x", "a", "n"}
	switch format {
	case "Minima":
		params = []string{"q", "x", "a", "n", "b"}
	case "Offset":
		params = []string{"q", "x", "a", "n", "offset"}
	}
	p := b.begin(name, "func(q *int8, x, a, b, offset *float32, n int) float32",
		"is the dot product of x with the values of n ≥ 1 times 32 integers.", params...)
	q, x, a, n := p[0], p[1], p[2], p[3]
	offset := b.vector(lanes)
	if format == "Offset" {
		b.VBROADCASTSS(at(p[4], 0), offset)
	}
	sums := make([]reg.VecVirtual, 32/lanes)
	for i := range sums {
		sums[i] = b.vector(lanes)
		b.zero(sums[i])
	}
	b.Label("loop")
	scale, least := b.vector(lanes), b.vector(lanes)
	for i, sum := range sums {
		if i*lanes%width == 0 {
			b.VBROADCASTSS(at(a, 4*i*lanes/width), scale)
			if format == "Minima" {
				b.VBROADCASTSS(at(p[4], 4*i*lanes/width), least)
			}
		}
		v := b.vector(lanes)
		b.VPMOVSXBD(at(q, i*lanes), v)
		b.VCVTDQ2PS(v, v)
		switch format {
		case "Minima":
			b.VFMSUB213PS(least, scale, v)
		case "Offset":
			b.VSUBPS(offset, v, v)
			b.VMULPS(scale, v, v)
		default:
			b.VMULPS(scale, v, v)
		}
		b.VFMADD231PS(at(x, 4*i*lanes), v, sum)
	}
	if format == "Bytes" {
		b.PREFETCHT0(at(q, ahead))
	}
	b.ADDQ(operand.U8(32), q)
	b.ADDQ(operand.U32(128), x)
	b.ADDQ(operand.U8(4*32/width), a)
	if format == "Minima" {
		b.ADDQ(operand.U8(4*32/width), p[4])
	}
	b.DECQ(n)
	b.JNE(operand.LabelRef("loop"))
	b.sum(sums)
}
