package lower

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/internal/ptxtest"
)

const (
	sassFile = "testdata/sass.tsv"
	sassHead = "kernel\tsha256 of the PTX, beginning\ttarget\tinner loop\tFFMA\tHMMA\tHGMMA\tshare of these"
)

// worked are the kernels whose inner loop has to be little but arithmetic, by the beginnings of their names: on which target, by
// which instructions, and what share of the loop these are at least.
var worked = []struct {
	prefix, target, kind string
	share                float64
}{
	{"gemm_async_", "sm_80", "FFMA", 0.90},
	{"gemm_async_", "sm_90", "FFMA", 0.90},
	{"mma_", "sm_80", "HMMA", 0},
	{"mma_", "sm_90", "HMMA", 0},
	{"wgmma_", "sm_90a", "HGMMA", 0},
	{"attention_mma", "sm_90", "HMMA", 0.19}, // of the loop over tiles that all rows see
}

// sassRows is the table as the tools make it, and what falls short.
func sassRows(t *testing.T, ptxas, nvdisasm string) (rows []string) {
	t.Helper()
	for _, f := range Families() {
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
				rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t%d\t%d\t%.3f", name, ptxtest.Hash(m), target, best.Count(), best.Count("FFMA"),
					best.Count("HMMA"), best.Count("HGMMA"), float64(best.Count(kind))/float64(best.Count())))
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
		require.Len(t, f, 8, r)
		var loop, ffma, hmma, hgmma int
		var share float64
		_, err := fmt.Sscan(strings.Join(f[3:], " "), &loop, &ffma, &hmma, &hgmma, &share)
		require.NoError(t, err, r)
		counts := map[string]int{"FFMA": ffma, "HMMA": hmma, "HGMMA": hgmma}
		for _, w := range worked {
			if w.target == f[2] && strings.HasPrefix(f[0], w.prefix) {
				require.Positive(t, counts[w.kind], r)
				require.GreaterOrEqual(t, float64(counts[w.kind])/float64(loop), w.share, r)
			}
		}
		seen[f[0]+" "+f[1]+" "+f[2]] = true
	}
	n := 0
	for _, fam := range Families() {
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
