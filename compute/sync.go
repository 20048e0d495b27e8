//go:build !js

package compute

import (
	"context"
	"fmt"
)

// Upload is [Ops.UploadAsync], waiting for the copy. When ctx ends first it returns ctx.Err() and no tensor.
func (o Ops) Upload(ctx context.Context, data any, shape ...int) (Tensor, error) {
	if err := CheckContext(ctx); err != nil {
		return nil, err
	}
	t, f := o.during(ctx).UploadAsync(data, shape...)
	if err := f.AwaitOrAbandon(ctx); err != nil {
		if t != nil {
			t.Close()
		}
		return nil, err
	}
	return t, nil
}

// Read copies a tensor's elements to dst and waits for it; see [Tensor].
func Read(ctx context.Context, t Tensor, dst any) error {
	if err := CheckContext(ctx); err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("read of a nil tensor: %w", ErrArgument)
	}
	return t.ReadAsync(dst).AwaitOrAbandon(ctx)
}
