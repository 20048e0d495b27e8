package benchmarks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/internal/monotime"
)

// Benchmark is some work and the ways to do it.
type Benchmark struct {
	Name  string
	Doc   string
	Kinds []string // of devices that it is for; nil means all
	Unit  string   // of Way.Work per second: "GB/s" or "GFLOPS"; empty where only times count

	prepare prepareFunc
}

// prepareFunc sets the ways up on a device. Resources are given back by cleanups.
type prepareFunc = func(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error)

// Way is one way to do the work. The first of a benchmark is what the others are compared with.
type Way struct {
	Name  string
	Work  float64 // in 10⁹ bytes or operations, a run
	Clock string  // "gpu" where the GPU's events measure; empty for the host's clock

	before func(ctx context.Context) error // not measured; may be nil
	run    func(ctx context.Context) error
	timed  func(ctx context.Context) (time.Duration, error) // instead of run, for what measures itself
	calls  int                                              // in one sample of timed
	peer   *Request                                         // the same work for a peer; nil for none
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
	if w.timed != nil {
		return w.timed(ctx)
	}
	start := monotime.Now()
	err := w.run(ctx)
	return monotime.Since(start), err
}

// For reports whether the benchmark is for a device. Those that route are for [Benchmark.Routing] alone: what runs where is not for
// others to say.
func (b *Benchmark) For(i wavelane.Info) bool {
	if i.Routed {
		return b.Routing()
	}
	return b.Kinds == nil || slices.Contains(b.Kinds, i.Kind)
}

// Routing reports whether the benchmark is for devices that route.
func (b *Benchmark) Routing() bool { return slices.Contains(b.Kinds, routed) }

// routed stands for devices that route, among kinds.
const routed = "routed"

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
	Benchmark string          `json:"benchmark"`
	Device    string          `json:"device"`
	Kind      string          `json:"kind"`
	Software  bool            `json:"software"`
	Way       string          `json:"way"`
	Clock     string          `json:"clock,omitempty"` // "gpu", or empty for the host's
	Runs      int             `json:"runs"`
	Median    time.Duration   `json:"median_ns"`
	Quartiles [2]float64      `json:"quartiles_ns"`
	Interval  [2]float64      `json:"interval_ns"`   // of the median, see Confidence
	Relative  float64         `json:"relative_time"` // to the benchmark's first way
	Rate      float64         `json:"rate,omitempty"`
	Unit      string          `json:"unit,omitempty"`
	Times     []time.Duration `json:"times_ns,omitempty"` // of each run, in order
	Error     string          `json:"error,omitempty"`    // why a benchmark, or a way of it, could not be measured
}

// Options say how to measure.
type Options struct {
	Runs   int           // of each way, after warming up
	Budget time.Duration // no further runs after it
	Tick   func()        // called after each round, if not nil
	Peer   *Peer         // measures the same work, alternating with us, if not nil
}

// Measure runs all ways alternately.
func (b *Benchmark) Measure(ctx context.Context, dev *wavelane.Device, o Options) ([]Result, error) {
	ways, closing, err := b.Open(ctx, dev)
	if err != nil {
		return nil, err
	}
	defer closing()
	ways, cannot, err := o.Peer.with(ways)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name, err)
	}
	times := make([][]time.Duration, len(ways))
	round := func() error {
		for i := range ways {
			took, err := ways[i].time(ctx)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("%s, %s: %w", b.Name, ways[i].Name, err)
			}
			times[i] = append(times[i], took)
		}
		return nil
	}
	tick := func() {
		if o.Tick != nil {
			o.Tick()
		}
	}
	for warm := monotime.Now().Add(warmTime(dev)); ; {
		if err := round(); err != nil {
			return nil, err
		}
		if monotime.Now() >= warm {
			break
		}
	}
	clear(times)
	tick()
	end := monotime.Now().Add(o.Budget)
	for n := range o.Runs {
		if n > 0 && monotime.Now() > end {
			break
		}
		if err := round(); err != nil {
			return nil, err
		}
		tick()
	}
	var results []Result
	for i, w := range ways {
		r := b.result(dev)
		r.Way, r.Clock = w.Name, w.Clock
		r.sum(times[i])
		r.Relative = float64(r.Median) / float64(median(times[0]))
		if b.Unit != "" {
			r.Unit, r.Rate = b.Unit, w.Work/r.Median.Seconds()
		}
		results = append(results, r)
	}
	for _, err := range cannot {
		results = append(results, b.Failed(dev, err))
	}
	return results, nil
}

// warmTime is how long to warm up. Idle GPUs turn their clocks down, and take a while to turn them up again.
func warmTime(dev *wavelane.Device) time.Duration {
	if i := dev.Info(); i.Kind == "cpu" || i.Software {
		return 0
	}
	return 300 * time.Millisecond
}

func (b *Benchmark) result(dev *wavelane.Device) Result {
	info := dev.Info()
	return Result{Benchmark: b.Name, Device: info.Name, Kind: info.Kind, Software: info.Software}
}

// Failed is the result of a benchmark that could not be measured.
func (b *Benchmark) Failed(dev *wavelane.Device, err error) Result {
	r := b.result(dev)
	r.Error = err.Error()
	return r
}

// cleanups run last to first.
type cleanups struct{ list []func() error }

func (c *cleanups) add(f func() error) { c.list = append(c.list, f) }

func (c *cleanups) run() {
	for _, f := range slices.Backward(c.list) {
		f() // what fails to close has nothing to tell a benchmark
	}
}
