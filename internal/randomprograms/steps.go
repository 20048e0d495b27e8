package randomprograms

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// computeAll fills in the results of all steps of a program. Corrupt, unless nil, may change them.
func computeAll(p *program.Program, values []reference.Array, corrupt func(step int, y []reference.Array)) {
	for i := range p.Steps {
		s := &p.Steps[i]
		in := make([]reference.Array, len(s.In))
		for k, slot := range s.In {
			in[k] = values[slot]
		}
		results := decomposed(s.Entry, in, p.Types(s.In), s.Attr, p.Types(s.Out))
		if corrupt != nil {
			corrupt(i, results)
		}
		for k, y := range results {
			values[s.Out[k]] = y
		}
	}
}

// decomposed computes a step as the steps that it may have been made of.
func decomposed(e *program.Entry, in []reference.Array, types []program.Type, a program.Attr, out []program.Type) []reference.Array {
	if !a.Prologue.None() || !a.Epilogue.None() {
		return aroundExpressions(e, in, types, a, out)
	}
	one := func(e *program.Entry, a program.Attr, in ...reference.Array) reference.Array {
		t := make([]program.Type, len(in))
		for i, x := range in {
			t[i] = program.F32(x.Shape...)
		}
		types, err := e.Check(t, a)
		if err != nil {
			panic(err) // the whole was checked
		}
		return decomposed(e, in, t, a, types)[0]
	}
	eps := program.Attr{Scalars: a.Scalars}
	switch e {
	case program.Fused:
		return expression(a.Options.(program.Expression), in, a.Scalars, out[0].Shape)
	case catalogue.BiasActivation:
		return []reference.Array{activated(one(catalogue.Add, program.Attr{}, in[0], in[1]), a.Activation())}
	case catalogue.AddRMSNorm:
		sum := one(catalogue.Add, program.Attr{}, in[0], in[1])
		return []reference.Array{sum, one(catalogue.RMSNorm, eps, sum, in[2])}
	case catalogue.AddLayerNorm:
		sum := one(catalogue.Add, program.Attr{}, in[0], in[1])
		return []reference.Array{sum, one(catalogue.LayerNorm, eps, sum, in[2], in[3])}
	case catalogue.RMSNormMatVec:
		return []reference.Array{{Shape: out[0].Shape, Data: one(catalogue.MatVec, program.Attr{}, in[2], flat(one(catalogue.RMSNorm, eps, in[0], in[1]))).Data}}
	case catalogue.GateUpSwiGLU:
		y := one(catalogue.SwiGLU, program.Attr{}, one(catalogue.MatVec, program.Attr{}, in[1], flat(in[0])), one(catalogue.MatVec, program.Attr{}, in[2], flat(in[0])))
		return []reference.Array{{Shape: out[0].Shape, Data: y.Data}}
	}
	switch o := a.Options.(type) {
	case compute.MatMulOptions:
		if o.Act != compute.NoActivation || len(in) == 3 {
			act := o.Act
			o.Act = compute.NoActivation
			y := decomposed(e, in[:2], types[:2], program.Attr{Options: o}, out)[0]
			if len(in) == 3 {
				y = one(catalogue.Add, program.Attr{}, y, in[2])
			}
			return []reference.Array{activated(y, act)}
		}
	case compute.Conv2DOptions:
		if act := o.Act; act != compute.NoActivation {
			o.Act = compute.NoActivation
			return []reference.Array{activated(decomposed(e, in, types, program.Attr{Options: o}, out)[0], act)}
		}
	}
	y := reference.Of(e, in, a, out)
	for k := range y {
		for i, v := range y[k].Data {
			y[k].Data[i] = reference.Rounded(v, out[k].DType)
		}
	}
	return y
}

// flat is x as rows.
func flat(x reference.Array) reference.Array {
	rows, cols := program.RowsCols(x.Shape)
	return reference.Array{Shape: []int{rows, cols}, Data: x.Data}
}

func activated(x reference.Array, act compute.Activation) reference.Array {
	e, err := catalogue.ActivationEntry(act)
	if err != nil || e == nil {
		return x
	}
	t := []program.Type{program.F32(x.Shape...)}
	return decomposed(e, []reference.Array{x}, t, program.Attr{}, t)[0]
}

// expression computes the results of an expression, rounding every node.
func expression(x program.Expression, in []reference.Array, scalars []float32, shape []int) []reference.Array {
	p := numbers(scalars)
	strides := make([][]int, len(in))
	for k := range in {
		strides[k] = program.BroadcastStrides(in[k].Shape, shape)
	}
	y := make([]reference.Array, len(x.Results))
	for k := range y {
		y[k] = reference.Array{Shape: shape, Data: make([]float64, program.Len(shape))}
	}
	v := make([]float64, x.Inputs+len(x.Nodes))
	program.Walk(shape, func(i int, index []int) {
		for k := range in {
			v[k] = in[k].Data[program.Dot(index, strides[k])]
		}
		var args [3]float64
		rest := p
		for n, node := range x.Nodes {
			for k, a := range node.Args {
				args[k] = v[a]
			}
			own := len(node.Entry.Scalars)
			v[x.Inputs+n] = reference.Rounded(node.Entry.F(args[:len(node.Args)], rest[:own]), compute.Float32)
			rest = rest[own:]
		}
		for k, r := range x.Results {
			y[k].Data[i] = v[r]
		}
	})
	return y
}

// aroundExpressions computes prologue, entry and epilogue.
func aroundExpressions(e *program.Entry, in []reference.Array, types []program.Type, a program.Attr, out []program.Type) []reference.Array {
	parts, err := e.Parts(types, a)
	if err != nil {
		panic(err) // checked
	}
	before, after := len(parts.PrologueIn), len(parts.EpilogueIn)
	own := in[before : len(in)-after]
	if !parts.Prologue.None() {
		x := expression(parts.Prologue, in[:before], parts.PrologueScalars, parts.In[0].Shape)[0]
		own = append([]reference.Array{x}, own...)
	}
	y := decomposed(e, own, parts.In, parts.Attr, out)
	if !parts.Epilogue.None() {
		all := append([]reference.Array{y[0]}, in[len(in)-after:]...)
		y = expression(parts.Epilogue, all, parts.EpilogueScalars, out[0].Shape)
	}
	return y
}
