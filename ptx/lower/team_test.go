package lower

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/wavelane/wavelane/internal/program"
	"pgregory.net/rapid"
)

// TestSplit checks what kernels rely on, up to the largest tensors.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := step{caps: &Caps{Multiprocessors: rapid.IntRange(1, 200).Draw(t, "multiprocessors")}}
		rows := rapid.IntRange(1, program.MaxElements).Draw(t, "rows")
		cols := rapid.IntRange(0, program.MaxElements/rows).Draw(t, "cols")
		blocks, longest := rapid.IntRange(1, 8).Draw(t, "blocks"), 4*rapid.IntRange(1024, 1<<17).Draw(t, "longest")
		w := splitRows(&s, rows, cols, blocks, longest)
		w.lanes = teamLanes(&s, w, 1, 4, 4)
		require.Zero(t, w.chunk%4)
		require.LessOrEqual(t, w.chunk, max(longest, 4))
		require.GreaterOrEqual(t, w.parts*w.chunk, cols)
		require.True(t, cols == 0 || (w.parts-1)*w.chunk < cols, "an empty part: %+v", w)
		require.True(t, w.parts == 1 || cols/w.parts >= smallTask/2 || w.parts == ceilDiv(cols, w.chunk), "%+v", w)
		require.LessOrEqual(t, w.tasks(), math.MaxInt32)
		require.LessOrEqual(t, w.grid()[0], math.MaxInt32)
		require.GreaterOrEqual(t, w.grid()[0]*(teamThreads/w.lanes), w.tasks())
		require.True(t, w.lanes&(w.lanes-1) == 0 && w.lanes <= teamThreads)
	})
}
