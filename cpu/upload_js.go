package cpu

import (
	"context"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
)

// Upload is [Device.UploadAsync], waiting for the copy. This device needs no event loop, so that waiting is possible in pages too.
func (d *Device) Upload(ctx context.Context, data any, shape ...int) (compute.Tensor, error) {
	return device.UploadNow(ctx, d.Ops, data, shape)
}
