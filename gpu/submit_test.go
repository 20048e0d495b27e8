package gpu

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Long programs are cut into equal command buffers of a limited number of kernels, and compute the same.
func TestSubmitThreshold(t *testing.T) {
	r := random(t)
	const n, steps = 100, 23
	in := floats(r, n)
	for _, c := range []struct{ threshold, buffers int }{{1, 23}, {2, 12}, {7, 4}, {12, 2}, {22, 2}, {23, 1}, {1000, 1}} {
		d, f := openFaulty(t, WithSubmitThreshold(c.threshold), WithTimestamps())
		x, err := program.ExecutorOf(d).Compile(t.Context(), chain(t, affine(t, d), n, steps))
		require.NoError(t, err)
		for range 3 {
			f.reset()
			out := make([]float32, n)
			require.NoError(t, runOnce(x, in, out))
			require.Equal(t, c.buffers, f.buffers, "threshold %d", c.threshold)
			for i := range in {
				require.InDelta(t, in[i]+276, out[i], 1e-3)
			}
			require.Positive(t, x.(*executable).GPUTime())
		}
		require.NoError(t, x.Close())
	}
	_, err := Open(ctx, WithSoftware(), WithSubmitThreshold(0))
	require.ErrorIs(t, err, compute.ErrArgument)
}

// The input of a run is staged, and the run submitted, while the one before computes; each reads all its results from one buffer
// and copies them out while the next computes.
func TestRunsInFlight(t *testing.T) {
	d, f := openFaulty(t)
	k := affine(t, d)
	p := &program.Program{}
	x := p.Add(program.F32(1), program.FromHost)
	y, err := p.ApplyKernel(k, program.Attr{Options: affineLaunch(1, 2, 1)}, program.F32(1), x)
	require.NoError(t, err)
	z, err := p.ApplyKernel(k, program.Attr{Options: affineLaunch(1, 1, 1)}, program.F32(1), y)
	require.NoError(t, err)
	p.Read = []program.Slot{z, y, x}
	exec, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	start := func(v float32) (*compute.Future, *program.IO) {
		io := &program.IO{Host: []any{[]float32{v}}, Read: []any{make([]float32, 1), make([]float32, 1), make([]float32, 1)}}
		return exec.Start(io), io
	}
	var gates []chan struct{}
	both := func() (a, b *compute.Future, one, two *program.IO) {
		gates = []chan struct{}{make(chan struct{}), make(chan struct{})}
		f.gates = slices.Clone(gates)
		f.reset()
		a, one = start(1)
		b, two = start(2)
		return
	}
	a, b, _, _ := both() // each gets its memory and parameters
	close(gates[0])
	close(gates[1])
	require.NoError(t, a.Await(ctx))
	require.NoError(t, b.Await(ctx))
	a, b, one, two := both()
	require.Equal(t, []string{"write", "submit", "write", "submit"}, f.order, "while the first is under way")
	close(gates[0])
	require.NoError(t, a.Await(ctx))
	require.Equal(t, []string{"read", "read", "read", "unmap"}, f.order[4:], "three results of one buffer")
	close(gates[1])
	require.NoError(t, b.Await(ctx))
	require.Equal(t, []any{[]float32{4}, []float32{3}, []float32{1}}, one.Read)
	require.Equal(t, []any{[]float32{6}, []float32{5}, []float32{2}}, two.Read)
	require.NoError(t, exec.Close())
	idle(t, d)
}

// Two runs in flight against one, of a program whose inputs and results take about as long to copy as its kernels do to run.
func BenchmarkRunsInFlight(b *testing.B) {
	d := open(b)
	const n = 1 << 20
	k := affine(b, d)
	x, err := program.ExecutorOf(d).Compile(b.Context(), chain(b, k, n, 4))
	require.NoError(b, err)
	defer x.Close()
	in := make([]float32, n)
	var ios [2]*program.IO
	for i := range ios {
		ios[i] = &program.IO{Host: []any{in}, Read: []any{make([]float32, n)}}
	}
	for _, flights := range []int{1, 2} {
		b.Run(map[int]string{1: "one", 2: "two"}[flights], func(b *testing.B) {
			var futures [2]*compute.Future
			i := 0
			for b.Loop() {
				if f := futures[i]; f != nil {
					require.NoError(b, f.Await(ctx))
				}
				futures[i] = x.Start(ios[i])
				i = (i + 1) % flights
			}
			for _, f := range futures {
				if f != nil {
					require.NoError(b, f.Await(ctx))
				}
			}
		})
	}
}

// How long a program of many small kernels takes from start to result, by the size of its command buffers.
func BenchmarkSubmitThreshold(b *testing.B) {
	for _, threshold := range []int{16, 64, 256, 512, 1024, 1 << 20} {
		d := open(b, WithSubmitThreshold(threshold))
		k := affine(b, d)
		for _, steps := range []int{300, 5000} {
			x, err := program.ExecutorOf(d).Compile(b.Context(), chain(b, k, 4096, steps))
			require.NoError(b, err)
			in, out := make([]float32, 4096), make([]float32, 4096)
			b.Run(fmt.Sprintf("%d/%d", threshold, steps), func(b *testing.B) {
				for b.Loop() {
					require.NoError(b, runOnce(x, in, out))
				}
			})
			require.NoError(b, x.Close())
		}
	}
}
