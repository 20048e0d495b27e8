//go:build !js

package wavelane

import (
	"context"

	"github.com/wavelane/wavelane/compute"
)

// Upload is [Device.UploadAsync] and waits until the copy is done.
func (d *Device) Upload(ctx context.Context, data any, shape ...int) (compute.Tensor, error) {
	t, f := d.UploadAsync(data, shape...)
	if err := f.AwaitOrAbandon(ctx); err != nil {
		if t != nil {
			t.Close()
		}
		return nil, err
	}
	return t, nil
}
