package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The variants that need extensions of WGSL, each forced. Browsers offer subgroups on every adapter that this suite knows of, and f16
// on some; the native library's compiler knows neither.
func TestWebGPUExtensions(t *testing.T) {
	classes := runVariants(t, func(v [2]string) bool { return v[1] == "native" || strings.HasSuffix(v[1], "subgroups") })
	want := map[string]int{"matmul": 1, "reduce": 1, "rows": 1}
	_, d := openSoftware(t, "")
	require.Contains(t, d.Info().Features, "subgroups")
	if d.Info().Caps().F16 {
		want["f16"] = 1
	}
	require.Equal(t, want, classes)
}
