package randomprograms

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// computeAll fills in the results of all steps of a program. Spoil, unless nil, may change them.
func computeAll(p *op.Program, values []op.Array, spoil func(step int, y []op.Array)) {
	for i := range p.Steps {
		s := &p.Steps[i]
		in := make([]op.Array, len(s.In))
		for k, slot := range s.In {
			in[k] = values[slot]
		}
		results := apart(s.Entry, in, p.Types(s.In), s.Attr, p.Types(s.Out))
		if spoil != nil {
			spoil(i, results)
		}
		for k, y := range results {
			values[s.Out[k]] = y
		}
	}
}

// apart computes a step as the steps that it may have been made of.
func apart(e *op.Entry, in []op.Array, types []op.Type, a op.Attr, out []op.Type) []op.Array {
	if !a.Prologue.None() || !a.Epilogue.None() {
		return aroundExpressions(e, in, types, a, out)
	}
	one := func(e *op.Entry, a op.Attr, in ...op.Array) op.Array {
		t := make([]op.Type, len(in))
		for i, x := range in {
			t[i] = op.F32(x.Shape...)
		}
		types, err := e.Check(t, a)
		if err != nil {
			panic(err) // the whole was checked
		}
		return apart(e, in, t, a, types)[0]
	}
	eps := op.Attr{Scalars: a.Scalars}
	switch e {
	case op.Fused:
		return expression(a.Options.(op.Expression), in, a.Scalars, out[0].Shape)
	case op.BiasActivation:
		return []op.Array{activated(one(op.Add, op.Attr{}, in[0], in[1]), a.Activation())}
	case op.AddRMSNorm:
		sum := one(op.Add, op.Attr{}, in[0], in[1])
		return []op.Array{sum, one(op.RMSNorm, eps, sum, in[2])}
	case op.AddLayerNorm:
		sum := one(op.Add, op.Attr{}, in[0], in[1])
		return []op.Array{sum, one(op.LayerNorm, eps, sum, in[2], in[3])}
	case op.RMSNormMatVec:
		return []op.Array{{Shape: out[0].Shape, Data: one(op.MatVec, op.Attr{}, in[2], flat(one(op.RMSNorm, eps, in[0], in[1]))).Data}}
	case op.GateUpSwiGLU:
		y := one(op.SwiGLU, op.Attr{}, one(op.MatVec, op.Attr{}, in[1], flat(in[0])), one(op.MatVec, op.Attr{}, in[2], flat(in[0])))
		return []op.Array{{Shape: out[0].Shape, Data: y.Data}}
	}
	switch o := a.Options.(type) {
	case compute.MatMulOptions:
		if o.Act != compute.NoActivation || len(in) == 3 {
			act := o.Act
			o.Act = compute.NoActivation
			y := apart(e, in[:2], types[:2], op.Attr{Options: o}, out)[0]
			if len(in) == 3 {
				y = one(op.Add, op.Attr{}, y, in[2])
			}
			return []op.Array{activated(y, act)}
		}
	case compute.Conv2DOptions:
		if act := o.Act; act != compute.NoActivation {
			o.Act = compute.NoActivation
			return []op.Array{activated(apart(e, in, types, op.Attr{Options: o}, out)[0], act)}
		}
	}
	y := e.Reference(in, a, out)
	for k := range y {
		for i, v := range y[k].Data {
			y[k].Data[i] = op.Rounded(v, out[k].DType)
		}
	}
	return y
}

// flat is x as rows.
func flat(x op.Array) op.Array {
	rows, cols := op.RowsCols(x.Shape)
	return op.Array{Shape: []int{rows, cols}, Data: x.Data}
}

func activated(x op.Array, act compute.Activation) op.Array {
	e, err := op.ActivationEntry(act)
	if err != nil || e == nil {
		return x
	}
	t := []op.Type{op.F32(x.Shape...)}
	return apart(e, []op.Array{x}, t, op.Attr{}, t)[0]
}

// expression computes the results of an expression, rounding every node.
func expression(x op.Expression, in []op.Array, scalars []float32, shape []int) []op.Array {
	p := numbers(scalars)
	strides := make([][]int, len(in))
	for k := range in {
		strides[k] = op.BroadcastStrides(in[k].Shape, shape)
	}
	y := make([]op.Array, len(x.Results))
	for k := range y {
		y[k] = op.Array{Shape: shape, Data: make([]float64, op.Len(shape))}
	}
	v := make([]float64, x.Inputs+len(x.Nodes))
	op.Walk(shape, func(i int, index []int) {
		for k := range in {
			v[k] = in[k].Data[op.Dot(index, strides[k])]
		}
		var args [3]float64
		rest := p
		for n, node := range x.Nodes {
			for k, a := range node.Args {
				args[k] = v[a]
			}
			own := len(node.Entry.Scalars)
			v[x.Inputs+n] = op.Rounded(node.Entry.F(args[:len(node.Args)], rest[:own]), compute.Float32)
			rest = rest[own:]
		}
		for k, r := range x.Results {
			y[k].Data[i] = v[r]
		}
	})
	return y
}

// aroundExpressions computes prologue, entry and epilogue.
func aroundExpressions(e *op.Entry, in []op.Array, types []op.Type, a op.Attr, out []op.Type) []op.Array {
	parts, err := e.Parts(types, a)
	if err != nil {
		panic(err) // checked
	}
	before, behind := len(parts.PrologueIn), len(parts.EpilogueIn)
	own := in[before : len(in)-behind]
	if !parts.Prologue.None() {
		x := expression(parts.Prologue, in[:before], parts.PrologueScalars, parts.In[0].Shape)[0]
		own = append([]op.Array{x}, own...)
	}
	y := apart(e, own, parts.In, parts.Attr, out)
	if !parts.Epilogue.None() {
		all := append([]op.Array{y[0]}, in[len(in)-behind:]...)
		y = expression(parts.Epilogue, all, parts.EpilogueScalars, out[0].Shape)
	}
	return y
}
