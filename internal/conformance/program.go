package conformance

import (
	"context"
	"math"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// program is a test of many steps, runs or values, the same for every device.
type testProgram struct {
	name string
	run  func(g *graph)
}

func (d *testDevice) program(t require.TestingT, p testProgram) {
	d.count.Add(1)
	p.run(d.graph(t, p.name))
}

var programs = []testProgram{
	{"nothing at all", func(g *graph) { g.run() }},
	{"nothing read", func(g *graph) { g.apply(catalogue.ReLU, program.Attr{}, g.upload(g.floats(-1, 1, 100))); g.run() }},
	{"an unused input", func(g *graph) {
		g.upload(g.floats(-1, 1, 100))
		g.read(g.apply(catalogue.ReLU, program.Attr{}, g.upload(g.floats(-1, 1, 50))))
		g.run()
	}},
	{"uploaded and read back", func(g *graph) {
		for _, d := range []compute.DType{compute.Float32, compute.Int32, compute.Uint32, compute.Float16, compute.BFloat16} {
			for _, n := range []int{0, 1, 3, 4099} {
				g.read(g.upload(g.words(d, n)))
			}
		}
		g.run()
	}},
	{"read twice", func(g *graph) {
		x := g.upload(g.floats(-1, 1, 77))
		y := g.apply(catalogue.Neg, program.Attr{}, x)
		g.read(y, x, y, x, y)
		g.run()
	}},
	{"forty results", func(g *graph) {
		x := g.upload(g.floats(-4, 4, 1025))
		for i := range 40 {
			g.read(g.apply(catalogue.Scale, program.Attr{Scalars: []float32{float32(i) - 20}}, x))
		}
		g.run()
	}},
	{"a value used before, between and after others", func(g *graph) {
		x := g.upload(g.floats(-4, 4, 5, 67))
		y := g.apply(catalogue.ReLU, program.Attr{}, x)
		z := g.apply(catalogue.Add, program.Attr{}, x, y)
		w := g.apply(catalogue.Mul, program.Attr{}, z, z)
		v := g.apply(catalogue.FMA, program.Attr{}, w, x, y)
		g.read(v, w, z, y, x)
		g.run()
	}},
	{"views share no fate", func(g *graph) {
		x := g.upload(g.floats(-4, 4, 6, 10))
		flat := g.apply(catalogue.Reshape, program.Attr{Options: compute.ReshapeOptions{Shape: []int{-1}}}, x)
		copied := g.apply(catalogue.Copy, program.Attr{}, flat)
		square := g.apply(catalogue.Mul, program.Attr{}, flat, copied)
		back := g.apply(catalogue.Reshape, program.Attr{Options: compute.ReshapeOptions{Shape: []int{10, 6}}}, square)
		g.read(x, flat, copied, square, back, g.apply(catalogue.Neg, program.Attr{}, flat))
		g.run()
	}},
	{"values made from nothing", func(g *graph) {
		one := g.apply(catalogue.Fill, program.Attr{Scalars: []float32{1}, Options: compute.FillOptions{Shape: []int{3, 1}}})
		two := g.apply(catalogue.Fill, program.Attr{Scalars: []float32{2}, Options: compute.FillOptions{Shape: []int{1, 5}}})
		g.read(g.apply(catalogue.Add, program.Attr{}, one, two), one, two)
		g.run()
	}},
	{"empty values on the way", func(g *graph) {
		x := g.upload(g.floats(-1, 1, 0, 4))
		y := g.apply(catalogue.Softmax, program.Attr{}, g.apply(catalogue.Exp, program.Attr{}, x))
		z := g.apply(catalogue.Concat, program.Attr{Options: compute.ConcatOptions{}}, y, g.upload(g.floats(-1, 1, 2, 4)))
		s := g.apply(catalogue.Sum, program.Attr{Options: compute.AllAxes}, y)
		g.read(y, z, s, g.apply(catalogue.Add, program.Attr{}, z, s))
		g.run()
	}},
	{"halves as storage", func(g *graph) {
		half, single := program.Attr{Options: compute.CastOptions{To: compute.Float16}}, program.Attr{Options: compute.CastOptions{To: compute.Float32}}
		for _, n := range []int{1, 7, 256, 1023} {
			h := g.apply(catalogue.Cast, half, g.upload(g.floats(-100, 100, n)))
			c := g.apply(catalogue.Reshape, program.Attr{Options: compute.ReshapeOptions{Shape: []int{1, n}}}, g.apply(catalogue.Copy, program.Attr{}, h))
			g.read(h, c, g.apply(catalogue.Cast, single, c))
		}
		g.run()
	}},
	{"indices feed an embedding", func(g *graph) {
		scores := g.upload(g.floats(-4, 4, 33, 19))
		ids := g.apply(catalogue.ArgMax, program.Attr{Options: compute.LastAxis}, scores)
		g.read(ids, g.apply(catalogue.Embedding, program.Attr{}, g.upload(g.floats(-1, 1, 19, 5)), ids))
		g.run()
	}},
	{"a chain of thirty random steps", randomChain},
	{"three hundred steps", func(g *graph) {
		x := g.upload(g.floats(-1, 1, 1000))
		y := x
		for i := range 100 {
			y = g.apply(catalogue.Tanh, program.Attr{}, g.apply(catalogue.Add, program.Attr{}, g.apply(catalogue.Scale, program.Attr{Scalars: []float32{float32(i%3) - 1}}, y), x))
		}
		g.read(y)
		io := g.run()
		for i, v := range g.approx[y].Data {
			require.InDelta(g, v, io.Read[0].([]float32)[i], 1e-4)
		}
	}},
	{"replayed with other data", replay},
	{"replayed with other scalars", varying},
	{"many goroutines", concurrent},
	{"closed with runs in flight", func(g *graph) {
		x := g.upload(g.floats(-4, 4, 100000))
		g.read(g.apply(catalogue.Exp, program.Attr{}, x))
		ex := g.compile()
		io := []*program.IO{g.io(), g.io(), g.io()}
		var futures []*compute.Future
		for _, x := range io {
			futures = append(futures, ex.Start(x))
		}
		require.NoError(g, ex.Close())
		for i, f := range futures {
			require.NoError(g, await(f))
			g.verify(io[i])
		}
		require.NoError(g, ex.Close(), "closing twice")
		require.ErrorIs(g, await(ex.Start(g.io())), compute.ErrClosed)
	}},
	{"given up", abandoned},
	{"wrong data", wrongData},
	{"tensors", tensors},
	{"tensors at once", tensorsAtOnce},
	{"updates in order", updatesInOrder},
	{"tensors closed and foreign", closedTensors},
}

// randomChain runs a random program once reading every value, so that each step is judged by itself, and once reading
// only the last, as users do. Both must agree, and the second must give the same bits every time.
func randomChain(g *graph) {
	g.randomSteps(30)
	last := g.Steps[len(g.Steps)-1].Out[0]
	g.Read = g.results()
	all := g.run()
	want := all.Read[len(all.Read)-1].([]float32)

	g.Read = []program.Slot{last}
	ex := g.compile()
	var first []float32
	for range 3 {
		io := g.io()
		require.NoError(g, await(ex.Start(io)))
		got := io.Read[0].([]float32)
		for i := range want {
			require.InDelta(g, want[i], got[i], 1e-3*(1+math.Abs(float64(want[i]))), "element %d, seed %d", i, Seed())
		}
		if first == nil {
			first = got
		}
		require.True(g, sameBits(first, got), "%s: another run gave other bits; seed %d", g.d.name, Seed())
	}
	require.NoError(g, ex.Close())
}

// replay compiles once and runs with other data, one after the other and at the same time.
func replay(g *graph) {
	shapes := [][]int{{33, 65}, {65, 17}, {17}}
	var in []program.Slot
	for _, s := range shapes {
		in = append(in, g.upload(g.floats(-1, 1, s...)))
	}
	y := g.apply(catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{Act: compute.ReLU}}, in...)
	s := g.apply(catalogue.Softmax, program.Attr{}, y)
	g.read(y, s, g.apply(catalogue.Sum, program.Attr{Options: compute.LastAxis}, s))
	fresh := func() {
		for i, slot := range in {
			g.data[slot] = g.floats(-1, 1, shapes[i]...)
		}
	}
	ex := g.compile()
	for range 3 {
		fresh()
		io := g.io()
		require.NoError(g, await(ex.Start(io)))
		g.verify(io)
	}
	type run struct {
		data   map[program.Slot]operand
		io     *program.IO
		future *compute.Future
	}
	var runs []run
	for range 4 {
		fresh()
		data := map[program.Slot]operand{}
		for _, slot := range in {
			data[slot] = g.data[slot]
		}
		io := g.io()
		runs = append(runs, run{data, io, ex.Start(io)})
	}
	for i := range runs { // the last one first
		r := runs[len(runs)-1-i]
		require.NoError(g, await(r.future))
		g.data = r.data
		g.verify(r.io)
	}
	require.NoError(g, ex.Close())
}

