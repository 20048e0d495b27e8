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

func newTuner(info AdapterInfo, c *config) *tune.Tuner {
	return tune.New(tune.Config{Forced: c.variants, Mode: c.tune, Dir: c.tuneDir, Fingerprint: fingerprint(info), Log: c.log})
}

// fingerprint names what choices depend on: the adapter, its driver and the limits granted.
func fingerprint(a AdapterInfo) string {
	return fmt.Sprintf("%s|%s|%x:%x|%s|%s|%s|%+v", a.Backend, a.Type, a.Vendor, a.Device, a.Name, a.Driver, a.DriverInfo, a.Caps())
}

// Choices lists the decisions between kernel variants that compilations have taken, by class and problem.
func (d *core) Choices() []compute.Choice {
	if d == nil {
		return nil
	}
	return d.tuner.Choices()
}

// Tune implements program.Executor.
func (d executor) Tune(ctx context.Context, p *program.Program) ([]program.Measurement, error) {
	return d.variants().Tune(ctx, p)
}

// Browsers round the GPU's clock, for the sake of privacy, to a tenth of a millisecond.
const browserTick = 100 * time.Microsecond

// variants measures by the GPU's clock where that works. The device has been reserved.
func (d executor) variants() *device.Variants {
	v := &device.Variants{Tuner: d.tuner, Life: d.life, Executor: d, Run: timed,
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
			x.timed = d.info.has(webgpu.FeatureTimestamps)
			return x, nil
		}}
	if d.info.Backend == "browser" && d.info.has(webgpu.FeatureTimestamps) {
		v.Tick = browserTick
	}
	return v
}

// timed runs a program once and returns the GPU's time, 0 if there is none.
func timed(ctx context.Context, x program.Executable, io *program.IO) (time.Duration, error) {
	e := x.(*executable)
	err := e.Start(io).Await(ctx)
	if errors.Is(err, compute.ErrUnsupported) && e.timed {
		e.timed = false
		err = e.Start(io).Await(ctx)
	}
	return e.GPUTime(), err
}
