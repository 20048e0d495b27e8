package cost

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

// TestFit finds links again by what they take, and predicts other numbers of processes and sizes.
func TestFit(t *testing.T) {
	for _, link := range []Link{{2 * time.Microsecond, 5e9}, {30 * time.Microsecond, 1e8}, {300 * time.Nanosecond, 4e11}} {
		for _, processes := range []int{2, 3, 4, 64} {
			var samples []Sample
			for bytes := 4; bytes <= 64<<20; bytes *= 8 {
				samples = append(samples, Sample{bytes, max(link.AllReduce(processes, bytes), 1)})
			}
			got, err := Fit(processes, samples)
			require.NoError(t, err)
			require.InEpsilon(t, link.Latency, got.Latency, 0.02, "%v on %d", link, processes)
			require.InEpsilon(t, link.Bandwidth, got.Bandwidth, 0.02, "%v on %d", link, processes)
			require.InEpsilon(t, link.AllReduce(16, 100<<10), got.AllReduce(16, 100<<10), 0.02)
		}
	}
	for _, samples := range [][]Sample{nil, {{4, 1}}, {{4, 1}, {4, 2}}, {{4, 1}, {0, 1}}, {{4, 0}, {8, 1}}} {
		_, err := Fit(2, samples)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	_, err := Fit(1, []Sample{{4, 1}, {8, 1}})
	require.ErrorIs(t, err, compute.ErrArgument)
}

// TestAllReduce computes what two algorithms take by hand.
func TestAllReduce(t *testing.T) {
	link := Link{10 * time.Microsecond, 1e9}
	require.Zero(t, link.AllReduce(1, 1000))
	require.Equal(t, 22*time.Microsecond, link.AllReduce(4, 1000), "two rounds of 10 and 1 µs")
	require.Equal(t, 33*time.Microsecond, link.AllReduce(5, 1000), "three rounds")
	require.Equal(t, 1560*time.Microsecond, link.AllReduce(4, 1e6), "six parts of 10 and 250 µs, not two of a millisecond")
	n := &Network{Inside: link, PerMachine: 4, Between: Link{20 * time.Microsecond, 1e8}}
	require.Equal(t, 22*time.Microsecond, n.AllReduce(4, 1000))
	require.Equal(t, 52*time.Microsecond, n.AllReduce(8, 1000), "and a round of 20 and 10 µs between two machines")
	require.Equal(t, 82*time.Microsecond, n.AllReduce(9, 1000), "two rounds between three")

	n.Measured = map[int][]Sample{2: {{4000, 40}, {1000, 10}}}
	for bytes, want := range map[int]time.Duration{4: 10, 1000: 10, 2000: 20, 4000: 40, 8000: 80} {
		require.Equal(t, want, n.AllReduce(2, bytes))
	}
	require.Equal(t, 22*time.Microsecond, n.AllReduce(4, 1000), "of which nothing was measured")
}

// TestStep predicts steps whose gradients travel while the backward pass goes on, wholly or in part.
func TestStep(t *testing.T) {
	n := &Network{Inside: Link{0, 1e9}}
	ms := func(x float64) time.Duration { return time.Duration(x * 1e6) }
	s := Step{Compute: ms(30), Gradients: 8e6, Bucket: 2e6, Overlap: 0.5}
	require.Equal(t, ms(30), n.Time(s, 1))
	require.Equal(t, ms(32), n.Time(s, 2), "6 ms are hidden by 15")
	s.Overlap = 0.1
	require.Equal(t, ms(35), n.Time(s, 2), "3 ms of them")
	s.Overlap, s.Bucket = 0.5, 0
	require.Equal(t, ms(38), n.Time(s, 2), "all gradients are the last bucket")
	s.Overlap, s.Bucket, s.Gradients = 0, 2e6, 7e6
	require.Equal(t, ms(37), n.Time(s, 2))
}
