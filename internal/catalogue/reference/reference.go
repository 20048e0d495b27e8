package reference

import "github.com/wavelane/wavelane/internal/program"

// Of computes an entry in float64. The operands must have passed [program.Entry.Check], which gave out.
func Of(e *program.Entry, in []Array, a program.Attr, out []program.Type) []Array {
	y := make([]Array, len(out))
	for i, data := range values(e, in, a, out) {
		y[i] = Array{Shape: out[i].Shape, Data: data}
	}
	return y
}

// Magnitudes returns the yardsticks that [program.Tolerance] multiplies by Mag, one value per element of each result.
func Magnitudes(e *program.Entry, in []Array, a program.Attr, out []program.Type) [][]float64 {
	if f := functions()[e].magnitudes; f != nil {
		return f(in, a, out)
	}
	return values(e, Absolute(in), a, out)
}

func values(e *program.Entry, in []Array, a program.Attr, out []program.Type) [][]float64 {
	if !a.Prologue.None() || !a.Epilogue.None() {
		return withExpressions(e, in, a, out)
	}
	if e == program.Fused {
		x := a.Options.(program.Expression)
		return expression(&x, in, a.Scalars, out[0].Shape)
	}
	if f := functions()[e].values; f != nil {
		return f(in, a, out)
	}
	return [][]float64{elementwise(e, in, a, out[0])}
}

func elementwise(e *program.Entry, in []Array, a program.Attr, out program.Type) []float64 {
	args := make([]int, len(in))
	for i := range args {
		args[i] = i
	}
	x := program.Expression{Inputs: len(in), Nodes: []program.Node{{Entry: e, Args: args}}, Results: []int{len(in)}}
	return expression(&x, in, a.Scalars, out.Shape)[0]
}

// expression computes an expression of whole operands.
func expression(x *program.Expression, in []Array, scalars []float32, shape []int) [][]float64 {
	p := make([]float64, len(scalars))
	for i, s := range scalars {
		p[i] = float64(s)
	}
	strides := make([][]int, len(in))
	for k := range in {
		strides[k] = program.BroadcastStrides(in[k].Shape, shape)
	}
	y := make([][]float64, len(x.Results))
	for k := range y {
		y[k] = make([]float64, program.Len(shape))
	}
	v := make([]float64, x.Inputs+len(x.Nodes))
	program.Walk(shape, func(i int, index []int) {
		for k := range in {
			v[k] = in[k].Data[program.Dot(index, strides[k])]
		}
		x.Evaluate(v, p)
		for k, r := range x.Results {
			y[k][i] = v[r]
		}
	})
	return y
}

// withExpressions computes an entry between its prologue and its epilogue.
func withExpressions(e *program.Entry, in []Array, a program.Attr, out []program.Type) [][]float64 {
	types := make([]program.Type, len(in))
	for i, x := range in {
		types[i] = program.F32(x.Shape...)
	}
	p, _ := e.Parts(types, a) // checked with the call; its own operands may be of other types
	before, after := len(p.PrologueIn), len(in)-len(p.EpilogueIn)
	own := in[before:after]
	if !p.Prologue.None() {
		shape := p.In[0].Shape
		own = append([]Array{{Shape: shape, Data: expression(&p.Prologue, in[:before], p.PrologueScalars, shape)[0]}}, own...)
	}
	y := values(e, own, p.Attr, out)
	if !p.Epilogue.None() {
		all := append([]Array{{Shape: out[0].Shape, Data: y[0]}}, in[after:]...)
		y = expression(&p.Epilogue, all, p.EpilogueScalars, out[0].Shape)
	}
	return y
}
