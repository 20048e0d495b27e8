package program

import "math"

// Floating-point operations of steps, for models and profiles: a product and a sum count as two, an exponential, a logarithm or
// their like as mathFlops, a comparison as one. Entries that are not named here count rowFlops per element of their largest
// operand or result if they compute, and nothing if they only move data.
const (
	mathFlops = 10
	rowFlops  = 8
)

// Products reports whether an entry is made of dot products, which matrix units compute.
func (e *Entry) Products() bool { return e.Dots != nil }

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
	if e.Dots != nil {
		if elements == 0 {
			return 0
		}
		return e.Dots(in, out, a)
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
	case math.Max(e.Tol.Abs, e.Tol.Rel) > Arithmetic.Rel:
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
