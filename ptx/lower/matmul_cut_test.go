package lower

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// ofHalves is a product a lowering of which is to be chosen.
func ofHalves(t *testing.T, caps Caps, batch, m, k, n int) (names []string, first Lowering) {
	s := &program.Step{Entry: catalogue.MatMul, Attr: program.Attr{Options: compute.MatMulOptions{}}}
	in := []program.Type{{DType: compute.Float16, Shape: []int{batch, m, k}}, {DType: compute.Float16, Shape: []int{batch, k, n}}}
	out, err := catalogue.MatMul.Check(in, s.Attr)
	require.NoError(t, err)
	first, err = Lower(s, in, out, &caps, func(_, _ string, c []string) int {
		names = c
		return 0
	})
	require.NoError(t, err)
	return names, first
}

// The first candidate is the one that takes least time by the model, whose figures for these shapes are as they should be.
func TestCutsChosen(t *testing.T) {
	old, new := DefaultCaps, DefaultCaps
	old.Target.SM, old.Target.Suffix = 80, ""
	for _, c := range []struct {
		caps           Caps
		batch, m, k, n int
		want           string
		kernels        int
	}{
		// 272 tiles on 264 places: a second wave for eight of them, or 66 units each.
		{old, 1, 17 * 128, 4096, 16 * 128, "mma_128x128/streamk", 2},
		{old, 1, 16 * 128, 4096, 16 * 128, "mma_128x128", 1},         // one wave, nearly full
		{old, 1, 17 * 128, 512, 16 * 128, "mma_128x128", 1},          // the second wave is as short as adding up
		{old, 1, 64, 8192, 64, "mma_64x64/splitk", 2},                // one tile: parts are equal anyway
		{old, 1, 40 * 128, 2048, 20 * 128, "mma_128x128/streamk", 2}, // 800 tiles are 3.03 waves
		{old, 8, 17 * 64, 2048, 9 * 128, "mma_128x128/streamk", 2},   // 648 tiles of a batch are 2.45 waves
		{new, 1, 12 * 128, 4096, 12 * 256, "wgmma_128x256/streamk", 2},
		{new, 1, 11 * 128, 4096, 12 * 256, "wgmma_128x256", 1},        // 132 tiles, a block each
		{new, 1, 5 * 128, 16384, 4 * 256, "wgmma_128x256/streamk", 2}, // 20 tiles: split-K has waves of its own
		{old, 1, 16, 256, 16, "mma_64x64", 1},
	} {
		t.Run(fmt.Sprintf("%d*%dx%dx%d", c.batch, c.m, c.k, c.n), func(t *testing.T) {
			names, l := ofHalves(t, c.caps, c.batch, c.m, c.k, c.n)
			require.Equal(t, c.want, names[0], "of %v", names)
			require.Len(t, l.Actions, c.kernels)
		})
	}
}

// The model itself: the best comes first, shares are equal, and what is cut up has several parts.
func TestCutsModel(t *testing.T) {
	rng := ptxtest.Random(t)
	streams := 0
	for range 2000 {
		caps := Caps{Multiprocessors: 1 + rng.IntN(150), MaxGrid: DefaultCaps.MaxGrid}
		m := matmul{step: &step{caps: &caps}}
		m.Batch, m.M, m.N, m.K = 1+rng.IntN(3), 1+rng.IntN(4000), 1+rng.IntN(4000), 1+rng.IntN(9000)
		of := tilingOf(m.MatMulDims, 128, oneOf(rng, 128, 256), oneOf(rng, 1, 8))
		cuts := of.cuts(m.caps.Multiprocessors, m.K, oneOf(rng, 1, 2, 4))
		tiles := of.tiles() * of.batch
		for i, c := range cuts {
			require.True(t, i == 0 || cuts[i-1].time <= c.time)
			require.Equal(t, tiles-c.tiles+c.blocks, c.items())
			if c.parts == 1 {
				require.Zero(t, c.tiles)
				continue
			}
			require.GreaterOrEqual(t, c.length*depthUnit, m.K)
			require.Greater(t, c.blocks*c.share, c.tiles*c.length-c.share)
			require.LessOrEqual(t, c.elements, m.Batch*m.M*m.N)
			if strings.HasSuffix(c.name, "streamk") {
				streams++
				require.Less(t, (c.length-1)*depthUnit, m.K)
			}
		}
	}
	require.Positive(t, streams)
}

// matmul_sum over tilings that no product has: small tiles, several groups of rows of them, products that end inside of tiles.
func TestSumOfParts(t *testing.T) {
	rng := ptxtest.Random(t)
	for range 20 {
		r := newRig(t, sim.Config{Checks: sim.AllChecks, Seed: rng.Uint64(), Perturb: true})
		m := matmul{step: &step{caps: &r.caps}}
		m.Batch, m.M, m.N = 1+rng.IntN(3), 1+rng.IntN(40), 1+rng.IntN(20)
		of := tilingOf(m.MatMulDims, oneOf(rng, 1, 2, 4), oneOf(rng, 2, 4), oneOf(rng, 1, 2, 4))
		all := of.tiles() * of.batch
		length := 1 + rng.IntN(6)
		cuts := of.cut(nil, "", 1+rng.IntN(all), length, 1+rng.IntN(2*length), 0)
		if len(cuts) == 0 {
			continue
		}
		c := cuts[0]
		total := m.Batch * m.M * m.N
		parts, bias, y := make([]byte, 4*c.parts*c.elements), []byte{}, make([]byte, 4*total)
		want := make([]float32, total)
		for i := range total {
			want[i] = -1 // what stays
			binary.LittleEndian.PutUint32(y[4*i:], math.Float32bits(-1))
		}
		for tile := range c.tiles { // as the kernels number them
			z, in := tile/of.tiles(), tile%of.tiles()
			group, in := in/(of.group*of.across), in%(of.group*of.across)
			rows := min(of.down-group*of.group, of.group)
			row, col := group*of.group+in%rows, in/rows
			first, last := tile*length/c.share, ((tile+1)*length-1)/c.share
			for i := row * of.m; i < min(m.M, (row+1)*of.m); i++ {
				for j := col * of.n; first < last && j < min(m.N, (col+1)*of.n); j++ {
					e := (z*m.M+i)*m.N + j
					require.Less(t, e, c.elements)
					want[e] = float32(i % 7)
					for p := range last - first + 1 {
						x := float32(rng.IntN(100))
						want[e] += x
						binary.LittleEndian.PutUint32(parts[4*(p*c.elements+e):], math.Float32bits(x))
					}
				}
			}
		}
		for i := range m.M {
			bias = binary.LittleEndian.AppendUint32(bias, math.Float32bits(float32(i%7)))
		}
		addUp(m.step, c, biasOfRows, 0, nil, operand(0), operand(1), operand(2))
		m.copyBytes(operand(2), result, len(y))
		require.NoError(t, m.err)
		got := r.perform(t, m.Lowering, len(y), parts, bias, y)
		for i, w := range want {
			require.Equal(t, w, math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])), "element %d of %+v", i, c)
		}
	}
}
