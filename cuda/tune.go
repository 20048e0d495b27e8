package cuda

import (
	"context"
	"fmt"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/tune"
)

func newTuner(i Info, c *config) *tune.Tuner {
	o := tune.Config{Forced: c.forced, Mode: c.tune, Dir: c.cache, Fingerprint: fingerprint(i), Log: c.log}
	if c.cache == noCache {
		o.Dir, o.Memory = "", true
	}
	return tune.New(o)
}

// fingerprint names what choices depend on: the GPU, as far as it may be a part of one, and its driver.
func fingerprint(i Info) string {
	return fmt.Sprintf("cuda|%s|%d.%d|%d multiprocessors|driver %s|software %t", i.Name, i.Capability[0], i.Capability[1],
		i.Multiprocessors, i.Driver, i.Software)
}

// Choices lists the decisions between kernel variants that compilations have taken, by class and problem.
func (d *state) Choices() []compute.Choice {
	if d == nil {
		return nil
	}
	return d.tuner.Choices()
}

// Tune implements program.Executor.
func (d executor) Tune(ctx context.Context, p *program.Program) ([]program.Measurement, error) {
	return d.variants().Tune(ctx, p)
}

// tick is what a launch takes besides the kernel. Steps that take less are repeated, so that they run as a graph.
const tick = 10 * time.Microsecond

// variants measures by events. The device has been reserved.
func (d executor) variants() *device.Variants {
	return &device.Variants{Tuner: d.tuner, Life: d.life, Executor: d, Run: d.timed, Tick: tick,
		Lower: func(p *program.Program, s *program.Step, choose tune.Chooser) error {
			_, err := d.lower(p, s, choose)
			return err
		},
		Compile: func(p *program.Program, choose tune.Chooser) (program.Executable, error) {
			pl, err := d.plan(p, choose, false)
			if err != nil {
				return nil, err
			}
			x := newExecutable(d.Device, pl)
			x.runs = warmUp // the first run, which is not measured, makes the graph
			return x, nil
		}}
}

// timed runs a program once and returns the time that passed on the GPU, with that of others' work on the default stream.
func (d executor) timed(ctx context.Context, x program.Executable, io *program.IO) (time.Duration, error) {
	c := &clock{times: make([]time.Duration, 1)}
	defer c.free(d.state)
	mark := func() error {
		if err := d.enter(); err != nil {
			return err
		}
		defer d.leave()
		return c.mark(d.state, d.defaultStream.handle)
	}
	if err := mark(); err != nil {
		return 0, err
	}
	run := x.Start(io)
	err := mark()
	if failed := run.Await(ctx); failed != nil {
		return 0, failed
	}
	if err == nil {
		err = d.awaitEvent(c.events[1])
	}
	if err == nil {
		err = c.read(d.state)
	}
	return c.times[0], err
}
