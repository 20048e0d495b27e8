package conformance

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// graph is a program of many steps under test, with its data.
type graph struct {
	require.TestingT
	*source
	d *testDevice
	program.Program
	data   map[program.Slot]operand // of uploaded values and, after a run, of those read back
	approx map[program.Slot]reference.Array
}

func (d *testDevice) graph(t require.TestingT, name string) *graph {
	return &graph{TestingT: t, source: newSource(Seed(), name, 0), d: d, data: map[program.Slot]operand{}, approx: map[program.Slot]reference.Array{}}
}

func (g *graph) upload(o operand) program.Slot {
	s := g.Add(o.Type, program.FromHost)
	g.data[s] = o
	g.approx[s] = array(o.data, o.Shape)
	return s
}

// apply appends a step with one result; its reference is in approx.
func (g *graph) apply(e *program.Entry, a program.Attr, in ...program.Slot) program.Slot {
	return g.applyAll(e, a, in...)[0]
}

// applyAll appends a step; the references of its results are in approx.
func (g *graph) applyAll(e *program.Entry, a program.Attr, in ...program.Slot) []program.Slot {
	out, err := g.ApplyAll(e, a, in...)
	require.NoError(g, err)
	known := make([]reference.Array, len(in))
	for i, v := range in {
		var ok bool
		if known[i], ok = g.approx[v]; !ok {
			return out
		}
	}
	for i, y := range reference.Of(e, known, a, g.Types(out)) {
		g.approx[out[i]] = y
	}
	return out
}

func (g *graph) read(slots ...program.Slot) { g.Read = append(g.Read, slots...) }

// compile prepares the program and closes it when the test has what it wanted.
func (g *graph) compile() program.Executable {
	ex, err := g.d.Compile(context.Background(), &g.Program)
	require.NoError(g, err)
	return ex
}

// io returns the data of a run with poisoned destinations.
func (g *graph) io(tensors ...compute.Tensor) *program.IO {
	io := &program.IO{Tensors: tensors}
	for _, s := range g.Host {
		io.Host = append(io.Host, g.data[s].clone().data)
	}
	for _, s := range g.Read {
		dst, _ := destination(g.Values[s].Type)
		io.Read = append(io.Read, dst)
	}
	if len(g.Keep) > 0 {
		io.Keep = make([]compute.Tensor, len(g.Keep))
	}
	return io
}

// run executes the program once and verifies what it read back.
func (g *graph) run(tensors ...compute.Tensor) *program.IO {
	ex := g.compile()
	io := g.io(tensors...)
	require.NoError(g, await(ex.Start(io)))
	require.NoError(g, ex.Close())
	g.verify(io)
	return io
}

// verify judges every step whose operands and result are known, from the values that the device itself gave for the
// operands: errors do not add up, and the first wrong step is named.
func (g *graph) verify(io *program.IO) {
	g.d.count.Add(1)
	for i, s := range g.Read {
		o := operand{g.Values[s].Type, io.Read[i]}
		if was, ok := g.data[s]; ok {
			require.True(g, sameBits(was.data, o.data), "%s: value %d, uploaded and read back or read twice, changed", g.d.name, s)
		}
		g.data[s] = o
	}
	for i, step := range g.Steps {
		known := slices.ContainsFunc(step.Out, func(s program.Slot) bool { _, read := g.data[s]; return read })
		in := make([]operand, len(step.In))
		for j, s := range step.In {
			var ok bool
			in[j], ok = g.data[s]
			known = known && ok
		}
		if !known {
			continue
		}
		for k, x := range expect(step.Entry, step.Attr, in, g.Types(step.Out)) {
			out, read := g.data[step.Out[k]]
			if !read {
				continue
			}
			if err := x.judge(out.data); err != nil {
				require.NoError(g, fmt.Errorf("%s: step %d of %d, %s %v%v, result %d: %w\nrepeat with WAVELANE_SEED=%d", g.d.name, i,
					len(g.Steps), step.Entry.Name, types(in), step.Attr, k, err, Seed()))
			}
		}
	}
	for s := range g.data { // forget results, so that the graph can run again
		if g.Values[s].Source == program.FromStep {
			delete(g.data, s)
		}
	}
}

