package x86

import (
	"github.com/mmcloughlin/avo/reg"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// set is an instruction set.
type set struct {
	name  string // suffix of its functions
	lanes int
	regs  int  // vector registers
	vex   bool // the destination is an operand of its own; memory operands need no alignment
	masks bool // k registers, memory operands broadcast
	spec  reg.Spec
	ir.Features
}

var sets = []*set{
	{name: "SSE", lanes: 4, regs: 16, spec: reg.S128},
	{name: "AVX2", lanes: 8, regs: 16, vex: true, spec: reg.S256, Features: ir.Features{FMA: true, Round: true}},
	{name: "AVX512", lanes: 16, regs: 32, vex: true, masks: true, spec: reg.S512, Features: ir.Features{FMA: true, Round: true}},
}

// bytes is the size of a vector.
func (s *set) bytes() int { return 4 * s.lanes }

// op is what an instruction does.
type op uint8

const (
	opAdd op = iota
	opSub
	opMul
	opDiv
	opSqrt
	opMin // the second operand where either is NaN
	opMax
	opMaskedMin // lanes of the first operand where the mask is false
	opMaskedMax
	opFMA  // a·b + c
	opFNMA // c − a·b
	opRound
	opAnd // bits of floats
	opAndNot
	opOr
	opXor
	opIAnd // bits of integers
	opIAndNot
	opIOr
	opIXor
	opLogic // any function of the bits of three operands
	opIAdd
	opISub
	opShl
	opShrL
	opShrA
	opCmp
	opMaskedCmp
	opICmp // of AVX-512
	opIGT
	opIEQ
	opToInt
	opTruncTo
	opFromInt
	opBlend // the second operand where the mask is true, else the first
	opKeep  // the operand where the mask is true, else zero
	opKAnd
	opKAndNot // the second operand where the first is false
	opKOr
	opKXnor
	opKNot
	opMove
	opLoad
	opStore
	opTest // leaves the loop if the mask is true in any lane
)

// givesMask says whether the result is in a k register where there are such.
func (o op) givesMask() bool { return o >= opCmp && o <= opICmp || o >= opKAnd && o <= opKNot }

// form says how an operation is written in the instruction sets, and what it asks of operands.
type form struct {
	sse, avx2, avx512 string
	unary             bool // SSE leaves the operand alone too
	imm               bool
	mem               int // operand that may be in memory; -1 for none
	tied              int // operand that the result replaces; -1 for none. On SSE it is the first unless unary.
	masked            bool
}

var forms = map[op]form{
	opAdd:       {sse: "ADDPS", avx2: "VADDPS", avx512: "VADDPS", mem: 1, tied: -1},
	opSub:       {sse: "SUBPS", avx2: "VSUBPS", avx512: "VSUBPS", mem: 1, tied: -1},
	opMul:       {sse: "MULPS", avx2: "VMULPS", avx512: "VMULPS", mem: 1, tied: -1},
	opDiv:       {sse: "DIVPS", avx2: "VDIVPS", avx512: "VDIVPS", mem: 1, tied: -1},
	opSqrt:      {sse: "SQRTPS", avx2: "VSQRTPS", avx512: "VSQRTPS", unary: true, mem: 0, tied: -1},
	opMin:       {sse: "MINPS", avx2: "VMINPS", avx512: "VMINPS", mem: 1, tied: -1},
	opMax:       {sse: "MAXPS", avx2: "VMAXPS", avx512: "VMAXPS", mem: 1, tied: -1},
	opMaskedMin: {avx512: "VMINPS", mem: 1, tied: 0, masked: true},
	opMaskedMax: {avx512: "VMAXPS", mem: 1, tied: 0, masked: true},
	opRound:     {avx2: "VROUNDPS", avx512: "VRNDSCALEPS", unary: true, imm: true, mem: 0, tied: -1},
	opAnd:       {sse: "ANDPS", avx2: "VANDPS", avx512: "VANDPS", mem: 1, tied: -1},
	opAndNot:    {sse: "ANDNPS", avx2: "VANDNPS", avx512: "VANDNPS", mem: 1, tied: -1},
	opOr:        {sse: "ORPS", avx2: "VORPS", avx512: "VORPS", mem: 1, tied: -1},
	opXor:       {sse: "XORPS", avx2: "VXORPS", avx512: "VXORPS", mem: 1, tied: -1},
	opIAnd:      {sse: "PAND", avx2: "VPAND", avx512: "VPANDD", mem: 1, tied: -1},
	opIAndNot:   {sse: "PANDN", avx2: "VPANDN", avx512: "VPANDND", mem: 1, tied: -1},
	opIOr:       {sse: "POR", avx2: "VPOR", avx512: "VPORD", mem: 1, tied: -1},
	opIXor:      {sse: "PXOR", avx2: "VPXOR", avx512: "VPXORD", mem: 1, tied: -1},
	opLogic:     {avx512: "VPTERNLOGD", imm: true, mem: 2, tied: 0},
	opIAdd:      {sse: "PADDL", avx2: "VPADDD", avx512: "VPADDD", mem: 1, tied: -1},
	opISub:      {sse: "PSUBL", avx2: "VPSUBD", avx512: "VPSUBD", mem: 1, tied: -1},
	opShl:       {sse: "PSLLL", avx2: "VPSLLD", avx512: "VPSLLD", imm: true, mem: -1, tied: -1},
	opShrL:      {sse: "PSRLL", avx2: "VPSRLD", avx512: "VPSRLD", imm: true, mem: -1, tied: -1},
	opShrA:      {sse: "PSRAL", avx2: "VPSRAD", avx512: "VPSRAD", imm: true, mem: -1, tied: -1},
	opCmp:       {sse: "CMPPS", avx2: "VCMPPS", avx512: "VCMPPS", imm: true, mem: 1, tied: -1},
	opMaskedCmp: {avx512: "VCMPPS", imm: true, mem: 1, tied: -1, masked: true},
	opICmp:      {avx512: "VPCMPD", imm: true, mem: 1, tied: -1},
	opIGT:       {sse: "PCMPGTL", avx2: "VPCMPGTD", mem: 1, tied: -1},
	opIEQ:       {sse: "PCMPEQL", avx2: "VPCMPEQD", mem: 1, tied: -1},
	opToInt:     {sse: "CVTPS2PL", avx2: "VCVTPS2DQ", avx512: "VCVTPS2DQ", unary: true, mem: 0, tied: -1},
	opTruncTo:   {sse: "CVTTPS2PL", avx2: "VCVTTPS2DQ", avx512: "VCVTTPS2DQ", unary: true, mem: 0, tied: -1},
	opFromInt:   {sse: "CVTPL2PS", avx2: "VCVTDQ2PS", avx512: "VCVTDQ2PS", unary: true, mem: 0, tied: -1},
	opBlend:     {avx2: "VBLENDVPS", avx512: "VBLENDMPS", mem: 1, tied: -1, masked: true},
	opKeep:      {avx512: "VMOVAPS_Z", mem: -1, tied: -1, masked: true},
	opKAnd:      {avx512: "KANDW", mem: -1, tied: -1},
	opKAndNot:   {avx512: "KANDNW", mem: -1, tied: -1},
	opKOr:       {avx512: "KORW", mem: -1, tied: -1},
	opKXnor:     {avx512: "KXNORW", mem: -1, tied: -1},
	opKNot:      {avx512: "KNOTW", mem: -1, tied: -1},
	opMove:      {sse: "MOVAPS", avx2: "VMOVAPS", avx512: "VMOVAPS", unary: true, mem: -1, tied: -1},
}

// form returns the form of an operation with its name in the set.
func (s *set) form(o op) (string, form) {
	f := forms[o]
	switch {
	case s.masks:
		return f.avx512, f
	case s.vex:
		return f.avx2, f
	}
	if !f.unary {
		f.tied = 0
	}
	return f.sse, f
}

// kind says what a value is outside the code that computes it.
type kind uint8

const (
	temporary kind = iota
	constant       // in the table
	parameter      // in the arguments
	invariant      // computed once, before the loops
	home           // an accumulator as it is before a step
	tailMask       // true for the elements of the tail
)

// value is what instructions compute and use: vectors, and masks where they have registers of their own.
type value struct {
	id    int
	kind  kind
	mask  bool   // lives in a k register
	bits  uint32 // of a constant
	index int    // of a parameter
}

// instr is an instruction before registers are assigned.
type instr struct {
	op   op
	dst  *value
	args []*value
	imm  int
	// commutes says that the first two operands may be exchanged, imm then becoming swapped.
	commutes bool
	swapped  int
	input    int // of opLoad
	copy     int // of the body in a step of the loop: of opLoad and opStore
}
