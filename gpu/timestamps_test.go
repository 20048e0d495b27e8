package gpu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/program"
)

// Steps of a program are measured on request, whatever the device was opened with.
func TestTimesOfSteps(t *testing.T) {
	d := open(t)
	if !d.Info().has(webgpu.FeatureTimestamps) {
		t.Fatal("the software adapter has timestamps")
	}
	p := chain(t, affine(t, d), 100_000, 4)
	x, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	defer x.Close()
	times := make([]time.Duration, len(p.Steps))
	for range 3 {
		io := &program.IO{Host: []any{make([]float32, 100_000)}, Read: []any{make([]float32, 100_000)}, Times: times}
		require.NoError(t, x.Start(io).Await(ctx))
	}
	total := time.Duration(0)
	for _, took := range times {
		require.GreaterOrEqual(t, took, time.Duration(0))
		total += took
	}
	require.Positive(t, total)
	io := &program.IO{Host: []any{make([]float32, 100_000)}, Read: []any{make([]float32, 100_000)}, Times: times[1:]}
	require.ErrorIs(t, x.Start(io).Await(ctx), compute.ErrArgument)
}
