package simd_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/simd"
	"github.com/wavelane/wavelane/simd/internal/kernels"
)

// expressions makes random ones. Steps of some entries treat elements beyond their usual range, and their neighbours, apart: those
// take operands only, of which all are usual then.
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

var elementwise = slices.DeleteFunc(op.All(), func(e *op.Entry) bool { return !e.Class.Elementwise() })

func (r *expressions) expression(inputs, nodes, results int) (x op.Expression, scalars []float32) {
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
		node := op.Node{Entry: e}
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
	e            *op.Entry
	attr         op.Attr // without expressions
	before, x    op.Expression
	first, last  []float32 // scalars of the expressions
	in           []op.Type
	own, preface int // operands of the entry, those before it
}

// separate appends an expression node by node.
func separate(t testing.TB, p *op.Program, x *op.Expression, scalars []float32, in []op.Slot) []op.Slot {
	values := slices.Clone(in)
	for _, node := range x.Nodes {
		var args []op.Slot
		for _, a := range node.Args {
			args = append(args, values[a])
		}
		n := len(node.Entry.Scalars)
		v, err := p.Apply(node.Entry, op.Attr{Scalars: scalars[:n]}, args...)
		require.NoError(t, err)
		values, scalars = append(values, v), scalars[n:]
	}
	var out []op.Slot
	for _, r := range x.Results {
		out = append(out, values[r])
	}
	return out
}

