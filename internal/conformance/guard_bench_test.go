package conformance

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
)

func BenchmarkGuardsCPU(b *testing.B) {
	_, d := openCPU(b)
	guardCost(b, d)
}

// guardCost reports what guards add to a pipeline of eight layers of 512 by 512: the time of a run with them over that of one
// without, each the median of alternating runs.
func guardCost(b *testing.B, dev batch.Device) {
	const n, layers = 512, 8
	weights, err := upload(dev, filled(n*n, 1.0/n), n, n)
	require.NoError(b, err)
	defer weights.Close()
	for name, options := range map[string][]batch.Option{
		"NaN":      {batch.WithGuard(batch.NaN|batch.Inf, batch.Stop)},
		"overflow": {batch.WithGuard(batch.NaN|batch.Overflow, batch.Stop)},
	} {
		b.Run(name, func(b *testing.B) {
			var plans []*batch.Plan
			for _, with := range [][]batch.Option{nil, options} {
				r := batch.New(dev, with...)
				x := r.Upload(filled(n*n, 0.5), n, n)
				for range layers {
					x = r.ReLU(r.MatMul(x, r.Import(weights)))
				}
				r.Read(x)
				plan, err := r.Compile(context.Background())
				require.NoError(b, err)
				defer plan.Close()
				plans = append(plans, plan)
			}
			var took [2][]float64
			run := func(i int) {
				begin := time.Now()
				require.NoError(b, plans[i].Start().Await(context.Background()))
				took[i] = append(took[i], time.Since(begin).Seconds())
			}
			for range b.N {
				run(0)
				run(1)
			}
			for i := range took {
				slices.Sort(took[i])
			}
			b.ReportMetric(took[0][len(took[0])/2]*1e3, "plain-ms")
			b.ReportMetric(took[1][len(took[1])/2]*1e3, "guarded-ms")
			b.ReportMetric(took[1][len(took[1])/2]/took[0][len(took[0])/2], "guarded/plain")
		})
	}
}
