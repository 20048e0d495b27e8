package tiling

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// The model itself: the best comes first, shares are equal, and what is cut up has several parts.
func TestCutsModel(t *testing.T) {
	rng := ptxtest.Random(t)
	streams := 0
	for range 2000 {
		multiprocessors := 1 + rng.IntN(150)
		m := catalogue.MatMulDims{Batch: 1 + rng.IntN(3), M: 1 + rng.IntN(4000), N: 1 + rng.IntN(4000), K: 1 + rng.IntN(9000)}
		of := GridOf(m, 128, kerneltest.OneOf(rng, 128, 256), kerneltest.OneOf(rng, 1, 8))
		cuts := of.Schedules(multiprocessors, m.K, kerneltest.OneOf(rng, 1, 2, 4), 1)
		tiles := of.Tiles() * of.Batch
		for i, c := range cuts {
			require.True(t, i == 0 || cuts[i-1].time <= c.time)
			require.Equal(t, tiles-c.Tiles+c.blocks, c.Items())
			if c.Parts == 1 {
				require.Zero(t, c.Tiles)
				continue
			}
			require.GreaterOrEqual(t, c.Length*DepthUnit, m.K)
			require.Greater(t, c.blocks*c.Share, c.Tiles*c.Length-c.Share)
			require.LessOrEqual(t, c.Elements, m.Batch*m.M*m.N)
			if strings.HasSuffix(c.Name, "streamk") {
				streams++
				require.Less(t, (c.Length-1)*DepthUnit, m.K)
			}
		}
	}
	require.Positive(t, streams)
}

// matmul_sum over tilings that no product has: small tiles, several groups of rows of them, products that end inside of tiles.
func TestSumOfParts(t *testing.T) {
	rng := ptxtest.Random(t)
	for range 20 {
		r := kerneltest.New(t, sim.Config{Checks: sim.AllChecks, Seed: rng.Uint64(), Perturb: true}, nil)
		s := &kit.Step{Step: &lowering.Step[*kit.Launch]{}, Caps: &r.Caps}
		m := catalogue.MatMulDims{Batch: 1 + rng.IntN(3), M: 1 + rng.IntN(40), N: 1 + rng.IntN(20)}
		of := GridOf(m, kerneltest.OneOf(rng, 1, 2, 4), kerneltest.OneOf(rng, 2, 4), kerneltest.OneOf(rng, 1, 2, 4))
		all := of.Tiles() * of.Batch
		length := 1 + rng.IntN(6)
		cuts := of.AppendSchedule(nil, "", 1+rng.IntN(all), length, 1+rng.IntN(2*length), 0)
		if len(cuts) == 0 {
			continue
		}
		c := cuts[0]
		total := m.Batch * m.M * m.N
		parts, bias, y := make([]byte, 4*c.Parts*c.Elements), []byte{}, make([]byte, 4*total)
		want := make([]float32, total)
		for i := range total {
			want[i] = -1 // what stays
			binary.LittleEndian.PutUint32(y[4*i:], math.Float32bits(-1))
		}
		for tile := range c.Tiles { // as the kernels number them
			z, in := tile/of.Tiles(), tile%of.Tiles()
			group, in := in/(of.group*of.Across), in%(of.group*of.Across)
			rows := min(of.Down-group*of.group, of.group)
			row, col := group*of.group+in%rows, in/rows
			first, last := tile*length/c.Share, ((tile+1)*length-1)/c.Share
			for i := row * of.m; i < min(m.M, (row+1)*of.m); i++ {
				for j := col * of.n; first < last && j < min(m.N, (col+1)*of.n); j++ {
					e := (z*m.M+i)*m.N + j
					require.Less(t, e, c.Elements)
					want[e] = float32(i % 7)
					for p := range last - first + 1 {
						x := float32(rng.IntN(100))
						want[e] += x
						binary.LittleEndian.PutUint32(parts[4*(p*c.Elements+e):], math.Float32bits(x))
					}
				}
			}
		}
		for i := range m.M {
			bias = binary.LittleEndian.AppendUint32(bias, math.Float32bits(float32(i%7)))
		}
		AddPartials(s, c, BiasOfRows, 0, nil, kit.In(0), kit.In(1), kit.In(2))
		s.Copy(kit.In(2), kit.Out, len(y))
		require.NoError(t, s.Err)
		got := r.Perform(t, s.Code, len(y), parts, bias, y)
		for i, w := range want {
			require.Equal(t, w, math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])), "element %d of %+v", i, c)
		}
	}
}
