package batch

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Recompile compiles the plan's program for another device, of any kind, on which the plan runs from then on. Use it after
// the loss of a device, when runs fail with compute.ErrDeviceLost. Values, inputs, scalars and results stay what they are.
// Tensors belong to a device: each has to be uploaded there and given to [Plan.SetTensor] before the next run, which fails
// with compute.ErrForeignTensor otherwise. A plan with kernels of the user's cannot move, since these belong to a device as
// well, and neither can one whose collectives are on streams of its device, see [Group]. A run in flight finishes on the old device; forks stay there. If Recompile fails, the plan stays as it is.
func (p *Plan) Recompile(ctx context.Context, device Device) error {
	if err := compute.CheckContext(ctx); err != nil {
		return err
	}
	if !present(device) {
		return fmt.Errorf("recompile for a nil device: %w", compute.ErrArgument)
	}
	return p.recompile(ctx, program.ExecutorOf(device))
}

func (p *Plan) recompile(ctx context.Context, device program.Executor) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usable(); err != nil {
		return fmt.Errorf("recompile: %w", err)
	}
	if p.program.Streams && device != p.exec.device {
		return fmt.Errorf("recompile a plan whose collectives are on streams of its device, as those of other members are: %w", compute.ErrUnsupported)
	}
	exec, compiled, err := p.batch.compile(ctx, device, p.recorded, p.program.Streams)
	if err != nil {
		return err
	}
	exec.plans.Add(1)
	old := p.exec
	p.exec, p.program = exec, compiled
	_ = old.release() // of a lost device nothing can fail that matters any more
	return nil
}
