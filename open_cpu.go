package wavelane

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/cpu"
)

var cpuCandidate = candidate{"cpu", openCPU}

func openCPU(context.Context, *config) (backend, Info, error) {
	d, err := cpu.Open()
	if err != nil {
		return nil, Info{}, err
	}
	i := d.Info()
	return d, Info{Name: i.Name, Backend: i.Tier, identity: fmt.Sprintf("%+v", i)}, nil
}
