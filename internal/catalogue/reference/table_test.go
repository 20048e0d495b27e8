package reference

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
)

// Entries that are not elementwise have values here, all others have them as their F.
func TestEveryEntryHasValues(t *testing.T) {
	for _, e := range catalogue.All() {
		f, ok := functions()[e]
		require.Equal(t, e.F == nil, f.values != nil, e.Name)
		require.True(t, !ok || f.values != nil || f.magnitudes != nil, "%s says nothing", e.Name)
	}
	for e := range functions() {
		require.Same(t, e, catalogue.Lookup(e.Name))
	}
}
