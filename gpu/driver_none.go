//go:build !js && !cgo

package gpu

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

// builtin is the platform of builds that have none.
var builtin platform = noPlatform{}

type noPlatform struct{}

func (noPlatform) reason() error {
	return fmt.Errorf("gpu: built with CGO_ENABLED=0, which leaves WebGPU out; build with CGO_ENABLED=1 and a C compiler: %w",
		compute.ErrUnavailable)
}

func (p noPlatform) adapters(context.Context) ([]AdapterInfo, error) { return nil, p.reason() }

func (p noPlatform) open(context.Context, AdapterInfo) (driver, AdapterInfo, error) {
	return nil, AdapterInfo{}, p.reason()
}
