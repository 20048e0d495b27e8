package opt_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/kernels"
	"github.com/wavelane/wavelane/ptx/opt"
	"github.com/wavelane/wavelane/ptx/sim"
)

// launch runs a kernel of the library with sizes of 70 (4900 where there is one alone) and returns all its buffers.
func launch(t *testing.T, k kernels.Kernel, m *ir.Module, rng *rand.Rand) (out [][]byte, lanes uint64) {
	t.Helper()
	const buffer = 70 * 70 * 4
	g := sim.New(sim.Config{})
	loaded, err := g.Load(m)
	require.NoError(t, err)
	kernel, err := loaded.Kernel(k.Name)
	require.NoError(t, err)
	sizes := slices.Repeat([]int{70}, len(strings.Fields(k.Sizes)))
	if len(sizes) == 1 {
		sizes[0] = 70 * 70
	}
	var args []any
	var at []uint64
	for _, p := range kernel.Params() {
		switch {
		case p.Type == ir.F32:
			args = append(args, float32(3))
		case p.Type == ir.U32 && p.Name != "bins":
			args = append(args, uint32(sizes[0]))
		case p.Type == ir.U32:
			args = append(args, uint32(70))
		default:
			data := make([]byte, buffer)
			if !slices.Contains([]string{"done", "state", "count"}, p.Name) {
				fill(data, k.Name, rng)
			}
			a, err := g.Alloc(buffer)
			require.NoError(t, err)
			require.NoError(t, g.Write(a, data))
			at, args = append(at, a), append(args, a)
		}
	}
	params, err := kernel.Pack(args...)
	require.NoError(t, err)
	grid := k.Grid(sizes...)
	shared := 0
	if k.Name == "histogram" {
		shared = 70 * 4
	}
	stats, err := g.Run(context.Background(), kernel, sim.Launch{Grid: sim.Dim3{X: grid[0], Y: grid[1], Z: grid[2]},
		Block: sim.Dim3{X: k.Block[0], Y: k.Block[1], Z: k.Block[2]}, Shared: shared,
		Params: params})
	require.NoError(t, err, "%s", m)
	for _, a := range at {
		p := make([]byte, buffer)
		require.NoError(t, g.Read(p, a))
		out = append(out, p)
	}
	return out, stats.Lanes
}

// fill makes small whole numbers, whose sums do not depend on an order; halves for hgemm, bins for histogram.
func fill(data []byte, kernel string, rng *rand.Rand) {
	for i := 0; i < len(data); i += 4 {
		v := math.Float32bits(float32(rng.IntN(16)))
		switch {
		case kernel == "histogram":
			v = uint32(rng.IntN(70))
		case strings.HasPrefix(kernel, "hgemm"):
			v = 0x3c004000 + uint32(rng.IntN(2)<<31) // ±1, 2
		}
		binary.LittleEndian.PutUint32(data[i:], v)
	}
}

// everything is what TestKernels and TestPtxasKernels ask for.
var everything = []opt.Options{{Passes: opt.All}, {Passes: opt.All, Unroll: 4}}

// TestKernels rewrites the library's kernels: barriers, shared memory, matrices, copies in the background. They compute the
// same, in fewer instructions.
func TestKernels(t *testing.T) {
	rng := ptxtest.Random(t)
	seed := rng.Uint64()
	for _, k := range kernels.All() {
		m, err := k.Module()
		require.NoError(t, err)
		want, before := launch(t, k, m, ptxtest.Replay(seed))
		for _, o := range everything {
			got, stats, err := opt.Run(m, o)
			require.NoError(t, err)
			require.NoError(t, ir.Validate(got), "%s", got)
			out, after := launch(t, k, got, ptxtest.Replay(seed))
			require.Equal(t, want, out, "%s", got)
			require.LessOrEqual(t, after, before, k.Name)
			t.Logf("%s, unroll %d: %d instructions, then %d; executed by lanes %d, then %d", k.Name, o.Unroll, stats.Before, stats.After,
				before, after)
		}
	}
}
