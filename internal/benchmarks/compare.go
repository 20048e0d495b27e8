package benchmarks

import (
	"cmp"
	"fmt"
	"slices"
)

// Verdict is the outcome of a comparison with an earlier result.
type Verdict string

// Verdicts. A difference counts if it is beyond the threshold and the intervals of the medians have nothing in common.
const (
	Same   Verdict = "same"
	Faster Verdict = "faster"
	Slower Verdict = "slower"
	New    Verdict = "new"    // not measured before
	Gone   Verdict = "gone"   // not measured now
	Failed Verdict = "failed" // could be measured before, but not now
)

// Comparison is a result beside the earlier one of the same way, benchmark and device.
type Comparison struct {
	Before, Now *Result // nil for none
	Ratio       float64 // of the medians: 2 is twice the time of before
	Verdict     Verdict
}

// Compare puts results beside earlier ones, in the order of now, those that are gone at the end. The threshold is a part: 0.1 is a
// tenth more or less time.
func Compare(before, now []Result, threshold float64) []Comparison {
	old := map[string]*Result{}
	for i := range before {
		old[before[i].key()] = &before[i]
	}
	var list []Comparison
	for i := range now {
		r := &now[i]
		c := Comparison{Before: old[r.key()], Now: r}
		delete(old, r.key())
		c.judge(threshold)
		list = append(list, c)
	}
	var gone []Comparison
	for _, r := range old {
		gone = append(gone, Comparison{Before: r, Verdict: Gone})
	}
	slices.SortFunc(gone, func(a, b Comparison) int { return cmp.Compare(a.Before.key(), b.Before.key()) })
	return append(list, gone...)
}

// key says what a result is of. One that failed has no way.
func (r *Result) key() string {
	return fmt.Sprintf("%s %q %s %q", r.Kind, r.Device, r.Benchmark, r.Way)
}

func (c *Comparison) judge(threshold float64) {
	b, n := c.Before, c.Now
	switch {
	case n.Error != "":
		c.Verdict = Failed
		if b != nil && b.Error != "" {
			c.Verdict = Same
		}
		return
	case b == nil || b.Error != "":
		c.Verdict = New
		return
	}
	c.Ratio = float64(n.Median) / float64(b.Median)
	switch {
	case c.Ratio > 1+threshold && n.Interval[0] > b.Interval[1]:
		c.Verdict = Slower
	case c.Ratio < 1/(1+threshold) && n.Interval[1] < b.Interval[0]:
		c.Verdict = Faster
	default:
		c.Verdict = Same
	}
}

// Pool joins results of the same ways from several rounds into one each, in the order of their first.
func Pool(rounds ...[]Result) []Result {
	var all []Result
	at := map[string]int{}
	for _, round := range rounds {
		for _, r := range round {
			i, known := at[r.key()]
			if !known {
				at[r.key()] = len(all)
				all = append(all, r)
				continue
			}
			all[i].Times = append(slices.Clip(all[i].Times), r.Times...)
		}
	}
	first := map[string]*Result{} // of each benchmark and device
	for i := range all {
		r := &all[i]
		if r.Error != "" {
			continue
		}
		work := r.Rate * r.Median.Seconds()
		r.sum(r.Times)
		r.Rate = work / r.Median.Seconds()
		k := (&Result{Benchmark: r.Benchmark, Kind: r.Kind, Device: r.Device}).key()
		if first[k] == nil {
			first[k] = r
		}
		r.Relative = float64(r.Median) / float64(first[k].Median)
	}
	return all
}
