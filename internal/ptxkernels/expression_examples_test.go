package ptxkernels

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/analyze"
)

// example is a call with expressions, and what it gives.
type example struct {
	*call
	want [][]float32
}

// examples stand for the kernels of expressions where kernels are judged one by one.
func examples() (all []*call) {
	rng := ptxtest.Replay(conformance.Seed())
	add := func(e *program.Entry, a program.Attr, shapes ...[]int) {
		c := newCall(rng, e, a, false, shapes...)
		all = append(all, &c)
	}
	// relu(x·s + a)·b and x·s + a.
	x := program.Expression{Inputs: 3, Results: []int{6, 4}, Nodes: []program.Node{{Entry: catalogue.Scale, Args: []int{0}},
		{Entry: catalogue.Add, Args: []int{3, 1}}, {Entry: catalogue.ReLU, Args: []int{4}}, {Entry: catalogue.Mul, Args: []int{5, 2}}}}
	a := program.Attr{Options: x, Scalars: []float32{0.5}}
	add(program.Fused, a, []int{37}, []int{37}, []int{1})
	add(program.Fused, a, []int{2100}, []int{2100}, []int{1})
	add(program.Fused, a, []int{5, 3, 8}, []int{8}, []int{3, 1})
	add(program.Fused, a, []int{5, 3, 3}, []int{3}, []int{5, 1, 1})
	add(program.Fused, a, []int{90, 25}, []int{25}, []int{90, 1})
	add(program.Fused, a, []int{90, 25}, []int{90, 25}, []int{90, 1})
	add(program.Fused, a, []int{90, 28}, []int{90, 28}, []int{90, 1})
	x.Results = []int{6}
	withEpilogue := program.Attr{Options: compute.MatMulOptions{}, Epilogue: x, Scalars: []float32{0.5}}
	add(catalogue.MatMul, withEpilogue, []int{5, 9}, []int{9, 12}, []int{12}, []int{5, 12})
	add(catalogue.MatMul, withEpilogue, []int{3, 40}, []int{40, 33}, []int{3, 1}, []int{33})
	add(catalogue.MatMul, withEpilogue, []int{3, 40}, []int{40, 301}, []int{3, 1}, []int{301})
	add(catalogue.MatMul, withEpilogue, []int{3, 0}, []int{0, 40}, []int{40}, []int{3, 40})
	withPrologue := program.Attr{Options: compute.LastAxis, Prologue: x, Scalars: []float32{0.5}}
	add(catalogue.Sum, withPrologue, []int{6, 70}, []int{6, 70}, []int{1})
	add(catalogue.Sum, withPrologue, []int{4, 72}, []int{72}, []int{4, 1})
	add(catalogue.Max, withPrologue, []int{9, 5}, []int{5}, []int{9, 5})
	return all
}

// exampleTrials are the ways to lower an example that launch kernels made for it.
func exampleTrials(add func(t trial, l kit.Lowering)) error {
	for _, c := range examples() {
		p, slots := c.program()
		out, err := p.ApplyAll(c.Entry, c.Attr, slots...)
		if err != nil {
			return err
		}
		for _, caps := range capsTried {
			for variant, variants := 0, 1; variant < variants; variant++ {
				l, err := Lower(&p.Steps[0], c.in, p.Types(out), &caps, func(_, _ string, names []string) int {
					variants = len(names)
					return min(variant, len(names)-1)
				})
				if err != nil {
					return err
				}
				e := &example{call: c}
				t := trial{caps: caps, variant: variant, example: e, Case: conformance.Case{Entry: c.Entry}}
				apart := sync.OnceValue(func() error {
					r := newTrialRig(kerneltest.EveryCheck(1))
					t.setUp(r)
					p, out, err := c.Split()
					if err == nil {
						e.want, err = c.execute(r, p, out)
					}
					return err
				})
				t.expect = apart
				add(t, l)
			}
		}
	}
	return nil
}

// Run executes the step and compares with what single steps give, to the last bit.
func (e *example) Run(dev program.Executor) error {
	p, slots := e.program()
	out, err := p.ApplyAll(e.Entry, e.Attr, slots...)
	if err != nil {
		return err
	}
	got, err := e.execute(dev, p, out)
	if err != nil {
		return err
	}
	for k, want := range e.want {
		if !slices.EqualFunc(got[k], want, func(a, b float32) bool {
			return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
		}) {
			return fmt.Errorf("result %d differs", k)
		}
	}
	return nil
}

// The kernels of the examples are clean in strict mode, but for what is allowed of those that they are made from.
func TestStrictExpressions(t *testing.T) {
	kernels := map[*kit.Kernel]bool{}
	require.NoError(t, exampleTrials(func(_ trial, l kit.Lowering) {
		for _, a := range l.Actions {
			if a.Launch != nil && a.Launch.Kernel.Family == "" {
				kernels[a.Launch.Kernel] = true
			}
		}
	}))
	require.Greater(t, len(kernels), 8)
	for k := range kernels {
		m, err := kit.JITModule(k)
		require.NoError(t, err)
		if len(m.Funcs[0].Body) > 1500 && !everything {
			continue // whose analysis takes long
		}
		r, err := analyze.Module(m, analyze.Options{Strict: true})
		require.NoError(t, err)
		base := k.Name[:len(k.Name)-25] // without the hash
		for _, f := range r.Findings {
			if !slices.ContainsFunc(allowed, func(a allowance) bool { return a.covers(string(f.Class), base) }) {
				t.Errorf("%s of %s: %v", f.Class, k.Name, f)
			}
		}
	}
}
