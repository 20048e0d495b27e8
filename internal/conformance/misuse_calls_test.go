//go:build !js

package conformance

import (
	"context"
	"errors"

	"github.com/wavelane/wavelane/compute"
)

// misusedCalls calls operations that wait, with a context that does not let them begin. It joins their errors only if all failed.
func misusedCalls(ctx context.Context, ops compute.Ops, y []float32) error {
	one := ops.Neg(ctx, y, []float32{1, 2})
	_, two := ops.Upload(ctx, []float32{1})
	three := compute.Read(ctx, nil, y)
	if one == nil || two == nil || three == nil {
		return nil
	}
	return errors.Join(one, two, three)
}
