package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
)

func TestEveryEntryHasAKernel(t *testing.T) {
	for _, e := range catalogue.All() {
		elementwise, other := spanOf(e) != nil, loweringOf(e) != nil
		require.True(t, elementwise != other, "%s has no kernel, or two", e.Name)
		require.Equal(t, e.Class.Elementwise(), elementwise, e.Name)
	}
	require.Len(t, catalogue.All(), len(table.spans)+len(table.lowerings), "a kernel has no entry")
}

// Few chunks are of equal size and an even number; all units are in one.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		units  int
		ns     float64
		chunks int
	}{{0, 1, 0}, {1, 1e9, 1}, {1000, 1, 1}, {30_000, 1, 2}, {60_000, 1, 4}, {3, 1e6, 3}, {400_000, 1, 16}, {1 << 30, 1e-9, 430}, {100, 1e4, 34}} {
		p := phase{units: c.units, ns: c.ns}
		p.cut()
		require.Positive(t, p.grain)
		require.Equal(t, c.chunks, engine.CeilDiv(c.units, p.grain), "%+v", c)
		if c.chunks > 1 && c.chunks < evenChunks {
			require.Less(t, c.chunks*p.grain-c.units, c.chunks, "%+v: the last chunk is shorter than the others", c)
		}
	}
}
