//go:build !js

package gpu

import "context"

// Run is [Kernel.RunAsync] and waits. When ctx ends first, dst is the caller's again.
func (k *Kernel) Run(ctx context.Context, l Launch, dst any, args ...any) error {
	return k.RunAsync(l, dst, args...).AwaitOrAbandon(ctx)
}
