//go:build !js

package benchmarks

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"
)

// TestInterval counts how often intervals of random times have the true median in them.
func TestInterval(t *testing.T) {
	r := testseed.Rand(t)
	for _, n := range []int{6, 7, 10, 25, 100} {
		const trials = 4000
		inside := 0
		for range trials {
			times := make([]time.Duration, n)
			for i := range times {
				times[i] = time.Duration(1e6 * r.ExpFloat64()) // median 1e6·ln 2
			}
			if c := interval(times); c[0] <= 693147 && 693147 <= c[1] {
				inside++
			}
		}
		// Five standard deviations below.
		require.GreaterOrEqual(t, float64(inside)/trials, Confidence-5*0.0035, "%d times", n)
	}
	ten := []time.Duration{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	require.Equal(t, [2]float64{2, 9}, interval(ten)) // 97.9 %; 3 to 8 would be 89.1 %
	require.Equal(t, [2]float64{6, 10}, interval(ten[:5]), "five have no interval of this confidence")
	require.Zero(t, interval(nil))
}

func TestCompare(t *testing.T) {
	of := func(name string, low, median, high float64) Result {
		return Result{Benchmark: name, Way: "w", Kind: "cpu", Median: time.Duration(median), Interval: [2]float64{low, high}}
	}
	failed := Result{Benchmark: "broken", Kind: "cpu", Error: "no"}
	before := []Result{of("same", 90, 100, 110), of("slower", 90, 100, 110), of("faster", 90, 100, 110), of("spread", 90, 100, 150),
		of("small", 99, 100, 101), of("gone", 1, 1, 1), failed, {Benchmark: "lost", Kind: "cpu", Way: "", Median: 5}}
	now := []Result{of("same", 91, 101, 111), of("slower", 120, 130, 140), of("faster", 60, 70, 80), of("spread", 140, 160, 180),
		of("small", 104, 105, 106), of("new", 1, 1, 1), failed, {Benchmark: "lost", Kind: "cpu", Error: "out of memory"}}
	want := map[string]Verdict{"same": Same, "slower": Slower, "faster": Faster, "spread": Same, "small": Same, "new": New, "gone": Gone,
		"broken": Same, "lost": Failed}
	list := Compare(before, now, 0.1)
	require.Len(t, list, len(want))
	for _, c := range list {
		r := c.Now
		if r == nil {
			r = c.Before
		}
		require.Equal(t, want[r.Benchmark], c.Verdict, r.Benchmark)
	}
	for _, c := range Compare(before, now, 0.01) {
		if c.Now != nil && c.Now.Benchmark == "small" {
			require.Equal(t, Slower, c.Verdict)
			require.InDelta(t, 1.05, c.Ratio, 1e-9)
		}
	}
}

func TestPool(t *testing.T) {
	round := func(a, b time.Duration) []Result {
		one, two := Result{Benchmark: "x", Way: "1", Unit: "GB/s"}, Result{Benchmark: "x", Way: "2", Unit: "GB/s"}
		one.sum([]time.Duration{a})
		two.sum([]time.Duration{b})
		one.Rate, two.Rate = 8/one.Median.Seconds(), 8/two.Median.Seconds()
		return []Result{one, two}
	}
	all := Pool(round(1, 10), round(3, 30), round(2, 20))
	require.Len(t, all, 2)
	require.Equal(t, []time.Duration{1, 3, 2}, all[0].Times)
	require.Equal(t, time.Duration(2), all[0].Median)
	require.Equal(t, 3, all[1].Runs)
	require.InDelta(t, 10, all[1].Relative, 1e-9)
	require.InDelta(t, 8/20e-9, all[1].Rate, 1)
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	runs, err := ReadHistory(path)
	require.NoError(t, err)
	require.Empty(t, runs)
	r := Result{Benchmark: "x", Way: "<one> & two", Kind: "cpu", Device: "a", Unit: "GB/s", Rate: 3}
	for i := range 3 {
		r.sum([]time.Duration{time.Duration(1000 + i)})
		run := Run{Time: time.Unix(int64(i), 0).UTC(), Version: "v", Host: "h", Results: []Result{r, {Error: "no"}}}
		require.NoError(t, AppendHistory(path, run))
		require.NotNil(t, r.Times, "the caller's results are changed")
	}
	runs, err = ReadHistory(path)
	require.NoError(t, err)
	require.Len(t, runs, 3)
	require.Equal(t, time.Duration(1002), runs[2].Results[0].Median)
	require.Nil(t, runs[2].Results[0].Times)

	for _, runs := range [][]Run{nil, runs[:1], runs} {
		var b strings.Builder
		require.NoError(t, WritePage(&b, runs))
		svgs := strings.Count(b.String(), "<svg")
		require.Equal(t, min(1, len(runs)), svgs)
		require.Equal(t, len(runs), strings.Count(b.String(), "<circle"))
		require.NotContains(t, b.String(), "<one>")
		if svgs > 0 {
			require.NoError(t, wellFormed(b.String()[strings.Index(b.String(), "<svg"):strings.Index(b.String(), "</svg>")+6]))
		}
		require.NotContains(t, b.String(), "NaN")
	}

	require.NoError(t, os.WriteFile(path, []byte("{}\n{\"time\":3}\n"), 0o600))
	_, err = ReadHistory(path)
	require.ErrorContains(t, err, path+":2:")
	_, err = ReadHistory(t.TempDir())
	require.Error(t, err)
}

func wellFormed(text string) error {
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
