package arm64

import (
	"fmt"
	"strings"
)

// shape says which operands an instruction has and where its word holds them.
type shape uint8

const (
	dnm        shape = iota // d, n, m
	dn                      // d, n
	dnn                     // d, n, with n in the field of m too
	dOnly                   // d
	left                    // d, n, shift to the left by the immediate
	right                   // d, n, shift to the right by the immediate
	leftBytes               // left, of bytes
	rightBytes              // right, of bytes
	element                 // d, n, lane of m that the immediate names
	immediate               // d, byte
)

// operandCounts is how many operands each shape has.
var operandCounts = [...]int{
	dnm: 3, dn: 2, dnn: 2, dOnly: 1, left: 3, right: 3, leftBytes: 3, rightBytes: 3, element: 4, immediate: 2,
}

// instruction is a row of the encoder's table. The text is GNU syntax.
type instruction struct {
	word  uint32
	shape shape
	text  string
}

const (
	floats2 = "v%d.4s, v%d.4s"
	floats3 = "v%d.4s, v%d.4s, v%d.4s"
	bytes2  = "v%d.16b, v%d.16b"
	bytes3  = "v%d.16b, v%d.16b, v%d.16b"
	shifted = "v%d.4s, v%d.4s, #%d"
	reduced = "s%d, v%d.4s"

	shiftedBytes = "v%d.16b, v%d.16b, #%d"
	widening     = "v%d.8h, v%d.8b, v%d.8b"
	widening2    = "v%d.8h, v%d.16b, v%d.16b"
)

// instructions are all vector instructions of the kernels, by mnemonic. Go's assembler knows few of them, so that all are
// written as words. Source: Arm Architecture Reference Manual, C7.2.
var instructions = map[string]instruction{
	"fadd":   {0x4e20d400, dnm, floats3},
	"fsub":   {0x4ea0d400, dnm, floats3},
	"fmul":   {0x6e20dc00, dnm, floats3},
	"fdiv":   {0x6e20fc00, dnm, floats3},
	"fsqrt":  {0x6ea1f800, dn, floats2},
	"fmla":   {0x4e20cc00, dnm, floats3}, // d += n·m
	"fmls":   {0x4ea0cc00, dnm, floats3}, // d -= n·m
	"fmin":   {0x4ea0f400, dnm, floats3}, // NaN if either operand is
	"fmax":   {0x4e20f400, dnm, floats3},
	"fabs":   {0x4ea0f800, dn, floats2},
	"fneg":   {0x6ea0f800, dn, floats2},
	"frintm": {0x4e219800, dn, floats2}, // floor
	"frintp": {0x4ea18800, dn, floats2}, // ceil
	"frintz": {0x4ea19800, dn, floats2}, // trunc
	"frintn": {0x4e218800, dn, floats2}, // nearest, halves to even
	"fcmgt":  {0x6ea0e400, dnm, floats3},
	"fcmge":  {0x6e20e400, dnm, floats3},
	"fcmeq":  {0x4e20e400, dnm, floats3},
	"fcvtns": {0x4e21a800, dn, floats2},
	"fcvtzs": {0x4ea1b800, dn, floats2},
	"fcvtnu": {0x6e21a800, dn, floats2},
	"ucvtf":  {0x6e21d800, dn, floats2},
	"scvtf":  {0x4e21d800, dn, floats2},

	"and": {0x4e201c00, dnm, bytes3},
	"bic": {0x4e601c00, dnm, bytes3}, // n &^ m
	"orr": {0x4ea01c00, dnm, bytes3},
	"orn": {0x4ee01c00, dnm, bytes3}, // n | ^m
	"eor": {0x6e201c00, dnm, bytes3},
	"bsl": {0x6e601c00, dnm, bytes3}, // d = d ? n : m
	"bit": {0x6ea01c00, dnm, bytes3}, // d = m ? n : d
	"bif": {0x6ee01c00, dnm, bytes3}, // d = m ? d : n
	"mvn": {0x6e205800, dn, bytes2},
	"mov": {0x4ea01c00, dnn, bytes2},

	"add":  {0x4ea08400, dnm, floats3},
	"sub":  {0x6ea08400, dnm, floats3},
	"cmgt": {0x4ea03400, dnm, floats3}, // signed
	"cmeq": {0x6ea08c00, dnm, floats3},
	"shl":  {0x4f005400, left, shifted},
	"ushr": {0x6f000400, right, shifted},
	"sshr": {0x4f000400, right, shifted},

	"faddp":   {0x6e20d400, dnm, floats3},      // sums of neighbours, of n and then of m
	"faddp.s": {0x7e30d800, dn, "s%d, v%d.2s"}, // the sum of two lanes
	"fmaxv":   {0x6e30f800, dn, reduced},       // the largest lane
	"fminv":   {0x6eb0f800, dn, reduced},       // the smallest lane
	"umaxp":   {0x6ea0a400, dnm, floats3},      // larger ones of neighbours
	"dup":     {0x4e040400, dn, "v%d.4s, v%d.s[0]"},
	"dup.b":   {0x4e010400, dn, "v%d.16b, v%d.b[0]"},
	"zero":    {0x4f000400, dOnly, "v%d.4s, #0x0"},

	"zip1": {0x4e803800, dnm, floats3}, // lanes 0 and 1 of n and m by turns
	"zip2": {0x4e807800, dnm, floats3}, // lanes 2 and 3

	// Floats of 16 bits, in the lower half of a register.
	"fcvtl":   {0x0e217800, dn, "v%d.4s, v%d.4h"},
	"fcvtl2":  {0x4e217800, dn, "v%d.4s, v%d.8h"},
	"fcvtn":   {0x0e216800, dn, "v%d.4h, v%d.4s"},
	"uxtl.b":  {0x2f08a400, dn, "v%d.8h, v%d.8b"},
	"uxtl.h":  {0x2f10a400, dn, "v%d.4s, v%d.4h"},
	"uqxtn.s": {0x2e614800, dn, "v%d.4h, v%d.4s"},
	"uqxtn.h": {0x2e214800, dn, "v%d.8b, v%d.8h"},
	"shll":    {0x2e613800, dn, "v%d.4s, v%d.4h, #16"},
	"shll2":   {0x6e613800, dn, "v%d.4s, v%d.8h, #16"},
	"shrn":    {0x0f108400, dn, "v%d.4h, v%d.4s, #16"},

	// Integers in bytes, and what they become. Those with .2 take the upper halves of their operands.
	"add.b":    {0x4e208400, dnm, bytes3},
	"sub.b":    {0x6e208400, dnm, bytes3},
	"cmtst.b":  {0x4e208c00, dnm, bytes3}, // all bits of d if n & m != 0
	"tbl":      {0x4e000000, dnm, "v%d.16b, {v%d.16b}, v%d.16b"},
	"shl.b":    {0x4f005400, leftBytes, shiftedBytes},
	"sli.b":    {0x6f005400, leftBytes, shiftedBytes}, // lower bits of d stay
	"ushr.b":   {0x6f000400, rightBytes, shiftedBytes},
	"movi":     {0x4f00e400, immediate, "v%d.16b, #%#x"},
	"ushl":     {0x6ea04400, dnm, floats3},   // by the lanes of m, to the right if they are negative
	"scvtf.f":  {0x4f00e400, right, shifted}, // with the given number of fraction bits
	"uzp1":     {0x4e801800, dnm, floats3},   // even lanes of n, then of m
	"uzp2":     {0x4e805800, dnm, floats3},   // odd lanes
	"uzp1.h":   {0x4e401800, dnm, "v%d.8h, v%d.8h, v%d.8h"},
	"uzp2.h":   {0x4e405800, dnm, "v%d.8h, v%d.8h, v%d.8h"}, // odd lanes
	"zip1.d":   {0x4ec03800, dnm, "v%d.2d, v%d.2d, v%d.2d"},
	"addp":     {0x4ea0bc00, dnm, floats3},                    // sums of neighbours, of n and then of m
	"sdot":     {0x4e809400, dnm, "v%d.4s, v%d.16b, v%d.16b"}, // d += four products for each lane; FEAT_DotProd
	"smull":    {0x0e20c000, dnm, widening},
	"smull2":   {0x4e20c000, dnm, widening2},
	"smlal":    {0x0e208000, dnm, widening}, // d += n·m
	"smlal2":   {0x4e208000, dnm, widening2},
	"saddlp.h": {0x4e602800, dn, "v%d.4s, v%d.8h"}, // sums of neighbours
	"sadalp.h": {0x4e606800, dn, "v%d.4s, v%d.8h"}, // d += sums of neighbours

	"fmls.e": {0x4f805000, element, "v%d.4s, v%d.4s, v%d.s[%d]"},
	"fmla.e": {0x4f801000, element, "v%d.4s, v%d.4s, v%d.s[%d]"},
	"fmul.e": {0x4f809000, element, "v%d.4s, v%d.4s, v%d.s[%d]"},
}

