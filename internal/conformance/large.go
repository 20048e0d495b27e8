package conformance

import (
	"fmt"
	"math"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Sizes beyond 65,535 workgroups of 256.
const (
	elements = 20_000_000
	beyond   = 65535*256 + 1000
)

// withLarge are the entries whose large cases run this time, drawn by the seed: one in n, but of those elementwise, which share their
// kernels and differ in an expression only, at most a dozen.
func withLarge(n int) []*program.Entry {
	const dozen = 12
	var chosen, elementwise []*program.Entry
	r := newSource(Seed(), "large", 0)
	n = sampleOf(n)
	one := r.IntN(n)
	for i, e := range catalogue.All() {
		switch {
		case e.Class.Elementwise():
			elementwise = append(elementwise, e)
		case i%n == one:
			chosen = append(chosen, e)
		}
	}
	for _, i := range r.Perm(len(elementwise))[:max(1, dozen/n)] {
		chosen = append(chosen, elementwise[i])
	}
	return chosen
}

// large runs the cases of an entry at the limits of devices.
func (d *testDevice) large(t require.TestingT, e *program.Entry) {
	generate := largeByName[e.Name]
	if e.Class.Elementwise() && generate == nil {
		d.largeElementwise(t, e)
		return
	}
	if generate == nil {
		generate = largeByClass[e.Class]
	}
	b := &builder{Entry: e}
	if generate != nil {
		generate(b)
	}
	if len(b.cases) == 0 {
		t.Errorf("%s has no large cases: say in package conformance how to test its limits", e.Name)
		return
	}
	for i, c := range b.cases {
		c.number = 10000 + i // other random numbers than the small cases
	}
	v, _ := largeCases.LoadOrStore(e, b.cases)
	d.cases(t, v.([]*testCase))
}

// period is that of the operands of large elementwise cases: the reference is computed once per period. It is prime, so that
// no kernel's stride hides in it.
const period = 65521

func (d *testDevice) largeElementwise(t require.TestingT, e *program.Entry) {
	d.count.Add(1)
	r := newSource(Seed(), e.Name, -1)
	a := attrs(e, nil)[0]
	g := d.graph(t, e.Name)
	var tables []operand
	var slots []program.Slot
	for range e.Inputs {
		table := r.domain(e, period)
		tables = append(tables, table)
		data := make([]float32, elements)
		for i := 0; i < elements; {
			i += copy(data[i:], table.data.([]float32))
		}
		s := g.Add(program.F32(elements), program.FromHost)
		g.data[s] = operand{program.F32(elements), data}
		slots = append(slots, s)
	}
	want := expect(e, a, tables, []program.Type{program.F32(period)})[0]
	out, err := g.Apply(e, a, slots...)
	require.NoError(g, err)
	dst := make([]float32, elements)
	poisonAll(dst)
	g.read(out)
	io := &program.IO{Read: []any{dst}}
	for _, s := range slots {
		io.Host = append(io.Host, g.data[s].data)
	}
	require.NoError(g, d.execute(&g.Program, io), e.Name)
	for at := 0; at < elements; at += period {
		part := dst[at:min(at+period, elements)]
		if at > 0 && sameBits(part, dst[:len(part)]) {
			continue // judged already
		}
		x := *want
		x.want = x.want[:len(part)]
		if err := x.judge(part); err != nil {
			t.Errorf("%s: %s of %d elements, from element %d on: %v\nrepeat with WAVELANE_SEED=%d", d.name, e.Name, elements, at, err, Seed())
			return
		}
	}
}

var (
	largeCases   sync.Map // *program.Entry → []*testCase
	largeByClass = map[program.Class]func(b *builder){program.Reduce: largeReductions, program.Rows: largeRows}
	largeByName  = map[string]func(b *builder){
		"dot": func(b *builder) {
			largeReductions(b)
			b.random("", program.Attr{Options: compute.AllAxes}, []int{1_000_003}, []int{1_000_003})
			b.integers(program.Attr{Options: compute.AllAxes}, []int{1_000_003}, []int{1_000_003})
		},
		"matmul": largeMatmul,
		"matvec": func(b *builder) {
			for _, s := range [][2]int{{2_000_000, 3}, {3, 2_000_000}, {5000, 4001}} {
				b.integers(program.Attr{}, []int{s[0], s[1]}, []int{s[1]})
			}
		},
		"conv2d": func(b *builder) {
			b.integers(program.Attr{Options: compute.Conv2DOptions{}}, []int{70000, 1, 3, 3}, []int{2, 1, 2, 2})
			b.integers(program.Attr{Options: compute.Conv2DOptions{}}, []int{1, 3, 2, 1}, []int{70000, 3, 1, 1}, []int{70000})
			b.random("", program.Attr{Options: compute.Conv2DOptions{Pad: [2]int{1, 1}}}, []int{2000, 2500}, []int{3, 3})
		},
		"max_pool2d": largePool, "avg_pool2d": largePool,
		"transpose": func(b *builder) {
			b.floats(program.Attr{Options: compute.TransposeOptions{}}, []int{4001, 4201})
			b.floats(program.Attr{Options: compute.TransposeOptions{}}, []int{beyond / 2, 2})
			b.floats(program.Attr{Options: compute.TransposeOptions{Perm: []int{1, 2, 0}}}, []int{70001, 3, 80})
		},
		"slice": func(b *builder) {
			b.floats(program.Attr{Options: compute.SliceOptions{Start: []int{beyond - 1}, Size: []int{beyond}, Step: []int{-1}}}, []int{beyond})
			b.floats(program.Attr{Options: compute.SliceOptions{Start: []int{1, 2}, Size: []int{2000, 4000}, Step: []int{2, 1}}}, []int{4001, 4201})
		},
		"pad": func(b *builder) {
			b.floats(program.Attr{Options: compute.PadOptions{Before: []int{1}, After: []int{2}, Value: 3}}, []int{beyond})
		},
		"concat": func(b *builder) {
			b.floats(program.Attr{Options: compute.ConcatOptions{}}, []int{beyond}, []int{1}, []int{3_000_001})
			b.floats(program.Attr{Options: compute.ConcatOptions{Axis: 1}}, []int{1_000_003, 3}, []int{1_000_003, 4})
		},
		"embedding": func(b *builder) {
			b.add("", program.Attr{}, func(r *source) []operand {
				ids := make([]int32, 1_000_003)
				for i := range ids {
					ids[i] = r.Int32N(30_003) - 2
				}
				return []operand{r.floats(-4, 4, 30_000, 17), {program.Type{DType: compute.Int32, Shape: []int{len(ids)}}, ids}}
			})
		},
		"copy": func(b *builder) { b.floats(program.Attr{}, []int{beyond}) },
		"reshape": func(b *builder) {
			b.floats(program.Attr{Options: compute.ReshapeOptions{Shape: []int{2, -1}}}, []int{beyond})
		},
		"fill": func(b *builder) {
			b.given("", program.Attr{Scalars: []float32{-2.5}, Options: compute.FillOptions{Shape: []int{beyond}}})
		},
		"cast": func(b *builder) {
			b.random("", program.Attr{Options: compute.CastOptions{To: compute.Float16}}, []int{beyond + 1})
			b.add("", program.Attr{Options: compute.CastOptions{To: compute.Float32}}, func(r *source) []operand {
				return []operand{r.words(compute.Float16, beyond+1)}
			})
		},
	}
)

func (b *builder) floats(a program.Attr, shapes ...[]int) {
	b.add("", a, func(r *source) []operand {
		var in []operand
		for _, s := range shapes {
			in = append(in, r.words(compute.Float32, s...))
		}
		return in
	})
}

func largeReductions(b *builder) {
	all, last := program.Attr{Options: compute.AllAxes}, program.Attr{Options: compute.LastAxis}
	one := func(a program.Attr, s ...int) {
		shapes := [][]int{s}
		for range len(b.Inputs) - 1 {
			shapes = append(shapes, s)
		}
		b.random("", a, shapes...)
	}
	one(all, elements)
	one(last, 3, elements/3)
	one(last, 700_000, 3)
	one(last, 66_000, 257)
	if b.Name == "sum" || b.Name == "argmax" || b.Name == "norm_linf" {
		one(last, elements/3, 3)
	}
	if b.Name == "inspect" {
		b.add("NaN and Inf at the end", all, func(*source) []operand {
			x := f32s([]int{elements}, make([]float32, elements)...).set(float32(math.Inf(-1)), 0x1000001, elements-1)
			return []operand{x.set(float32(math.NaN()), 0x1000002, elements-3, elements-2)}
		})
	}
	if b.Name == "argmax" || b.Name == "argmin" {
		best := float32(1)
		if b.Name == "argmin" {
			best = -1
		}
		for _, at := range [][]int{nil, {elements - 1}, {elements / 2, elements - 1}, {1, 0x1000000, elements - 2}} {
			b.add(fmt.Sprintf("ties, the best at %v", at), all, func(*source) []operand {
				return []operand{f32s([]int{elements}, make([]float32, elements)...).set(best, at...)}
			})
		}
	}
}

func largeRows(b *builder) {
	for _, s := range [][]int{{1_000_000}, {2, 500_001}, {700_000, 3}, {66_000, 65}} {
		shapes := [][]int{s}
		for range len(b.Inputs) - 1 {
			shapes = append(shapes, s[len(s)-1:])
		}
		b.random("", attrs(b.Entry, nil)[0], shapes...)
	}
	b.add("large base, small spread", attrs(b.Entry, nil)[0], func(r *source) []operand {
		in := []operand{r.floats(1e4, 1e4+1, 1_000_000)}
		for range len(b.Inputs) - 1 {
			in = append(in, r.floats(-2, 2, 1_000_000))
		}
		return in
	})
}

func largeMatmul(b *builder) {
	for _, s := range [][3]int{{1, 1_000_003, 1}, {70_000, 3, 5}, {3, 2, 300_000}, {300_000, 1, 1}, {1, 1, 300_000}, {500, 512, 513}, {1, 3001, 4003}, {4003, 3001, 1}} {
		for _, o := range []compute.MatMulOptions{{}, {TransB: true}} {
			b.integers(program.Attr{Options: o}, matmulShapes(s, o, nil, nil)...)
		}
	}
	o := compute.MatMulOptions{}
	b.random("", program.Attr{Options: o}, matmulShapes([3]int{1, 1_000_003, 1}, o, nil, nil)...)
	b.integers(program.Attr{Options: o}, matmulShapes([3]int{2, 3, 2}, o, []int{70_000}, []int{70_000})...)
	b.integers(program.Attr{Options: o}, matmulShapes([3]int{1, 5, 1}, o, []int{70_000}, nil)...)
	b.integers(program.Attr{Options: o}, append(matmulShapes([3]int{3, 1, 2}, o, nil, []int{70_000}), []int{2})...)
}

func largePool(b *builder) {
	b.random("", program.Attr{Options: compute.PoolOptions{Size: [2]int{2, 2}}}, []int{70_000, 3, 5})
	b.random("", program.Attr{Options: compute.PoolOptions{Size: [2]int{3, 3}, Stride: [2]int{1, 1}, Pad: [2]int{1, 1}}}, []int{1500, 2003})
	b.random("", program.Attr{Options: compute.PoolOptions{Size: [2]int{60, 70}, Stride: [2]int{50, 1}}}, []int{300, 2003})
}
