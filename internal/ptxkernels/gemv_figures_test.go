package ptxkernels

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

var updateFigures = flag.Bool("update-figures", false, "write the table of what the inner loops of gemv take")

const gemvFigures = "testdata/gemv.tsv"

// What the inner loop of a gemv, over four neighbours at least, takes for each element of the matrix and vector. Taking pairs
// apart, and bits in registers of other types (mov.b32), is no instruction of the GPU and not counted.
func TestGemvFigures(t *testing.T) {
	module, err := kit.FamilyOf("matmul").Module()
	require.NoError(t, err)
	lines := []string{"kernel\tinstructions\tmultiplications\tper multiplication"}
	for _, kernel := range kit.FamilyOf("matmul").Kernels {
		if !strings.HasPrefix(kernel.Name, "gemv_") {
			continue
		}
		instructions, products := gemvLoop(t, module.String(), kernel.Name)
		lines = append(lines, fmt.Sprintf("%s\t%d\t%d\t%.2f", kernel.Name, instructions, products, float64(instructions)/float64(products)))
	}
	text := strings.Join(lines, "\n") + "\n"
	if *updateFigures {
		require.NoError(t, os.WriteFile(gemvFigures, []byte(text), 0o644))
	}
	want, err := os.ReadFile(gemvFigures)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "go test -run GemvFigures -update-figures writes the table anew")
}

// gemvLoop counts the instructions and the multiplications of the loop that reads most at a time: the first unrolled one.
func gemvLoop(t *testing.T, module, name string) (instructions, products int) {
	_, text, ok := strings.Cut(module, ".entry "+name+"(")
	require.True(t, ok, name)
	_, text, ok = strings.Cut(text, "_unrolled:\n")
	require.True(t, ok, name)
	loop, _, ok := strings.Cut(text, "_unrolled;\n") // the branch back
	require.True(t, ok, name)
	for line := range strings.Lines(loop + "_unrolled;\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasSuffix(line, ":") || strings.HasPrefix(line, "mov.b32 "):
			continue
		case strings.HasPrefix(line, "fma.rn.f32"):
			products++
		}
		instructions++
	}
	require.Positive(t, products, name)
	return instructions, products
}
