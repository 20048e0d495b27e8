package ptx_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// cp.async, swizzled tiles, ldmatrix and mma: C[16×8] = A[16×64] · B[8×64]ᵀ of small integers, which is exact.
func TestMmaExecutes(t *testing.T) {
	r := ptxtest.Random(t)
	const k64, aLen, bLen = 64, 16 * 64, 8 * 64
	words := make([]uint32, (aLen+bLen)/2+16*8) // halves, two a word, then the result
	value := make([]float32, aLen+bLen)
	for i := range value {
		value[i] = float32(r.IntN(17) - 8)
		words[i/2] |= uint32(ptx.F16Of(value[i])) << (i % 2 * 16)
	}
	got := execute(t, func(k *kernel) {
		kk := k.Kernel
		u := ptx.Imm[uint32]
		lane := k.Tid(ptx.X)
		a := ptx.NewTile[ptx.F16](kk, "a", ptx.TileLayout{Rows: 16, Cols: k64, Swizzled: true}, 1)
		b := ptx.NewTile[ptx.F16](kk, "b", ptx.TileLayout{Rows: 8, Cols: k64, Swizzled: true}, 1)
		in := ptx.Cast[ptx.F16](k.out)
		for _, part := range []struct {
			tile ptx.Tile[ptx.F16]
			from ptx.Ptr[ptx.Global, ptx.F16]
		}{{a, in}, {b, in.At(aLen)}} {
			ptx.For(kk, lane, u(uint32(part.tile.Layout.Rows*8)), u(32), func(i ptx.Reg[uint32]) {
				row, col := i.Shr(u(3)), i.And(u(7)).Shl(u(3))
				ptx.CpAsync(part.tile.At(row, col), part.from.At(i.Shl(u(3))), 16)
			})
		}
		k.CpAsyncCommit()
		k.CpAsyncWait(0)
		k.Barrier()
		acc := make([]*ptx.Var[float32], 4)
		for i := range acc {
			acc[i] = ptx.VarOf(kk, ptx.Imm[float32](0))
		}
		row, half := lane.And(u(15)), lane.Shr(u(4))
		ptx.For(kk, u(0), u(k64), u(16), func(at ptx.Reg[uint32]) {
			af := ptx.LdMatrix[ptx.F16x2](a.At(row, half.Mad(u(8), at)), 4)
			side := lane.Shr(u(3)).And(u(1))
			bf := ptx.LdMatrix[ptx.F16x2](b.At(lane.And(u(7)), side.Mad(u(8), at)), 2)
			for i, d := range ptx.Mma(kk, ptx.M16N8K16, af, bf, values(acc)) {
				acc[i].Set(d)
			}
		}, ptx.Unroll(2))
		out := ptx.Cast[float32](k.out).At((aLen + bLen) / 2)
		for i := range acc {
			at := lane.Shr(u(2)).Mad(u(8), lane.And(u(3)).Shl(u(1)))
			out.At(at).At(i/2*64 + i%2).Store(acc[i].Get())
		}
	}, 32, words)
	for m := range 16 {
		for n := range 8 {
			want := float32(0)
			for i := range k64 {
				want += value[m*k64+i] * value[aLen+n*k64+i]
			}
			require.Equal(t, want, math.Float32frombits(got[(aLen+bLen)/2+m*8+n]), "%d, %d", m, n)
		}
	}
}

