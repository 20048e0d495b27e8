package gpu

import (
	"context"

	"github.com/wavelane/wavelane/compute"
)

// fetch is compute.Read, which browsers do not have.
func fetch(ctx context.Context, t compute.Tensor, dst any) error {
	return t.ReadAsync(dst).AwaitOrAbandon(ctx)
}
