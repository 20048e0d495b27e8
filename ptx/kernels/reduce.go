package kernels

import "github.com/wavelane/wavelane/ptx"

// threads of a block in kernels that reduce. A power of two of whole warps, at most 32 of them.
const reduceThreads = 256

// combine joins two partial results.
type combine func(a, b ptx.Reg[float32]) ptx.Reg[float32]

// warpReduce is the combination of x over the warp, in every lane.
func warpReduce(k *ptx.Kernel, x ptx.Reg[float32], f combine) ptx.Reg[float32] {
	for d := 16; d > 0; d /= 2 {
		x = f(x, ptx.Shuffle(k, ptx.ShuffleXor, x, u32(d), 32, ptx.FullWarp()))
	}
	return x
}

// blockReduce is the combination of x over a block of reduceThreads threads, in every thread: shuffles within each warp, then every warp
// combines the results of all, in the same order. partial has a place for each warp; it may be used again behind another barrier.
func blockReduce(k *ptx.Kernel, x ptx.Reg[float32], partial ptx.Ptr[ptx.Shared, float32], neutral float32, f combine) ptx.Reg[float32] {
	const warps = reduceThreads / 32
	tid := k.Tid(ptx.X)
	lane := ptx.And(k, tid, u32(31))
	x = warpReduce(k, x, f)
	ptx.StoreIf(k, ptx.Eq(k, lane, u32(0)), ptx.At(k, partial, ptx.Shr(k, tid, u32(5))), x)
	k.Barrier()
	x = ptx.LoadIf(k, ptx.Lt(k, lane, u32(warps)), ptx.At(k, partial, lane), ptx.Imm(neutral))
	return warpReduce(k, x, f)
}

// threadSum is the sum of the elements i, i + stride … below n.
func threadSum(k *ptx.Kernel, x ptx.Ptr[ptx.Global, float32], from, n, stride ptx.Reg[uint32]) ptx.Reg[float32] {
	sum := ptx.VarOf(k, ptx.Imm(float32(0)))
	ptx.For(k, from, n, stride, func(i ptx.Reg[uint32]) {
		sum.Set(ptx.Add(k, sum.Get(), ptx.Load(k, ptx.At(k, x, i))))
	})
	return sum.Get()
}

// BlockSum adds up what each block strides over.
func BlockSum() Kernel {
	return Kernel{
		Name: "block_sum", Sizes: "n", Block: [3]int{reduceThreads, 1, 1}, Grid: linear(4*reduceThreads, 1024),
		Doc: "partial[b] = the sum of what block b strides over in x[0 … n). Parameters: u32 n, f32* x, f32* partial, one per block.",
		build: func(k *ptx.Kernel) {
			n := ptx.Param[uint32](k, "n")
			x := ptx.PointerParam[float32](k, "x")
			partial := ptx.PointerParam[float32](k, "partial")
			shared := ptx.SharedArray[float32](k, "warp_sums", reduceThreads/32)
			sum := threadSum(k, x, k.GlobalID(ptx.X), n, ptx.Mul(k, k.Ntid(ptx.X), k.Nctaid(ptx.X)))
			sum = blockReduce(k, sum, shared, 0, func(a, b ptx.Reg[float32]) ptx.Reg[float32] { return ptx.Add(k, a, b) })
			ptx.StoreIf(k, ptx.Eq(k, k.Tid(ptx.X), u32(0)), ptx.At(k, partial, k.Ctaid(ptx.X)), sum)
		},
	}
}

// GridSum adds up everything in one launch: the block that finishes last adds the sums of all blocks, always in the same order, so that the
// result does not depend on the schedule. (The scheme of CUDA's threadFenceReduction sample.)
func GridSum() Kernel {
	return Kernel{
		Name: "grid_sum", Sizes: "n", Block: [3]int{reduceThreads, 1, 1}, Grid: linear(4*reduceThreads, 1024),
		Doc: "out[0] = the sum of x[0 … n). Parameters: u32 n, f32* x, f32* partial (scratch, one per block), " +
			"u32* done (0 before, 0 afterwards), f32* out.",
		build: buildGridSum,
	}
}

func buildGridSum(k *ptx.Kernel) {
	n := ptx.Param[uint32](k, "n")
	x := ptx.PointerParam[float32](k, "x")
	partial := ptx.PointerParam[float32](k, "partial")
	done := ptx.PointerParam[uint32](k, "done")
	out := ptx.PointerParam[float32](k, "out")
	shared := ptx.SharedArray[float32](k, "warp_sums", reduceThreads/32)
	last := ptx.SharedArray[uint32](k, "is_last", 1)
	add := func(a, b ptx.Reg[float32]) ptx.Reg[float32] { return ptx.Add(k, a, b) }
	tid, blocks := k.Tid(ptx.X), k.Nctaid(ptx.X)

	sum := threadSum(k, x, k.GlobalID(ptx.X), n, ptx.Mul(k, k.Ntid(ptx.X), blocks))
	sum = blockReduce(k, sum, shared, 0, add)
	k.If(ptx.Eq(k, tid, u32(0)), func() {
		ptx.Store(k, ptx.At(k, partial, k.Ctaid(ptx.X)), sum)
		// Whoever sees the count sees the sum: released by the first fence, acquired by the second.
		k.Fence(ptx.ScopeGPU)
		before := ptx.Atomic(k, ptx.OpAdd, done, u32(1), ptx.Relaxed(ptx.ScopeGPU))
		k.Fence(ptx.ScopeGPU)
		isLast := ptx.Eq(k, before, ptx.Sub(k, blocks, u32(1)))
		ptx.Store(k, last, ptx.Select(k, isLast, u32(1), u32(0)))
	})
	k.Barrier()
	k.If(ptx.Ne(k, ptx.Load(k, last), u32(0)), func() {
		sum := threadSum(k, partial, tid, blocks, u32(reduceThreads))
		sum = blockReduce(k, sum, shared, 0, add)
		k.If(ptx.Eq(k, tid, u32(0)), func() {
			ptx.Store(k, out, sum)
			ptx.Store(k, done, u32(0), ptx.Relaxed(ptx.ScopeGPU))
		})
	})
}
