// Package ir describes kernels that run over float32 slices, once for all instruction sets.
//
// A kernel is a loop whose body is straight-line code on vectors: it reads element i of every input, may store element i of
// the result, and may update accumulators. A body is built by calls on a [Builder], which gives it a form that the backends
// (x86, arm64, wasm) translate and that [Kernel.Eval] interprets.
//
// Three types keep apart what machines keep apart: [F] is a vector of float32, [I] of int32, [M] a mask with one truth value
// a lane. The number of lanes is the backend's.
package ir

import (
	"fmt"
	"math"
)

// Features are what an instruction set has; a body may ask for them and be built differently.
type Features struct {
	FMA   bool // a·b + c with one rounding
	Round bool // rounding to integral values in the float format
}

// Op is what a node computes.
type Op uint8

// Operations. Unless a comment says otherwise arithmetic is IEEE, rounding to nearest even, denormals kept.
const (
	OpInput Op = iota // element i of input Imm
	OpParam           // scalar parameter Imm, the same in all lanes
	OpConst           // the bits Imm; F and I
	OpAcc             // accumulator Imm as it was before this element

	OpAdd
	OpSub
	OpMul
	OpDiv
	OpSqrt
	OpFMA    // a·b + c, one rounding; only where Features.FMA
	OpFNMA   // c − a·b, one rounding; only where Features.FMA
	OpMin    // the smaller; which operand results is open if either is NaN or if they are zeros of different sign
	OpMax    // the larger, likewise
	OpMinNaN // the smaller; NaN if either operand is; open for zeros of different sign. Imm 1: open if the first is NaN
	OpMaxNaN // the larger, likewise
	OpFloor  // the four roundings; only where Features.Round, else Builder expands them
	OpCeil
	OpTrunc
	OpNearest // halves to even

	OpLT // comparisons F × F → M; false if either operand is NaN, but for NE
	OpLE
	OpEQ
	OpNE
	OpMaskAnd
	OpMaskOr
	OpMaskNot
	OpSelect // lanes of b where the mask a is true, else of c; F and I

	OpBits  // F seen as I
	OpFloat // I seen as F
	OpIAnd
	OpIOr
	OpIXor
	OpIAndNot // a &^ b
	OpIAdd    // wraps around
	OpISub
	OpShl  // shifts by the constant Imm, 0 < Imm < 32
	OpShrL // filling with zeros
	OpShrA // filling with the sign
	OpIGT  // signed comparison I × I → M
	OpIEQ
	OpToInt   // F → I, halves to even; open beyond ±2³¹ and for NaN
	OpTruncTo // F → I towards zero, likewise
	OpFromInt // I → F, rounded
)

// Type is the type of a node.
type Type uint8

// Types of nodes.
const (
	Float Type = iota
	Int
	Mask
)

// Node is a value of the body. Nodes are pure; equal ones are one node.
type Node struct {
	Op   Op
	Type Type
	Imm  uint32
	Args []*Node
	ID   int // position in Body.Nodes
}

// F, I and M are nodes with their type in Go's type system.
type (
	F struct{ *Node } // vector of float32
	I struct{ *Node } // vector of int32
	M struct{ *Node } // mask
)

// Merge says how the lanes of an accumulator, and those of several accumulators in an unrolled loop, become one number.
type Merge uint8

// Ways to merge.
const (
	MergeAdd  Merge = iota
	MergeMax        // OpMaxNaN
	MergeMin        // OpMinNaN
	MergeNone       // not at all: the function hands all lanes out, see [Kernel]
)

// Lanes is the most lanes that an accumulator has over all copies of an unrolled loop.
const Lanes = 64

// Accumulator is a value carried from element to element. A loop may keep any number of copies of it, each starting at Init.
type Accumulator struct {
	Init  uint32 // bits of the start, which must be neutral for Merge
	Merge Merge
	Next  *Node // its value after this element
}

