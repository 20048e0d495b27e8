package ptxkernels

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/optest"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx/sim"
)

// elementwiseEntries are those that expressions are made of.
func elementwiseEntries() (entries []*program.Entry) {
	for _, e := range catalogue.All() {
		if scalar.Functions[e] != nil {
			entries = append(entries, e)
		}
	}
	return entries
}

// tame are entries whose errors stay small.
var tame = []*program.Entry{catalogue.Add, catalogue.Sub, catalogue.Mul, catalogue.Maximum, catalogue.Scale, catalogue.ReLU, catalogue.Sigmoid, catalogue.Tanh, catalogue.Abs, catalogue.FMA,
	catalogue.Clip, catalogue.GELU}

// randomExpression has so many operands and nodes, each of which is used, and results that are what no node uses. Scalars are
// those that entries are tested with.
func randomExpression(rng *rand.Rand, entries []*program.Entry, operands, nodes, results int) (program.Expression, []float32) {
	x := program.Expression{Inputs: operands}
	var scalars []float32
	idle := make([]int, operands) // values that nobody uses yet
	for i := range idle {
		idle[i] = i
	}
	for {
		last := len(x.Nodes) >= nodes
		if last && len(idle) <= results {
			x.Results = idle
			return x, scalars
		}
		e := entries[rng.IntN(len(entries))]
		if last {
			e = catalogue.Add // which joins two
		}
		node := program.Node{Entry: e}
		for range e.Inputs {
			a := rng.IntN(x.Inputs + len(x.Nodes))
			if len(idle) > 0 && (last || rng.IntN(2) == 0) {
				a = idle[rng.IntN(len(idle))]
			}
			node.Args = append(node.Args, a)
			idle = slices.DeleteFunc(idle, func(v int) bool { return v == a })
		}
		for _, s := range e.Scalars {
			scalars = append(scalars, s.Test[rng.IntN(len(s.Test))])
		}
		idle = append(idle, x.Inputs+len(x.Nodes))
		x.Nodes = append(x.Nodes, node)
	}
}

// randomData has all kinds of numbers in it if special.
func randomData(rng *rand.Rand, t program.Type, special bool) []float32 {
	x := make([]float32, t.Len())
	rare := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)), 1, 1e-41,
		math.MaxFloat32}
	for i := range x {
		x[i] = float32(rng.NormFloat64() * 2)
		if special && rng.IntN(8) == 0 {
			x[i] = rare[rng.IntN(len(rare))]
		}
	}
	return x
}

// call is a step with its operands.
type call struct {
	*program.Entry
	program.Attr
	in   []program.Type
	data []any
}

func newCall(rng *rand.Rand, e *program.Entry, a program.Attr, special bool, shapes ...[]int) call {
	c := call{Entry: e, Attr: a}
	for _, s := range shapes {
		c.in = append(c.in, program.F32(s...))
		c.data = append(c.data, randomData(rng, program.F32(s...), special))
	}
	return c
}

// halve makes the first operands halves.
func (c *call) halve(operands int) {
	for i := range operands {
		var h []compute.F16
		for _, v := range floats(c.data[i]) {
			h = append(h, compute.F16(float16.Fromfloat32(v).Bits()))
		}
		c.in[i].DType, c.data[i] = compute.Float16, h
	}
}

// floats are elements of any type.
func floats(data any) (x []float32) {
	switch data := data.(type) {
	case []float32:
		return data
	case []compute.F16:
		for _, v := range data {
			x = append(x, float16.Frombits(uint16(v)).Float32())
		}
	case []int32:
		for _, v := range data {
			x = append(x, float32(v))
		}
	}
	return x
}

// fused executes the call as one step.
func (c *call) fused(t *testing.T, r *kerneltest.Rig) ([]program.Type, [][]float32) {
	p, slots := c.program()
	out, err := p.ApplyAll(c.Entry, c.Attr, slots...)
	require.NoError(t, err)
	return p.Types(out), c.run(t, r, p, out)
}

// apart executes it as the steps that it stands for.
func (c *call) apart(t *testing.T, r *kerneltest.Rig) ([]program.Type, [][]float32) {
	p, out, err := c.Split()
	require.NoError(t, err)
	return p.Types(out), c.run(t, r, p, out)
}

