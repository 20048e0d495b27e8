package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
)

func TestEveryEntryHasAKernel(t *testing.T) {
	for _, e := range catalogue.All() {
		elementwise, other := spanOf(e) != nil, loweringOf(e) != nil
		require.True(t, elementwise != other, "%s has no kernel, or two", e.Name)
		require.Equal(t, e.Class.Elementwise(), elementwise, e.Name)
	}
	require.Len(t, catalogue.All(), len(table.spans)+len(table.lowerings), "a kernel has no entry")
}
