package benchmarks

import (
	"math"
	"slices"
	"time"
)

// Confidence is that of a result's interval: so often it has the true median in it, if runs are independent.
const Confidence = 0.95

// sum sums up the times of runs.
func (r *Result) sum(times []time.Duration) {
	r.Runs, r.Times, r.Median = len(times), times, median(times)
	r.Quartiles = [2]float64{quantile(times, 0.25), quantile(times, 0.75)}
	r.Interval = interval(times)
}

// interval is the narrowest symmetric pair of order statistics that has the median between it with at least Confidence (Conover,
// "Practical Nonparametric Statistics", 3.2), without any assumption on how times are distributed. Fewer than 6 times have none; it
// is then all of them.
func interval(times []time.Duration) [2]float64 {
	sorted := slices.Sorted(slices.Values(times))
	n := len(sorted)
	if n == 0 {
		return [2]float64{}
	}
	k, outside := 0, math.Pow(0.5, float64(n)) // of fewer than k+1 of n times being below the median
	term := outside
	for k+1 < (n+1)/2 {
		term *= float64(n-k) / float64(k+1)
		if 2*(outside+term) > 1-Confidence {
			break
		}
		outside += term
		k++
	}
	return [2]float64{float64(sorted[k]), float64(sorted[n-1-k])}
}

// quantile interpolates between the two nearest of the times.
func quantile(times []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	at := q * float64(len(sorted)-1)
	i := int(at)
	low, high := float64(sorted[i]), float64(sorted[min(i+1, len(sorted)-1)])
	return low + (high-low)*(at-float64(i))
}

// median is at least 1 ns, so that it can be divided by.
func median(times []time.Duration) time.Duration { return max(1, time.Duration(quantile(times, 0.5))) }

// Short rounds to three or four digits.
func Short(d time.Duration) time.Duration {
	for unit := time.Second; unit > 1; unit /= 10 {
		if d >= unit {
			return d.Round(unit / 1000)
		}
	}
	return d
}
