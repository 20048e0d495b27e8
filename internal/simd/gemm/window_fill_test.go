//go:build !js

package gemm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Some channels at a time are as good as all of them.
func TestWindowsFill(t *testing.T) {
	inOneThread(t)
	r := random(t)
	tiers(t, func(t *testing.T) {
		for range 6 {
			channels, n := 1+r.IntN(90), 1+r.IntN(80)
			w := Windows{M: 1 + r.IntN(300), Taps: 1 + r.IntN(9), Together: 1 + r.IntN(channels), Width: 1 + r.IntN(70), LDC: n}
			w.Step = w.Width + r.IntN(3)
			w.AM = channels * w.Taps
			size := 20 + ceilDiv(n, w.Width)*w.Step
			for p := range w.AM {
				at := r.IntN(20)
				if p >= w.Taps {
					at = int(w.Offsets[p-w.Taps]) + size
				}
				w.Offsets = append(w.Offsets, int32(at))
			}
			x, a, some := small(r, channels*size), small(r, w.M*w.AM), make([]float32, w.Together*size)
			w.Plan(1)
			packed := make([]float32, w.Packed())
			for b := range w.Blocks() {
				w.Pack(packed, a, b)
			}
			want, got := make([]float32, w.M*n), make([]float32, w.M*n)
			w.Multiply(want, packed, x, n, 0, w.Down(), nil, nil)
			w.Multiply(got, packed, some, n, 0, w.Down(), nil, func(channel, count int) {
				copy(some[:count*size], x[channel*size:])
			})
			require.Equal(t, want, got, "%d channels of %d taps, %d together", channels, w.Taps, w.Together)
		}
	})
}
