//go:build !(((linux && !android) || windows) && (amd64 || arm64))

package libcuda

import (
	"errors"
	"runtime"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// NVIDIA has no driver for anything else.
func open(string) (driver.Driver, error) {
	return nil, errors.New("there is no CUDA driver for " + runtime.GOOS + "/" + runtime.GOARCH)
}
