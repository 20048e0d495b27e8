//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/internal/decoder"
)

// planned runs dist plan and returns what it predicts.
func planned(t *testing.T, args ...string) (p distPlan) {
	t.Helper()
	t.Setenv(dist.EngineVariable, dist.EngineNone)
	var out, errOut bytes.Buffer
	require.Zero(t, execute(t.Context(), append([]string{"dist", "plan", "--json"}, args...), &out, &errOut), errOut.String())
	require.NoError(t, json.Unmarshal(out.Bytes(), &p))
	return p
}

// TestDistPlan predicts from a table of two ranks, whose latency is 10 µs, with a bandwidth of 1 GB/s.
func TestDistPlan(t *testing.T) {
	folder := t.TempDir()
	report := distReport{Ranks: make([]distRank, 2)}
	for _, bytes := range []int{4, 1 << 10, 1 << 20} {
		report.Measured = append(report.Measured, distMeasurement{Collective: allReduceName, Bytes: bytes, Median: 10 + float64(bytes)/1e3},
			distMeasurement{Collective: "broadcast", Bytes: bytes, Median: 1})
	}
	check := filepath.Join(folder, "check.json")
	data, err := json.Marshal(report)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(check, data, 0o600))

	p := planned(t, "--check", check, "--compute", "10ms", "--gradients", "1048576", "--overlap", "0", "--ranks", "1,2,4,8",
		"--per-machine", "4", "--latency", "1ms", "--bandwidth", "1")
	require.InEpsilon(t, 1e9, p.Inside.Bandwidth, 0.05)
	require.Len(t, p.Rows, 4)
	require.Equal(t, distPlanRow{Ranks: 1, Compute: 10_000, Rate: 100}, p.Rows[0])
	require.InEpsilon(t, 1e6/(10_000+10+1048.576), p.Rows[1].Rate, 1e-3)
	require.InEpsilon(t, 1e6/(10_000+6*10+1.5*1048.576), p.Rows[2].Rate, 0.01)
	require.InEpsilon(t, 1e6/(10_000+6*10+1.5*1048.576+1000+1048.576), p.Rows[3].Rate, 0.01)

	model := filepath.Join(folder, "random.gguf")
	f, err := os.Create(model)
	require.NoError(t, err)
	require.NoError(t, decoder.Random{Architecture: "llama", Tokenizer: "llama", Blocks: 3, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64,
		Seed: 1}.Write(f))
	require.NoError(t, f.Close())
	p = planned(t, "--check", check, "--model", model, "--device", "cpu", "-n", "8", "--ranks", "1,2,3,4")
	require.Len(t, p.Rows, 4)
	require.Zero(t, p.Rows[0].Collectives)
	require.Contains(t, p.Rows[2].Impossible, "3 members")
	for i, ranks := range map[int]float64{1: 2, 3: 4} {
		r := p.Rows[i]
		require.Equal(t, 2*3+2, r.Collectives, "two a block, and of embedding and logits")
		require.Positive(t, r.Compute)
		require.InEpsilon(t, 1e6/(r.Compute+r.Traffic), r.Rate, 1e-6)
		require.Less(t, float64(r.Weights), float64(p.Rows[0].Weights)/ranks*1.3)
	}
	require.InDelta(t, 7*(10+0.256)+10+1.28, p.Rows[1].Traffic, 0.5)

	var out, errOut bytes.Buffer
	require.Zero(t, execute(t.Context(), []string{"dist", "plan", "--check", check, "--model", model, "--device", "cpu", "-n", "2", "--ranks", "2,3"}, &out, &errOut))
	require.Contains(t, out.String(), "3 ranks: llm: decoder: 4 heads")
	for _, wrong := range [][]string{{}, {"--compute", "1s"}, {"--model", model, "--compute", "1s"}, {"--model", model},
		{"--model", model, "--check", check, "--ranks", "0"}, {"--model", model, "--check", check, "-n", "100"}} {
		require.Equal(t, 2, execute(t.Context(), append([]string{"dist", "plan"}, wrong...), &out, &errOut), "%v", wrong)
	}
}

// TestDistPlanUnderLauncher measures beside what it predicts.
func TestDistPlanUnderLauncher(t *testing.T) {
	model := filepath.Join(t.TempDir(), "random.gguf")
	f, err := os.Create(model)
	require.NoError(t, err)
	require.NoError(t, decoder.Random{Architecture: "llama", Tokenizer: "llama", Blocks: 1, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64,
		Seed: 1}.Write(f))
	require.NoError(t, f.Close())
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-np", "2", exe,
		"dist", "plan", "--json", "--model", model, "--device", "cpu", "-n", "4", "--ranks", "1,2,4", "--time", "1ms")
	cmd.Env = append(os.Environ(), "WAVELANE_TEST_COMMAND=1", "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "scripts/setup test installs the launcher\n%s", out)
	var p distPlan
	require.NoError(t, json.Unmarshal(out, &p))
	require.Len(t, p.Rows, 3)
	require.Positive(t, p.Rows[1].Measured)
	require.Positive(t, p.Rows[2].Rate)
	require.Zero(t, p.Rows[2].Measured)
}
