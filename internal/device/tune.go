package device

import (
	"context"
	"fmt"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/monotime"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/tune"
)

// Variants measures the variants of a device's kernels, on the device itself. It says how the device lowers, compiles and runs with
// decisions that the tuner tries.
type Variants struct {
	*tune.Tuner
	Life     *Lifetime
	Executor program.Executor // uploads operands
	// Lower makes the code of a step.
	Lower func(p *program.Program, s *program.Step, choose tune.Chooser) error
	// Compile makes what Run runs.
	Compile func(p *program.Program, choose tune.Chooser) (program.Executable, error)
	// Run returns how long the device computed, 0 if it has no clock.
	Run func(ctx context.Context, x program.Executable, io *program.IO) (time.Duration, error)
	// Tick is what the device's clock cannot tell from nothing, with whatever a run takes besides its kernels; 0 if that does not
	// matter.
	Tick time.Duration
}

// Tune is program.Executor's.
func (v *Variants) Tune(ctx context.Context, p *program.Program) ([]program.Measurement, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	if err := v.Life.Begin(); err != nil {
		return nil, err
	}
	defer v.Life.End()
	return v.Measure(ctx, p, true)
}

// Measure measures the variants of a program's steps: all of them if again is set, else those that were not measured before. The
// caller has reserved the device.
func (v *Variants) Measure(ctx context.Context, p *program.Program, again bool) ([]program.Measurement, error) {
	var list []program.Measurement
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Kernel != nil {
			continue
		}
		m, err := v.Tuner.Measure(ctx, tune.Step{
			Lower: func(choose tune.Chooser) error { return v.Lower(p, s, choose) },
			Prepare: func(ctx context.Context, _ tune.Question, pick func(int) tune.Chooser) (*tune.Contest, error) {
				return v.contest(ctx, p, s, pick)
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
	*Variants
	pick   func(i int) tune.Chooser
	single *program.Program // the step
	copies int              // of the step, in the program that is timed
	io     program.IO
	first  []any // results of the first variant that is possible
}

// contest prepares the variants of a step.
func (v *Variants) contest(ctx context.Context, p *program.Program, s *program.Step, pick func(i int) tune.Chooser) (*tune.Contest, error) {
	single, types := tune.Single(p, s)
	c := &contest{Variants: v, pick: pick, single: single, copies: 1}
	for _, t := range types {
		x, f := Upload(ctx, v.Executor, tune.Data(t), t.Shape...)
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

// updates reports whether the step updates its operands, so that it can be neither repeated nor compared.
func (c *contest) updates() bool { return c.single.Steps[0].Entry.Updates > 0 }

const maxCopies = 64

// setCopies decides how many times the step has to run one after the other for the clock to tell variants apart.
func (c *contest) setCopies(ctx context.Context) error {
	if c.Tick == 0 || c.updates() {
		return nil
	}
	v, err := c.timed(ctx, 0)
	if err != nil {
		return ctx.Err() // other variants may be possible
	}
	defer v.Close()
	took, err := v.Run(ctx)
	if err != nil {
		return err
	}
	c.copies = max(1, min(maxCopies, int(20*c.Tick/max(took, c.Tick/4))))
	return nil
}

// variant compiles variant i and checks its results.
func (c *contest) variant(ctx context.Context, i int) (*tune.Variant, error) {
	if !c.updates() {
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
	}
	return c.timed(ctx, i)
}

// compile compiles a program with variant i.
func (c *contest) compile(ctx context.Context, p *program.Program, i int) (program.Executable, error) {
	c.Life.Extend()
	return program.Within(ctx, func() (program.Executable, error) {
		defer c.Life.End()
		return c.Compile(p, c.pick(i))
	}, func(x program.Executable) { x.Close() })
}

// results runs variant i once and returns what it computes.
func (c *contest) results(ctx context.Context, i int) ([]any, error) {
	p, io := *c.single, c.io
	p.Read = p.Steps[0].Out
	for _, out := range p.Types(p.Read) {
		io.Read = append(io.Read, program.MakeSlice(out))
	}
	x, err := c.compile(ctx, &p, i)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	_, err = c.Run(ctx, x, &io)
	return io.Read, err
}

// timed compiles variant i to be timed, and runs it once.
func (c *contest) timed(ctx context.Context, i int) (*tune.Variant, error) {
	x, err := c.compile(ctx, tune.Repeated(c.single, c.copies), i)
	if err != nil {
		return nil, err
	}
	run := func(ctx context.Context) (time.Duration, error) {
		io, start := c.io, monotime.Now()
		took, err := c.Run(ctx, x, &io)
		if took == 0 {
			took = monotime.Since(start)
		}
		return took / time.Duration(c.copies), err
	}
	if _, err := run(ctx); err != nil {
		x.Close()
		return nil, err
	}
	return &tune.Variant{Run: run, Close: func() { x.Close() }}, nil
}
