package analyze_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/analyze"
)

// Without one of its barriers, waits or commits, a right kernel is wrong. The analyser says so without running it.
func TestWithoutBarriers(t *testing.T) {
	mutants, caught := 0, 0
	for _, m := range rightKernels(t) {
		for i := range m.Funcs[0].Body {
			in := &m.Funcs[0].Body[i]
			switch in.Op {
			case "bar.sync", "barrier.sync", "bar.warp.sync", "cp.async.wait_group", "cp.async.wait_all", "cp.async.commit_group":
			default:
				continue
			}
			mutants++
			c := m.Clone()
			c.Funcs[0].Body = slices.Delete(c.Funcs[0].Body, i, i+1)
			r, err := analyze.Module(c, analyze.Options{BugsOnly: true})
			require.NoError(t, err)
			if len(r.Findings) > 0 {
				caught++
				continue
			}
			t.Logf("%s without %s at %s: nothing found", m.Funcs[0].Name, m.Funcs[0].InstrString(in), in.Pos)
		}
	}
	t.Logf("%d of %d mutants found", caught, mutants)
	require.GreaterOrEqual(t, 100*caught, 90*mutants)
}
