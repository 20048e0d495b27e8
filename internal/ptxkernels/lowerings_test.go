package ptxkernels

import (
	"testing"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
)

// lowered are the entries that have code, in the order of the catalogue.
func lowered() (entries []*program.Entry) {
	for _, e := range catalogue.All() {
		if _, ok := table()[e]; ok {
			entries = append(entries, e)
		}
	}
	return entries
}

// checkedOf is of how many cases TestLowerings takes one, others by each seed: package conformance runs all of them, through the
// driver and without the checks, and TestSchedules every kernel. make proofs takes all here too.
const checkedOf = 12

// TestLowerings executes every lowering over the suite's cases with every check of the software GPU on.
func TestLowerings(t *testing.T) {
	conformance.RunEach(t, "software GPU, every check", checkedOf, func(t *testing.T) program.Executor {
		return NewRig(t, kerneltest.EveryCheck(conformance.Seed()))
	}, lowered()...)
}
