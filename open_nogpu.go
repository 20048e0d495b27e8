//go:build nogpu

package wavelane

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

var gpuCandidate = candidate{"gpu", func(context.Context, *config) (*opened, error) {
	return nil, fmt.Errorf("left out of this build by -tags nogpu: %w", compute.ErrUnavailable)
}}
