//go:build !js && !(((linux && !android) || darwin || windows) && (amd64 || arm64))

package webgpu

import (
	"context"
	"fmt"
	"runtime"

	"github.com/wavelane/wavelane/compute"
)

var errNone = fmt.Errorf("there is no WebGPU for %s on %s: %w", runtime.GOOS, runtime.GOARCH, compute.ErrUnavailable)

// Adapters fails.
func Adapters(context.Context, string) ([]Adapter, error) { return nil, errNone }

// Open fails.
func Open(context.Context, Adapter) (Driver, Adapter, error) { return nil, Adapter{}, errNone }

// Library fails.
func Library(string) (string, error) { return "", errNone }
