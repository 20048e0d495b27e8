package wavelane

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/cpu"
)

var cpuCandidate = candidate{"cpu", openCPU}

func openCPU(ctx context.Context, c *config) (*opened, error) {
	d, err := cpu.Open(ctx, cpu.WithLogger(c.log))
	if err != nil {
		return nil, err
	}
	i := d.Info()
	return &opened{d, Info{Name: i.Name, Backend: i.Tier}, fmt.Sprintf("%+v", i)}, nil
}