func (c *calculation) programs(t testing.TB) (whole, apart *op.Program) {
	whole, apart = &op.Program{}, &op.Program{}
	var in []op.Slot
	for _, s := range c.in {
		in = append(in, whole.Add(s, op.FromHost))
		apart.Add(s, op.FromHost)
	}
	a := c.attr
	a.Prologue, a.Epilogue = c.before, c.x
	a.Scalars = slices.Concat(c.first, c.attr.Scalars, c.last)
	var err error
	whole.Read, err = whole.ApplyAll(c.e, a, in...)
	require.NoError(t, err)

	if x, ok := c.attr.Options.(op.Expression); ok {
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

func results(t *testing.T, d *simd.Device, p *op.Program, io *op.IO) [][]float32 {
	x, err := d.Compile(p)
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

func destinations(p *op.Program) (read []any) {
	for _, s := range p.Read {
		read = append(read, op.MakeSlice(p.Values[s].Type))
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
func repeated(t *testing.T, times int, f func(t *testing.T, d *simd.Device)) {
	best := kernels.Active()
	onEveryTier(t, func(t *testing.T) {
		d := open(t)
		n := times
		if kernels.Active() != best {
			n = (times + 4) / 5
		}
		for range n {
			f(t, d)
		}
	})
}

var fusedShapes = [][]int{{}, {1}, {0}, {7}, {3, 0}, {1000}, {5, 7}, {33, 65}, {3, 1100}, {2, 3, 4, 5}, {7, 1, 130}, {70, 3}, {2, 5, 700}, {20_011}, {3, 40, 50, 2}}

// A step that computes an expression gives the bits of a step for each of its nodes, wherever results lie.
func TestFusedIsExact(t *testing.T) {
	r := newExpressions(t)
	repeated(t, 200, func(t *testing.T, d *simd.Device) {
		r.special = r.IntN(2) == 0
		shape := fusedShapes[r.IntN(len(fusedShapes))]
		x, scalars := r.expression(1+r.IntN(4), 1+r.IntN(12), 1+r.IntN(3))
		c := calculation{e: op.Fused, attr: op.Attr{Options: x, Scalars: scalars}, own: x.Inputs}
		io := &op.IO{}
		for k := range x.Inputs {
			s := op.F32(shape...)
			if k > 0 {
				s = op.F32(r.operand(shape)...)
			}
			c.in = append(c.in, s)
			io.Host = append(io.Host, r.data(s.Len()))
		}
		whole, apart := c.programs(t)
		io.Read = destinations(apart)
		want := results(t, d, apart, io)
		for k, s := range apart.Read {
			want[k] = expanded(want[k], apart.Values[s].Shape, shape)
		}
		io.Read = destinations(whole)
		requireBits(t, want, results(t, d, whole, io), "%v of %v", &x, c.in)

		// In place: results take the memory of operands, in any order.
		at := r.Perm(len(c.in))
		for k := range io.Read {
			if k < len(at) && op.EqualShape(c.in[at[k]].Shape, shape) {
				io.Read[k] = io.Host[at[k]]
			}
		}
		requireBits(t, want, results(t, d, whole, io), "%v of %v in place", &x, c.in)
	})
}

// expanded repeats elements so that x has a larger shape.
func expanded(x []float32, shape, to []int) []float32 {
	y := make([]float32, 0, op.Len(to))
	strides := op.BroadcastStrides(shape, to)
	op.Walk(to, func(_ int, index []int) { y = append(y, x[op.Dot(index, strides)]) })
	return y
}

// Expressions of entries without cancellation are near the reference; the yardstick is the largest value on the way.
func TestFusedAgainstTheReference(t *testing.T) {
	r := newExpressions(t)
	d := open(t)
	for range 50 {
		shape := fusedShapes[r.IntN(len(fusedShapes))]
		x, scalars := r.expression(1+r.IntN(3), 1+r.IntN(6), 1)
		if slices.ContainsFunc(x.Nodes, func(n op.Node) bool { return !slices.Contains(smooth, n.Entry.Name) }) {
			continue
		}
		p, io := &op.Program{}, &op.IO{}
		var in []op.Slot
		var arrays []op.Array
		for range x.Inputs {
			s := op.F32(shape...)
			data := r.data(s.Len())
			in = append(in, p.Add(s, op.FromHost))
			io.Host = append(io.Host, data)
			wide := make([]float64, len(data))
			for i, v := range data {
				wide[i] = float64(v)
			}
			arrays = append(arrays, op.Array{Shape: shape, Data: wide})
		}
		y, err := p.Apply(op.Fused, op.Attr{Options: x, Scalars: scalars}, in...)
		require.NoError(t, err)
		p.Read, io.Read = []op.Slot{y}, []any{make([]float32, op.Len(shape))}
		got := results(t, d, p, io)[0]
		all := x
		all.Results = nil
		for v := range x.Inputs + len(x.Nodes) {
			all.Results = append(all.Results, v)
		}
		types, err := op.Fused.Check(p.Types(in), op.Attr{Options: all, Scalars: scalars})
		require.NoError(t, err)
		values := op.Fused.Reference(arrays, op.Attr{Options: all, Scalars: scalars}, types)
		for i, g := range got {
			most := 1.0
			for _, v := range values {
				most = max(most, math.Abs(v.Data[i]))
			}
			require.InDelta(t, values[len(values)-1].Data[i], g, 1e-4*most, "%v, element %d of %v", &x, i, shape)
		}
	}
}

var smooth = []string{"neg", "abs", "relu", "leaky_relu", "elu", "selu", "sigmoid", "tanh", "gelu", "gelu_erf", "swish", "hardswish", "mish", "softplus", "clip",
	"scale", "add", "sub", "mul", "maximum", "minimum", "fma", "lerp", "sin", "cos"}

var betweenShapes = [][]int{{1}, {9}, {3, 5}, {40, 17}, {2, 3, 70}, {300, 3}, {2, 2100}, {1, 40_000}, {2, 70_000}}

// widen makes an expression end with a node that reads its first operand, which has the shape of the result.
func widen(x *op.Expression) {
	x.Nodes = append(x.Nodes, op.Node{Entry: op.Add, Args: []int{0, x.Results[0]}})
	x.Results[0] = x.Inputs + len(x.Nodes) - 1
}

// between returns a random step of an entry with an expression before or behind it, or both.
func (r *expressions) between(t *testing.T, e *op.Entry) calculation {
	c := calculation{e: e, attr: op.Attr{Options: e.Options}}
	for _, s := range e.Scalars {
		c.attr.Scalars = append(c.attr.Scalars, s.Test[0])
	}
	shape := betweenShapes[r.IntN(len(betweenShapes))]
	half := op.Type{DType: compute.Float16}
	if r.IntN(2) == 0 {
		half.DType = compute.Float32
	}
	of := func(shape ...int) op.Type { return op.Type{DType: half.DType, Shape: shape} }
	m, k, n := 1+r.IntN(90), r.IntN(200), 1+r.IntN(90)
	if r.IntN(3) == 0 {
		m, k, n = 1+r.IntN(600), 300, 100+r.IntN(600)
	}
	switch e {
	case op.MatMul:
		c.attr.Options = compute.MatMulOptions{Act: compute.Activation(r.IntN(3))}
		c.in = []op.Type{of([]int{1 + r.IntN(3), m, k}[r.IntN(2):]...), of(k, n), op.F32(n)}[:2+r.IntN(2)]
	case op.MatVec:
		c.in = []op.Type{of(m, k), op.F32(k)}
	case op.VecMat:
		c.in = []op.Type{op.F32(k), of(k, n)}
	case op.Conv2D:
		o := compute.Conv2DOptions{Pad: [2]int{1, 1}, Act: compute.Activation(r.IntN(3))}
		c.attr.Options = o
		c.in = []op.Type{op.F32(2, 3, 20, 17), op.F32(5, 3, 3, 3), op.F32(5)}[:2+r.IntN(2)]
	case op.Conv1D:
		c.in = []op.Type{op.F32(2, 3, 200), op.F32(5, 3, 3), op.F32(5)}[:2+r.IntN(2)]
	default:
		if e.Class == op.Reduce {
			c.attr.Options = []compute.Axis{compute.AllAxes, compute.LastAxis}[r.IntN(2)]
		}
		for i := range e.Inputs {
			s := op.F32(shape...)
			if e.Class == op.Rows && i > 0 {
				s = op.F32(shape[len(shape)-1])
			}
			c.in = append(c.in, s)
		}
	}
	c.own = len(c.in)
	out, err := e.Check(c.in, c.attr)
	require.NoError(t, err)
	if e.TakesPrologue() && r.IntN(3) > 0 {
		c.before, c.first = r.expression(1+r.IntN(3), 1+r.IntN(4), 1)
		var in []op.Type
		for i := range c.before.Inputs {
			s := c.in[0]
			if i > 0 {
				s = op.F32(r.operand(shape)...)
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
			c.in = append(c.in, op.F32(r.operand(out[0].Shape)...))
		}
		widen(&c.x)
	}
	return c
}

// Steps with expressions give the bits of separate steps.
func TestExpressionsBeforeAndBehind(t *testing.T) {
	r := newExpressions(t)
	r.plain = true
	for _, e := range op.All() {
		if !e.TakesPrologue() && !slices.Contains([]*op.Entry{op.MatMul, op.MatVec, op.VecMat, op.Conv2D, op.Conv1D}, e) {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			repeated(t, 10, func(t *testing.T, d *simd.Device) {
				r.special = r.IntN(3) == 0
				c := r.between(t, e)
				whole, apart := c.programs(t)
				step := &whole.Steps[0]
				d.Fuses(step, whole.Types(step.In), whole.Types(step.Out))
				io := &op.IO{}
				for _, s := range c.in {
					io.Host = append(io.Host, inType(s.DType, r.data(s.Len())))
				}
				io.Read = destinations(apart)
				want := results(t, d, apart, io)
				name := fmt.Sprintf("%v, %s(…) %v, %v of %v", &c.before, e.Name, c.attr, &c.x, c.in)
				io.Read = destinations(whole)
				requireBits(t, want, results(t, d, whole, io), "%s", name)
				if y := whole.Values[whole.Read[0]].Type; e.Class == op.Rows && op.EqualShape(y.Shape, c.in[0].Shape) {
					io.Read = io.Host[:1]
					requireBits(t, want, results(t, d, whole, io), "%s in place", name)
				}
			})
		})
	}
}

// What the device agrees to fuse are steps whose operations are of the result's size.
func TestFuses(t *testing.T) {
	d := open(t)
	chain := op.Expression{Inputs: 2, Results: []int{3}, Nodes: []op.Node{{Entry: op.Tanh, Args: []int{1}}, {Entry: op.Add, Args: []int{0, 2}}}}
	fuses := func(e *op.Entry, a op.Attr, in ...op.Type) bool {
		out, err := e.Check(in, a)
		require.NoError(t, err)
		return d.Fuses(&op.Step{Entry: e, Attr: a}, in, out)
	}
	whole, row := op.F32(1000, 1000), op.F32(1000)
	require.True(t, fuses(op.Fused, op.Attr{Options: chain}, whole, whole))
	require.False(t, fuses(op.Fused, op.Attr{Options: chain}, whole, row), "a thousand times the tanh of a row")
	single := chain
	single.Nodes, single.Results = chain.Nodes[:1], []int{2}
	require.False(t, fuses(op.Fused, op.Attr{Options: single}, whole, whole), "one operation")
	require.True(t, fuses(op.Softmax, op.Attr{Prologue: chain}, whole, whole))
	require.True(t, fuses(op.Sum, op.Attr{Options: compute.LastAxis, Epilogue: chain}, whole, row))
	require.True(t, fuses(op.MatMul, op.Attr{Options: compute.MatMulOptions{}, Epilogue: chain}, whole, whole, whole))
	require.False(t, fuses(op.MatMul, op.Attr{Options: compute.MatMulOptions{}}, whole, whole), "no expression")
	pool := op.Attr{Options: compute.PoolOptions{Size: [2]int{1, 1}}, Epilogue: chain}
	require.False(t, fuses(op.MaxPool2D, pool, whole, whole), "a separate pass as good")
}
