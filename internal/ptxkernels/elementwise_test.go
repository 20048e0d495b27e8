package ptxkernels

import (
	"testing"

	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
)

// Tolerances hold where approximate instructions err as far as PTX says they may. Exact entries have none.
func TestElementwisePerturbed(t *testing.T) {
	var entries []*program.Entry
	for _, e := range lowered() {
		if e.Class.Elementwise() && e.Tol != (program.Tolerance{}) {
			entries = append(entries, e)
		}
	}
	c := kerneltest.EveryCheck(conformance.Seed())
	c.Perturb = true
	conformance.RunEach(t, "software GPU, errors as documented", 2, func(t *testing.T) program.Executor { return NewRig(t, c) }, entries...)
}
