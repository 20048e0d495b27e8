package analyze_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/kernels"
)

// The kernels of package kernels are right: each is executed against float64 there. None may have a bug here.
func TestKernels(t *testing.T) {
	for _, k := range kernels.All() {
		t.Run(k.Name, func(t *testing.T) {
			m, err := k.Module()
			require.NoError(t, err)
			begin := time.Now()
			r, err := analyze.Module(m, analyze.Options{})
			require.NoError(t, err)
			t.Logf("%v", time.Since(begin))
			require.NoError(t, r.WriteText(t.Output()))
			require.Zero(t, r.Count(analyze.Bug))
			require.True(t, r.Kernels[0].Walked)
		})
	}
}
