package cuda

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/testseed"
)

func TestCopyHost(t *testing.T) {
	rng := testseed.Rand(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{1, 6, 64} {
		runtime.GOMAXPROCS(processors)
		for _, n := range []int{0, 1, copyPart, 2*copyPart - 1, 2 * copyPart, 3*copyPart + 7, 9*copyPart + 1} {
			src, dst := make([]byte, n+5), make([]byte, n+3)
			for i := range src {
				src[i] = byte(rng.Uint32())
			}
			copyHost(dst[:n], src)
			require.True(t, bytes.Equal(src[:n], dst[:n]), "%d bytes, %d processors", n, processors)
			require.Equal(t, []byte{0, 0, 0}, dst[n:])
			clear(dst)
			copyHost(dst, src[:n])
			require.True(t, bytes.Equal(src[:n], dst[:n]), "%d bytes, %d processors", n, processors)
		}
	}
}
