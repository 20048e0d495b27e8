package arm64

import (
	"fmt"
	"strings"
)

// text collects lines of assembly.
type text struct {
	b     strings.Builder
	count int // instructions
}

// vec writes a vector instruction.
func (t *text) vec(name string, operands ...int) {
	word, gnu := encode(name, operands...)
	t.ins("WORD $%#08x // %s", word, gnu)
}

// ins writes an instruction that Go's assembler knows.
func (t *text) ins(format string, args ...any) {
	t.count++
	fmt.Fprintf(&t.b, "\t"+format+"\n", args...)
}

// line writes what is no instruction.
func (t *text) line(format string, args ...any) { fmt.Fprintf(&t.b, format+"\n", args...) }

func (t *text) label(name string) { t.line("%s:", name) }

// loop writes the label of a loop.
func (t *text) loop(name string) {
	t.line("")
	t.line("\tPCALIGN $16")
	t.label(name)
}

// memory is a slice's pointer in a register.
type memory struct {
	reg     int
	step    int // by how many bytes the pointer moves in the present step
	touched bool
}

// move loads or stores vector registers k, k+1, … of a step from or to memory. The first access of a step moves the pointer
// on, so that it needs no instruction of its own.
func (m *memory) move(t *text, load bool, k int, regs ...int) {
	at, suffix := 16*k, ""
	if m.touched {
		at -= m.step
	} else if k != 0 {
		panic("the first access of a step is not to its first vector")
	} else {
		suffix, at = ".P", m.step
	}
	m.touched = true
	moveVectors(t, load, suffix, m.reg, at, regs...)
}

// moveVectors loads or stores one or two vectors. With the suffix .P the pointer moves on by the offset.
func moveVectors(t *text, load bool, suffix string, pointer, offset int, regs ...int) {
	op, vectors := "FMOVQ", fmt.Sprintf("F%d", regs[0])
	switch {
	case len(regs) > 2:
		panic("more than two registers")
	case len(regs) == 2 && load:
		op = "FLDPQ"
	case len(regs) == 2:
		op = "FSTPQ"
	}
	if len(regs) == 2 {
		vectors = fmt.Sprintf("(F%d, F%d)", regs[0], regs[1])
	}
	if load {
		t.ins("%s%s %d(R%d), %s", op, suffix, offset, pointer, vectors)
	} else {
		t.ins("%s%s %s, %d(R%d)", op, suffix, vectors, offset, pointer)
	}
}

// constants is the read-only table of the file: vectors of one number each.
type constants struct{ bits []uint32 }

// offset is where a number's vector lies.
func (c *constants) offset(bits uint32) int {
	for i, b := range c.bits {
		if b == bits {
			return 16 * i
		}
	}
	c.bits = append(c.bits, bits)
	return 16 * (len(c.bits) - 1)
}

func (c *constants) write(t *text, name string) {
	if len(c.bits) == 0 {
		return
	}
	t.line("")
	for i, b := range c.bits {
		for half := range 2 {
			t.line("DATA %s<>+%d(SB)/8, $%#016x", name, 16*i+8*half, uint64(b)<<32|uint64(b))
		}
	}
	t.line("GLOBL %s<>(SB), RODATA|NOPTR, $%d", name, 16*len(c.bits))
}
