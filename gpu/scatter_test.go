package gpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Sums of updates are the same to the last bit in every run.
func TestScatterAddRepeats(t *testing.T) {
	d := open(t)
	const n = 200_003
	r := random(t)
	updates, ids, want := floats(r, n), make([]int32, n), make([]float32, 3)
	for i := range ids {
		ids[i] = r.Int32N(4) // of which the last is outside
	}
	require.NoError(t, d.ScatterAddAsync(compute.Of(want), compute.Of(ids), compute.Of(updates)).Await(ctx))
	for range 5 {
		got := make([]float32, 3)
		require.NoError(t, d.ScatterAddAsync(compute.Of(got), compute.Of(ids), compute.Of(updates)).Await(ctx))
		require.Equal(t, want, got)
	}
}

// Updates of one row, and of rows drawn evenly: the time grows with their number and depends on little else.
func BenchmarkScatterAdd(b *testing.B) {
	for _, c := range []struct{ rows, width, n int }{
		{256, 1, 1000}, {256, 1, 100_000}, {256, 1, 1_000_000}, {256, 1, 10_000_000}, {64, 2, 1_000_000}, {30_000, 8, 100_000}, {1_000_000, 1, 1_000_000},
		{64, 64, 100}, {30_000, 512, 500}, {30_000, 512, 5000},
	} {
		for _, spread := range []int{1, c.rows} {
			b.Run(fmt.Sprintf("rows=%d/width=%d/spread=%d/n=%d", c.rows, c.width, spread, c.n), func(b *testing.B) {
				d := open(b)
				x, updates, ids := make([]float32, c.rows*c.width), make([]float32, c.n*c.width), make([]int32, c.n)
				r := rand.New(rand.NewPCG(1, 2))
				for i := range updates {
					updates[i] = 1
				}
				for i := range ids {
					ids[i] = r.Int32N(int32(spread))
				}
				p, io := &program.Program{}, &program.IO{}
				var in []program.Slot
				for _, o := range []struct {
					data  any
					shape []int
				}{{x, []int{c.rows, c.width}}, {ids, []int{c.n}}, {updates, []int{c.n, c.width}}} {
					tensor, err := d.Upload(ctx, o.data, o.shape...)
					require.NoError(b, err)
					in = append(in, p.Add(program.Type{DType: tensor.DType(), Shape: o.shape}, program.FromTensor))
					io.Tensors = append(io.Tensors, tensor)
				}
				_, err := p.Apply(catalogue.ScatterAdd, program.Attr{}, in...)
				require.NoError(b, err)
				e, err := program.ExecutorOf(d).Compile(b.Context(), p)
				require.NoError(b, err)
				defer e.Close()
				for b.Loop() {
					require.NoError(b, e.Start(io).Await(ctx))
				}
			})
		}
	}
}