// Kernel is a kernel before it is built for a set of features.
//
// Its Go function is
//
//	func Name(y, inputs... []float32, params... float32) (accumulators... float32)
//
// without y if nothing is stored. All slices are as long as the first. Y may be one of the inputs, or begin at a lower
// address and overlap it: elements are computed in ascending order, and all loads of a step of the loop come before its
// stores. Where the body has a guard there is a first result n int: the loop stops before storing the first step in which
// the guard holds in any lane, and n is the number of elements done (len(y) if it never held); accumulators are then those
// of the n elements. A step is any number of elements up to Lanes.
//
// A kernel whose accumulators are not merged (all MergeNone) has an argument lanes *[accumulators*Lanes]float32 before the
// others instead of results: accumulator k's lanes are written from k*Lanes on; those that the loop does not have stay.
type Kernel struct {
	Name   string // exported Go name
	Doc    string // what it computes, as the Go loop
	Inputs []string
	Params []string
	Unroll int // vectors per step of the main loop, 1, 2 or 4; 0 is 1. A backend with few registers may use fewer
	// Wasm is the least number of elements for which the wasm version beats the portable fallback; 0 takes the default.
	Wasm int
	Body func(b *Builder)
}

// Body is a kernel's code for a set of features.
type Body struct {
	Nodes        []*Node // operands before their users; none is unused
	Store        *Node   // nil if nothing is stored
	Guard        *Node   // mask; nil for none
	Accumulators []Accumulator
}

// Builder makes the nodes of a body.
type Builder struct {
	Features
	k     *Kernel
	nodes []*Node
	known map[string]*Node
	body  Body
}

// Build builds the kernel's body for a set of features.
func (k *Kernel) Build(f Features) *Body {
	b := &Builder{Features: f, k: k, known: map[string]*Node{}}
	k.Body(b)
	live := map[*Node]bool{}
	var mark func(n *Node)
	mark = func(n *Node) {
		if n == nil || live[n] {
			return
		}
		live[n] = true
		for _, a := range n.Args {
			mark(a)
		}
	}
	mark(b.body.Store)
	mark(b.body.Guard)
	for i := range b.body.Accumulators {
		if b.body.Accumulators[i].Next == nil {
			panic(fmt.Sprintf("%s: accumulator %d is never updated", k.Name, i))
		}
		mark(b.body.Accumulators[i].Next)
	}
	for _, n := range b.nodes {
		if live[n] {
			n.ID = len(b.body.Nodes)
			b.body.Nodes = append(b.body.Nodes, n)
		}
	}
	return &b.body
}

func (b *Builder) node(op Op, t Type, imm uint32, args ...*Node) *Node {
	key := fmt.Sprint(op, t, imm)
	for _, a := range args {
		key += fmt.Sprintf(" %p", a)
	}
	if n := b.known[key]; n != nil {
		return n
	}
	n := &Node{Op: op, Type: t, Imm: imm, Args: args}
	b.known[key] = n
	b.nodes = append(b.nodes, n)
	return n
}

func (b *Builder) float(op Op, args ...*Node) F { return F{b.node(op, Float, 0, args...)} }
func (b *Builder) int(op Op, args ...*Node) I   { return I{b.node(op, Int, 0, args...)} }
func (b *Builder) mask(op Op, args ...*Node) M  { return M{b.node(op, Mask, 0, args...)} }

// Input is element i of an input.
func (b *Builder) Input(k int) F { return F{b.node(OpInput, Float, uint32(k))} }

// Param is a scalar parameter.
func (b *Builder) Param(k int) F { return F{b.node(OpParam, Float, uint32(k))} }

// Const is a number, which must be exact in float32 unless it is meant to be rounded.
func (b *Builder) Const(v float64) F { return F{b.node(OpConst, Float, math.Float32bits(float32(v)))} }

// ConstInt is an integer.
func (b *Builder) ConstInt(v int32) I { return I{b.node(OpConst, Int, uint32(v))} }

// Store sets element i of the result.
func (b *Builder) Store(v F) { b.body.Store = v.Node }

// Guard stops the loop where the mask is true in any lane.
func (b *Builder) Guard(m M) { b.body.Guard = m.Node }

// Acc is an accumulator as it was before this element, for the updates of others.
func (b *Builder) Acc(k int) F { return F{b.node(OpAcc, Float, uint32(k))} }

