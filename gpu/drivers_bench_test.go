//go:build !js

package gpu

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/wgpu"
	"github.com/wavelane/wavelane/internal/monotime"
)

// BenchmarkLibraries runs plans in turns by the library that is linked and by the one that is loaded. It reports the least time of each,
// and how many times as long the one that is loaded takes, by the least and by the median time. What recording a dispatch costs is
// webgpu.BenchmarkRecord.
func BenchmarkLibraries(b *testing.B) {
	vector := func(n, steps int) func(b *batch.Batch) {
		return func(b *batch.Batch) {
			x := b.Upload(make([]float32, n))
			for i := range steps {
				if i%2 == 0 {
					x = b.Scale(x, 0.99)
				} else {
					x = b.ReLU(x)
				}
			}
			b.Read(x)
		}
	}
	for _, c := range []struct {
		name   string
		record func(b *batch.Batch)
	}{
		{"round_trip", vector(1024, 1)},
		{"chain16", vector(1<<20, 16)},
		{"matmul512", func(b *batch.Batch) {
			b.Read(b.MatMul(b.Upload(make([]float32, 512*512), 512, 512), b.Upload(make([]float32, 512*512), 512, 512)))
		}},
	} {
		b.Run("op="+c.name, func(b *testing.B) {
			var plans []*batch.Plan
			for _, l := range []string{wgpu.LinkedName, filepath.Join("..", "out", "wgpu", "29", wgpu.FileName)} {
				r := batch.New(open(b, WithLibrary(l), WithAutotune(compute.TuneOff)), batch.WithoutFusion())
				c.record(r)
				p, err := r.Compile(ctx)
				require.NoError(b, err)
				defer p.Close()
				require.NoError(b, p.Run(ctx))
				plans = append(plans, p)
			}
			var times [2][]float64
			for b.Loop() {
				for i, p := range plans {
					start := monotime.Now()
					require.NoError(b, p.Run(ctx))
					times[i] = append(times[i], float64(monotime.Since(start)))
				}
			}
			for i := range times {
				slices.Sort(times[i])
			}
			median := len(times[0]) / 2
			b.ReportMetric(times[0][0], "linked-ns")
			b.ReportMetric(times[1][0], "loaded-ns")
			b.ReportMetric(times[1][0]/times[0][0], "least-ratio")
			b.ReportMetric(times[1][median]/times[0][median], "median-ratio")
		})
	}
}
