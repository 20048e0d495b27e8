package cudacorpus

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// all tells that make proofs asks for everything.
func all() bool { return os.Getenv("WAVELANE_PROOFS") == "all" }

// architectures are those to compile for: two of them, or all that NVRTC knows and somebody has.
func architectures() []string {
	if all() {
		return []string{"compute_60", "compute_75", "compute_80", "compute_90", "compute_120"}
	}
	return []string{"compute_75", "compute_90"}
}

// TestCUDA: what NVRTC makes of CUDA C computes what it has to, with every check on several schedules, and the analyser has nothing to
// object to.
func TestCUDA(t *testing.T) {
	units := compile(t, "testdata/nvrtc.py", "testdata/cuda", sources(t, "testdata/cuda", ".cu", func(string) bool { return true }), architectures())
	rng := ptxtest.Random(t)
	for i := range cudaRuns {
		r := &cudaRuns[i]
		n := 0
		for _, u := range units {
			if u.file != r.file || !r.covers(u.arch) {
				continue
			}
			n++
			name := r.kernel + " for " + u.arch
			seed := 1 + rng.Uint64N(1<<62)
			for _, cfg := range []sim.Config{{}, {Checks: sim.AllChecks}, {Checks: sim.AllChecks, Seed: seed}} {
				if err := r.execute(u.module, cfg, rng); err != nil {
					t.Errorf("%s, checks %d, seed %d: %v", name, cfg.Checks, cfg.Seed, err)
				}
			}
			for _, known := range []bool{false, true} {
				report := r.analysis(t, u.module, known)
				for _, f := range report.Findings {
					t.Errorf("%s, known %v: %s: %s: %s (%s)", name, known, f.Pos, f.Class, f.Message, f.Instr)
				}
			}
		}
		require.Positive(t, n, "%s was not compiled", r.kernel)
	}
}

