package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/tune"
)

// TuneMode says when kernel variants are measured.
type TuneMode uint8

// Tune modes.
const (
	// TuneCached uses what was measured before, by this process or an earlier one; it never measures by itself.
	TuneCached TuneMode = iota
	// TuneOff always takes the default variant.
	TuneOff
	// TuneFirstUse measures when an operation meets a problem of a new magnitude, before it runs: once with each variant and
	// some more with the fast ones. Browsers do not have it.
	TuneFirstUse
)

// Choice is a chosen variant of a kernel.
type Choice struct {
	Class   string `json:"class"`   // of operations: "matmul"
	Problem string `json:"problem"` // sizes rounded to powers of two
	Variant string `json:"variant"`
	Why     string `json:"why"`  // "forced", "measured" (also by an earlier process), "default"
	Uses    int    `json:"uses"` // compilations that took it
}

func newTuner(info AdapterInfo, c *config) *tune.Tuner {
	return tune.New(tune.Config{Forced: c.variants, Off: c.tune == TuneOff, Dir: c.tuneDir, Fingerprint: fingerprint(info), Log: c.log})
}

// fingerprint names what choices depend on: the adapter, its driver and the limits granted.
func fingerprint(a AdapterInfo) string {
	return fmt.Sprintf("%s|%s|%x:%x|%s|%s|%s|%+v", a.Backend, a.Type, a.Vendor, a.Device, a.Name, a.Driver, a.DriverInfo, a.Caps())
}

// Choices lists the decisions between kernel variants that compilations have taken, by class and problem.
func (d *core) Choices() []Choice {
	if d == nil {
		return nil
	}
	var list []Choice
	for _, c := range d.tuner.Choices() {
		list = append(list, Choice(c))
	}
	return list
}

// Tune implements program.Executor.
func (d executor) Tune(ctx context.Context, p *program.Program) ([]program.Measurement, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	if err := d.life.Begin(); err != nil {
		return nil, err
	}
	defer d.life.End()
	return d.measure(ctx, p, true)
}

// measure measures the variants of a program's steps: all of them if again is set, else those that were not measured before.
func (d *core) measure(ctx context.Context, p *program.Program, again bool) ([]program.Measurement, error) {
	var list []program.Measurement
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Kernel != nil {
			continue
		}
		m, err := d.tuner.Measure(ctx, tune.Step{
			Lower: func(choose tune.Chooser) error {
				_, err := d.lower(p, s, choose)
				return err
			},
			Prepare: func(ctx context.Context, _ tune.Question, pick func(int) tune.Chooser) (*tune.Contest, error) {
				return d.contest(ctx, p, s, pick)
			},
		}, again)
		list = append(list, m...)
		if err != nil {
			return list, fmt.Errorf("tune %s %v: %w", s.Entry.Name, p.Types(s.In), err)
		}
	}
	return list, nil
}

// contest runs variants of one step on the same tensors.
type contest struct {
	dev    *Device
	pick   func(i int) tune.Chooser
	single *program.Program // the step
	copies int              // of the step, in the program that is timed
	io     program.IO
	first  []any // results of the first variant that is possible
}

// contest prepares the variants of a step.
func (d *core) contest(ctx context.Context, p *program.Program, s *program.Step, pick func(i int) tune.Chooser) (*tune.Contest, error) {
	single, types := tune.Single(p, s)
	c := &contest{dev: &Device{core: d}, pick: pick, single: single, copies: 1}
	for _, t := range types {
		x, f := device.Upload(executor{c.dev}, tune.Data(t), t.Shape...)
		if x != nil {
			c.io.Tensors = append(c.io.Tensors, x)
		}
		if err := f.Await(ctx); err != nil {
			c.close()
			return nil, err
		}
	}
	if err := c.setCopies(ctx); err != nil {
		c.close()
		return nil, err
	}
	return &tune.Contest{Variant: c.variant, Close: c.close}, nil
}

func (c *contest) close() {
	for _, x := range c.io.Tensors {
		x.Close()
	}
}

// Browsers round the GPU's clock, for the sake of privacy, to a tenth of a millisecond.
const (
	tick      = 100 * time.Microsecond
	maxCopies = 64
)

// setCopies decides how many times the step has to run one after the other for the clock to tell variants apart.
func (c *contest) setCopies(ctx context.Context) error {
	if info := c.dev.info; info.Backend != "browser" || !info.has(webgpu.FeatureTimestamps) || c.single.Steps[0].Entry.Updates > 0 {
		return nil
	}
	x, v, err := c.timed(0)
	if err != nil {
		return ctx.Err() // other variants may be possible
	}
	defer v.Close()
	if _, err := v.Run(ctx); err != nil { // warm up
		return ctx.Err()
	}
	if _, err := v.Run(ctx); err != nil {
		return err
	}
	c.copies = max(1, min(maxCopies, int(20*tick/max(x.GPUTime(), tick/4))))
	return nil
}

// variant compiles variant i and checks its results.
func (c *contest) variant(ctx context.Context, i int) (*tune.Variant, error) {
	results, err := c.results(ctx, i)
	if err != nil {
		return nil, err
	}
	if c.first == nil {
		c.first = results
	}
	if !tune.Alike(c.first, results) {
		return nil, fmt.Errorf("results differ from those of an earlier variant: %w", compute.ErrUnsupported)
	}
	_, v, err := c.timed(i)
	return v, err
}

// results runs variant i once and returns what it computes, or nothing for a step that updates its operands.
func (c *contest) results(ctx context.Context, i int) ([]any, error) {
	if c.single.Steps[0].Entry.Updates > 0 {
		return nil, nil
	}
	p, io := *c.single, c.io
	p.Read = p.Steps[0].Out
	for _, out := range p.Types(p.Read) {
		io.Read = append(io.Read, program.MakeSlice(out))
	}
	pl, err := c.dev.plan(&p, c.pick(i))
	if err != nil {
		return nil, err
	}
	x := newExecutable(c.dev, pl)
	defer x.Close()
	return io.Read, x.Start(&io).Await(ctx)
}

// timed compiles variant i to be timed, by the GPU's clock where that works.
func (c *contest) timed(i int) (*executable, *tune.Variant, error) {
	pl, err := c.dev.plan(tune.Repeated(c.single, c.copies), c.pick(i))
	if err != nil {
		return nil, nil, err
	}
	x := newExecutable(c.dev, pl)
	x.timed = c.dev.info.has(webgpu.FeatureTimestamps)
	run := func(ctx context.Context) (time.Duration, error) {
		io, start := c.io, time.Now()
		if err := x.Start(&io).Await(ctx); err != nil {
			return 0, err
		}
		took := time.Since(start)
		if gpu := x.GPUTime(); gpu > 0 {
			took = gpu
		}
		return took / time.Duration(c.copies), nil
	}
	return x, &tune.Variant{Close: func() { x.Close() }, Run: func(ctx context.Context) (time.Duration, error) {
		took, err := run(ctx)
		if errors.Is(err, compute.ErrUnsupported) && x.timed {
			x.timed = false
			took, err = run(ctx)
		}
		return took, err
	}}, nil
}
