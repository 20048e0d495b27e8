package gpu

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Tuning is what [Device.TuneAsync] has measured: valid when its future is done.
type Tuning struct{ list []Measurement }

// Measurements are in the order of the programs' steps; steps that leave no choice have none.
func (t *Tuning) Measurements() []Measurement { return t.list }

// TuneAsync measures the kernel variants of every step of the programs, and keeps the fastest ones for later compilations: as Tune
// does where functions may wait, and in browsers, where what was measured lasts as long as the page. The future is done when all is
// measured, or when ctx has ended. The device may be used meanwhile, at the price of worse measurements.
func (d *Device) TuneAsync(ctx context.Context, programs ...*program.Program) (*Tuning, *compute.Future) {
	t := &Tuning{}
	f, resolve := compute.NewFuture(nil)
	go func() {
		list, err := d.tune(ctx, programs)
		t.list = list
		resolve(err, nil)
	}()
	return t, f
}

func (d *Device) tune(ctx context.Context, programs []*program.Program) ([]Measurement, error) {
	if err := d.begin(); err != nil {
		return nil, err
	}
	defer d.end()
	var list []Measurement
	for _, p := range programs {
		for i := range p.Steps {
			s := &p.Steps[i]
			if s.Kernel != nil {
				continue
			}
			m, err := d.tuner.measureStep(ctx, p, s, true)
			list = append(list, m...)
			if err != nil {
				return list, fmt.Errorf("tune %s %v: %w", s.Entry.Name, p.Types(s.In), err)
			}
		}
	}
	return list, nil
}
