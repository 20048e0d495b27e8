//go:build cgo || js

package gpu

import (
	"testing"

	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/op"
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
	var entries []*op.Entry
	for _, e := range op.All() {
		if e.Class.Elementwise() || e.Class == op.Reduce || e.Class == op.Rows {
			entries = append(entries, e)
		}
	}
	conformance.RunEntries(t, "gpu under narrow limits", d, entries...)
}
