//go:build !js

package batch

import "context"

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

// Run runs the plan once. When ctx ends first it returns ctx.Err(), and results are not written any more.
func (p *Plan) Run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.Start().AwaitOrAbandon(ctx)
}
