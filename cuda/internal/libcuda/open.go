package libcuda

import (
	"fmt"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

var opened struct {
	sync.Mutex
	by map[string]driver.Driver // by path
}

// Open loads the driver library of a path, "" for the system's, and initialises it. Every later Open of that path returns the
// same driver. Its errors wrap [compute.ErrUnavailable] and say what is missing: the library, a function, a device; an Open
// after one tries again. It is safe for concurrent use.
func Open(path string) (driver.Driver, error) {
	if strings.IndexByte(path, 0) >= 0 {
		return nil, fmt.Errorf("path of the driver library %q has a NUL: %w", path, compute.ErrArgument)
	}
	opened.Lock()
	defer opened.Unlock()
	if d := opened.by[path]; d != nil {
		return d, nil
	}
	d, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", compute.ErrUnavailable, err)
	}
	if opened.by == nil {
		opened.by = map[string]driver.Driver{}
	}
	opened.by[path] = d
	return d, nil
}
