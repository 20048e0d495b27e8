package gpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/optest"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/wgslkernels"
	"github.com/wavelane/wavelane/wgsl"
)

// elementwiseEntries are those that expressions are made of.
func elementwiseEntries() (all []*program.Entry) {
	for _, e := range catalogue.All() {
		if e.Class.Elementwise() {
			all = append(all, e)
		}
	}
	return all
}

// randomExpression has nodes of any entries, with scalars for them.
func randomExpression(r *rand.Rand, inputs, nodes, results int) (x program.Expression, scalars []float32) {
	entries := elementwiseEntries()
	x.Inputs = inputs
	for i := range nodes {
		e := entries[r.IntN(len(entries))]
		n := program.Node{Entry: e}
		for range e.Inputs {
			a := r.IntN(inputs + i)
			if i > 0 && r.IntN(2) == 0 {
				a = inputs + i - 1
			}
			n.Args = append(n.Args, a)
		}
		for _, s := range e.Scalars {
			scalars = append(scalars, s.Test[r.IntN(len(s.Test))])
		}
		x.Nodes = append(x.Nodes, n)
	}
	for i := range results {
		x.Results = append(x.Results, inputs+nodes-1-i%nodes)
	}
	return x, scalars
}

// rare says of how many cases one or two run, since compiling them takes long, and in browsers longer.
var rare = map[bool]int{false: 3, true: 16}[runtime.GOOS == "js"]

var specials = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, -1, 1e30, 1e-40}

// tensorOf is random, with some special values.
func tensorOf(r *rand.Rand, n int, special bool) []float32 {
	x := floats(r, n)
	for i := range x {
		if special && r.IntN(8) == 0 {
			x[i] = specials[r.IntN(len(specials))]
		}
	}
	return x
}

// execute runs a program of one step.
func execute[T any](t *testing.T, d *Device, e *program.Entry, a program.Attr, in []program.Type, data [][]float32) ([]program.Type, [][]T) {
	t.Helper()
	p, io := &program.Program{}, &program.IO{}
	var slots []program.Slot
	for i := range in {
		slots, io.Host = append(slots, p.Add(in[i], program.FromHost)), append(io.Host, data[i])
	}
	out, err := p.ApplyAll(e, a, slots...)
	require.NoError(t, err)
	p.Read = out
	types := p.Types(out)
	require.True(t, executor{d}.Fuses(&p.Steps[0], in, types), "%v %+v", in, a)
	x, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	defer x.Close()
	var got [][]T
	for _, o := range types {
		y := make([]T, o.Len())
		got, io.Read = append(got, y), append(io.Read, y)
	}
	require.NoError(t, x.Start(io).Await(ctx))
	return types, got
}

func narrowCaps() wgsl.Caps {
	c := wgsl.DefaultCaps
	c.MaxWorkgroups, c.MaxInvocations, c.MaxBinding = 500, 64, 8<<10
	return c
}

// Expressions of all elementwise entries over operands of all shapes agree with the reference, also where bindings hold little.
func TestFused(t *testing.T) {
	shapes := [][][]int{{{1}}, {{37}}, {{1000}}, {{9, 8}, {8}}, {{9, 7}, {7}, {9, 1}}, {{5, 12}, {5, 1}, {}, {1, 12}}, {{7, 1}, {1, 9}, {3, 1, 1}},
		{{2, 1, 2, 1, 3}, {1, 3, 1, 3, 1}}, {{40, 64}, {40, 1}, {64}, {1}}, {{3, 1, 1, 8}, {1, 4, 1, 1}, {3, 4, 5, 8}, {5, 1}}, {{3333}, {}},
		{{2, 1, 2, 1, 2, 1, 2, 4}, {1, 3, 1, 3, 1, 3, 1, 4}}}
	for name, opts := range map[string][]Option{"usual": nil, "narrow": {WithLimits(narrowCaps())}} {
		t.Run(name, func(t *testing.T) {
			d, r := open(t, opts...), random(t)
			for i, s := range shapes {
				for round := range 2 {
					if r.IntN(rare) > 1 { // others in the next run
						continue
					}
					x, scalars := randomExpression(r, len(s), 1+r.IntN(8), 1+(i+round)%3)
					in, data := make([]program.Type, len(s)), make([][]float32, len(s))
					for k := range s {
						in[k] = program.F32(s[k]...)
						data[k] = tensorOf(r, in[k].Len(), round == 1)
					}
					types, got := execute[float32](t, d, program.Fused, program.Attr{Options: x, Scalars: scalars}, in, data)
					if name == "usual" && round == i%2 {
						for k, want := range stepByStep(t, d, &x, scalars, in, data) {
							for j, w := range want {
								require.True(t, w == got[k][j] || w != w && got[k][j] != got[k][j], "%v of %v: %v at %d, its steps give %v",
									&x, in, got[k][j], j, w)
							}
						}
					}
					judge(t, &x, scalars, types[0].Shape, in, data, got)
				}
			}
		})
	}
}

