package shadow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
)

// TestValues compares bits with a list of booleans.
func TestValues(t *testing.T) {
	rng := ptxtest.Random(t)
	const size = 300
	var v Values
	v.Resize(size)
	want := make([]bool, v.Bytes())
	for range 2000 {
		n := 1 + rng.IntN(32)
		off := rng.IntN(size - n)
		switch rng.IntN(3) {
		case 0:
			undef := rng.Uint32() & (1<<n - 1)
			v.Define(off, n, undef)
			for i := range n {
				want[off+i] = undef>>i&1 == 0
			}
		case 1:
			n, defined := rng.IntN(size-off), rng.IntN(2) == 0
			v.Mark(off, n, defined)
			for i := range n {
				want[off+i] = defined
			}
		default:
			got := v.Undefined(off, n)
			for i := range n {
				require.Equal(t, want[off+i], got>>i&1 == 0, "byte %d", off+i)
			}
		}
	}
}
