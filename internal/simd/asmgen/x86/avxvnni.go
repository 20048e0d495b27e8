package x86

import (
	"encoding/binary"
	"fmt"
	"slices"

	avo "github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avxVNNI is the extension that has products of bytes on processors without AVX-512. Go's assembler knows those of AVX-512 alone.
const avxVNNI = "AVXVNNI"

// dotBytes adds to each word of sum four products of bytes: those of x are signed, and those of q are not.
func (b *blocks) dotBytes(x operand.Op, q, sum reg.VecVirtual) {
	if sum.Size() == 64 {
		b.c.VPDPBUSD(x, q, sum)
		return
	}
	b.c.Instruction(&avo.Instruction{Opcode: "VPDPBUSD", Operands: []operand.Op{x, q, sum}, Inputs: []operand.Op{x, q, sum},
		Outputs: []operand.Op{sum}, ISA: []string{avxVNNI}})
}

// encodeDots replaces the instructions of this extension in functions whose registers are known by their bytes.
func encodeDots(file *avo.File) {
	for _, f := range file.Functions() {
		for _, i := range f.Instructions() {
			if !slices.Contains(i.ISA, avxVNNI) {
				continue
			}
			text := i.Opcode
			for k, o := range i.Operands {
				text += map[bool]string{true: " ", false: ", "}[k == 0] + o.Asm()
			}
			code := encodeDot(i.Operands[0], i.Operands[1].(reg.Physical), i.Operands[2].(reg.Physical))
			i.Opcode, i.Operands = "LONG", []operand.Op{encoded{code, text}}
		}
	}
}

// encoded is what is written after the word LONG: bytes, at least four, and what they are.
type encoded struct {
	code []byte
	text string
}

func (e encoded) Asm() string {
	s := fmt.Sprintf("$%#08x", binary.LittleEndian.Uint32(e.code))
	for _, c := range e.code[4:] {
		s += fmt.Sprintf("; BYTE $%#02x", c)
	}
	return s + " // " + e.text
}

// encodeDot returns VPDPBUSD of vectors of 256 bits: VEX.256.66.0F38.W0 50 /r.
func encodeDot(x operand.Op, q, sum reg.Physical) []byte {
	const opcode = 0x50
	index := func(r reg.Register) int {
		i := int(r.(reg.Physical).PhysicalIndex())
		if i > 15 {
			panic("x86: VEX has no register " + r.Asm())
		}
		return i
	}
	low, high := func(i int) byte { return byte(i & 7) }, func(i int) byte { return byte(i >> 3) }
	to := index(sum)
	var r, i int // base, or register, and index
	var rest []byte
	switch x := x.(type) {
	case operand.Mem:
		r = index(x.Base)
		const withIndex = 4
		field := low(r)
		var sib []byte
		switch {
		case x.Index != nil:
			i = index(x.Index)
			sib = []byte{map[uint8]byte{1: 0, 2: 1, 4: 2, 8: 3}[x.Scale]<<6 | low(i)<<3 | low(r)}
		case field == withIndex:
			sib = []byte{0x20 | low(r)} // none
		}
		if sib != nil {
			field = withIndex
		}
		d := x.Disp
		switch {
		case d == 0 && low(r) != 5: // which would be relative to the instruction
			rest = append([]byte{low(to)<<3 | field}, sib...)
		case d == int(int8(d)):
			rest = append(append([]byte{0x40 | low(to)<<3 | field}, sib...), byte(d))
		default:
			rest = append(append([]byte{0x80 | low(to)<<3 | field}, sib...), byte(d), byte(d>>8), byte(d>>16), byte(d>>24))
		}
	case reg.Register:
		r = index(x)
		rest = []byte{0xc0 | low(to)<<3 | low(r)}
	}
	return append([]byte{0xc4, (high(to)<<7 | high(i)<<6 | high(r)<<5) ^ 0xe0 | 2, byte(index(q))<<3 ^ 0x78 | 4 | 1, opcode}, rest...)
}
