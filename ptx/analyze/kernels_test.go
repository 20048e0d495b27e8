package analyze_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/ir"
)

// rightKernels are modules of one kernel each that were executed against float64 on many schedules: tiles in shared memory, shuffles,
// atomics, a sum whose last block finishes it, a scan that looks back, matrices whose tiles arrive in the background.
func rightKernels(t *testing.T) (all []*ir.Module) {
	t.Helper()
	files, err := filepath.Glob("testdata/kernels/*.ptx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		_, m := load(t, filepath.Join("kernels", filepath.Base(f)))
		all = append(all, m)
	}
	return all
}

// What is right has no bug. (That the kernels of the catalogue have none is a test of internal/ptxkernels.)
func TestKernels(t *testing.T) {
	for _, m := range rightKernels(t) {
		t.Run(m.Funcs[0].Name, func(t *testing.T) {
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
