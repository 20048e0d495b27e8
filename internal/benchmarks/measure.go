package benchmarks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/wavelane/wavelane"
)

// Benchmark is some work and the ways to do it.
type Benchmark struct {
	Name  string
	Doc   string
	Kinds []string // of devices that it is for; nil means all
	Unit  string   // of Way.Work per second: "GB/s" or "GFLOPS"; empty where only times count

	// prepare sets the ways up on a device. Resources are given back by cleanups.
	prepare func(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error)
}

// Way is one way to do the work. The first of a benchmark is what the others are compared with.
type Way struct {
	Name   string
	Work   float64                         // in 10⁹ bytes or operations, a run
	before func(ctx context.Context) error // not measured; may be nil
	run    func(ctx context.Context) error
}

// Run does the work once.
func (w *Way) Run(ctx context.Context) error {
	_, err := w.time(ctx)
	return err
}

func (w *Way) time(ctx context.Context) (time.Duration, error) {
	if w.before != nil {
		if err := w.before(ctx); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	err := w.run(ctx)
	return time.Since(start), err
}

// For reports whether the benchmark is for a kind of device.
func (b *Benchmark) For(kind string) bool { return b.Kinds == nil || slices.Contains(b.Kinds, kind) }

// Open prepares the ways on a device; closing gives back what they hold.
func (b *Benchmark) Open(ctx context.Context, dev *wavelane.Device) (ways []Way, closing func(), err error) {
	c := &cleanups{}
	ways, err = b.prepare(ctx, dev, c)
	if err != nil {
		c.run()
		return nil, nil, fmt.Errorf("%s: %w", b.Name, err)
	}
	return ways, c.run, nil
}

// Result is what one way of a benchmark took.
type Result struct {
	Benchmark string        `json:"benchmark"`
	Device    string        `json:"device"`
	Kind      string        `json:"kind"`
	Software  bool          `json:"software"`
	Way       string        `json:"way"`
	Runs      int           `json:"runs"`
	Median    time.Duration `json:"median_ns"`
	Relative  float64       `json:"relative_time"` // to the benchmark's first way
	Rate      float64       `json:"rate,omitempty"`
	Unit      string        `json:"unit,omitempty"`
}

// Measure runs all ways in turns, the given number of times after one turn to warm up, or fewer once budget is spent.
// Tick, when not nil, is called after each turn.
func (b *Benchmark) Measure(ctx context.Context, dev *wavelane.Device, runs int, budget time.Duration, tick func()) ([]Result, error) {
	ways, closing, err := b.Open(ctx, dev)
	if err != nil {
		return nil, err
	}
	defer closing()
	times := make([][]time.Duration, len(ways))
	var end time.Time
	for turn := range runs + 1 {
		if turn == 1 {
			end = time.Now().Add(budget)
		}
		if turn > 1 && time.Now().After(end) {
			break
		}
		for i := range ways {
			took, err := ways[i].time(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", b.Name, ways[i].Name, err)
			}
			if turn > 0 {
				times[i] = append(times[i], took)
			}
		}
		if tick != nil {
			tick()
		}
	}
	info := dev.Info()
	results := make([]Result, len(ways))
	for i, w := range ways {
		m := median(times[i])
		results[i] = Result{Benchmark: b.Name, Device: info.Name, Kind: info.Kind, Software: info.Software, Way: w.Name,
			Runs: len(times[i]), Median: m, Relative: float64(m) / float64(median(times[0]))}
		if b.Unit != "" {
			results[i].Unit, results[i].Rate = b.Unit, w.Work/m.Seconds()
		}
	}
	return results, nil
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return max(1, (sorted[len(sorted)/2]+sorted[(len(sorted)-1)/2])/2)
}

// cleanups run last to first.
type cleanups struct{ list []func() error }

func (c *cleanups) add(f func() error) { c.list = append(c.list, f) }

func (c *cleanups) run() {
	for _, f := range slices.Backward(c.list) {
		f() // what fails to close has nothing to tell a benchmark
	}
}
