//go:build !js

package compute

import "context"

// Upload is [Ops.UploadAsync], waiting for the copy. When ctx ends first it returns ctx.Err() and no tensor.
func (o Ops) Upload(ctx context.Context, data any, shape ...int) (Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, f := o.UploadAsync(data, shape...)
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
	return t.ReadAsync(dst).AwaitOrAbandon(ctx)
}
