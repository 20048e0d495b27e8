package rewrite

import (
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Limits of a step with expressions. WebGPU grants 8 storage buffers per shader stage; the bound on nodes keeps the values of an
// expression in registers.
const (
	maxBuffers = 8
	maxNodes   = 32
)

// collect returns the operands and results of elementwise steps taken as one expression: the values from outside in the order of first
// use, and the values that are used outside. The lists are valid until the next call.
func (g *graph) collect(members []int32) (operands, results []program.Slot) {
	g.round++
	for _, m := range members {
		g.inRound[m] = g.round
	}
	g.operands, g.results = g.operands[:0], g.results[:0]
	for _, m := range members {
		s := &g.steps[m]
		for _, in := range s.In {
			if by := g.maker[in]; by != none && g.inRound[by] == g.round || g.numbered[in] == g.round {
				continue
			}
			g.numbered[in] = g.round
			g.operands = append(g.operands, in)
		}
		if g.wanted(s.Out[0]) {
			g.results = append(g.results, s.Out[0])
		}
	}
	return g.operands, g.results
}

// wanted reports whether a value is used outside the members of this round.
func (g *graph) wanted(v program.Slot) bool {
	if g.liveOut[v] {
		return true
	}
	for _, r := range g.readers(v) {
		if g.inRound[r] != g.round {
			return true
		}
	}
	return false
}

// expressionOf returns the expression of elementwise steps, with their scalars.
func (g *graph) expressionOf(members []int32, operands, results []program.Slot) (program.Expression, program.Attr) {
	x := program.Expression{Inputs: len(operands), Nodes: make([]program.Node, 0, len(members)+1), Results: make([]int, len(results))}
	var scalars program.Attr
	for i, v := range operands {
		g.number[v] = i
	}
	args := make([]int, 0, 3*len(members))
	for _, m := range members {
		s := &g.steps[m]
		from := len(args)
		for _, in := range s.In {
			args = append(args, g.number[in])
		}
		e := s.Entry
		if e == catalogue.BiasActivation {
			e = catalogue.Add
		}
		x.Nodes = append(x.Nodes, program.Node{Entry: e, Args: args[from:len(args):len(args)]})
		if s.Entry == catalogue.BiasActivation {
			if act, _ := catalogue.ActivationEntry(s.Attr.Activation()); act != nil { // checked when it was recorded
				x.Nodes = append(x.Nodes, program.Node{Entry: act, Args: []int{x.Inputs + len(x.Nodes) - 1}})
			}
		}
		if len(s.Attr.Scalars) > 0 {
			scalars.AppendScalars(s.Attr)
		}
		g.number[s.Out[0]] = x.Inputs + len(x.Nodes) - 1
	}
	for i, v := range results {
		x.Results[i] = g.number[v]
	}
	return x, scalars
}

// build returns the step of a unit.
func (g *graph) build(u *unit) program.Step {
	if u.core == none {
		if len(u.epilogue) == 1 {
			return g.steps[u.epilogue[0]]
		}
		in, out := g.collect(u.epilogue)
		s := program.Step{Entry: program.Fused, In: slices.Clone(in), Out: slices.Clone(out)}
		var x program.Expression
		x, s.Attr = g.expressionOf(u.epilogue, s.In, s.Out)
		s.Attr.Options = x
		return s
	}
	s := g.steps[u.core]
	if len(u.prologue) > 0 {
		in, out := g.collect(u.prologue)
		x, scalars := g.expressionOf(u.prologue, in, out)
		scalars.AppendScalars(s.Attr)
		s.Attr.Scalars, s.Attr.Vary = scalars.Scalars, scalars.Vary
		s.Attr.Prologue = x
		s.In = slices.Concat(in, s.In[1:])
	}
	if len(u.epilogue) > 0 {
		in, out := g.collect(u.epilogue)
		of := slices.Index(in, s.Out[0])
		in[0], in[of] = in[of], in[0]
		x, scalars := g.expressionOf(u.epilogue, in, out)
		s.Attr.AppendScalars(scalars)
		s.Attr.Epilogue = x
		s.In = slices.Concat(s.In, in[1:])
		s.Out = slices.Clone(out)
	}
	return s
}

// agrees reports whether a unit can be one step for which the device has a kernel.
func (g *graph) agrees(u *unit) bool {
	if g.device == nil {
		return false
	}
	s := g.build(u)
	if len(s.In)+len(s.Out) > maxBuffers || len(u.prologue) > maxNodes || len(u.epilogue) > maxNodes {
		return false
	}
	return g.valid(&s) && g.device.Fuses(&s, g.p.Types(s.In), g.p.Types(s.Out))
}

// valid reports whether a step computes values of the types that the program says.
func (g *graph) valid(s *program.Step) bool {
	types, err := s.Entry.Check(g.p.Types(s.In), s.Attr)
	return err == nil && slices.EqualFunc(types, s.Out, func(t program.Type, v program.Slot) bool { return equalTypes(t, g.p.Values[v].Type) })
}

func equalTypes(a, b program.Type) bool {
	return a.DType == b.DType && program.EqualShape(a.Shape, b.Shape)
}

// single reports whether a value is Float32.
func (g *graph) single(v program.Slot) bool { return g.p.Values[v].DType == compute.Float32 }