// stepByStep computes an expression by a step for each node.
func stepByStep(t *testing.T, d *Device, x *program.Expression, scalars []float32, in []program.Type, data [][]float32) [][]float32 {
	p, io := &program.Program{}, &program.IO{}
	var slots []program.Slot
	shapes := make([][]int, len(in))
	for i := range in {
		slots, io.Host = append(slots, p.Add(in[i], program.FromHost)), append(io.Host, data[i])
		shapes[i] = in[i].Shape
	}
	for _, n := range x.Nodes {
		var args []program.Slot
		for _, a := range n.Args {
			args = append(args, slots[a])
		}
		y, err := p.Apply(n.Entry, program.Attr{Scalars: scalars[:len(n.Entry.Scalars)]}, args...)
		require.NoError(t, err)
		slots, scalars = append(slots, y), scalars[len(n.Entry.Scalars):]
	}
	shape, err := program.Broadcast(shapes...)
	require.NoError(t, err)
	var got [][]float32
	for _, r := range x.Results {
		y := make([]float32, p.Values[slots[r]].Len())
		p.Read, io.Read = append(p.Read, slots[r]), append(io.Read, y)
		all, st := make([]float32, program.Len(shape)), program.BroadcastStrides(p.Values[slots[r]].Shape, shape)
		got = append(got, all)
		defer func() { program.Walk(shape, func(i int, index []int) { all[i] = y[program.Dot(index, st)] }) }()
	}
	e, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	defer e.Close()
	require.NoError(t, e.Start(io).Await(ctx))
	return got
}

// judge compares results with estimates.
func judge(t *testing.T, x *program.Expression, scalars []float32, shape []int, in []program.Type, data, got [][]float32) {
	t.Helper()
	strides, v := make([][]int, len(in)), make([]float64, len(in))
	for k := range in {
		strides[k] = program.BroadcastStrides(in[k].Shape, shape)
	}
	program.Walk(shape, func(i int, index []int) {
		for k := range in {
			v[k] = float64(data[k][program.Dot(index, strides[k])])
		}
		for k, y := range optest.Expression(x, v, scalars) {
			require.True(t, y.Accepts(got[k][i]), "%v %v %v at %v: %v of %v, want %+v", x, scalars, in, index, got[k][i], v, y)
		}
	})
}

// fusion is an operation with a prologue or an epilogue. Values of those are tame, so that the operation's own tolerance is
// what counts.
type fusion struct {
	entry      *program.Entry
	options    any
	scalars    []float32
	in         [][]int // of the operation
	prologue   bool
	more       [][]int // operands of the prologue, or those of the epilogue from the second on
	impossible bool
}

// tame is (x0·½ + x1 − x2 …), then clipped.
func tame(inputs int) (program.Expression, []float32) {
	x := program.Expression{Inputs: inputs, Nodes: []program.Node{{Entry: catalogue.Scale, Args: []int{0}}}}
	last := inputs
	for i := 1; i < inputs; i++ {
		e := catalogue.Add
		if i%2 == 0 {
			e = catalogue.Sub
		}
		x.Nodes = append(x.Nodes, program.Node{Entry: e, Args: []int{last, i}})
		last++
	}
	x.Nodes = append(x.Nodes, program.Node{Entry: catalogue.Clip, Args: []int{last}})
	x.Results = []int{last + 1}
	return x, []float32{0.5, -7, 9}
}

func (f fusion) String() string {
	return fmt.Sprintf("%s %v %v %v", f.entry.Name, f.in, f.more, f.options)
}

