//go:build !js

package benchmarks

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/internal/testseed"
)

// devices opens a device of each kind that this machine has, software adapters included.
func devices(tb testing.TB) []*wavelane.Device {
	tb.Setenv("WAVELANE_DEVICE", "")
	var list []*wavelane.Device
	for _, kind := range []string{"cpu", "gpu", "cuda"} {
		dev, err := wavelane.Open(tb.Context(), wavelane.WithDevice(kind), wavelane.WithSoftware())
		if errors.Is(err, wavelane.ErrUnavailable) {
			tb.Logf("%v", err)
			continue
		}
		require.NoError(tb, err)
		tb.Cleanup(func() { dev.Close() })
		list = append(list, dev)
	}
	tb.Setenv("XDG_CACHE_HOME", tb.TempDir()) // costs are measured here
	dev, err := wavelane.Open(tb.Context(), wavelane.WithSoftware())
	require.NoError(tb, err)
	tb.Cleanup(func() { dev.Close() })
	return append(list, dev)
}

// BenchmarkAll measures every way of every benchmark; names are for benchstat: -col /way compares ways, -col /device devices.
func BenchmarkAll(b *testing.B) {
	for _, dev := range devices(b) {
		for _, bench := range All() {
			if bench.For(dev.Info()) {
				b.Run(bench.Name+"/device="+dev.Info().Kind, func(b *testing.B) { each(b, &bench, dev) })
			}
		}
	}
}

func each(b *testing.B, bench *Benchmark, dev *wavelane.Device) {
	ways, closing, err := bench.Open(b.Context(), dev)
	require.NoError(b, err)
	defer closing()
	for i := range ways {
		w := &ways[i]
		b.Run("way="+strings.ReplaceAll(w.Name, " ", "-"), func(b *testing.B) {
			require.NoError(b, w.Run(b.Context())) // warm up
			var total time.Duration
			for b.Loop() {
				took, err := w.time(b.Context())
				require.NoError(b, err)
				total += took
			}
			// What comes before a run is not part of it.
			b.ReportMetric(float64(total.Nanoseconds())/float64(b.N), "ns/op")
			if bench.Unit != "" {
				b.ReportMetric(w.Work*float64(b.N)/total.Seconds(), bench.Unit)
			}
		})
	}
}

// TestAll makes sure that each benchmark works: on GPUs a third of them, others by each seed, or all in make proofs.
func TestAll(t *testing.T) {
	names := map[string]bool{}
	for _, b := range All() {
		require.False(t, names[b.Name], "two benchmarks named %s", b.Name)
		names[b.Name] = true
		require.NotEmpty(t, b.Doc)
	}
	full, most := cube, longest
	cube, longest, reduced = 128, 10, 64
	t.Cleanup(func() { cube, longest, reduced = full, most, 1 })
	r := testseed.Rand(t)
	for _, dev := range devices(t) {
		for _, b := range All() {
			if !b.For(dev.Info()) {
				continue
			}
			// Where devices are software, each takes seconds.
			if dev.Info().Kind != "cpu" && !testseed.Whole() && r.IntN(3) > 0 {
				continue
			}
			t.Run(dev.Info().Kind+"/"+b.Name, func(t *testing.T) {
				ticks := 0
				results, err := b.Measure(t.Context(), dev, Options{Runs: 1, Budget: time.Minute, Tick: func() { ticks++ }})
				require.NoError(t, err)
				require.Equal(t, 2, ticks, "one round to warm up, one measured")
				require.Greater(t, len(results), 1, "nothing to compare with")
				require.Equal(t, 1.0, results[0].Relative)
				for _, r := range results {
					require.Equal(t, 1, r.Runs)
					require.Positive(t, r.Median)
					require.Equal(t, b.Unit == "", r.Rate == 0)
					require.Empty(t, r.Error)
				}
			})
		}
	}
}
