package threadgroup

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// TestSplit checks what kernels rely on, up to the largest tensors.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := kit.Step{Caps: &kit.Caps{Multiprocessors: rapid.IntRange(1, 200).Draw(t, "multiprocessors")}}
		rows := rapid.IntRange(1, program.MaxElements).Draw(t, "rows")
		cols := rapid.IntRange(0, program.MaxElements/rows).Draw(t, "cols")
		blocks, longest := rapid.IntRange(1, 8).Draw(t, "blocks"), 4*rapid.IntRange(1024, 1<<17).Draw(t, "longest")
		w := Split(&s, rows, cols, blocks, longest)
		w.Lanes = Lanes(&s, w, 1, 4, 4)
		require.Zero(t, w.Chunk%4)
		require.LessOrEqual(t, w.Chunk, max(longest, 4))
		require.GreaterOrEqual(t, w.Parts*w.Chunk, cols)
		require.True(t, cols == 0 || (w.Parts-1)*w.Chunk < cols, "an empty part: %+v", w)
		require.True(t, w.Parts == 1 || cols/w.Parts >= smallTask/2 || w.Parts == kit.CeilDiv(cols, w.Chunk), "%+v", w)
		require.LessOrEqual(t, w.Tasks(), math.MaxInt32)
		require.LessOrEqual(t, w.Grid()[0], math.MaxInt32)
		require.GreaterOrEqual(t, w.Grid()[0]*(Threads/w.Lanes), w.Tasks())
		require.True(t, w.Lanes&(w.Lanes-1) == 0 && w.Lanes <= Threads)
	})
}