func fusions() (all []fusion) {
	last := compute.LastAxis
	for _, s := range [][]int{{5, 12}, {7, 9}, {3, 2, 1030}, {2, 5000}, {20003}, {600, 3}} {
		cols := s[len(s)-1:]
		column := append(append([]int{}, s[:len(s)-1]...), 1)
		operands := [][]int{s, cols, column, s, {}}
		all = append(all,
			fusion{catalogue.RMSNorm, nil, []float32{1e-5}, [][]int{s, cols}, true, [][]int{s, s}, false}, // residual + norm
			fusion{catalogue.Softmax, nil, nil, [][]int{s}, true, operands, false},
			fusion{catalogue.LayerNorm, nil, []float32{1e-3}, [][]int{s, cols, cols}, true, operands[:2], false},
			fusion{catalogue.L2Normalize, nil, []float32{1e-3}, [][]int{s}, false, [][]int{s, cols, column, {1}}, false},
			fusion{catalogue.Sum, last, nil, [][]int{s}, true, operands, false},
			fusion{catalogue.DotProduct, last, nil, [][]int{s, s}, true, operands[:3], false},
			fusion{catalogue.ArgMax, last, nil, [][]int{s}, true, operands, false},
			fusion{catalogue.Mean, last, nil, [][]int{s}, false, [][]int{s[:len(s)-1], {}}, false},
			fusion{catalogue.NormL2, compute.AllAxes, nil, [][]int{s}, true, [][]int{s, {1}}, false})
	}
	for _, o := range []compute.MatMulOptions{{}, {TransB: true}, {TransA: true, Act: compute.ReLU}} {
		for _, s := range [][4]int{{1, 33, 20, 37}, {1, 64, 40, 64}, {3, 20, 17, 24}, {1, 4, 1500, 12}, {1, 1, 700, 40}, {1, 40, 1030, 1}} {
			a, b, y := []int{s[1], s[2]}, []int{s[2], s[3]}, []int{s[1], s[3]}
			if o.TransA {
				a = []int{s[2], s[1]}
			}
			if o.TransB {
				b = []int{s[3], s[2]}
			}
			if s[0] > 1 {
				a, y = append([]int{s[0]}, a...), append([]int{s[0]}, y...)
			}
			all = append(all, fusion{catalogue.MatMul, o, nil, [][]int{a, b, {s[3]}}, false, [][]int{y, {s[3]}, {s[1], 1}, {}}, false})
		}
	}
	conv := compute.Conv2DOptions{Pad: [2]int{1, 1}, Act: compute.ReLU}
	return append(all,
		fusion{catalogue.MatMul, compute.MatMulOptions{}, nil, [][]int{{3, 5, 4}, {4, 6}}, false, [][]int{{3, 1, 6}}, true},
		fusion{catalogue.Softmax, nil, nil, [][]int{{3, 5, 4}}, true, [][]int{{3, 1, 4}, {3, 5, 4}}, true},
		fusion{catalogue.MaxPool2D, compute.PoolOptions{Size: [2]int{2, 2}}, nil, [][]int{{3, 6, 6}}, false, [][]int{{1}}, true},
		fusion{catalogue.MatVec, nil, nil, [][]int{{50, 33}, {33}}, false, [][]int{{50}, {}}, false},
		fusion{catalogue.VecMat, nil, nil, [][]int{{3, 33}, {33, 48}}, false, [][]int{{48}, {3, 1}}, false},
		fusion{catalogue.Conv2D, conv, nil, [][]int{{2, 3, 9, 10}, {6, 3, 3, 3}, {6}}, false, [][]int{{2, 6, 9, 10}, {6, 1, 1}, {9, 10}, {}}, false},
		fusion{catalogue.Conv2D, compute.Conv2DOptions{}, nil, [][]int{{2, 3, 9, 10}, {6, 3, 1, 1}, {6}}, false, [][]int{{2, 6, 9, 10}, {6, 1, 1}, {9, 10}}, false},
		fusion{catalogue.Conv2D, compute.Conv2DOptions{}, nil, [][]int{{12, 10}, {3, 3}}, false, [][]int{{10, 8}, {}}, false},
		fusion{catalogue.Conv1D, compute.Conv1DOptions{}, nil, [][]int{{2, 3, 30}, {4, 3, 5}}, false, [][]int{{4, 1}, {26}}, false})
}

// Prologues and epilogues agree with the reference. What the device does not fuse it refuses to run.
func TestPrologueAndEpilogue(t *testing.T) {
	for name, opts := range map[string][]Option{"usual": nil, "narrow": {WithLimits(narrowCaps())}} {
		t.Run(name, func(t *testing.T) {
			d, r := open(t, opts...), random(t)
			for _, f := range fusions() {
				if r.IntN(rare) > 0 { // others in the next run
					continue
				}
				f.check(t, d, r)
			}
		})
	}
}

// The epilogue of a product or a convolution is applied wherever a variant stores its results.
func TestEpilogueOfVariants(t *testing.T) {
	product, vector := fusion{entry: catalogue.MatMul, options: compute.MatMulOptions{}, in: [][]int{{64, 1030}, {1030, 68}}, more: [][]int{{64, 68}, {68}, {64, 1}}},
		fusion{entry: catalogue.MatMul, options: compute.MatMulOptions{}, in: [][]int{{64, 1030}, {1030, 1}}, more: [][]int{{64, 1}, {1}}}
	image := fusion{entry: catalogue.Conv2D, options: compute.Conv2DOptions{}, in: [][]int{{1, 3, 12, 13}, {16, 3, 3, 3}}, more: [][]int{{16, 1, 1}, {1, 16, 10, 11}}}
	for _, c := range []struct {
		class, name string
		f           fusion
	}{{"matmul", "naive", product}, {"matmul", "reg4x4", product}, {"matmul", "tile64", product}, {"matmul", "tile32/splitk", product},
		{"matmul", "rows", vector}, {"matmul", "rows/splitk", vector}, {"conv2d", "block4x4", image}, {"conv2d", "slide4x8", image}} {
		t.Run(c.class+"/"+c.name, func(t *testing.T) { c.f.check(t, open(t, WithVariant(c.class, c.name)), random(t)) })
	}
}