// results are all values that steps produce.
func (g *graph) results() (out []program.Slot) {
	for _, s := range g.Steps {
		out = append(out, s.Out...)
	}
	return out
}

// largest is the largest magnitude of a value, by the reference.
func (g *graph) largest(s program.Slot) float64 {
	m := 0.0
	for _, v := range g.approx[s].Data {
		m = max(m, math.Abs(v))
	}
	return m
}

// randomSteps appends n random steps to values of rank 2, which stay within [-4, 4] and a few thousand elements.
func (g *graph) randomSteps(n int) {
	pool := []program.Slot{g.upload(g.floats(-2, 2, 7, 9)), g.upload(g.floats(-2, 2, 7, 9)), g.upload(g.floats(-2, 2, 1, 9)), g.upload(g.floats(-2, 2, 33, 65))}
	pick := func() program.Slot { return pool[g.IntN(len(pool))] }
	elementwise := []*program.Entry{catalogue.Neg, catalogue.Abs, catalogue.ReLU, catalogue.LeakyReLU, catalogue.Tanh, catalogue.Sigmoid, catalogue.GELU, catalogue.GELUErf, catalogue.SiLU, catalogue.Mish, catalogue.Softplus,
		catalogue.ELU, catalogue.SELU, catalogue.HardSwish, catalogue.Scale, catalogue.Sin, catalogue.Cos, catalogue.Add, catalogue.Sub, catalogue.Mul, catalogue.Maximum, catalogue.Minimum, catalogue.FMA, catalogue.Lerp,
		catalogue.Less, catalogue.LessEqual, catalogue.Equal, catalogue.Select}
	rows := []*program.Entry{catalogue.Softmax, catalogue.LogSoftmax, catalogue.RMSNorm, catalogue.LayerNorm}
	reductions := []*program.Entry{catalogue.Sum, catalogue.Mean, catalogue.Max, catalogue.Min, catalogue.NormL1, catalogue.NormL2}
	for len(g.Steps) < n {
		x := pick()
		shape := g.Values[x].Shape
		rank2 := len(shape) == 2
		var out program.Slot
		switch k := g.IntN(12); {
		case k < 6:
			e := elementwise[g.IntN(len(elementwise))]
			in := []program.Slot{x, pick(), pick()}[:len(e.Inputs)]
			if _, err := e.Check(g.Types(in), attrs(e, nil)[0]); err != nil {
				continue // the shapes do not broadcast
			}
			out = g.apply(e, attrs(e, nil)[0], in...)
		case k == 6 && rank2:
			e := rows[g.IntN(len(rows))]
			in := []program.Slot{x}
			for range len(e.Inputs) - 1 {
				in = append(in, g.upload(g.floats(-1, 1, shape[1])))
			}
			out = g.apply(e, attrs(e, nil)[0], in...)
		case k == 7:
			e := reductions[g.IntN(len(reductions))]
			axis := compute.AllAxes
			if rank2 && g.IntN(2) == 0 {
				axis = compute.LastAxis
			}
			out = g.apply(e, program.Attr{Options: axis}, x)
		case k == 8 && rank2:
			out = g.apply(catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{TransB: true, Act: compute.Tanh}}, x, x)
		case k == 9 && rank2:
			out = g.apply(catalogue.Transpose, program.Attr{Options: compute.TransposeOptions{}}, x)
		case k == 10 && rank2 && shape[0]*shape[1] > 0:
			out = g.apply(catalogue.Slice, program.Attr{Options: compute.SliceOptions{Start: []int{shape[0] - 1, 0}, Size: []int{shape[0], (shape[1] + 1) / 2}, Step: []int{-1, 1}}}, x)
		case k == 11 && rank2 && shape[0] < 40:
			out = g.apply(catalogue.Concat, program.Attr{Options: compute.ConcatOptions{}}, x, x)
		default:
			out = g.apply(catalogue.Reshape, program.Attr{Options: compute.ReshapeOptions{Shape: shape}}, x)
		}
		if g.largest(out) > 4 {
			out = g.apply(catalogue.Clip, program.Attr{Scalars: []float32{-4, 4}}, out)
		}
		pool = append(pool, out)
	}
}
