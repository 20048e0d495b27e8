package gpu

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/program"
)

// maxTimestamps is the limit of a query set of WebGPU, less the first and the last timestamp of a submission.
const maxTimestamps = 4096 - 2

// checkTimes reports a run whose steps cannot be measured.
func (e *compiled) checkTimes(io *program.IO) error {
	switch {
	case io.Times == nil:
	case !e.d.info.has(webgpu.FeatureTimestamps):
		return fmt.Errorf("times of steps: adapter %s has no timestamps: %w", e.d.info.Name, compute.ErrUnsupported)
	case len(io.Times)+1 > maxTimestamps:
		return fmt.Errorf("times of %d steps, at most %d are possible: %w", len(io.Times), maxTimestamps-1, compute.ErrTooLarge)
	}
	return nil
}

// reach is called before action i is recorded, and after the last. It records the timestamps before the first step and after each.
func (r *run) reach(i int) {
	if r.io.Times == nil {
		return
	}
	for n := r.sub.Timestamps; n == 0 || n <= len(r.ends) && r.ends[n-1] == i; n++ {
		r.sub.Commands = append(r.sub.Commands, webgpu.Command{Timestamp: true})
		r.sub.Timestamps++
	}
}
