//go:build !nocuda && !js

package wavelane

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/cuda"
)

var cudaCandidate = candidate{"cuda", openCUDA}

func openCUDA(ctx context.Context, c *config) (*opened, error) {
	opts := []cuda.Option{cuda.WithLogger(c.log)}
	if c.index >= 0 {
		opts = append(opts, cuda.WithDevice(c.index))
	}
	// The software GPU is for tests of kernels, far slower than the CPU's own: automatic choice never falls to it.
	if c.software && c.kind == "cuda" {
		opts = append(opts, cuda.WithSoftware())
	}
	d, err := cuda.Open(ctx, opts...)
	if err != nil {
		return nil, err
	}
	i := d.Info()
	return &opened{d, Info{Name: i.Name, Backend: i.Target().String() + ", CUDA " + i.Driver, Software: i.Software},
		fmt.Sprintf("%+v", i)}, nil
}
