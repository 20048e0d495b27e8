package gpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/wgslkernels"
	"github.com/wavelane/wavelane/wgsl"
)

func runOnce(x program.Executable, in, out []float32) error {
	return x.Start(&program.IO{Host: []any{in}, Read: []any{out}}).Await(ctx)
}

func TestReplay(t *testing.T) {
	d := open(t)
	r := random(t)
	const n = 1000
	x, err := program.ExecutorOf(d).Compile(t.Context(), chain(t, affine(t, d), n, 16))
	require.NoError(t, err)
	launches := x.Launches()
	require.Len(t, launches, 16)
	for _, step := range launches {
		require.Len(t, step, 1)
		require.Equal(t, [3]uint32{64, 1, 1}, step[0].Block)
		require.NotEmpty(t, step[0].Kernel)
		require.NotZero(t, step[0].Grid[0])
	}
	before := d.Stats()
	for range 20 {
		in, out := floats(r, n), make([]float32, n)
		require.NoError(t, runOnce(x, in, out))
		for i := range in {
			require.InDelta(t, in[i]+136, out[i], 1e-3)
		}
	}
	s := d.Stats()
	require.EqualValues(t, 20, s.Runs-before.Runs, "one submission per run")
	require.EqualValues(t, 320, s.Dispatches-before.Dispatches)
	require.Equal(t, before.PipelineMisses, s.PipelineMisses)
	require.NoError(t, x.Close())
	idle(t, d)
}

// Runs of one compiled overlap; each has its own memory.
func TestOverlap(t *testing.T) {
	d := open(t)
	k, l := slow(t, d)
	p := &program.Program{}
	s := p.Add(program.F32(1), program.FromHost)
	busy, err := p.ApplyKernel(k, program.Attr{Options: l}, program.F32(64), s)
	require.NoError(t, err)
	y, err := p.ApplyKernel(affine(t, d), program.Attr{Options: affineLaunch(1, 1, 1)}, program.F32(1), s)
	require.NoError(t, err)
	p.Read = []program.Slot{busy, y}
	x, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	var futures []*compute.Future
	var outs []*program.IO
	for i := range 5 {
		io := &program.IO{Host: []any{[]float32{float32(i)}}, Read: []any{make([]float32, 64), make([]float32, 1)}}
		futures, outs = append(futures, x.Start(io)), append(outs, io)
	}
	require.NoError(t, x.Close(), "runs in flight finish")
	for i, f := range futures {
		require.NoError(t, f.Await(ctx))
		require.Equal(t, []float32{float32(i) + 1}, outs[i].Read[1])
	}
	idle(t, d)
}

// All origins of values may be read and kept, more than once.
func TestReadAndKeepAnything(t *testing.T) {
	d := open(t)
	k := affine(t, d)
	res, err := d.Upload(ctx, []float32{1, 2, 3})
	require.NoError(t, err)
	p := &program.Program{}
	host := p.Add(program.F32(3), program.FromHost)
	tensor := p.Add(program.F32(3), program.FromTensor)
	empty := p.Add(program.F32(0, 7), program.FromHost)
	half := p.Add(program.Type{DType: compute.Float16, Shape: []int{3}}, program.FromHost)
	step, err := p.ApplyKernel(k, program.Attr{Options: affineLaunch(3, 2, 0)}, program.F32(3), tensor)
	require.NoError(t, err)
	all := []program.Slot{host, tensor, empty, half, step, step, tensor}
	p.Read, p.Keep = all, all
	x, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	for range 2 {
		io := &program.IO{Host: []any{[]float32{7, 8, 9}, []float32{}, []compute.F16{1, 2, 3}}, Tensors: []compute.Tensor{res}}
		for _, s := range all {
			io.Read = append(io.Read, program.MakeSlice(p.Values[s].Type))
		}
		require.NoError(t, x.Start(io).Await(ctx))
		want := []any{[]float32{7, 8, 9}, []float32{1, 2, 3}, []float32{}, []compute.F16{1, 2, 3}, []float32{2, 4, 6}, []float32{2, 4, 6},
			[]float32{1, 2, 3}}
		require.Equal(t, want, io.Read)
		for i, kept := range io.Keep {
			got := program.MakeSlice(p.Values[all[i]].Type)
			require.NoError(t, fetch(ctx, kept, got))
			require.Equal(t, want[i], got)
			require.NoError(t, kept.Close())
		}
	}
	require.NoError(t, x.Close())
	require.NoError(t, res.Close())
	idle(t, d)
}

