package conformance

import (
	"context"

	"github.com/wavelane/wavelane/compute"
)

// misusedCalls has nothing to call: no operation waits in a page.
func misusedCalls(ctx context.Context, _ compute.Ops, _ []float32) error {
	return compute.CheckContext(ctx)
}
