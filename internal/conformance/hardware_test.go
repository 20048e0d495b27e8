//go:build hardware && !js

package conformance

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/program"
)

// Files with the tag hardware need an NVIDIA GPU and fail without one. With WAVELANE_TEST_SOFTWARE=1 the software GPU and the
// software adapter take its place, so that the tests themselves are tested on machines without a GPU.
var onSoftware = os.Getenv("WAVELANE_TEST_SOFTWARE") == "1"

var cudaSoftware = onSoftware

// TestHardwareCUDA is the whole suite on the GPU, the large cases included.
func TestHardwareCUDA(t *testing.T) {
	name, d := openCUDA(t)
	require.Equal(t, onSoftware, d.Info().Software)
	Run(t, name, program.ExecutorOf(d))
}
