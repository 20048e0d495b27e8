package cpu

import (
	"context"

	"github.com/wavelane/wavelane/compute"
)

// Upload is [Device.UploadAsync], waiting for the copy. This device needs no event loop, so that waiting is possible in pages too.
func (d *Device) Upload(ctx context.Context, data any, shape ...int) (compute.Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, f := d.UploadAsync(data, shape...)
	if err := f.AwaitOrAbandon(ctx); err != nil {
		if t != nil {
			t.Close()
		}
		return nil, err
	}
	return t, nil
}