// mnemonic is a name in the table without what tells it from others.
func mnemonic(name string) string {
	if name == "zero" {
		return "movi"
	}
	name, width, _ := strings.Cut(name, ".")
	if strings.HasSuffix(width, "2") {
		name += "2"
	}
	return name
}

// encode gives an instruction's word and its text in GNU syntax. Operands are those of its shape: register numbers, then the
// immediate.
func encode(name string, operands ...int) (word uint32, text string) {
	if name == "orr" && len(operands) == 3 && operands[1] == operands[2] {
		name, operands = "mov", operands[:2] // what disassemblers call it
	}
	in, ok := instructions[name]
	if !ok {
		panic("no instruction " + name)
	}
	want := operandCounts[in.shape]
	if len(operands) != want {
		panic(fmt.Sprintf("%s has %d operands, not %d", name, want, len(operands)))
	}
	word = in.word
	field := func(k, at, limit int) {
		if operands[k] < 0 || operands[k] >= limit {
			panic(fmt.Sprintf("%s: operand %d is %d", name, k, operands[k]))
		}
		word |= uint32(operands[k]) << at
	}
	field(0, 0, 32)
	if in.shape != dOnly && in.shape != immediate {
		field(1, 5, 32)
	}
	switch in.shape {
	case dnm:
		field(2, 16, 32)
	case dnn:
		field(1, 16, 32)
	case left:
		field(2, 16, 32)
		word |= 32 << 16
	case right:
		word |= uint32(64-operands[2]) << 16
	case leftBytes:
		field(2, 16, 8)
		word |= 8 << 16
	case rightBytes:
		word |= uint32(16-operands[2]) << 16
	case immediate:
		bits := uint32(operands[1])
		word |= bits>>5<<16 | bits&31<<5
	case element:
		field(2, 16, 32)
		lane := uint32(operands[3])
		word |= lane&1<<21 | lane>>1<<11
	}
	args := make([]any, len(operands))
	for i, o := range operands {
		args[i] = o
	}
	return word, mnemonic(name) + " " + fmt.Sprintf(in.text, args...)
}