// TMA with a barrier for A, stores into a swizzled Tile for B, wgmma from descriptors of both: C[64×32] = A[64×64] ·
// B[32×64]ᵀ.
func TestWgmmaExecutes(t *testing.T) {
	r := ptxtest.Random(t)
	const m, n, depth = 64, 32, 64
	words := make([]uint32, (m+n)*depth/2+m*n)
	value := make([]float32, (m+n)*depth)
	for i := range value {
		value[i] = float32(r.IntN(17) - 8)
		words[i/2] |= uint32(ptx.BF16Of(value[i])) << (i % 2 * 16)
	}
	got := launch(t, func(k *kernel) {
		kk := k.Kernel
		u := ptx.Imm[uint32]
		k.MaxThreads(128, 1, 1)
		tensor := ptx.TensorMapParam[ptx.BF16](kk, "a")
		swizzled := func(rows int) ptx.TileLayout { return ptx.TileLayout{Rows: rows, Cols: depth, Swizzled: true} }
		a := ptx.NewTile[ptx.BF16](kk, "tile_a", swizzled(m), 1)
		b := ptx.NewTile[ptx.BF16](kk, "tile_b", swizzled(n), 1)
		full := ptx.NewMbarrier(kk, "full", 1)
		tid := k.Tid(ptx.X)
		first := tid.Eq(u(0))
		k.If(first, func() {
			full.Init(1)
			k.FenceMbarrierInit()
		})
		k.Barrier()
		k.If(first, func() {
			full.ArriveExpectTx(m * depth * 2)
			tensor.Load(a.Ptr(), []ptx.Reg[int32]{ptx.Imm[int32](0), ptx.Imm[int32](0)}, full)
		})
		from := ptx.Cast[ptx.BF16](k.out).At(m * depth)
		ptx.For(kk, tid, u(n*depth), u(128), func(i ptx.Reg[uint32]) {
			b.At(i.Shr(u(6)), i.And(u(63))).Store(from.At(i).Load())
		})
		k.FenceProxyAsyncShared()
		k.Barrier()
		full.WaitParity(0)
		da := ptx.NewDescriptor(a.Ptr(), 16, 1024, ptx.Swizzle128)
		db := ptx.NewDescriptor(b.Ptr(), 16, 1024, ptx.Swizzle128)
		product := ptx.Wgmma[ptx.BF16x2, ptx.BF16x2, float32]{N: n}
		acc := product.NewAccumulator(kk)
		for _, x := range acc {
			x.Set(0)
		}
		k.WgmmaFence()
		for step := range depth / 16 {
			product.MulAdd(kk, acc, da.Bytes(32*step), db.Bytes(32*step))
		}
		k.WgmmaCommit()
		k.WgmmaWait(0)
		out := ptx.Cast[float32](k.out).At((m + n) * depth / 2)
		row := tid.Shr(u(5)).Mad(u(16), tid.Shr(u(2)).And(u(7)))
		at := out.At(row.Mad(u(n), tid.And(u(3)).Shl(u(1))))
		for i := range acc {
			at.At(i/4*8 + i/2%2*8*n + i%2).Store(acc[i].Get())
		}
	}, sim.Launch{Grid: sim.Dim3{X: 1}, Block: sim.Dim3{X: 128}}, words, func(at uint64) []any {
		tm := tensormap.Map{Type: tensormap.BF16, Rank: 2, Address: at, Swizzle: tensormap.Swizzle128}
		tm.Dims[0], tm.Dims[1] = depth, m
		tm.Strides[0] = depth * 2
		tm.Box[0], tm.Box[1] = depth, m
		encoded, err := tm.Encode()
		require.NoError(t, err)
		return []any{encoded[:]}
	})
	for i := range m {
		for j := range n {
			want := float32(0)
			for x := range depth {
				want += value[i*depth+x] * value[(m+j)*depth+x]
			}
			require.Equal(t, want, math.Float32frombits(got[(m+n)*depth/2+i*n+j]), "%d, %d", i, j)
		}
	}
}

// Blocks of a cluster read each other's shared memory, and push to it with a barrier that counts the bytes.
func TestClusterExecutes(t *testing.T) {
	const threads, blocks = 32, 4
	got := launch(t, func(k *kernel) {
		kk := k.Kernel
		u := ptx.Imm[uint32]
		k.RequireCluster(blocks, 1, 1)
		mine := ptx.SharedArray[uint32](kk, "mine", threads)
		box := ptx.SharedArray[uint32](kk, "box", threads)
		b := ptx.NewMbarrier(kk, "arrived", 1)
		tid, rank := k.Tid(ptx.X), k.ClusterRank()
		k.If(tid.Eq(u(0)), func() {
			b.Init(1)
			k.FenceMbarrierInit()
			b.ArriveExpectTx(4 * threads)
		})
		mine.At(tid).Store(rank.Mad(u(100), tid))
		k.ClusterBarrier()
		next := rank.Add(u(1)).And(u(blocks - 1))
		theirs := ptx.MapShared(mine.At(tid), next).Load()
		ptx.StoreAsync(ptx.MapShared(box.At(tid), next), theirs.Mul(u(10)), b.Map(next))
		b.WaitParity(0)
		sum := theirs.Add(box.At(tid).Load())
		ptx.Cast[uint32](k.out).At(k.GlobalID(ptx.X)).Store(sum)
		k.ClusterBarrier()
	}, sim.Launch{Grid: sim.Dim3{X: blocks}, Block: sim.Dim3{X: threads}, Cluster: sim.Dim3{X: blocks}},
		make([]uint32, threads*blocks), func(uint64) []any { return nil })
	require.Equal(t, numbers(threads*blocks, func(i int) uint32 {
		rank, tid := i/threads, i%threads
		return uint32((rank+1)%blocks*100 + tid + (rank*100+tid)*10)
	}), got)
}
