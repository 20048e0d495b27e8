package kernels

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// What caches do not hold is stored around them where it begins at a line: bits are the same, and nothing is written beside.
func TestHalfStreams(t *testing.T) {
	const n = 1<<19 + 77
	r := random(t)
	x := make([]uint16, n+9)
	for i := range x {
		x[i] = uint16(r.Uint32()) &^ 0x4000 // no NaN, which is not equal
	}
	onTiers(t, func(t *testing.T) {
		if active < AVX2 { // has one loop for all lengths
			return
		}
		for _, h := range halves {
			for _, at := range []int{0, 3} {
				y, want := make([]float32, n+9), make([]float32, n+9)
				h.widen(y[at:][:n], x[:n])
				h.portable(want[at:][:n], x[:n])
				require.True(t, slices.Equal(want, y), "%s: widened from %d on", h.name, at)
				short, wanted := make([]uint16, n+9), make([]uint16, n+9)
				h.narrow(short[at:][:n], y[at:])
				copy(wanted[at:], x[:n])
				require.True(t, slices.Equal(wanted, short), "%s: narrowed from %d on", h.name, at)
			}
		}
	})
}
