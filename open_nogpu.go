//go:build nogpu

package wavelane

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

var gpuCandidate = candidate{"gpu", func(context.Context, *config) (backend, Info, error) {
	return nil, Info{}, fmt.Errorf("left out of this build by -tags nogpu: %w", compute.ErrUnavailable)
}}
