package batch

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// MatMulBackward computes the gradients of a and b, given the gradient dy of MatMul(a, b, options). Each has the shape and
// element type of its operand; the gradient of an operand that a batch shares is the sum over the batch. Where the element
// types of a, b and dy differ, products are taken in Float32. Options are those of the forward product, whose result's
// element type does not matter; differentiate an activation separately, before. Options with an activation are an error
// ([compute.ErrArgument]), as is a dy of another shape than the product ([compute.ErrShape]). For the gradient of a bias see
// [Batch.BiasBackward].
//
// The gradients are products themselves: of a·b they are dy·bᵀ and aᵀ·dy.
func (rec *Batch) MatMulBackward(a, b, dy Value, options ...compute.MatMulOptions) (da, db Value) {
	g, err := rec.newGradients(a, b, dy, options)
	if rec.err == nil && err != nil {
		rec.fail(fmt.Errorf("matmul backward: %w", err))
	}
	if rec.err != nil {
		return Value{}, Value{}
	}
	return g.ofA(), g.ofB()
}

// BiasBackward computes the gradient of a bias that was added to each row: the sums of the columns of the result's gradient
// dy, [n] in Float32 for dy [..., n].
func (rec *Batch) BiasBackward(dy Value) Value {
	s, ok := rec.slots([]Value{dy})
	if !ok {
		return Value{}
	}
	t := rec.program.Values[s[0]].Type
	if len(t.Shape) == 0 {
		return rec.fail(fmt.Errorf("bias backward %v: needs an axis: %w", t, compute.ErrShape))
	}
	return rec.sumRows(dy, t)
}

// sumRows adds up the rows of a value: a row of ones times them.
func (rec *Batch) sumRows(x Value, t program.Type) Value {
	rows, cols := program.RowsCols(t.Shape)
	return rec.VecMat(rec.Fill(1, rows), rec.Reshape(x, rows, cols))
}

// gradients holds the operands, options and result gradient of a product.
type gradients struct {
	*Batch
	o          compute.MatMulOptions
	a, b, dy   Value
	tA, tB     program.Type
	tY         program.Type
	lead       []int // axes of the batch
	toA, toB   compute.DType
	batchA     bool // a has the axes of the batch
	batchB     bool
	batchCount int
}

func (rec *Batch) newGradients(a, b, dy Value, options []compute.MatMulOptions) (*gradients, error) {
	s, ok := rec.slots([]Value{a, b, dy})
	if !ok {
		return nil, rec.err
	}
	t := rec.program.Types(s)
	g := &gradients{Batch: rec, a: a, b: b, dy: dy, tA: t[0], tB: t[1], tY: t[2], toA: t[0].DType, toB: t[1].DType}
	if len(options) > 1 {
		return nil, fmt.Errorf("%d of %T given, at most one is allowed: %w", len(options), g.o, compute.ErrArgument)
	}
	if len(options) == 1 {
		g.o = options[0]
	}
	if g.o.Act != compute.NoActivation {
		return nil, fmt.Errorf("activation %d: take its gradient first: %w", g.o.Act, compute.ErrArgument)
	}
	out, err := catalogue.MatMul.Check(t[:2], program.Attr{Options: g.o})
	if err != nil {
		return nil, err
	}
	if !program.EqualShape(out[0].Shape, g.tY.Shape) || !slices.Contains([]compute.DType{g.tA.DType, compute.Float32}, g.tY.DType) {
		return nil, fmt.Errorf("gradient %v of a product %v: %w", g.tY, out[0], compute.ErrShape)
	}
	if g.tY.DType != g.tA.DType {
		g.a, g.b = rec.Cast(a, compute.Float32), rec.Cast(b, compute.Float32)
		g.tA.DType, g.tB.DType = compute.Float32, compute.Float32
	}
	g.lead = g.tY.Shape[:len(g.tY.Shape)-2]
	g.batchCount = program.Len(g.lead)
	g.batchA, g.batchB = len(g.tA.Shape) > 2, len(g.tB.Shape) > 2
	return g, nil
}

func (g *gradients) ofA() Value {
	// (dy·bᵀ), or transposed b·dyᵀ; b may itself be stored transposed.
	x, y, o := g.dy, g.b, compute.MatMulOptions{TransB: !g.o.TransB}
	if g.o.TransA {
		x, y, o = g.b, g.dy, compute.MatMulOptions{TransA: g.o.TransB, TransB: true}
	}
	return g.product(x, y, o, g.tA.Shape, g.toA, !g.batchA && len(g.lead) > 0)
}

func (g *gradients) ofB() Value {
	shared := !g.batchB && len(g.lead) > 0
	a, dy := g.a, g.dy
	if shared && !g.o.TransA { // all rows of the batch are those of one product
		k, n := g.tA.Shape[len(g.tA.Shape)-1], g.tY.Shape[len(g.tY.Shape)-1]
		rows := program.Len(g.tY.Shape[:len(g.tY.Shape)-1])
		a, dy, shared = g.Reshape(a, rows, k), g.Reshape(dy, rows, n), false
	}
	// (aᵀ·dy), or transposed dyᵀ·a; a may itself be stored transposed.
	x, y, o := a, dy, compute.MatMulOptions{TransA: !g.o.TransA}
	if g.o.TransB {
		x, y, o = dy, a, compute.MatMulOptions{TransA: true, TransB: g.o.TransA}
	}
	return g.product(x, y, o, g.tB.Shape, g.toB, shared)
}

// product is x·y in the operand's shape and element type; summed over the batch where the operand is shared.
func (g *gradients) product(x, y Value, o compute.MatMulOptions, shape []int, to compute.DType, shared bool) Value {
	o.Precision, o.Result = g.o.Precision, to
	if !shared {
		return g.MatMul(x, y, o)
	}
	o.Result = compute.Float32 // until the sum is complete
	each := g.MatMul(x, y, o)
	sum := g.Reshape(g.sumRows(each, program.F32(g.batchCount, program.Len(shape))), shape...)
	if to == compute.Float32 {
		return sum
	}
	return g.Cast(sum, to)
}
