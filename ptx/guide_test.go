package ptx_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/sim"
)

const side = 16 // of a tile, and of a block

// matmul is c = a·b for a of m × k, b of k × n: a block of 16 × 16 threads computes a tile of c, a thread an element.
func matmul(m *ptx.Module) {
	k := m.Kernel("matmul")
	k.RequireThreads(side, side, 1)
	rows, cols, depth := ptx.Param[uint32](k, "m"), ptx.Param[uint32](k, "n"), ptx.Param[uint32](k, "k")
	a, b := ptx.PointerParam[float32](k, "a"), ptx.PointerParam[float32](k, "b")
	c := ptx.PointerParam[float32](k, "c")
	layout := ptx.TileLayout{Rows: side, Cols: side, Pad: 1}
	tileA, tileB := ptx.NewTile[float32](k, "tile_a", layout, 1), ptx.NewTile[float32](k, "tile_b", layout, 1)

	x, y := k.Tid(ptx.X), k.Tid(ptx.Y)
	row, col := k.Ctaid(ptx.Y).Mad(side, y), k.Ctaid(ptx.X).Mad(side, x)
	sum := ptx.VarOf(k, ptx.F32(0))
	ptx.For(k, 0, depth, side, func(d ptx.Reg[uint32]) {
		// Each thread brings an element of either tile, zeros from beyond the matrices.
		dx, dy := d.Add(x), d.Add(y)
		inA, inB := row.Lt(rows).And(dx.Lt(depth)), dy.Lt(depth).And(col.Lt(cols))
		tileA.At(y, x).Store(ptx.LoadIf(inA, a.At(row.Mad(depth, dx)), 0))
		tileB.At(y, x).Store(ptx.LoadIf(inB, b.At(dy.Mad(cols, col)), 0))
		k.Barrier() // the tiles are there
		for i := range side {
			at := ptx.U32(i)
			sum.Set(tileA.At(y, at).Load().Fma(tileB.At(at, x).Load(), sum.Get()))
		}
		k.Barrier() // nobody reads them any longer
	})
	ptx.StoreIf(row.Lt(rows).And(col.Lt(cols)), c.At(row.Mad(cols, col)), sum.Get())
}

// blockSum is y = Σx, by one block of 256 threads.
func blockSum(m *ptx.Module) {
	k := m.Kernel("block_sum")
	k.RequireThreads(256, 1, 1)
	n := ptx.Param[uint32](k, "n")
	x, y := ptx.PointerParam[float32](k, "x"), ptx.PointerParam[float32](k, "y")
	ofWarps := ptx.SharedArray[float32](k, "of_warps", 8)

	tid := k.Tid(ptx.X)
	sum := ptx.VarOf(k, ptx.F32(0))
	ptx.For(k, tid, n, 256, func(i ptx.Reg[uint32]) { sum.Set(sum.Get().Add(x.At(i).Load())) })
	for d := 16; d > 0; d /= 2 { // a tree over the lanes of the warp
		sum.Set(sum.Get().Add(sum.Get().Shuffle(ptx.ShuffleXor, d, 32, ptx.FullWarp())))
	}
	k.When(tid.And(31).Eq(0), func() { ofWarps.At(tid.Shr(5)).Store(sum.Get()) })
	k.Barrier()
	k.If(tid.Eq(0), func() {
		total := ofWarps.Load()
		for w := 1; w < 8; w++ {
			total = total.Add(ofWarps.At(w).Load())
		}
		y.Store(total)
	})
}

// The kernels of the guide compute what they say, with every check of the software GPU on: at sizes that are no multiples of a tile.
func TestGuideKernels(t *testing.T) {
	random := ptxtest.Random(t)
	numbers := func(n int) []float32 { // integers, of which sums are exact
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(random.IntN(9) - 4)
		}
		return x
	}
	for _, s := range [][3]int{{1, 1, 1}, {16, 16, 16}, {17, 33, 5}, {40, 20, 50}, {3, 18, 0}} {
		m, n, k := s[0], s[1], s[2]
		a, b := numbers(m*k), numbers(k*n)
		want := make([]float32, m*n)
		for i := range m {
			for j := range n {
				for d := range k {
					want[i*n+j] += a[i*k+d] * b[d*n+j]
				}
			}
		}
		grid := sim.Dim3{X: (n + side - 1) / side, Y: (m + side - 1) / side}
		got := runGuide(t, matmul, sim.Launch{Grid: grid, Block: sim.Dim3{X: side, Y: side}}, []any{uint32(m), uint32(n), uint32(k)}, m*n, a, b)
		require.Equal(t, want, got, "%v", s)
	}
	for _, n := range []int{0, 1, 255, 256, 1000} {
		x, want := numbers(n), float32(0)
		for _, v := range x {
			want += v
		}
		got := runGuide(t, blockSum, sim.Launch{Grid: sim.Dim3{X: 1}, Block: sim.Dim3{X: 256}}, []any{uint32(n)}, 1, x)
		require.Equal(t, []float32{want}, got, "%d", n)
	}
}

// runGuide runs a kernel on numbers, then buffers of floats, and returns the result, the last one.
func runGuide(t *testing.T, build func(m *ptx.Module), l sim.Launch, arguments []any, result int, operands ...[]float32) []float32 {
	t.Helper()
	module := ptx.NewModule()
	build(module)
	built, err := module.Build()
	require.NoError(t, err)
	gpu := sim.New(sim.Config{Checks: sim.AllChecks, Seed: ptxtest.Random(t).Uint64()})
	loaded, err := gpu.Load(built)
	require.NoError(t, err)
	k, err := loaded.Kernel(built.Funcs[0].Name)
	require.NoError(t, err)
	buffer := func(n int) uint64 {
		at, err := gpu.Alloc(max(4, 4*n))
		require.NoError(t, err)
		return at
	}
	for _, x := range operands {
		at := buffer(len(x))
		data, err := binary.Append(nil, binary.LittleEndian, x)
		require.NoError(t, err)
		require.NoError(t, gpu.Write(at, data))
		arguments = append(arguments, at)
	}
	to := buffer(result)
	l.Params, err = k.Pack(append(arguments, to)...)
	require.NoError(t, err)
	_, err = gpu.Run(t.Context(), k, l)
	require.NoError(t, err)
	data := make([]byte, 4*result)
	require.NoError(t, gpu.Read(data, to))
	y := make([]float32, result)
	_, err = binary.Decode(data, binary.LittleEndian, y)
	require.NoError(t, err)
	return y
}
