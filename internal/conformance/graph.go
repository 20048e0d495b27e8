package conformance

import (
	"fmt"
	"math"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// graph is a program of many steps under test, with its data.
type graph struct {
	require.TestingT
	*source
	d *device
	op.Program
	data   map[op.Slot]operand // of uploaded values and, after a run, of those read back
	approx map[op.Slot]op.Array
}

func (d *device) graph(t require.TestingT, name string) *graph {
	return &graph{TestingT: t, source: newSource(Seed(), name, 0), d: d, data: map[op.Slot]operand{}, approx: map[op.Slot]op.Array{}}
}

func (g *graph) upload(o operand) op.Slot {
	s := g.Add(o.Type, op.FromHost)
	g.data[s] = o
	g.approx[s] = array(o.data, o.Shape)
	return s
}

// apply appends a step with one result; its reference is in approx.
func (g *graph) apply(e *op.Entry, a op.Attr, in ...op.Slot) op.Slot {
	return g.applyAll(e, a, in...)[0]
}

// applyAll appends a step; the references of its results are in approx.
func (g *graph) applyAll(e *op.Entry, a op.Attr, in ...op.Slot) []op.Slot {
	out, err := g.ApplyAll(e, a, in...)
	require.NoError(g, err)
	known := make([]op.Array, len(in))
	for i, v := range in {
		var ok bool
		if known[i], ok = g.approx[v]; !ok {
			return out
		}
	}
	for i, y := range e.Reference(known, a, g.Types(out)) {
		g.approx[out[i]] = y
	}
	return out
}

func (g *graph) read(slots ...op.Slot) { g.Read = append(g.Read, slots...) }

// compile prepares the program and closes it when the test has what it wanted.
func (g *graph) compile() op.Executable {
	ex, err := g.d.Compile(&g.Program)
	require.NoError(g, err)
	return ex
}

// io returns the data of a run with poisoned destinations.
func (g *graph) io(tensors ...compute.Tensor) *op.IO {
	io := &op.IO{Tensors: tensors}
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
func (g *graph) run(tensors ...compute.Tensor) *op.IO {
	ex := g.compile()
	io := g.io(tensors...)
	require.NoError(g, await(ex.Start(io)))
	require.NoError(g, ex.Close())
	g.verify(io)
	return io
}

// verify judges every step whose operands and result are known, from the values that the device itself gave for the
// operands: errors do not add up, and the first wrong step is named.
func (g *graph) verify(io *op.IO) {
	g.d.count.Add(1)
	for i, s := range g.Read {
		o := operand{g.Values[s].Type, io.Read[i]}
		if was, ok := g.data[s]; ok {
			require.True(g, sameBits(was.data, o.data), "%s: value %d, uploaded and read back or read twice, changed", g.d.name, s)
		}
		g.data[s] = o
	}
	for i, step := range g.Steps {
		known := slices.ContainsFunc(step.Out, func(s op.Slot) bool { _, read := g.data[s]; return read })
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
		if g.Values[s].Source == op.FromStep {
			delete(g.data, s)
		}
	}
}

// results are all values that steps produce.
func (g *graph) results() (out []op.Slot) {
	for _, s := range g.Steps {
		out = append(out, s.Out...)
	}
	return out
}

// largest is the largest magnitude of a value, by the reference.
func (g *graph) largest(s op.Slot) float64 {
	m := 0.0
	for _, v := range g.approx[s].Data {
		m = max(m, math.Abs(v))
	}
	return m
}

// randomSteps appends n random steps to values of rank 2, which stay within [-4, 4] and a few thousand elements.
func (g *graph) randomSteps(n int) {
	pool := []op.Slot{g.upload(g.floats(-2, 2, 7, 9)), g.upload(g.floats(-2, 2, 7, 9)), g.upload(g.floats(-2, 2, 1, 9)), g.upload(g.floats(-2, 2, 33, 65))}
	pick := func() op.Slot { return pool[g.IntN(len(pool))] }
	elementwise := []*op.Entry{op.Neg, op.Abs, op.ReLU, op.LeakyReLU, op.Tanh, op.Sigmoid, op.GELU, op.GELUErf, op.Swish, op.Mish, op.Softplus,
		op.ELU, op.SELU, op.HardSwish, op.Scale, op.Sin, op.Cos, op.Add, op.Sub, op.Mul, op.Maximum, op.Minimum, op.FMA, op.Lerp,
		op.Less, op.LessEqual, op.Equal, op.Select}
	rows := []*op.Entry{op.Softmax, op.LogSoftmax, op.RMSNorm, op.LayerNorm}
	reductions := []*op.Entry{op.Sum, op.Mean, op.Max, op.Min, op.NormL1, op.NormL2}
	for len(g.Steps) < n {
		x := pick()
		shape := g.Values[x].Shape
		rank2 := len(shape) == 2
		var out op.Slot
		switch k := g.IntN(12); {
		case k < 6:
			e := elementwise[g.IntN(len(elementwise))]
			in := []op.Slot{x, pick(), pick()}[:len(e.Inputs)]
			if _, err := e.Check(g.Types(in), attrs(e, nil)[0]); err != nil {
				continue // the shapes do not broadcast
			}
			out = g.apply(e, attrs(e, nil)[0], in...)
		case k == 6 && rank2:
			e := rows[g.IntN(len(rows))]
			in := []op.Slot{x}
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
			out = g.apply(e, op.Attr{Options: axis}, x)
		case k == 8 && rank2:
			out = g.apply(op.MatMul, op.Attr{Options: compute.MatMulOptions{TransB: true, Act: compute.Tanh}}, x, x)
		case k == 9 && rank2:
			out = g.apply(op.Transpose, op.Attr{Options: compute.TransposeOptions{}}, x)
		case k == 10 && rank2 && shape[0]*shape[1] > 0:
			out = g.apply(op.Slice, op.Attr{Options: compute.SliceOptions{Start: []int{shape[0] - 1, 0}, Size: []int{shape[0], (shape[1] + 1) / 2}, Step: []int{-1, 1}}}, x)
		case k == 11 && rank2 && shape[0] < 40:
			out = g.apply(op.Concat, op.Attr{Options: compute.ConcatOptions{}}, x, x)
		default:
			out = g.apply(op.Reshape, op.Attr{Options: compute.ReshapeOptions{Shape: shape}}, x)
		}
		if g.largest(out) > 4 {
			out = g.apply(op.Clip, op.Attr{Scalars: []float32{-4, 4}}, out)
		}
		pool = append(pool, out)
	}
}
