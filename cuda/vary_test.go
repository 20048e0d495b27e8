package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// A graph takes the scalars of each run, in kernels and in words that are filled, beside tensors and whatever the run before had.
func TestReplayWithOtherScalars(t *testing.T) {
	d := softDevice(t)
	rng := randomSource(t)
	n := 1 + rng.IntN(50)
	p := &program.Program{Variables: 3}
	x, w := p.Add(f32(n), program.FromHost), p.Add(f32(n), program.FromTensor)
	rate := with(t, p, "fill", program.Attr{Scalars: []float32{2}, Vary: []int{1}, Options: compute.FillOptions{}})
	y := with(t, p, "mul", program.Attr{}, x, rate)
	y = with(t, p, "clip", program.Attr{Scalars: []float32{-1, 1}, Vary: []int{2, 3}}, y)
	y = with(t, p, "add", program.Attr{}, y, w)
	y = with(t, p, "scale", program.Attr{Scalars: []float32{0.5}, Vary: []int{1}}, y)
	p.Read = []program.Slot{y}
	exec := compile(t, d, p)
	weights := []compute.Tensor{uploadRandom(t, d, rng, n), uploadRandom(t, d, rng, n)}
	scalars := [][]float32{nil, {3, -1, 1}, {3, -1, 1}, {4, -2, 0.5}, {-1, 0, 3}, nil}
	for i := range 4 * len(scalars) {
		io := &program.IO{Host: []any{randomFloats(rng, n)}, Tensors: []compute.Tensor{weights[i/7%2]}, Read: []any{make([]float32, n)},
			Scalars: scalars[i%len(scalars)]}
		ran(t, exec, io)
		want := direct(t, d, p, io)
		require.Equal(t, want, io.Read, "run %d", i)
	}
	require.Greater(t, d.Stats().Replays, uint64(15))
	require.NoError(t, exec.Close())

	// A tensor that is filled with a number which varies is filled by calls.
	p = &program.Program{Variables: 1}
	y = with(t, p, "fill", program.Attr{Scalars: []float32{2}, Vary: []int{1}, Options: compute.FillOptions{Shape: []int{3}}})
	for range 4 {
		y = with(t, p, "neg", program.Attr{}, y)
	}
	p.Read = []program.Slot{y}
	exec = compile(t, d, p)
	for i := range 5 {
		io := &program.IO{Read: []any{make([]float32, 3)}, Scalars: []float32{float32(i)}}
		ran(t, exec, io)
		require.Equal(t, []float32{float32(i), float32(i), float32(i)}, io.Read[0])
	}
}
