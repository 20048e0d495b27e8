package lower

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/ptx/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// The model itself: the best comes first, shares are equal, and what is cut up has several parts.
func TestCutsModel(t *testing.T) {
	rng := ptxtest.Random(t)
	streams := 0
	for range 2000 {
		multiprocessors := 1 + rng.IntN(150)
		m := catalogue.MatMulDims{Batch: 1 + rng.IntN(3), M: 1 + rng.IntN(4000), N: 1 + rng.IntN(4000), K: 1 + rng.IntN(9000)}
		of := tilingOf(m, 128, oneOf(rng, 128, 256), oneOf(rng, 1, 8))
		cuts := of.cuts(multiprocessors, m.K, oneOf(rng, 1, 2, 4))
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
		r := newRigOf(t, sim.Config{Checks: sim.AllChecks, Seed: rng.Uint64(), Perturb: true}, nil)
		s := &step{caps: &r.caps}
		m := catalogue.MatMulDims{Batch: 1 + rng.IntN(3), M: 1 + rng.IntN(40), N: 1 + rng.IntN(20)}
		of := tilingOf(m, oneOf(rng, 1, 2, 4), oneOf(rng, 2, 4), oneOf(rng, 1, 2, 4))
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
		addUp(s, c, biasOfRows, 0, nil, operand(0), operand(1), operand(2))
		s.copyBytes(operand(2), result, len(y))
		require.NoError(t, s.err)
		got := r.perform(t, s.Lowering, len(y), parts, bias, y)
		for i, w := range want {
			require.Equal(t, w, math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])), "element %d of %+v", i, c)
		}
	}
}