// Accumulate adds an accumulator; next computes its value after this element from that before.
func (b *Builder) Accumulate(init float64, merge Merge, next func(acc F) F) {
	k := len(b.body.Accumulators)
	b.body.Accumulators = append(b.body.Accumulators, Accumulator{Init: math.Float32bits(float32(init)), Merge: merge})
	b.body.Accumulators[k].Next = next(F{b.node(OpAcc, Float, uint32(k))}).Node
}

// Arithmetic.

func (b *Builder) Add(x, y F) F { return b.float(OpAdd, x.Node, y.Node) }
func (b *Builder) Sub(x, y F) F { return b.float(OpSub, x.Node, y.Node) }
func (b *Builder) Mul(x, y F) F { return b.float(OpMul, x.Node, y.Node) }
func (b *Builder) Div(x, y F) F { return b.float(OpDiv, x.Node, y.Node) }
func (b *Builder) Sqrt(x F) F   { return b.float(OpSqrt, x.Node) }
func (b *Builder) Min(x, y F) F { return b.float(OpMin, x.Node, y.Node) }
func (b *Builder) Max(x, y F) F { return b.float(OpMax, x.Node, y.Node) }

// MinNaN and MaxNaN give NaN if either operand is NaN.
func (b *Builder) MinNaN(x, y F) F { return b.float(OpMinNaN, x.Node, y.Node) }
func (b *Builder) MaxNaN(x, y F) F { return b.float(OpMaxNaN, x.Node, y.Node) }

// MinOf and MaxOf give NaN if x is NaN; what they give if the limit is NaN is open.
func (b *Builder) MinOf(limit, x F) F { return F{b.node(OpMinNaN, Float, 1, limit.Node, x.Node)} }
func (b *Builder) MaxOf(limit, x F) F { return F{b.node(OpMaxNaN, Float, 1, limit.Node, x.Node)} }

// FMA is x·y + z with one rounding; it panics where there is none: see [Builder.MulAdd].
func (b *Builder) FMA(x, y, z F) F {
	b.need(b.Features.FMA, "FMA")
	return b.float(OpFMA, x.Node, y.Node, z.Node)
}

// FNMA is z − x·y with one rounding.
func (b *Builder) FNMA(x, y, z F) F {
	b.need(b.Features.FMA, "FNMA")
	return b.float(OpFNMA, x.Node, y.Node, z.Node)
}

func (b *Builder) need(have bool, what string) {
	if !have {
		panic(fmt.Sprintf("%s: no %s in this instruction set", b.k.Name, what))
	}
}

// MulAdd is x·y + z, fused where there is FMA.
func (b *Builder) MulAdd(x, y, z F) F {
	if b.Features.FMA {
		return b.FMA(x, y, z)
	}
	return b.Add(b.Mul(x, y), z)
}

// NegMulAdd is z − x·y, fused where there is FMA.
func (b *Builder) NegMulAdd(x, y, z F) F {
	if b.Features.FMA {
		return b.FNMA(x, y, z)
	}
	return b.Sub(z, b.Mul(x, y))
}

// Poly is c[0] + c[1]·x + … by Horner's rule.
func (b *Builder) Poly(x F, c ...float64) F {
	r := b.Const(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		r = b.MulAdd(r, x, b.Const(c[i]))
	}
	return r
}

// Abs, Neg and CopySign change signs, of NaN too.
func (b *Builder) Abs(x F) F { return b.Float(b.AndI(b.Bits(x), b.ConstInt(math.MaxInt32))) }
func (b *Builder) Neg(x F) F { return b.Float(b.XorI(b.Bits(x), b.ConstInt(math.MinInt32))) }
func (b *Builder) CopySign(x, sign F) F {
	s := b.ConstInt(math.MinInt32)
	return b.Float(b.OrI(b.AndNotI(b.Bits(x), s), b.AndI(b.Bits(sign), s)))
}

// Floor, Ceil, Trunc and Nearest (halves to even) keep the sign of zero, Inf and NaN.
func (b *Builder) Floor(x F) F {
	if b.Features.Round {
		return b.float(OpFloor, x.Node)
	}
	r := b.Nearest(x)
	return b.CopySign(b.Sub(r, b.Select(b.LT(x, r), b.Const(1), b.Const(0))), x)
}