func TestStartErrors(t *testing.T) {
	d, other := open(t), open(t)
	k := affine(t, d)
	p := &program.Program{}
	s := p.Add(program.F32(3), program.FromTensor)
	y, err := p.ApplyKernel(k, program.Attr{Options: affineLaunch(3, 1, 1)}, program.F32(3), s)
	require.NoError(t, err)
	p.Read = []program.Slot{y}
	_, err = program.ExecutorOf(other).Compile(t.Context(), p)
	require.ErrorIs(t, err, compute.ErrForeignTensor)
	require.ErrorContains(t, err, "affine")
	x, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	defer x.Close()
	mine, err := d.Upload(ctx, []float32{1, 2, 3})
	require.NoError(t, err)
	theirs, err := other.Upload(ctx, []float32{1, 2, 3})
	require.NoError(t, err)
	wrong, err := d.Upload(ctx, []float32{1, 2})
	require.NoError(t, err)
	closed, err := d.Upload(ctx, []float32{1, 2, 3})
	require.NoError(t, err)
	closed.Close()
	out := make([]float32, 3)
	for _, c := range []struct {
		io *program.IO
		is error
	}{
		{&program.IO{}, compute.ErrArgument},
		{&program.IO{Tensors: []compute.Tensor{nil}, Read: []any{out}}, compute.ErrArgument},
		{&program.IO{Tensors: []compute.Tensor{theirs}, Read: []any{out}}, compute.ErrForeignTensor},
		{&program.IO{Tensors: []compute.Tensor{wrong}, Read: []any{out}}, compute.ErrShape},
		{&program.IO{Tensors: []compute.Tensor{closed}, Read: []any{out}}, compute.ErrClosed},
		{&program.IO{Tensors: []compute.Tensor{mine}, Read: []any{nil}}, compute.ErrArgument},
		{&program.IO{Tensors: []compute.Tensor{mine}, Read: []any{out[:2]}}, compute.ErrShape},
	} {
		require.ErrorIs(t, x.Start(c.io).Await(ctx), c.is)
		require.NoError(t, x.Start(&program.IO{Tensors: []compute.Tensor{mine}, Read: []any{out}}).Await(ctx))
		require.Equal(t, []float32{2, 3, 4}, out)
	}
	mine.Close()
	wrong.Close()
	x.Close()
	idle(t, d)
}

