package op

import (
	"math"

	"github.com/wavelane/wavelane/compute"
)

// Floating-point operations of steps, for models and profiles: a product and a sum count as two, an exponential, a logarithm or
// their like as mathFlops, a comparison as one. Entries that are not named here count rowFlops per element of their largest
// operand or result if they compute, and nothing if they only move data.
const (
	mathFlops = 10
	rowFlops  = 8
)

// products gives the operations of entries that are made of dot products.
var products map[*Entry]func(in, out []Type, a Attr) float64

// init, since entries may come after this file in the order of declaration.
func init() {
	matrix := func(i int) func([]Type, []Type, Attr) float64 { // operand i is a matrix, met by each row of the other
		return func(in, out []Type, _ Attr) float64 {
			_, cols := RowsCols(out[0].Shape)
			return 2 * float64(in[i].Len()) * float64(out[0].Len()) / float64(max(cols, 1))
		}
	}
	window := func(in, out []Type, _ Attr) float64 {
		w := in[1]
		if len(w.Shape) > 2 { // one filter of several
			w.Shape = w.Shape[1:]
		}
		return 2 * float64(out[0].Len()) * float64(w.Len())
	}
	products = map[*Entry]func(in, out []Type, a Attr) float64{
		MatMul: func(in, out []Type, a Attr) float64 {
			k := in[0].Shape[len(in[0].Shape)-1]
			if a.Options.(compute.MatMulOptions).TransA {
				k = in[0].Shape[len(in[0].Shape)-2]
			}
			return 2 * float64(out[0].Len()) * float64(k)
		},
		MatVec: matrix(0), VecMat: matrix(1), RMSNormMatVec: matrix(2), Conv2D: window, Conv1D: window,
		QKV: func(in, out []Type, _ Attr) float64 {
			_, k := RowsCols(in[0].Shape)
			return 2 * float64(k) * float64(out[0].Len()+out[1].Len()+out[2].Len())
		},
		GateUpSwiGLU:        func(in, out []Type, a Attr) float64 { return 2 * matrix(1)(in, out, a) },
		QuantMatMulRowMajor: quantFlops, QuantMatMulColMajor: quantFlops, QuantRMSNormMatVec: quantFlops, QuantQKV: quantFlops,
		QuantGateUpSwiGLU: func(in, out []Type, a Attr) float64 { return 2 * quantFlops(in, out, a) },
		Attention:         attentionFlops(4), AttentionLSE: attentionFlops(4), AttentionBackward: attentionFlops(10),
		PagedAttention: attentionFlops(4),
	}
}

// quantFlops is that of products whose weights' shapes are in words.
func quantFlops(in, out []Type, _ Attr) float64 {
	_, k := RowsCols(in[0].Shape)
	n := 0
	for _, t := range out {
		n += t.Len()
	}
	return 2 * float64(k) * float64(n)
}

// attentionFlops is n operations for each query and each element of a key that it may see.
func attentionFlops(n float64) func(in, out []Type, a Attr) float64 {
	return func(in, _ []Type, _ Attr) float64 {
		q, k := in[0], in[1]
		heads, d := k.Shape[len(k.Shape)-2], k.Shape[len(k.Shape)-1]
		keys := float64(k.Len()) / max(1, float64(heads*d)) // of all sequences
		if len(q.Shape) == 4 && len(k.Shape) == 4 && k.Shape[0] == q.Shape[0] {
			keys /= float64(max(q.Shape[0], 1))
		}
		return n * float64(q.Len()) * keys
	}
}

// Products reports whether an entry is made of dot products, which matrix units compute.
func (e *Entry) Products() bool { return products[e] != nil }

// Flops is the number of floating-point operations of a step, at most where data decides.
func (e *Entry) Flops(in, out []Type, a Attr) float64 {
	if a.Prologue.None() && a.Epilogue.None() {
		return e.flops(in, out, a)
	}
	parts, err := e.Parts(in, a)
	if err != nil {
		return 0
	}
	n := e.flops(parts.In, out, parts.Attr)
	if !parts.Prologue.None() {
		n += parts.Prologue.flops() * float64(parts.In[0].Len())
	}
	if !parts.Epilogue.None() {
		n += parts.Epilogue.flops() * float64(out[0].Len())
	}
	return n
}

func (e *Entry) flops(in, out []Type, a Attr) float64 {
	elements := 0.0
	for _, list := range [][]Type{in, out} {
		for _, t := range list {
			elements = max(elements, float64(t.Len()))
		}
	}
	if f := products[e]; f != nil {
		if elements == 0 {
			return 0
		}
		return f(in, out, a)
	}
	switch x, fused := a.Options.(Expression); {
	case fused:
		return x.flops() * float64(out[0].Len())
	case e.Class.Elementwise():
		return e.elementFlops() * elements
	case e.Class == Move:
		return 0
	case e.Class == Reduce:
		return elements
	}
	return rowFlops * elements
}

// elementFlops is what an elementwise entry takes for an element: its tolerance tells arithmetic from functions.
func (e *Entry) elementFlops() float64 {
	switch {
	case e.Class == Ternary:
		return 2
	case math.Max(e.Tol.Abs, e.Tol.Rel) > rounded.Rel:
		return mathFlops
	}
	return 1
}

func (x *Expression) flops() float64 {
	n := 0.0
	for _, node := range x.Nodes {
		n += node.Entry.elementFlops()
	}
	return n
}
