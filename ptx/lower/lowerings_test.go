package lower

import (
	"testing"

	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/op"
)

// lowered are the entries that have code, in the order of the catalogue.
func lowered() (entries []*op.Entry) {
	for _, e := range op.All() {
		if lowerings[e] != nil {
			entries = append(entries, e)
		}
	}
	return entries
}

// TestLowerings executes every lowering over the suite's cases with every check of the software GPU on.
func TestLowerings(t *testing.T) {
	conformance.RunEach(t, "software GPU, every check", func(t *testing.T) op.Executor {
		return newRig(t, everyCheck(conformance.Seed()))
	}, lowered()...)
}
