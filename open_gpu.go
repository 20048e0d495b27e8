//go:build !nogpu

package wavelane

import (
	"context"
	"errors"
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu"
)

var gpuCandidate = candidate{"gpu", openGPU}

func openGPU(ctx context.Context, c *config) (*opened, error) {
	opts := []gpu.Option{gpu.WithLogger(c.log)}
	if c.index >= 0 { // a named adapter is opened even if it is software
		opts = append(opts, gpu.WithAdapter(c.index), gpu.WithSoftware())
	}
	d, err := gpu.Open(ctx, opts...)
	if c.software && c.index < 0 && errors.Is(err, compute.ErrUnavailable) {
		d, err = gpu.Open(ctx, append(opts, gpu.WithSoftware())...)
	}
	if err != nil {
		return nil, err
	}
	a := d.Info()
	return &opened{d, Info{Name: a.Name, Backend: a.Backend, Software: a.Type == gpu.Software}, fmt.Sprintf("%s %+v", a, a.Limits)}, nil
}
