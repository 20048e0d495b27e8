package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
)

func TestEveryEntryHasAKernel(t *testing.T) {
	named := map[string]bool{}
	for _, e := range catalogue.All() {
		named[e.Name] = true
		_, elementwise := engine.Spans[e.Name]
		_, other := lowerings[e.Name]
		require.True(t, elementwise != other, "%s has no kernel, or two", e.Name)
		require.Equal(t, e.Class.Elementwise(), elementwise, e.Name)
	}
	for name := range engine.Spans {
		require.True(t, named[name], "kernel %s has no entry", name)
	}
	for name := range lowerings {
		require.True(t, named[name], "kernel %s has no entry", name)
	}
}
