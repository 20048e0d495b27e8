//go:build !js && !race

// The race detector has pools forget at random what they are given.

package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
)

// A replay allocates little, and for 300 steps no more than for one: futures, the submission's flight, free lists.
func TestReplayAllocations(t *testing.T) {
	d := open(t)
	allocations := func(steps int) float64 {
		b := batch.New(d)
		weight, err := d.Upload(ctx, make([]float32, 64))
		require.NoError(t, err)
		w := b.Import(weight)
		first := b.Vary(b.Scale(b.Upload(make([]float32, 64)), 1))
		x := first
		for range steps - 1 {
			x = b.Softmax(b.Add(x, w)) // not to be fused into one
		}
		b.Read(x)
		p, err := b.Compile(ctx)
		require.NoError(t, err)
		defer p.Close()
		factor := float32(0)
		return testing.AllocsPerRun(50, func() {
			factor++
			require.NoError(t, p.SetScalar(first, 0, factor))
			require.NoError(t, p.Run(ctx))
		})
	}
	one, many := allocations(1), allocations(300)
	require.LessOrEqual(t, one, 28.0)
	require.LessOrEqual(t, many, one+4)
	t.Logf("%v allocations per run of a step, %v per run of 300 or more", one, many)
}