func (f fusion) check(t *testing.T, d *Device, r *rand.Rand) {
	var in []program.Type
	own := f.in
	attr := program.Attr{Options: f.options, Scalars: f.scalars}
	if f.prologue {
		x, scalars := tame(len(f.more))
		attr.Prologue, attr.Scalars = x, append(scalars, f.scalars...)
		for _, s := range f.more {
			in = append(in, program.F32(s...))
		}
		own = own[1:]
	}
	for _, s := range own {
		in = append(in, program.F32(s...))
	}
	if !f.prologue {
		x, scalars := tame(1 + len(f.more))
		attr.Epilogue, attr.Scalars = x, append(append([]float32{}, f.scalars...), scalars...)
		for _, s := range f.more {
			in = append(in, program.F32(s...))
		}
	}
	data, arrays := make([][]float32, len(in)), make([]reference.Array, len(in))
	for k, x := range in {
		data[k] = tensorOf(r, x.Len(), false)
		arrays[k] = reference.Array{Shape: x.Shape}
		for _, v := range data[k] {
			arrays[k].Data = append(arrays[k].Data, float64(v))
		}
	}
	out, err := f.entry.Check(in, attr)
	require.NoError(t, err, f)
	if f.impossible {
		s := &program.Step{Entry: f.entry, Attr: attr}
		require.False(t, executor{d}.Fuses(s, in, out), f)
		_, err := wgslkernels.Lower(s, in, out, d.caps(), nil)
		require.ErrorIs(t, err, compute.ErrUnsupported, f)
		return
	}
	if f.entry == catalogue.ArgMax {
		checkPlaces(t, d, attr, in, data, arrays)
		return
	}
	want := reference.Of(f.entry, arrays, attr, out)[0].Data
	_, got := execute[float32](t, d, f.entry, attr, in, data)
	largest := 1.0
	for _, w := range want {
		largest = max(largest, math.Abs(w))
	}
	for i, w := range want {
		require.InDelta(t, w, got[0][i], 1e-4*largest, "%v at %d", f, i)
	}
}

// checkPlaces judges the places of the largest elements of rows, of which in float32 another may be as large.
func checkPlaces(t *testing.T, d *Device, attr program.Attr, in []program.Type, data [][]float32, arrays []reference.Array) {
	_, got := execute[int32](t, d, catalogue.ArgMax, attr, in, data)
	f := program.Attr{Options: attr.Prologue, Scalars: attr.Scalars}
	out, err := program.Fused.Check(in, f)
	require.NoError(t, err)
	rows := reference.Of(program.Fused, arrays, f, out)[0].Data
	cols := len(rows) / len(got[0])
	for i, place := range got[0] {
		for j := range cols {
			require.GreaterOrEqual(t, rows[i*cols+int(place)]+1e-5, rows[i*cols+j])
		}
	}
}

// However many expressions there are, a device keeps few pipelines; programs that have others keep theirs.
func TestPipelinesAreBounded(t *testing.T) {
	d, r := open(t), random(t)
	const limit, programs = 4, 40
	d.pipelines = newPipelines(d.drv, limit)
	compile := func(nodes int) program.Executable {
		x := program.Expression{Inputs: 1, Results: []int{nodes}}
		for i := range nodes {
			x.Nodes = append(x.Nodes, program.Node{Entry: catalogue.Neg, Args: []int{i}})
		}
		p := &program.Program{}
		s := p.Add(program.F32(5), program.FromHost)
		y, err := p.Apply(program.Fused, program.Attr{Options: x}, s)
		require.NoError(t, err)
		p.Read = []program.Slot{y}
		e, err := program.ExecutorOf(d).Compile(t.Context(), p)
		require.NoError(t, err)
		return e
	}
	check := func(e program.Executable, sign float32) {
		x, y := floats(r, 5), make([]float32, 5)
		require.NoError(t, runOnce(e, x, y))
		for i := range x {
			require.Equal(t, sign*x[i], y[i])
		}
	}
	first := compile(1)
	for i := 2; i < programs; i++ {
		e := compile(i)
		check(e, float32(1-i%2*2))
		require.NoError(t, e.Close())
		require.LessOrEqual(t, d.Stats().Pipelines, 2*limit)
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		d.pipelines.mu.Lock()
		defer d.pipelines.mu.Unlock()
		return len(d.pipelines.made) <= 2*limit+1
	}, time.Minute, 10*time.Millisecond, "pipelines that nobody has are freed")
	check(first, -1)
	require.NoError(t, first.Close())
	idle(t, d)
}
