package gpu

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// What program.IO asks of times: a lap ends before the first step and behind each.

// mostLaps is what a query set of WebGPU has room for, besides the two stamps of the submission.
const mostLaps = 4096 - 2

// checkTimes reports a run whose steps cannot be measured.
func (e *executable) checkTimes(io *program.IO) error {
	switch {
	case io.Times == nil:
	case !e.d.info.has(featureTimestamps):
		return fmt.Errorf("times of steps: adapter %s has no timestamps: %w", e.d.info.Name, compute.ErrUnsupported)
	case len(io.Times)+1 > mostLaps:
		return fmt.Errorf("times of %d steps, at most %d are possible: %w", len(io.Times), mostLaps-1, compute.ErrTooLarge)
	}
	return nil
}

// reach is called before action i is recorded, and behind the last.
func (r *run) reach(i int) {
	if r.io.Times == nil {
		return
	}
	for n := r.sub.laps; n == 0 || n <= len(r.ends) && r.ends[n-1] == i; n++ {
		r.sub.commands = append(r.sub.commands, command{lap: true})
		r.sub.laps++
	}
}
