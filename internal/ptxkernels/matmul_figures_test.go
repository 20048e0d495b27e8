package ptxkernels

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxkernels/gemm"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

const matmulFigures = "testdata/matmul.tsv"

// What an iteration of the loop takes that multiplies tiles: a tile's depth.
func TestMatMulFigures(t *testing.T) {
	lines := []string{"kernel\tinstructions\tfma\tldmatrix\tmma\twgmma"}
	for _, f := range kit.Families() {
		m, err := f.Module()
		require.NoError(t, err)
		for _, fn := range m.Funcs {
			if !slices.ContainsFunc([]string{"mma_", "wgmma_", "gemm_async_"}, func(p string) bool { return strings.HasPrefix(fn.Name, p) }) {
				continue
			}
			n := loopFigures(t, fn)
			lines = append(lines, fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d", fn.Name, n["all"], n["fma"], n["ldmatrix"], n["mma"], n["wgmma.mma_async"]))
			switch {
			case strings.HasPrefix(fn.Name, "gemm_async_"):
				require.Equal(t, gemm.AsyncTile.M*gemm.AsyncTile.N*gemm.AsyncTile.K/tiling.GemmThreads, n["fma"], fn.Name)
				require.GreaterOrEqual(t, float64(n["fma"])/float64(n["all"]), 0.9, "%s: share of fma", fn.Name)
			case strings.HasPrefix(fn.Name, "wgmma_"):
				products := 1 // of parts of operands
				if strings.HasPrefix(fn.Name, "wgmma_tf32x3_") {
					products = 3
				}
				require.Equal(t, products*gemm.WgmmaSteps, n["wgmma.mma_async"], fn.Name)
			default:
				require.Positive(t, n["mma"], fn.Name)
			}
		}
	}
	text := strings.Join(lines, "\n") + "\n"
	if *updateFigures {
		require.NoError(t, os.WriteFile(matmulFigures, []byte(text), 0o644))
	}
	want, err := os.ReadFile(matmulFigures)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "go test -run MatMulFigures -update-figures writes the table anew")
}

// loopFigures counts the instructions of the innermost loop that multiplies, by their names.
func loopFigures(t *testing.T, f *ir.Func) map[string]int {
	g := flow.New(f)
	for _, l := range slices.Backward(g.Loops) { // inner loops come last
		n := map[string]int{}
		for _, b := range l.Blocks {
			for _, in := range f.Body[g.Blocks[b].Start:g.Blocks[b].End] {
				if in.Kind() != ir.Directive {
					n[string(in.Op)]++
					n["all"]++
				}
			}
		}
		if n["fma"] >= 512 || n["mma"]+n["wgmma.mma_async"] > 0 {
			return n
		}
	}
	t.Fatalf("%s has no loop that multiplies", f.Name)
	return nil
}
