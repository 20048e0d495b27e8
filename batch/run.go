//go:build !js

package batch

import (
	"context"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Run compiles and runs everything recorded: one submission, one readback. When ctx ends first it returns ctx.Err(), and
// results are not written any more.
func (b *Batch) Run(ctx context.Context) error {
	p, err := b.Compile(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
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
	clear(p.io.Keep)
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

var succeeded = compute.Failed(nil)
