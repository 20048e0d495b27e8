package sim_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/kernels"
	"github.com/wavelane/wavelane/ptx/sim"
)

// BenchmarkSGEMM is a whole kernel: register tiles, two stages of asynchronous copies.
func BenchmarkSGEMM(b *testing.B) {
	const n = 256
	for _, c := range []struct {
		name string
		cfg  sim.Config
	}{{"unchecked", sim.Config{}}, {"checked", sim.Config{Checks: sim.AllChecks}}} {
		b.Run(c.name, func(b *testing.B) {
			desc := kernels.SGEMM(kernels.Tile{M: 128, N: 64, K: 8, PerThreadM: 8, PerThreadN: 4})
			ir, err := desc.Module()
			require.NoError(b, err)
			g := sim.New(c.cfg)
			m, err := g.Load(ir)
			require.NoError(b, err)
			k, err := m.Kernel(desc.Name)
			require.NoError(b, err)
			rng := ptxtest.Replay(1)
			var at [3]uint64
			for i := range at {
				var raw []byte
				for range n * n {
					raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(rng.Float32()))
				}
				at[i], err = g.Alloc(len(raw))
				require.NoError(b, err)
				require.NoError(b, g.Write(at[i], raw))
			}
			params, err := k.Pack(uint32(n), uint32(n), uint32(n), at[0], at[1], at[2])
			require.NoError(b, err)
			grid := desc.Grid(n, n, n)
			l := sim.Launch{Params: params, Grid: sim.Dim3{X: grid[0], Y: grid[1], Z: grid[2]},
				Block: sim.Dim3{X: desc.Block[0], Y: desc.Block[1], Z: desc.Block[2]}}
			for b.Loop() {
				_, err := g.Run(context.Background(), k, l)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.N)*n*n*n/b.Elapsed().Seconds()/1e6, "Mlane-FMA/s")
		})
	}
}
