package cpu

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
)

// fused is the work of an expression whose results are the step's.
func fused(f *expression, c *call) work {
	const unit = 128 // elements, so that chunks begin at whole cache lines and are full vectors of chains
	n := c.out.Len()
	return one(engine.CeilDiv(n, unit), unit*f.ns, func(a *args, lo, hi int) {
		f.run(a.outs, 0, a.in, lo*unit, min(hi*unit, n))
	})
}

// expressions are the prologue and the epilogue of an entry. Nil stands for none.
type expressions struct {
	prologue, epilogue *expression
	skip               int // operands of a step before those of the entry, of which the first is not among the step's
	own                int // operands of the entry
}

// separate makes the call one of the entry alone, with its prologue and epilogue beside it.
func (c *call) separate(e *program.Entry) error {
	c.own = len(c.in)
	if c.attr.Prologue.None() && c.attr.Epilogue.None() {
		return nil
	}
	p, err := e.Parts(c.in, c.attr)
	if err != nil {
		return err
	}
	if !p.Prologue.None() {
		c.prologue = newExpression(&p.Prologue, p.PrologueScalars, p.PrologueIn, p.In[0].Shape, false)
		c.skip = len(p.PrologueIn) - 1
	}
	if !p.Epilogue.None() {
		if !takesEpilogue(e) {
			return fmt.Errorf("%s with an epilogue: %w", e.Name, compute.ErrUnsupported)
		}
		in := append([]program.Type{c.out}, p.EpilogueIn...)
		c.epilogue = newExpression(&p.Epilogue, p.EpilogueScalars, in, c.out.Shape, true)
	}
	c.in, c.attr, c.own = p.In, p.Attr, len(p.In)
	return nil
}

// takesEpilogue reports whether the epilogue of an entry is computed while their results are in the cache.
func takesEpilogue(e *program.Entry) bool {
	switch e {
	case catalogue.MatMul, catalogue.MatVec, catalogue.VecMat, catalogue.Conv2D, catalogue.Conv1D:
		return true
	}
	return e.TakesEpilogue() && (e.Class == program.Rows || e.Class == program.Reduce)
}

// operand is an operand of the entry, other than one that is computed before it.
func (x *expressions) operand(a *args, i int) view { return a.in[x.skip+i] }

// prepare computes elements of the operand before the entry; those from element base on are in y.
func (x *expressions) prepare(a *args, y view, base, lo, hi int) {
	x.prologue.run([]view{y}, base, a.in[:x.skip+1], lo, hi)
}

// Finish applies the epilogue to elements of the result; those from element base on are in y.
func (x *expressions) Finish(a *args, y view, base, lo, hi int) {
	if x.epilogue != nil {
		x.epilogue.run([]view{y}, base, a.in[x.skip+x.own:], lo, hi)
	}
}

// Ns returns the cost of both expressions, in ns for an element of their results.
func (x *expressions) Ns() (prologue, epilogue float64) {
	if x.prologue != nil {
		prologue = x.prologue.ns
	}
	if x.epilogue != nil {
		epilogue = x.epilogue.ns
	}
	return prologue, epilogue
}

// Fuses reports whether the device computes a step of several operations in fewer passes over memory than those, and in less time:
// intermediate values that are smaller than the result would be computed again and again. Results are the same bits either way,
// except that log, sin, cos and pow of neighbours of elements beyond their usual range may differ in the last one.
func (executor) Fuses(s *program.Step, in, out []program.Type) bool {
	if s.Entry == program.Fused {
		x, ok := s.Attr.Options.(program.Expression)
		return ok && len(x.Nodes) > 1 && pays(&x, in, out[0])
	}
	p, err := s.Entry.Parts(in, s.Attr)
	if err != nil || p.Prologue.None() && p.Epilogue.None() {
		return false
	}
	if !p.Prologue.None() && !pays(&p.Prologue, p.PrologueIn, p.In[0]) {
		return false
	}
	return p.Epilogue.None() || takesEpilogue(s.Entry) && pays(&p.Epilogue, append([]program.Type{out[0]}, p.EpilogueIn...), out[0])
}

// pays reports whether an expression with results of a type is computed faster than its nodes one by one.
func pays(x *program.Expression, in []program.Type, out program.Type) bool {
	shapes := make([][]int, 0, len(in)+len(x.Nodes))
	for _, t := range in {
		shapes = append(shapes, t.Shape)
	}
	whole, apart := 0.0, 0.0
	for _, node := range x.Nodes {
		var args [3][]int
		for k, a := range node.Args {
			args[k] = shapes[a]
		}
		shape, err := program.Broadcast(args[:len(node.Args)]...)
		s := spanOf(node.Entry)
		if err != nil || s == nil {
			return false
		}
		shapes = append(shapes, shape)
		const step = 500 // what a step costs at least
		whole += s.Cost.Near() * float64(out.Len())
		apart += s.Cost.Ns()*float64(program.Len(shape)) + step
	}
	return whole < apart
}
