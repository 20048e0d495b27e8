package ptxkernels

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
)

const (
	sassFile = "testdata/sass.tsv"
	sassHead = "kernel\tsha256 of the PTX, beginning\ttarget\tinner loop\tFFMA\tHMMA\tHGMMA\tIDP\tIMMA\tshare of these"
)

// counted are the instructions that have columns.
var counted = []string{"FFMA", "HMMA", "HGMMA", "IDP", "IMMA"}

// worked are the kernels whose inner loop has to be little but arithmetic, by the beginnings of their names: on which target, by
// which instructions, and what share of the loop these are at least. Those of packed weights are to be bound by memory: of them it is
// how many instructions each weight may take, of which a lane has so many in an iteration of the loop. An H200 issues 2.9e13 for lanes in a
// second (132 multiprocessors, four warps a cycle, 1.7 GHz) and copies some 4.3e12 bytes: in the time that its bytes take, 3.8 for a
// weight of Q4_K, 4.6 of Q5_K, 5.5 of Q6_K, 7.1 of Q8_0, and half as many integer ones.
var worked = []struct {
	prefix, target, kind string
	share                float64
	weights              int
	each                 float64
}{
	{prefix: "gemm_async_", target: "sm_80", kind: "FFMA", share: 0.90},
	{prefix: "gemm_async_", target: "sm_90", kind: "FFMA", share: 0.90},
	{prefix: "mma_", target: "sm_80", kind: "HMMA"},
	{prefix: "mma_", target: "sm_90", kind: "HMMA"},
	{prefix: "wgmma_", target: "sm_90a", kind: "HGMMA"},
	{prefix: "attention_mma", target: "sm_90", kind: "HMMA", share: 0.19}, // of the loop over tiles that all rows see
	{prefix: "attention_wgmma", target: "sm_90a", kind: "HGMMA"},
	{prefix: "quant_dp4a_q4_k_1", target: "sm_90", kind: "IDP", weights: 128, each: 1.5},
	{prefix: "quant_dp4a_q5_k_1", target: "sm_90", kind: "IDP", weights: 128, each: 2},
	{prefix: "quant_dp4a_q6_k_1", target: "sm_90", kind: "IDP", weights: 128, each: 2.1},
	{prefix: "quant_dp4a_q8_0_1", target: "sm_90", kind: "IDP", weights: 64, each: 0.9},
	{prefix: "quant_thin_q4_k", target: "sm_90", kind: "IMMA", weights: 128, each: 2.6}, // for eight rows of x
	{prefix: "quant_thin_q5_k", target: "sm_90", kind: "IMMA", weights: 128, each: 3.4},
	{prefix: "quant_thin_q6_k", target: "sm_90", kind: "IMMA", weights: 128, each: 5.4},
	{prefix: "quant_thin_q8_0", target: "sm_90", kind: "IMMA", weights: 16, each: 3.5},
	{prefix: "quant_gemv_q4_k_1", target: "sm_90", kind: "FFMA", weights: 64, each: 6}, // for x of float32
	{prefix: "quant_columns_q4_k_1", target: "sm_90", kind: "FFMA", weights: 32, each: 6},
}

// sassRows is the table as the tools make it, and what falls short.
func sassRows(t *testing.T, ptxas, nvdisasm string) (rows []string) {
	t.Helper()
	for _, f := range kit.Families() {
		for _, target := range []string{"sm_80", "sm_90", "sm_90a"} {
			kinds := map[string]string{} // by kernel
			for _, k := range f.Kernels {
				for _, w := range worked {
					if w.target == target && strings.HasPrefix(k.Name, w.prefix) {
						kinds[k.Name] = w.kind
					}
				}
			}
			if len(kinds) == 0 {
				continue
			}
			m, err := f.Module()
			require.NoError(t, err)
			code, err := ptxtest.Disassemble(t, ptxas, nvdisasm, target, m.String())
			require.NoError(t, err, f.Name)
			for _, name := range slices.Sorted(maps.Keys(kinds)) {
				best, kind := ptxtest.Sass(nil), kinds[name]
				for _, loop := range code[name].Loops() {
					if loop.Count(kind) > best.Count(kind) {
						best = loop
					}
				}
				require.NotEmpty(t, best, "%s for %s has no loop of %s", name, target, kind)
				row := fmt.Sprintf("%s\t%s\t%s\t%d", name, ptxtest.Hash(m), target, best.Count())
				for _, c := range counted {
					row += fmt.Sprintf("\t%d", best.Count(c))
				}
				rows = append(rows, fmt.Sprintf("%s\t%.3f", row, float64(best.Count(kind))/float64(best.Count())))
			}
		}
	}
	return rows
}

// What the machine code of the inner loops consists of, by NVIDIA's tools: the table is what they say, wherever they are.
func TestPtxasSass(t *testing.T) {
	ptxas := ptxtest.Ptxas(t)
	nvdisasm, ok := ptxtest.FindNvdisasm(t)
	if !ok {
		require.False(t, *update, "there is no nvdisasm to write %s with: set NVDISASM", sassFile)
		t.Skip("nvdisasm is not in PATH, and NVDISASM is not set (the README says how to get it)")
	}
	rows := sassRows(t, ptxas, nvdisasm)
	if *update {
		require.NoError(t, os.WriteFile(sassFile, []byte(sassHead+"\n"+strings.Join(rows, "\n")+"\n"), 0o644))
	}
	checkSass(t, rows)
}

// The committed table is of the kernels as they are, and says that they are as they have to be.
func TestSassTable(t *testing.T) {
	text, err := os.ReadFile(sassFile)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Equal(t, sassHead, lines[0])
	checkSass(t, lines[1:])
}

func checkSass(t *testing.T, rows []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range rows {
		f := strings.Split(r, "\t")
		require.Len(t, f, 5+len(counted), r)
		loop, err := strconv.Atoi(f[3])
		require.NoError(t, err, r)
		counts := map[string]int{}
		for i, c := range counted {
			counts[c], err = strconv.Atoi(f[4+i])
			require.NoError(t, err, r)
		}
		for _, w := range worked {
			if w.target == f[2] && strings.HasPrefix(f[0], w.prefix) {
				require.Positive(t, counts[w.kind], r)
				require.GreaterOrEqual(t, float64(counts[w.kind])/float64(loop), w.share, r)
				if w.weights > 0 {
					require.LessOrEqual(t, float64(loop)/float64(w.weights), w.each, r)
				}
			}
		}
		seen[f[0]+" "+f[1]+" "+f[2]] = true
	}
	n := 0
	for _, fam := range kit.Families() {
		m, err := fam.Module()
		require.NoError(t, err)
		for _, k := range fam.Kernels {
			for _, w := range worked {
				if strings.HasPrefix(k.Name, w.prefix) {
					n++
					require.True(t, seen[k.Name+" "+ptxtest.Hash(m)+" "+w.target],
						"%s has changed since its machine code for %s was seen: make ptxas-check", k.Name, w.target)
				}
			}
		}
	}
	require.Len(t, seen, n, "%s tells of other kernels than there are: make ptxas-check", sassFile)
}
