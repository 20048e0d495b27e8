//go:build !js

package gpu

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/internal/op"
)

// Tune measures the kernel variants of every step of the programs and keeps the fastest ones for later compilations, of
// other processes too. Programs compiled before keep what they have. Variants forced with [WithVariant] stay forced.
func (d *Device) Tune(ctx context.Context, programs ...*op.Program) ([]Measurement, error) {
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
