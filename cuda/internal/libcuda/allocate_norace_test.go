//go:build linux && !android && (amd64 || arm64) && !race

package libcuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// TestAllocateNothing counts what the hot calls allocate. The race detector lets pools forget, so that this is not for it.
func TestAllocateNothing(t *testing.T) {
	s := openStub(t)
	s.trace(0)
	for name, f := range hot(s.Driver) {
		n := testing.AllocsPerRun(1000, func() {
			if f() != driver.Success {
				t.Error(name)
			}
		})
		require.Zero(t, n, name)
	}
}