func (b *Builder) Ceil(x F) F {
	if b.Features.Round {
		return b.float(OpCeil, x.Node)
	}
	r := b.Nearest(x)
	return b.CopySign(b.Add(r, b.Select(b.LT(r, x), b.Const(1), b.Const(0))), x)
}

func (b *Builder) Trunc(x F) F {
	if b.Features.Round {
		return b.float(OpTrunc, x.Node)
	}
	a := b.Abs(x)
	r := b.Nearest(a)
	return b.CopySign(b.Sub(r, b.Select(b.LT(a, r), b.Const(1), b.Const(0))), x)
}

func (b *Builder) Nearest(x F) F {
	if b.Features.Round {
		return b.float(OpNearest, x.Node)
	}
	// Adding 2²³ to |x| < 2²³ leaves no bit for a fraction. Larger numbers, Inf and NaN are integral as they are.
	const magic = 1 << 23
	a := b.Abs(x)
	r := b.Sub(b.Add(a, b.Const(magic)), b.Const(magic))
	return b.CopySign(b.Select(b.LT(a, b.Const(magic)), r, a), x)
}

// Comparisons, false for NaN but for NE.

func (b *Builder) LT(x, y F) M { return b.mask(OpLT, x.Node, y.Node) }
func (b *Builder) LE(x, y F) M { return b.mask(OpLE, x.Node, y.Node) }
func (b *Builder) EQ(x, y F) M { return b.mask(OpEQ, x.Node, y.Node) }
func (b *Builder) NE(x, y F) M { return b.mask(OpNE, x.Node, y.Node) }
func (b *Builder) IsNaN(x F) M { return b.NE(x, x) }

func (b *Builder) And(x, y M) M { return b.mask(OpMaskAnd, x.Node, y.Node) }
func (b *Builder) Or(x, y M) M  { return b.mask(OpMaskOr, x.Node, y.Node) }
func (b *Builder) Not(x M) M    { return b.mask(OpMaskNot, x.Node) }

// Select is x where the mask is true, else y.
func (b *Builder) Select(m M, x, y F) F  { return b.float(OpSelect, m.Node, x.Node, y.Node) }
func (b *Builder) SelectI(m M, x, y I) I { return b.int(OpSelect, m.Node, x.Node, y.Node) }

// Integers.

func (b *Builder) Bits(x F) I        { return b.int(OpBits, x.Node) }
func (b *Builder) Float(x I) F       { return b.float(OpFloat, x.Node) }
func (b *Builder) AndI(x, y I) I     { return b.int(OpIAnd, x.Node, y.Node) }
func (b *Builder) OrI(x, y I) I      { return b.int(OpIOr, x.Node, y.Node) }
func (b *Builder) XorI(x, y I) I     { return b.int(OpIXor, x.Node, y.Node) }
func (b *Builder) AndNotI(x, y I) I  { return b.int(OpIAndNot, x.Node, y.Node) }
func (b *Builder) AddI(x, y I) I     { return b.int(OpIAdd, x.Node, y.Node) }
func (b *Builder) SubI(x, y I) I     { return b.int(OpISub, x.Node, y.Node) }
func (b *Builder) Shl(x I, n int) I  { return I{b.node(OpShl, Int, uint32(n), x.Node)} }
func (b *Builder) ShrL(x I, n int) I { return I{b.node(OpShrL, Int, uint32(n), x.Node)} }
func (b *Builder) ShrA(x I, n int) I { return I{b.node(OpShrA, Int, uint32(n), x.Node)} }
func (b *Builder) GTI(x, y I) M      { return b.mask(OpIGT, x.Node, y.Node) }
func (b *Builder) EQI(x, y I) M      { return b.mask(OpIEQ, x.Node, y.Node) }

// ToInt rounds to the nearest integer, halves to even; TruncToInt towards zero. Open beyond ±2³¹ and for NaN.
func (b *Builder) ToInt(x F) I      { return b.int(OpToInt, x.Node) }
func (b *Builder) TruncToInt(x F) I { return b.int(OpTruncTo, x.Node) }
func (b *Builder) FromInt(x I) F    { return b.float(OpFromInt, x.Node) }
