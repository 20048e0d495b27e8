package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/internal/simd/simdtest"
)

// expressions makes random ones. Steps of some entries compute elements beyond their usual range, and their neighbours, in
// another way: those take operands only, of which all are usual then.
type expressions struct {
	*rand.Rand
	special bool // operands hold NaN, Inf, zeros and subnormal numbers
	plain   bool // without those entries
}

func newExpressions(t *testing.T) *expressions { return &expressions{Rand: newRand(t)} }

var usual = []string{"log", "log2", "sin", "cos", "pow", "pow_scalar"}

// exactKernels give the same bits in portable Go. In WebAssembly that computes pieces which are short, and blocks of an expression are
// shorter than the operands of separate steps.
var exactKernels = []string{"neg", "abs", "sqrt", "recip", "floor", "ceil", "round", "trunc", "leaky_relu", "scale", "add", "sub", "mul", "div"}

var elementwise = slices.DeleteFunc(catalogue.All(), func(e *program.Entry) bool { return !e.Class.Elementwise() })

func (r *expressions) expression(inputs, nodes, results int) (x program.Expression, scalars []float32) {
	x.Inputs = inputs
	for len(x.Nodes) < nodes {
		e := elementwise[r.IntN(len(elementwise))]
		if kernels.Active().String() == "simd128" && !slices.Contains(exactKernels, e.Name) {
			continue
		}
		first := slices.Contains(usual, e.Name)
		if first && (r.special || r.plain) {
			continue
		}
		node := program.Node{Entry: e}
		for range e.Inputs {
			a := r.IntN(inputs + len(x.Nodes))
			switch {
			case first:
				a = r.IntN(inputs)
			case r.IntN(2) == 0 && len(x.Nodes) > 0:
				a = inputs + len(x.Nodes) - 1
			}
			node.Args = append(node.Args, a)
		}
		x.Nodes = append(x.Nodes, node)
		for _, s := range e.Scalars {
			scalars = append(scalars, s.Test[r.IntN(len(s.Test))])
		}
	}
	for range results {
		x.Results = append(x.Results, r.IntN(inputs+nodes))
	}
	x.Results[0] = inputs + nodes - 1
	return x, scalars
}

// operand returns a shape that broadcasts to another.
func (r *expressions) operand(shape []int) []int {
	s := slices.Clone(shape)
	if r.IntN(2) == 0 {
		return s
	}
	for i := range s {
		if r.IntN(2) == 0 {
			s[i] = 1
		}
	}
	for len(s) > 0 && s[0] == 1 && r.IntN(2) == 0 {
		s = s[1:]
	}
	return s
}

func (r *expressions) data(n int) []float32 {
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e-40, math.MaxFloat32}
	x := make([]float32, n)
	for i := range x {
		x[i] = 0.01 + 2*r.Float32()
		if r.special && r.IntN(10) == 0 {
			x[i] = special[r.IntN(len(special))]
		} else if r.special {
			x[i] -= 1
		}
	}
	return x
}

// calculation is a step with expressions and the same in separate steps.
type calculation struct {
	e            *program.Entry
	attr         program.Attr // without expressions
	before, x    program.Expression
	first, last  []float32 // scalars of the expressions
	in           []program.Type
	own, preface int // operands of the entry, those before it
}

// separate appends an expression node by node.
func separate(t testing.TB, p *program.Program, x *program.Expression, scalars []float32, in []program.Slot) []program.Slot {
	values := slices.Clone(in)
	for _, node := range x.Nodes {
		var args []program.Slot
		for _, a := range node.Args {
			args = append(args, values[a])
		}
		n := len(node.Entry.Scalars)
		v, err := p.Apply(node.Entry, program.Attr{Scalars: scalars[:n]}, args...)
		require.NoError(t, err)
		values, scalars = append(values, v), scalars[n:]
	}
	var out []program.Slot
	for _, r := range x.Results {
		out = append(out, values[r])
	}
	return out
}

func (c *calculation) programs(t testing.TB) (whole, apart *program.Program) {
	whole, apart = &program.Program{}, &program.Program{}
	var in []program.Slot
	for _, s := range c.in {
		in = append(in, whole.Add(s, program.FromHost))
		apart.Add(s, program.FromHost)
	}
	a := c.attr
	a.Prologue, a.Epilogue = c.before, c.x
	a.Scalars = slices.Concat(c.first, c.attr.Scalars, c.last)
	var err error
	whole.Read, err = whole.ApplyAll(c.e, a, in...)
	require.NoError(t, err)

	if x, ok := c.attr.Options.(program.Expression); ok {
		apart.Read = separate(t, apart, &x, c.attr.Scalars, in)
		return whole, apart
	}
	own := slices.Clone(in[c.preface : c.preface+c.own])
	if !c.before.None() {
		own = append(separate(t, apart, &c.before, c.first, in[:c.preface]), own...)
	}
	apart.Read, err = apart.ApplyAll(c.e, c.attr, own...)
	require.NoError(t, err)
	if !c.x.None() {
		apart.Read = separate(t, apart, &c.x, c.last, append(apart.Read, in[c.preface+c.own:]...))
	}
	return whole, apart
}

func results(t *testing.T, d *cpu.Device, p *program.Program, io *program.IO) [][]float32 {
	x, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	require.NoError(t, wait(x.Start(io)))
	var out [][]float32
	for _, y := range io.Read {
		if i, ok := y.([]int32); ok {
			f := make([]float32, len(i))
			for k, v := range i {
				f[k] = float32(v)
			}
			y = f
		}
		out = append(out, y.([]float32))
	}
	return out
}

func destinations(p *program.Program) (read []any) {
	for _, s := range p.Read {
		read = append(read, program.MakeSlice(p.Values[s].Type))
	}
	return read
}

// requireBits wants the same bits; any NaN equals any other.
func requireBits(t *testing.T, want, got [][]float32, format string, args ...any) {
	t.Helper()
	for k := range want {
		require.Len(t, got[k], len(want[k]))
		for i, w := range want[k] {
			if g := got[k][i]; math.Float32bits(w) != math.Float32bits(g) && (w == w || g == g) {
				require.Fail(t, "other bits", "%s: result %d, element %d is %v, not %v", fmt.Sprintf(format, args...), k, i, g, w)
			}
		}
	}
}

// repeated runs a test a number of times on the best instruction set and less often on the others.
func repeated(t *testing.T, times int, f func(t *testing.T, d *cpu.Device)) {
	best := kernels.Active()
	simdtest.OnEveryTier(t, func(t *testing.T) {
		d := open(t)
		n := times
		if testing.Short() { // in emulation, and for the race detector
			n = (n + 2) / 3
		}
		if kernels.Active() != best {
			n = (n + 4) / 5
		}
		for range n {
			f(t, d)
		}
	})
}
