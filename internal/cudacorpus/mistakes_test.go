package cudacorpus

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sanitize"
	"github.com/wavelane/wavelane/ptx/sim"
)

// mistake is a kernel of testdata/mistakes, with what is to be said of it.
type mistake struct {
	run
	tool sanitize.Tools // of the software GPU, and what it says
	said string
	// What the analyser finds without executing it, when it does not know the launch and when it does; perhaps of what is compiled for
	// some of the architectures only.
	class, known []string
}

// wrong is a kernel that has a mistake. Its arguments are floats, of which there are so many, or others.
func wrong(kernel string, grid, block sim.Dim3, tool sanitize.Tools, said, class, known string, args ...any) mistake {
	return mistake{run{file: "mistakes", kernel: kernel, grid: grid, block: block, args: func(*rand.Rand) []any {
		list := slices.Clone(args)
		for i, a := range args {
			switch n := a.(type) {
			case int:
				list[i] = in(make([]float32, n))
			case int32:
				list[i] = n
			}
		}
		return list
	}}, tool, said, strings.Fields(class), strings.Fields(known)}
}

// from is the mistake where it is one: from an architecture on.
func (m mistake) from(least int) mistake {
	m.least = least
	return m
}

var mistakes = []mistake{
	wrong("tree_without_barrier", dims(2), dims(128), sanitize.Racecheck, "Race reported", "MissingBarrierSync", "MissingBarrierSync", 256, scratch(8)),
	wrong("warp_in_step", dims(2), dims(64), sanitize.Racecheck, "Race reported", "Race", "Race", 128, scratch(8)),
	wrong("tile_filled_early", dims(1), dims(16, 16), sanitize.Racecheck, "Race reported", "Race", "Race", 16*32, 32*16, scratch(1024), int32(32)),
	wrong("count_without_atomics", dims(2), dims(32), sanitize.Racecheck, "Race reported", "", "", in(make([]int32, 64)), zeros(16), int32(64)),
	wrong("one_too_many", dims(2), dims(64), sanitize.Memcheck, "Invalid __global__ read of size 4 bytes", "", "OutOfBounds", 100, int32(100)),
	wrong("halo", dims(1), dims(64), sanitize.Memcheck, "Invalid __shared__ read of size 4 bytes", "OutOfBounds", "OutOfBounds", 64, scratch(256)),
	wrong("tail_not_written", dims(1), dims(128), sanitize.Initcheck, "Uninitialized __shared__ memory read of size 4 bytes", "", "UninitializedShared", 100, scratch(4), int32(100)),
	wrong("sum_from_nothing", dims(1), dims(32), sanitize.Initcheck, "Uninitialized __global__ memory read of size 4 bytes", "", "", 32, scratch(4)),
	wrong("barrier_for_some", dims(1), dims(64), sanitize.Synccheck, "Barrier error detected", "BarrierUnderDivergence MissingBarrierSync", "BarrierUnderDivergence MissingBarrierSync", 64, scratch(256)),
	wrong("shuffle_after_return", dims(1), dims(64), sanitize.Synccheck, "Barrier error detected", "FullMaskAfterExit", "FullMaskAfterExit", 50, zeros(4), int32(50)),
	wrong("last_block_without_fence", dims(4), dims(32), sanitize.Racecheck, "Race reported", "", "", 4, scratch(16), zeros(4), scratch(4)),
	wrong("four_from_anywhere", dims(1), dims(8), sanitize.Memcheck, "Invalid __global__ read of size 16 bytes", "UnalignedMemoryAccess", "UnalignedMemoryAccess", 40, scratch(128)),
	wrong("copy_not_awaited", dims(1), dims(64), sanitize.Racecheck, "Hazard with an asynchronous operation", "MissingAsyncWait", "MissingAsyncWait", 64, scratch(256)).from(80),
}

// TestMistakes: mistakes that kernels in use were found to have are found on every schedule, for every architecture, and by the tool of
// compute-sanitizer's that is for them; some by the analyser, too.
func TestMistakes(t *testing.T) {
	architectures := nvrtcArchitectures
	if !whole() {
		architectures = architectures[:2]
	}
	units := compile(t, "cuda", filepath.Join("testdata", "mistakes"), sources(t, filepath.Join("testdata", "mistakes"), ".cu"), architectures)
	rng := ptxtest.Random(t)
	table := "| kernel | the software GPU says | the analyser, of the kernel alone | knowing the launch |\n|---|---|---|---|\n"
	for _, m := range mistakes {
		found := [2]map[string]bool{{}, {}}
		for _, u := range units {
			if !m.covers(u.arch) {
				continue
			}
			name := m.kernel + " for " + u.arch
			for n := range 4 {
				err := m.execute(u.module, sanitize.All&^m.tool, uint64(n)*(1+rng.Uint64N(1<<60)), rng)
				if err == nil || !strings.Contains(err.Error(), m.said) {
					t.Errorf("%s, schedule %d: %v, want %s", name, n, err, m.said)
				}
			}
			for known, want := range [][]string{m.class, m.known} {
				for _, f := range m.analysis(t, u.module, known == 1).Findings {
					if !slices.Contains(want, string(f.Class)) {
						t.Errorf("%s, launch known %v: the analyser says %s, which is not listed", name, known == 1, f.Class)
					}
					found[known][string(f.Class)] = true
				}
			}
		}
		if whole() {
			require.ElementsMatch(t, m.class, slices.Collect(maps.Keys(found[0])), "%s: what the analyser says", m.kernel)
			require.ElementsMatch(t, m.known, slices.Collect(maps.Keys(found[1])), "%s: what the analyser says, knowing the launch", m.kernel)
		}
		table += fmt.Sprintf("| `%s` | %s: %s | %s | %s |\n", m.kernel, m.tool, m.said, strings.Join(m.class, ", "), strings.Join(m.known, ", "))
	}
	record(t, "Mistakes", table)
}