// concurrent shares a device and an executable between goroutines.
func concurrent(g *graph) {
	x := g.upload(g.floats(-4, 4, 64, 65))
	y := g.apply(catalogue.Softmax, program.Attr{}, g.apply(catalogue.GELU, program.Attr{}, x))
	g.read(y, g.apply(catalogue.ArgMax, program.Attr{Options: compute.LastAxis}, y))
	shared := g.compile()
	want := g.io()
	require.NoError(g, await(shared.Start(want)))
	const workers = 8
	errs := make([]error, workers)
	same := make([]bool, workers)
	var wait sync.WaitGroup
	for w := range workers {
		ios := make([]*program.IO, 6)
		for i := range ios {
			ios[i] = g.io()
		}
		wait.Go(func() {
			same[w] = true
			for i, io := range ios {
				ex, err := shared, error(nil)
				if i%3 == 0 { // compiling is concurrent, too
					ex, err = g.d.Compile(context.Background(), &g.Program)
				}
				if err == nil {
					err = await(ex.Start(io))
				}
				if err == nil && i%3 == 0 {
					err = ex.Close()
				}
				if err != nil {
					errs[w] = err
					return
				}
				same[w] = same[w] && sameBits(io.Read[0], want.Read[0]) && sameBits(io.Read[1], want.Read[1])
			}
		})
	}
	wait.Wait()
	for w := range workers {
		require.NoError(g, errs[w])
		require.True(g, same[w], "%s: goroutine %d got other bits", g.d.name, w)
	}
	require.NoError(g, shared.Close())
	g.verify(want)
}

