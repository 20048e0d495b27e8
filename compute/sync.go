//go:build !js

package compute

import "context"

// Read copies a tensor's elements to dst and waits for it; see [Tensor].
func Read(ctx context.Context, t Tensor, dst any) error {
	return t.ReadAsync(dst).AwaitOrAbandon(ctx)
}
