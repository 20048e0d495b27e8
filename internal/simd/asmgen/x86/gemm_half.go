package x86

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// elements is what a matrix holds that meets a vector of float32. Those of 16 bits are widened on the way into registers.
type elements uint8

const (
	full elements = iota // float32
	f16
	bf16
)

func (e elements) suffix() string { return [...]string{"", "F16", "BF16"}[e] }

func (e elements) goType() string { return [...]string{"float32", "uint16", "uint16"}[e] }

func (e elements) size() int { return [...]int{4, 2, 2}[e] }

// at is the address of element index + i.
func (e elements) at(base, index reg.Register, i int) operand.Mem {
	return operand.Mem{Base: base, Index: index, Scale: uint8(e.size()), Disp: e.size() * i}
}

// widen loads a vector, of 16 bits from memory or from half a register.
func (g *gemmGen) widen(e elements, m operand.Op, v reg.VecPhysical) {
	switch e {
	case full:
		g.c.VMOVUPS(m, v)
	case f16:
		g.c.VCVTPH2PS(m, v)
	case bf16:
		g.c.VPMOVZXWD(m, v)
		g.c.VPSLLD(operand.U8(16), v, v)
	}
}

// shift is the register that tailShift sets.
const shift = 12

// tailShift prepares for what is left of a vector of 16 bits, after index, where memory has no masks for them: end becomes
// the index after it, and the register shift a permutation of bytes that brings the last elements before end to the front.
func (g *gemmGen) tailShift(e elements, left, index, end, spare reg.GPPhysical) {
	if e == full || g.lanes == 16 {
		return
	}
	if g.shifts.Symbol.Name == "" {
		g.shifts = g.c.StaticGlobal("gemmShifts")
		g.c.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range 32 {
			if i >= 16 {
				i = 0x80 // zero
			}
			g.c.AppendDatum(operand.U8(i))
		}
	}
	g.c.LEAQ(operand.Mem{Base: index, Index: left, Scale: 1}, end)
	g.c.LEAQ(g.shifts, spare)
	g.c.SUBQ(left, spare)
	g.c.SUBQ(left, spare)
	g.c.VMOVDQU(at(spare, 16), g.v[shift].AsX())
}

// widenTail loads what is left of a row after index, zeros after it. The row has at least eight elements, of 16 bits, before
// end.
func (g *gemmGen) widenTail(e elements, row, index, end reg.Register, mask, v reg.VecPhysical) {
	switch {
	case e == full:
		g.loadTail(e.at(row, index, 0), mask, v)
	case g.lanes == 16:
		g.c.VMOVDQU16_Z(e.at(row, index, 0), reg.K1, v.AsY())
		g.widen(e, v.AsY(), v)
	default:
		g.c.VMOVDQU(e.at(row, end, -8), v.AsX())
		g.c.VPSHUFB(g.v[shift].AsX(), v.AsX(), v.AsX())
		g.widen(e, v.AsX(), v)
	}
}