// abandoned gives up on a run: its destinations are the caller's again at once, and the device goes on.
func abandoned(g *graph) {
	x := g.upload(g.floats(-4, 4, 300000))
	g.read(g.apply(catalogue.Tanh, program.Attr{}, x))
	ex := g.compile()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 5 {
		io := g.io()
		f := ex.Start(io)
		err := f.AwaitOrAbandon(ctx)
		after := operand{data: io.Read[0]}.clone()
		if err == nil {
			g.verify(io) // it was done already
			continue
		}
		require.ErrorIs(g, err, context.Canceled)
		_ = await(f)
		require.True(g, sameBits(after.data, io.Read[0]), "%s: written to after it was given up", g.d.name)
	}
	io := g.io()
	require.NoError(g, await(ex.Start(io)))
	g.verify(io)
	require.NoError(g, ex.Close())
}

// wrongData checks that bad arguments of a run are errors of the right kind and leave the device usable.
func wrongData(g *graph) {
	x := g.upload(g.floats(-1, 1, 3, 4))
	t := g.Add(program.F32(4), program.FromTensor)
	g.read(g.apply(catalogue.Add, program.Attr{}, x, t))
	ex := g.compile()
	good := g.resident(g.floats(-1, 1, 4))
	integers := g.resident(g.words(compute.Int32, 4))
	longer := g.resident(g.floats(-1, 1, 5))
	for _, c := range []struct {
		name string
		want error
		bend func(io *program.IO)
	}{
		{"no input", compute.ErrArgument, func(io *program.IO) { io.Host = nil }},
		{"too many inputs", compute.ErrArgument, func(io *program.IO) { io.Host = append(io.Host, io.Host[0]) }},
		{"nil input", compute.ErrArgument, func(io *program.IO) { io.Host[0] = nil }},
		{"nil slice", compute.ErrShape, func(io *program.IO) { io.Host[0] = []float32(nil) }},
		{"short input", compute.ErrShape, func(io *program.IO) { io.Host[0] = make([]float32, 11) }},
		{"input of another type", compute.ErrDType, func(io *program.IO) { io.Host[0] = make([]int32, 12) }},
		{"input of no type", compute.ErrDType, func(io *program.IO) { io.Host[0] = "twelve bytes" }},
		{"no destination", compute.ErrArgument, func(io *program.IO) { io.Read = nil }},
		{"long destination", compute.ErrShape, func(io *program.IO) { io.Read[0] = make([]float32, 13) }},
		{"destination of another type", compute.ErrDType, func(io *program.IO) { io.Read[0] = make([]uint32, 12) }},
		{"no tensor", compute.ErrArgument, func(io *program.IO) { io.Tensors = nil }},
		{"nil tensor", compute.ErrArgument, func(io *program.IO) { io.Tensors[0] = nil }},
		{"tensor of another shape", compute.ErrShape, func(io *program.IO) { io.Tensors[0] = longer }},
		{"tensor of another type", compute.ErrShape, func(io *program.IO) { io.Tensors[0] = integers }},
	} {
		io := g.io(good)
		c.bend(io)
		require.ErrorIs(g, await(ex.Start(io)), c.want, "%s: %s", g.d.name, c.name)
	}
	require.NoError(g, await(ex.Start(g.io(good))))
	require.NoError(g, ex.Close())
	for _, t := range []compute.Tensor{good, integers, longer} {
		require.NoError(g, t.Close())
	}
}
