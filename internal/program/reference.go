package program

import "math"

// Reference computes an entry in float64. The operands must have passed [Entry.Check], which gave out.
func (e *Entry) Reference(in []Array, a Attr, out []Type) []Array {
	return arraysOf(e.references(in, a, out), out)
}

func (e *Entry) references(in []Array, a Attr, out []Type) [][]float64 {
	switch {
	case !a.Prologue.None() || !a.Epilogue.None():
		types := make([]Type, len(in))
		for i, x := range in {
			types[i] = F32(x.Shape...)
		}
		parts, _ := e.Parts(types, a) // checked with the call; its own operands may be of other types
		return parts.Reference(e, in, out)
	case e.RefAll != nil:
		return e.RefAll(in, a, out)
	case e.Ref != nil:
		return [][]float64{e.Ref(in, a, out[0])}
	}
	return [][]float64{e.elementwise(in, a, out[0])}
}

func (e *Entry) elementwise(in []Array, a Attr, out Type) []float64 {
	p := make([]float64, len(a.Scalars))
	for i, s := range a.Scalars {
		p[i] = float64(s)
	}
	y := make([]float64, out.Len())
	strides := make([][]int, len(in))
	for k := range in {
		strides[k] = BroadcastStrides(in[k].Shape, out.Shape)
	}
	x := make([]float64, len(in))
	Walk(out.Shape, func(i int, index []int) {
		for k := range in {
			x[k] = in[k].Data[Dot(index, strides[k])]
		}
		y[i] = e.F(x, p)
	})
	return y
}

func arraysOf(data [][]float64, out []Type) []Array {
	y := make([]Array, len(data))
	for i := range y {
		y[i] = Array{out[i].Shape, data[i]}
	}
	return y
}

// Magnitudes returns the yardsticks that Tolerance.Mag multiplies, one value per element of each result.
func (e *Entry) Magnitudes(in []Array, a Attr, out []Type) [][]float64 {
	switch {
	case e.MagnitudeAll != nil:
		return e.MagnitudeAll(in, a, out)
	case e.Magnitude != nil:
		return [][]float64{e.Magnitude(in, a, out[0])}
	}
	return e.references(Absolute(in), a, out)
}

// Walk calls visit for every index of a shape in row-major order. The index is reused between calls.
func Walk(shape []int, visit func(i int, index []int)) {
	n := Len(shape)
	index := make([]int, len(shape))
	for i := range n {
		visit(i, index)
		for d := len(shape) - 1; d >= 0; d-- {
			index[d]++
			if index[d] < shape[d] {
				break
			}
			index[d] = 0
		}
	}
}

// Dot returns the offset of an index under strides.
func Dot(index, strides []int) int {
	n := 0
	for i, x := range index {
		n += x * strides[i]
	}
	return n
}

func Absolute(in []Array) []Array {
	out := make([]Array, len(in))
	for i, x := range in {
		out[i] = MapArray(x, math.Abs)
	}
	return out
}

func MapArray(x Array, f func(float64) float64) Array {
	y := make([]float64, len(x.Data))
	for i, v := range x.Data {
		y[i] = f(v)
	}
	return Array{x.Shape, y}
}