// Split is the program of the steps that the call stands for.
func (c *call) Split() (p *program.Program, out []program.Slot, err error) {
	p, slots := c.program()
	all := func(x *program.Expression, scalars []float32, slots []program.Slot) (out []program.Slot) {
		v := slices.Clone(slots)
		for _, n := range x.Nodes {
			args := make([]program.Slot, len(n.Args))
			for i, a := range n.Args {
				args[i] = v[a]
			}
			of := len(n.Entry.Scalars)
			y, failed := p.Apply(n.Entry, program.Attr{Scalars: scalars[:of:of]}, args...)
			if failed != nil {
				err = failed
				return slots
			}
			v, scalars = append(v, y), scalars[of:]
		}
		for _, r := range x.Results {
			out = append(out, v[r])
		}
		return out
	}
	if x, ok := c.Attr.Options.(program.Expression); ok {
		return p, all(&x, c.Attr.Scalars, slots), err
	}
	parts, err := c.Parts(c.in, c.Attr)
	if err != nil {
		return nil, nil, err
	}
	operands := slots[len(slots)-len(parts.EpilogueIn):]
	slots = slots[:len(slots)-len(operands)]
	if n := len(parts.PrologueIn); n > 0 {
		slots = append(all(&parts.Prologue, parts.PrologueScalars, slots[:n]), slots[n:]...)
	}
	own, failed := p.ApplyAll(c.Entry, parts.Attr, slots...)
	if failed != nil {
		return nil, nil, failed
	}
	out = slices.Clone(own)
	if !parts.Epilogue.None() {
		out[0] = all(&parts.Epilogue, parts.EpilogueScalars, append([]program.Slot{out[0]}, operands...))[0]
	}
	return p, out, err
}

func (c *call) program() (*program.Program, []program.Slot) {
	p := &program.Program{}
	var slots []program.Slot
	for _, t := range c.in {
		slots = append(slots, p.Add(t, program.FromHost))
	}
	return p, slots
}

func (c *call) run(t *testing.T, r *kerneltest.Rig, p *program.Program, out []program.Slot) [][]float32 {
	results, err := c.execute(r, p, out)
	require.NoError(t, err, "%s %+v %v", c.Name, c.Attr, c.in)
	return results
}

func (c *call) execute(r program.Executor, p *program.Program, out []program.Slot) (results [][]float32, err error) {
	io := &program.IO{}
	io.Host = c.data
	p.Read = out
	for _, s := range out {
		io.Read = append(io.Read, program.MakeSlice(p.Values[s].Type))
	}
	x, err := r.Compile(context.Background(), p)
	if err == nil {
		err = x.Start(io).Await(context.Background())
	}
	if err != nil {
		return nil, err
	}
	for _, y := range io.Read {
		results = append(results, floats(y))
	}
	return results, nil
}

// same compares the two to the last bit.
func (c *call) same(t *testing.T, r *kerneltest.Rig) [][]float32 {
	t.Helper()
	types, got := c.fused(t, r)
	of, want := c.apart(t, r)
	for k := range got {
		strides := program.BroadcastStrides(of[k].Shape, types[k].Shape)
		wrong := 0
		program.Walk(types[k].Shape, func(i int, index []int) {
			g, w := got[k][i], want[k][program.Dot(index, strides)]
			if math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
				if wrong++; wrong <= 3 {
					t.Errorf("result %d at %v is %v, of single steps %v", k, index, g, w)
				}
			}
		})
		if wrong > 0 {
			t.Fatalf("%d of %d elements wrong: %s %+v of %v", wrong, len(got[k]), c.Name, c.Attr, c.in)
		}
	}
	return got
}

// checkReference compares results of an expression with the reference where that can be done; it counts where.
func (c *call) checkReference(t *testing.T, got [][]float32) (known, all int) {
	t.Helper()
	x := c.Attr.Options.(program.Expression)
	out, err := c.Check(c.in, c.Attr)
	require.NoError(t, err)
	in := make([]reference.Array, len(c.in))
	strides := make([][]int, len(c.in))
	for i, d := range c.data {
		in[i] = reference.Array{Shape: c.in[i].Shape, Data: wide(floats(d))}
		strides[i] = program.BroadcastStrides(c.in[i].Shape, out[0].Shape)
	}
	whole := reference.Of(c.Entry, in, c.Attr, out)
	program.Walk(out[0].Shape, func(i int, index []int) {
		v := make([]float64, len(in))
		for k := range in {
			v[k] = in[k].Data[program.Dot(index, strides[k])]
		}
		for k, y := range optest.Expression(&x, v, c.Attr.Scalars) {
			w, g := whole[k].Data[i], got[k][i]
			require.True(t, w == y.Value || w != w && y.Value != y.Value, "the reference is %v, its parts are %v", w, y.Value)
			if all++; y.Known() {
				known++
			}
			if !y.Accepts(g) {
				t.Fatalf("result %d at %v is %v, want %v ± %v: %v of %v, scalars %v", k, index, g, w, y.Bound, &x, v, c.Attr.Scalars)
			}
		}
	})
	return known, all
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// repeated is a shape with some axes left out or one long, so that it is repeated to the whole.
func repeated(rng *rand.Rand, shape []int) []int {
	s := slices.Clone(shape)
	for i := range s {
		if rng.IntN(3) == 0 {
			s[i] = 1
		}
	}
	for len(s) > 0 && s[0] == 1 && rng.IntN(2) == 0 {
		s = s[1:]
	}
	return s
}

func newExpressionRig(t *testing.T, rng *rand.Rand) *kerneltest.Rig {
	return NewRig(t, sim.Config{Checks: sim.AllChecks, Seed: rng.Uint64()})
}
