package conformance

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The variants that need extensions of WGSL, each forced. Every adapter that this suite knows of offers subgroups and
// integer dot products, and f16 but for browsers' software adapter. Integer dot products are the default where they are: the other way is
// forced.
func TestWebGPUExtensions(t *testing.T) {
	classes := webGPUVariants(t, extends)
	want := map[string]int{"matmul": 1, "quant": 1, "q8": 1, "reduce": 1, "rows": 1}
	_, d := openSoftware(t, "")
	require.Contains(t, d.Info().Features, "subgroups")
	require.True(t, d.Info().Caps().IntegerDots)
	if runtime.GOOS != "js" || d.Info().Caps().F16 {
		want["f16"] = 1
	}
	require.Equal(t, want, classes)
}

// extends tells whether a variant, by class and name, is about an extension.
func extends(v [2]string) bool {
	return v[1] == "native" || v[0] == "q8" || strings.HasSuffix(v[1], "subgroups")
}
