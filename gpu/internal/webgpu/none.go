//go:build !js && !cgo

package webgpu

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

var errNoCgo = fmt.Errorf("built with CGO_ENABLED=0, which leaves WebGPU out; build with CGO_ENABLED=1 and a C compiler: %w",
	compute.ErrUnavailable)

// Adapters fails.
func Adapters(context.Context) ([]Adapter, error) { return nil, errNoCgo }

// Open fails.
func Open(context.Context, Adapter) (Driver, Adapter, error) { return nil, Adapter{}, errNoCgo }
