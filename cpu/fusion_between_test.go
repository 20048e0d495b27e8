package cpu_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

var betweenShapes = [][]int{{1}, {9}, {3, 5}, {40, 17}, {2, 3, 70}, {300, 3}, {2, 2100}, {1, 40_000}, {2, 70_000}}

// widen makes an expression end with a node that reads its first operand, which has the shape of the result.
func widen(x *program.Expression) {
	x.Nodes = append(x.Nodes, program.Node{Entry: catalogue.Add, Args: []int{0, x.Results[0]}})
	x.Results[0] = x.Inputs + len(x.Nodes) - 1
}

// between returns a random step of an entry with a prologue, an epilogue or both.
func (r *expressions) between(t *testing.T, e *program.Entry) calculation {
	c := calculation{e: e, attr: program.Attr{Options: e.Options}}
	for _, s := range e.Scalars {
		c.attr.Scalars = append(c.attr.Scalars, s.Test[0])
	}
	shape := betweenShapes[r.IntN(len(betweenShapes))]
	half := program.Type{DType: compute.Float16}
	if r.IntN(2) == 0 {
		half.DType = compute.Float32
	}
	of := func(shape ...int) program.Type { return program.Type{DType: half.DType, Shape: shape} }
	m, k, n := 1+r.IntN(90), r.IntN(200), 1+r.IntN(90)
	if r.IntN(3) == 0 {
		m, k, n = 1+r.IntN(600), 300, 100+r.IntN(600)
	}
	switch e {
	case catalogue.MatMul:
		c.attr.Options = compute.MatMulOptions{Act: compute.Activation(r.IntN(3))}
		c.in = []program.Type{of([]int{1 + r.IntN(3), m, k}[r.IntN(2):]...), of(k, n), program.F32(n)}[:2+r.IntN(2)]
	case catalogue.MatVec:
		c.in = []program.Type{of(m, k), program.F32(k)}
	case catalogue.VecMat:
		c.in = []program.Type{program.F32(k), of(k, n)}
	case catalogue.Conv2D:
		o := compute.Conv2DOptions{Pad: [2]int{1, 1}, Act: compute.Activation(r.IntN(3))}
		c.attr.Options = o
		c.in = []program.Type{program.F32(2, 3, 20, 17), program.F32(5, 3, 3, 3), program.F32(5)}[:2+r.IntN(2)]
	case catalogue.Conv1D:
		c.in = []program.Type{program.F32(2, 3, 200), program.F32(5, 3, 3), program.F32(5)}[:2+r.IntN(2)]
	default:
		if e.Class == program.Reduce {
			c.attr.Options = []compute.Axis{compute.AllAxes, compute.LastAxis}[r.IntN(2)]
		}
		for i := range e.Inputs {
			s := program.F32(shape...)
			if e.Class == program.Rows && i > 0 {
				s = program.F32(shape[len(shape)-1])
			}
			c.in = append(c.in, s)
		}
	}
	c.own = len(c.in)
	out, err := e.Check(c.in, c.attr)
	require.NoError(t, err)
	if e.TakesPrologue() && r.IntN(3) > 0 {
		c.before, c.first = r.expression(1+r.IntN(3), 1+r.IntN(4), 1)
		var in []program.Type
		for i := range c.before.Inputs {
			s := c.in[0]
			if i > 0 {
				s = program.F32(r.operand(shape)...)
			}
			in = append(in, s)
		}
		c.preface, c.own = len(in), c.own-1
		c.in = append(in, c.in[1:]...)
		widen(&c.before)
	}
	if e.TakesEpilogue() && out[0].DType == compute.Float32 && (c.before.None() || r.IntN(2) == 0) {
		c.x, c.last = r.expression(1+r.IntN(3), 1+r.IntN(4), 1)
		for range c.x.Inputs - 1 {
			c.in = append(c.in, program.F32(r.operand(out[0].Shape)...))
		}
		widen(&c.x)
	}
	return c
}

// Steps with expressions give the bits of separate steps.
func TestExpressionsBeforeAndBehind(t *testing.T) {
	r := newExpressions(t)
	r.plain = true
	for _, e := range catalogue.All() {
		if !e.TakesPrologue() && !slices.Contains([]*program.Entry{catalogue.MatMul, catalogue.MatVec, catalogue.VecMat, catalogue.Conv2D, catalogue.Conv1D}, e) {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			repeated(t, 10, func(t *testing.T, d *cpu.Device) {
				r.special = r.IntN(3) == 0
				c := r.between(t, e)
				whole, apart := c.programs(t)
				step := &whole.Steps[0]
				program.ExecutorOf(d).Fuses(step, whole.Types(step.In), whole.Types(step.Out))
				io := &program.IO{}
				for _, s := range c.in {
					io.Host = append(io.Host, inType(s.DType, r.data(s.Len())))
				}
				io.Read = destinations(apart)
				want := results(t, d, apart, io)
				name := fmt.Sprintf("%v, %s(…) %v, %v of %v", &c.before, e.Name, c.attr, &c.x, c.in)
				io.Read = destinations(whole)
				requireBits(t, want, results(t, d, whole, io), "%s", name)
				if y := whole.Values[whole.Read[0]].Type; e.Class == program.Rows && program.EqualShape(y.Shape, c.in[0].Shape) {
					io.Read = io.Host[:1]
					requireBits(t, want, results(t, d, whole, io), "%s in place", name)
				}
			})
		})
	}
}
