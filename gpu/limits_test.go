package gpu

import (
	"testing"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// Under limits far below what any adapter has, small tensors take the ways of those too large for one binding, for one
// dimension of the grid, or for the usual workgroups.
func TestEntriesUnderNarrowLimits(t *testing.T) {
	if testing.Short() { // for the race detector
		t.Skip("starts no goroutines")
	}
	narrow := wgsl.DefaultCaps
	narrow.MaxWorkgroups, narrow.MaxInvocations, narrow.MaxBinding = 500, 64, 8<<10
	d := open(t, WithLimits(narrow))
	var entries []*program.Entry
	for _, e := range catalogue.All() {
		if e.Class.Elementwise() || e.Class == program.Reduce || e.Class == program.Rows {
			entries = append(entries, e)
		}
	}
	conformance.RunEntries(t, "gpu under narrow limits", program.ExecutorOf(d), entries...)
}
