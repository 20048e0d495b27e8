package device

import (
	"context"

	"github.com/wavelane/wavelane/compute"
)

// UploadNow is compute.Ops.Upload, which pages lack, for devices that need no event loop to make progress.
func UploadNow(ctx context.Context, o compute.Ops, data any, shape []int) (compute.Tensor, error) {
	if err := compute.CheckContext(ctx); err != nil {
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
