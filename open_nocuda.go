//go:build nocuda || js

package wavelane

import (
	"context"
	"fmt"
	"runtime"

	"github.com/wavelane/wavelane/compute"
)

var cudaCandidate = candidate{"cuda", func(context.Context, *config) (*opened, error) {
	reason := "left out of this build by -tags nocuda"
	if runtime.GOOS == "js" {
		reason = "NVIDIA's driver is out of a browser's reach"
	}
	return nil, fmt.Errorf("%s: %w", reason, compute.ErrUnavailable)
}}
