//go:build !js

package gpu

import (
	"context"

	"github.com/wavelane/wavelane/internal/program"
)

// Tune measures the kernel variants of every step of the programs and keeps the fastest ones for later compilations, of
// other processes too. Programs compiled before keep what they have. Variants forced with [WithVariant] stay forced.
func (d *Device) Tune(ctx context.Context, programs ...*program.Program) ([]Measurement, error) {
	return d.tune(ctx, programs)
}
