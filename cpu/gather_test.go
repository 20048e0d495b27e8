package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/testseed"
)

// Updates that are sorted in several pieces give what they give in one: sums of all, and the last of each row.
func TestManyUpdates(t *testing.T) {
	d, err := cpu.Open(t.Context())
	require.NoError(t, err)
	defer d.Close()
	rng := testseed.Rand(t)
	for _, c := range []struct{ rows, width, updates int }{{3, 1, 200_000}, {1, 3, 140_001}, {5, 9, 131_072}, {20_000, 2, 400_003}, {4, 1, 65_537}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			ids, updates, x := make([]int32, c.updates), make([]float32, c.updates*c.width), make([]float32, c.rows*c.width)
			sums, last := make([]float64, len(x)), make([]float32, len(x))
			size := make([]float64, len(x)) // of what is added
			for i := range x {
				x[i] = rng.Float32()
				sums[i], last[i], size[i] = float64(x[i]), x[i], float64(x[i])
			}
			for j := range ids {
				ids[j] = int32(rng.IntN(c.rows+2)) - 1 // also such as are outside
				for k := range c.width {
					u := 2*rng.Float32() - 1
					updates[j*c.width+k] = u
					if id := int(ids[j]); 0 <= id && id < c.rows {
						sums[id*c.width+k] += float64(u)
						size[id*c.width+k] += math.Abs(float64(u))
						last[id*c.width+k] = u
					}
				}
			}
			b := batch.New(d)
			at, by := b.Upload(ids), b.Upload(updates, c.updates, c.width)
			added := b.Read(b.ScatterAdd(b.Upload(x, c.rows, c.width), at, by))
			put := b.Read(b.Scatter(b.Upload(x, c.rows, c.width), at, by))
			require.NoError(t, b.Start().Await(t.Context()))
			require.Equal(t, last, put.Float32s())
			for i, y := range added.Float32s() {
				require.InDelta(t, sums[i], y, 1e-5*size[i], "element %d", i)
			}
		})
	}
}
