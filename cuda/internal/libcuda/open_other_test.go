//go:build !(((linux && !android) || windows) && (amd64 || arm64))

package libcuda

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

func TestOpenElsewhere(t *testing.T) {
	for _, path := range []string{"", "libcuda.so.1"} {
		d, err := Open(path)
		require.Nil(t, d)
		require.ErrorIs(t, err, compute.ErrUnavailable)
		require.ErrorContains(t, err, runtime.GOOS)
	}
}
