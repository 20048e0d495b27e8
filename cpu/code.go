package cpu

import (
	"context"
	"fmt"
	"io"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Code implements program.Executor.
func (executor) Code(io.Writer, *program.Program) error {
	return fmt.Errorf("code of a plan: the device runs functions that are compiled already: %w", compute.ErrUnsupported)
}

// Tune implements program.Executor. Kernels have no variants to measure.
func (executor) Tune(ctx context.Context, _ *program.Program) ([]program.Measurement, error) {
	return nil, ctx.Err()
}
