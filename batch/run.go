//go:build !js

package batch

import (
	"context"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Run compiles and runs everything recorded: one submission, one readback. When ctx ends first it returns ctx.Err(), and
// results are not written any more.
func (rec *Batch) Run(ctx context.Context) error {
	p, err := rec.Compile(ctx)
	if err != nil {
		return err
	}
	defer p.release()
	return p.Run(ctx)
}

// Run runs the plan once. When ctx ends first it returns ctx.Err(), and results are not written any more. On the CPU device a run
// allocates nothing but the tensors of [Batch.Keep].
func (p *Plan) Run(ctx context.Context) error {
	if err := compute.CheckContext(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	if err := p.idle(); err != nil {
		p.mu.Unlock()
		return err
	}
	direct, ok := p.exec.Executable.(program.Direct)
	if !ok {
		p.mu.Unlock()
		return p.Start().AwaitOrAbandon(ctx)
	}
	p.drop()
	run, err := direct.Begin(&p.io)
	p.started(nil)
	p.running = err == nil
	p.mu.Unlock()
	if err == nil {
		err = run.Wait(ctx)
		p.mu.Lock()
		p.running = false
		p.mu.Unlock()
	}
	if err == nil {
		for _, r := range p.results {
			r.run.Store(succeeded)
		}
	}
	return err
}

// Tune measures the variants of the kernels that the plan could run, and compiles it anew with the fastest.
//
//   - The device keeps the choices for later compilations, of other processes too: see gpu.WithTuneCache and cuda.WithCache. Plans
//     compiled before, forks of this one among them, keep what they have. Variants forced with gpu.WithVariant or cuda.WithVariant
//     stay forced.
//   - Steps that leave no choice have no measurement. The kernels of the CPU device have no variants: Tune does nothing there.
//   - The device may be used meanwhile, at the price of worse measurements.
//   - If ctx ends or a measurement fails, Tune returns what was measured so far, and the plan stays as it is.
func (p *Plan) Tune(ctx context.Context) ([]Measurement, error) { return p.tune(ctx) }

var succeeded = compute.Failed(nil)
