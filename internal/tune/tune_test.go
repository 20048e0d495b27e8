//go:build !js

package tune

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func newTuner(t *testing.T, dir string) *Tuner {
	return New(Config{Dir: dir, Fingerprint: "machine", Log: slog.New(slog.DiscardHandler)})
}

// step leaves one choice, between variants that take so long; 0 is impossible.
func step(took ...time.Duration) (Step, []string) {
	candidates := []string{"a", "b", "c", "d"}[:len(took)]
	ask := func(choose Chooser) int { return choose("class", "n1000", candidates) }
	return Step{
		Lower: func(choose Chooser) error { ask(choose); return nil },
		Prepare: func(_ context.Context, q Question, pick func(i int) Chooser) (*Contest, error) {
			return &Contest{Close: func() {}, Variant: func(_ context.Context, i int) (*Variant, error) {
				took := took[ask(pick(i))]
				if took == 0 {
					return nil, errors.New("impossible")
				}
				return &Variant{Close: func() {}, Run: func(context.Context) (time.Duration, error) { return took, nil }}, nil
			}}, nil
		},
	}, candidates
}

func TestMeasure(t *testing.T) {
	for name, c := range map[string]struct {
		took   []time.Duration
		winner string
	}{
		"the fastest":                    {[]time.Duration{100, 90, 80, 500}, "c"},
		"a little faster is not enough":  {[]time.Duration{100, 98}, "a"},
		"the default may be impossible":  {[]time.Duration{0, 200, 100}, "c"},
		"a slow default is out at once":  {[]time.Duration{1000, 100}, "b"},
		"others may be impossible":       {[]time.Duration{100, 0, 0}, "a"},
		"slow in the warm-up, but there": {[]time.Duration{200, 190}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, candidates := step(c.took...)
			tuner := newTuner(t, dir)
			list, err := tuner.Measure(t.Context(), s, false)
			require.NoError(t, err)
			require.Equal(t, []program.Measurement{{Class: "class", Problem: "n1024", Winner: c.winner, Variants: candidates, Median: c.took}}, list)
			list, err = tuner.Measure(t.Context(), s, false)
			require.NoError(t, err)
			require.Empty(t, list, "it is known")

			again := newTuner(t, dir).Compilation()
			require.Equal(t, c.winner, candidates[again.Choose("class", "n1001", candidates)])
			require.Empty(t, again.t.Choices(), "the compilation has not succeeded yet")
			again.Count()
			require.Equal(t, []compute.Choice{{Class: "class", Problem: "n1024", Variant: c.winner, Why: "measured", Uses: 1}}, again.t.Choices())
		})
	}
	s, _ := step(0, 0)
	_, err := newTuner(t, t.TempDir()).Measure(t.Context(), s, false)
	require.ErrorIs(t, err, compute.ErrUnsupported)
}

// Who asks what a compilation would decide changes nothing, and gets the default where a forced variant does not exist.
func TestChoose(t *testing.T) {
	u := New(Config{Forced: map[string]string{"sum": "tree", "dot": "none"}, Log: slog.New(slog.DiscardHandler)})
	candidates := []string{"row", "tree"}
	require.Equal(t, 1, u.Choose("sum", "10", candidates))
	require.Equal(t, 0, u.Choose("dot", "10", candidates))
	require.Equal(t, 0, u.Choose("max", "10", candidates))
	require.Empty(t, u.Choices())
}

func TestRoundSizes(t *testing.T) {
	require.Equal(t, "1x4096x4096", roundSizes("1x4096x4095"))
	require.Equal(t, "8x16x16", roundSizes("8x9x23"))
	require.Equal(t, "32x1024", roundSizes("24x1535"))
	require.Equal(t, "2048", roundSizes("1536"))
	require.Equal(t, "1*512x512x64--44-//0", roundSizes("1*500x512x64--44-//0"))
}