// Lowerings may copy, use scratch memory and bind parts of buffers; whatever is wrong with them is an error, not an abort.
func TestLowerings(t *testing.T) {
	d := open(t)
	e := catalogue.Lookup("relu")
	require.NotNil(t, e)
	align := d.Info().Limits.StorageAlign
	n := int(max(align, 256)) // elements: any part's offset is aligned
	k := &wgsl.Kernel{Key: "test affine", Source: affineWGSL, Entry: "main", Bindings: unary, Uniform: 16, Workgroup: [3]uint32{64, 1, 1}}
	half := 2 * n
	dispatch := func(change func(*wgslkernels.Dispatch)) wgslkernels.Action {
		x := &wgslkernels.Dispatch{Kernel: k, Bind: []lowering.Buffer{{Role: lowering.Operand}, {Role: lowering.Scratch, Index: 1}},
			Params: []uint32{uint32(n), f32bits(2), f32bits(1)}, Grid: [3]uint32{uint32(n+63) / 64, 1, 1}}
		if change != nil {
			change(x)
		}
		return wgslkernels.Action{Launch: x}
	}
	copying := func(from, to lowering.Buffer) wgslkernels.Action {
		return wgslkernels.Action{Copy: &lowering.Copy{From: from, To: to}}
	}
	scratch := func(i int, offset, size int) lowering.Buffer {
		return lowering.Buffer{Role: lowering.Scratch, Index: i, Offset: offset, Size: size}
	}
	result := lowering.Buffer{Role: lowering.Result}
	part := func(offset int) lowering.Buffer {
		return lowering.Buffer{Role: lowering.Result, Offset: offset, Size: half}
	}
	compile := func(actions ...wgslkernels.Action) (program.Executable, error) {
		d.lowerStep = func(*program.Step, []program.Type, []program.Type, *wgsl.Caps, lowering.Chooser) (wgslkernels.Lowering, error) {
			return wgslkernels.Lowering{Actions: actions, Scratch: []int{16, 4 * n}}, nil
		}
		p := &program.Program{}
		s := p.Add(program.F32(n), program.FromHost)
		y, err := p.Apply(e, program.Attr{}, s)
		require.NoError(t, err)
		p.Read = []program.Slot{y}
		return program.ExecutorOf(d).Compile(t.Context(), p)
	}
	// The halves change places on their way.
	x, err := compile(dispatch(nil), dispatch(func(x *wgslkernels.Dispatch) { x.Grid[1] = 0 }), copying(scratch(1, 0, half), part(half)),
		copying(scratch(1, half, half), part(0)))
	require.NoError(t, err)
	r := random(t)
	in, out := floats(r, n), make([]float32, n)
	require.NoError(t, runOnce(x, in, out))
	for i := range in {
		require.InDelta(t, in[(i+n/2)%n]*2+1, out[i], 1e-5)
	}
	x.Close()
	// The second half only.
	x, err = compile(dispatch(func(x *wgslkernels.Dispatch) {
		x.Bind = []lowering.Buffer{{Role: lowering.Operand, Offset: half}, {Role: lowering.Result, Offset: half}}
		x.Params[0] = uint32(n / 2)
	}))
	require.NoError(t, err)
	require.NoError(t, runOnce(x, in, out))
	for i := n / 2; i < n; i++ {
		require.InDelta(t, in[i]*2+1, out[i], 1e-5)
	}
	x.Close()
	idle(t, d)

	for name, a := range map[string]wgslkernels.Action{
		"too few buffers":     dispatch(func(x *wgslkernels.Dispatch) { x.Bind = x.Bind[:1] }),
		"no such operand":     dispatch(func(x *wgslkernels.Dispatch) { x.Bind[0].Index = 1 }),
		"no such scratch":     dispatch(func(x *wgslkernels.Dispatch) { x.Bind[1].Index = 2 }),
		"offset too large":    dispatch(func(x *wgslkernels.Dispatch) { x.Bind[0].Offset = 4 * n }),
		"size too large":      dispatch(func(x *wgslkernels.Dispatch) { x.Bind[0].Size = 4*n + 4 }),
		"overflowing":         dispatch(func(x *wgslkernels.Dispatch) { x.Bind[0].Offset, x.Bind[0].Size = half, math.MaxInt&^3 }),
		"not aligned":         dispatch(func(x *wgslkernels.Dispatch) { x.Bind[0].Offset = 4 }),
		"read and written":    dispatch(func(x *wgslkernels.Dispatch) { x.Bind[0] = x.Bind[1] }),
		"too many parameters": dispatch(func(x *wgslkernels.Dispatch) { x.Params = make([]uint32, 5) }),
		"grid too large":      dispatch(func(x *wgslkernels.Dispatch) { x.Grid[2] = 1 << 20 }),
		"copy of other size":  copying(scratch(1, 0, 16), part(0)),
		"copy of odd size":    copying(scratch(1, 0, 6), lowering.Buffer{Role: lowering.Result, Size: 6}),
		"copy in place":       copying(result, result),
	} {
		_, err := compile(a)
		require.Error(t, err, name)
		require.ErrorContains(t, err, "relu", name)
	}
	idle(t, d)
}
