package conformance

import (
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// resident uploads data in a program of its own and keeps it.
func (g *graph) resident(o operand) compute.Tensor {
	up := g.d.graph(g, "upload")
	up.Keep = []program.Slot{up.upload(o)}
	return up.run().Keep[0]
}

// contents reads a tensor back.
func (g *graph) contents(t compute.Tensor) any {
	dst, check := destination(program.Type{DType: t.DType(), Shape: t.Shape()})
	require.NoError(g, await(t.ReadAsync(dst)))
	require.NoError(g, check())
	return dst
}

// tensors keeps values of every kind, reads them, and uses them in later programs.
func tensors(g *graph) {
	for _, d := range []compute.DType{compute.Float32, compute.Int32, compute.Uint32, compute.Float16, compute.BFloat16} {
		for _, shape := range [][]int{{}, {0}, {1}, {7}, {3, 1025}, {2, 0}} {
			o := g.words(d, shape...)
			t := g.resident(o)
			require.Equal(g, o.DType, t.DType())
			require.True(g, program.EqualShape(o.Shape, t.Shape()), "%v and %v", o.Shape, t.Shape())
			require.True(g, sameBits(o.data, g.contents(t)), "%s: %v came back changed", g.d.name, o.Type)
			require.NoError(g, t.Close())
		}
	}

	// Retained and read at once, from steps and from views of inputs; closing one does not touch the others.
	x := g.upload(g.floats(-4, 4, 6, 10))
	y := g.apply(catalogue.ReLU, program.Attr{}, x)
	flat := g.apply(catalogue.Reshape, program.Attr{Options: compute.ReshapeOptions{Shape: []int{60}}}, x)
	copied := g.apply(catalogue.Copy, program.Attr{}, y)
	g.read(y, flat)
	g.Keep = []program.Slot{y, x, flat, copied, y}
	io := g.run()
	kept := io.Keep
	want := []any{io.Read[0], io.Read[1], io.Read[1], io.Read[0], io.Read[0]}
	for i, t := range kept {
		require.True(g, sameBits(want[i], g.contents(t)), "%s: retained output %d", g.d.name, i)
	}
	for _, i := range []int{1, 0} {
		require.NoError(g, kept[i].Close())
	}
	for _, i := range []int{2, 3, 4} {
		require.True(g, sameBits(want[i], g.contents(kept[i])), "%s: retained output %d after others were closed", g.d.name, i)
	}

	// A program that uses a tensor does not change it, in any number of runs.
	use := g.d.graph(g, "use")
	in := use.Add(program.F32(60), program.FromTensor)
	use.data[in] = operand{program.F32(60), want[2]}
	z := use.apply(catalogue.Exp, program.Attr{}, in)
	use.read(z, in, use.apply(catalogue.Mul, program.Attr{}, z, in))
	for range 2 {
		use.run(kept[2])
	}
	require.True(g, sameBits(want[2], g.contents(kept[2])))
	for _, i := range []int{2, 3, 4} {
		require.NoError(g, kept[i].Close())
	}
}

// tensorsAtOnce feeds what one run keeps to the next without waiting, as training loops do, closing after it.
func tensorsAtOnce(g *graph) {
	in := g.Add(program.F32(1000), program.FromTensor)
	g.Keep = []program.Slot{g.apply(catalogue.Add, program.Attr{}, in, g.upload(fillWith(g.floats(0, 0, 1000), 1)))}
	ex := g.compile()
	t := g.resident(g.integers(-8, 8, 1000))
	start := g.contents(t).([]float32)
	var futures []*compute.Future
	for range 20 {
		io := g.io(t)
		io.Keep = nil // Start makes the slice where there is none
		futures = append(futures, ex.Start(io))
		require.Len(g, io.Keep, 1)
		require.NoError(g, t.Close()) // the run in flight still has it
		t = io.Keep[0]
	}
	end := g.contents(t).([]float32)
	for _, f := range futures {
		require.NoError(g, await(f))
	}
	for i := range start {
		require.Equal(g, start[i]+20, end[i], "%s: element %d", g.d.name, i)
	}
	require.NoError(g, t.Close())
	require.NoError(g, ex.Close())
}

func closedTensors(g *graph) {
	t := g.resident(g.floats(-1, 1, 5))
	require.ErrorIs(g, await(t.ReadAsync(make([]float32, 4))), compute.ErrShape)
	require.ErrorIs(g, await(t.ReadAsync(make([]int32, 5))), compute.ErrDType)
	require.ErrorIs(g, await(t.ReadAsync(nil)), compute.ErrArgument)
	in := g.Add(program.F32(5), program.FromTensor)
	g.read(g.apply(catalogue.Neg, program.Attr{}, in))
	ex := g.compile()
	require.ErrorIs(g, await(ex.Start(g.io(foreign{}))), compute.ErrForeignTensor)
	t.Shape()[0] = 4 // of a copy
	require.NoError(g, await(ex.Start(g.io(t))))
	require.NoError(g, t.Close())
	require.NoError(g, t.Close(), "closing twice")
	require.ErrorIs(g, await(t.ReadAsync(make([]float32, 5))), compute.ErrClosed)
	require.ErrorIs(g, await(ex.Start(g.io(t))), compute.ErrClosed)
	require.NoError(g, ex.Close())
}

// foreign is a tensor of no device.
type foreign struct{}

func (foreign) Shape() []int                  { return []int{5} }
func (foreign) DType() compute.DType          { return compute.Float32 }
func (foreign) ReadAsync(any) *compute.Future { return compute.Failed(compute.ErrForeignTensor) }
func (foreign) Close() error                  { return nil }
