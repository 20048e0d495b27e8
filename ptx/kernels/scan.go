package kernels

import "github.com/wavelane/wavelane/ptx"

const (
	scanThreads   = 256
	scanPerThread = 4
	scanTile      = scanThreads * scanPerThread
)

// Scan is the inclusive prefix sum, in one pass: blocks take tiles in the order in which they begin, and each waits for the sum up to its
// tile from the one before, so that the result does not depend on the schedule. (Chained scan: Yan, Long and Zhang, StreamScan, 2013.)
func Scan() Kernel {
	return Kernel{
		Name: "scan", Sizes: "n", Block: [3]int{scanThreads, 1, 1},
		Grid: func(sizes ...int) [3]int { return [3]int{max(1, ceilDiv(sizes[0], scanTile)), 1, 1} },
		Doc: "y[i] = x[0] + … + x[i] for i < n. Parameters: u32 n, f32* x, f32* y, u64* state, ⌈n/1024⌉ + 1 zeros that the kernel uses up. " +
			"One block per 1,024 elements. y may be x.",
		build: buildScan,
	}
}

func buildScan(k *ptx.Kernel) {
	n := ptx.Param[uint32](k, "n")
	x := ptx.PointerParam[float32](k, "x", ptx.Align(16))
	y := ptx.PointerParam[float32](k, "y", ptx.Align(16))
	state := ptx.PointerParam[uint64](k, "state")
	ticket := ptx.SharedArray[uint32](k, "ticket", 1)
	before := ptx.SharedArray[float32](k, "before", 1)
	sums := ptx.SharedArray[float32](k, "warp_sums", scanThreads/32)
	tid := k.Tid(ptx.X)
	lane, warp := ptx.And(k, tid, u32(31)), ptx.Shr(k, tid, u32(5))

	k.If(ptx.Eq(k, tid, u32(0)), func() {
		ptx.Store(k, ticket, ptx.Atomic(k, ptx.OpAdd, ptx.Cast[uint32](state), u32(1), ptx.Relaxed(ptx.ScopeGPU)))
	})
	k.Barrier()
	tile := ptx.Load(k, ticket)
	first := ptx.Mad(k, tile, u32(scanTile), ptx.Mul(k, tid, u32(scanPerThread)))

	// The thread's own elements, and the sums up to each.
	var own [scanPerThread]ptx.Reg[float32]
	for j := range own {
		i := ptx.Add(k, first, u32(j))
		own[j] = ptx.LoadIf(k, ptx.Lt(k, i, n), ptx.At(k, x, i), ptx.Imm(float32(0)))
		if j > 0 {
			own[j] = ptx.Add(k, own[j-1], own[j])
		}
	}
	total := own[scanPerThread-1]
	upTo := scanWarp(k, total, lane)
	ptx.StoreIf(k, ptx.Eq(k, lane, u32(31)), ptx.At(k, sums, warp), upTo)
	k.Barrier()
	// Every warp adds up the warps before it, and thread 0 all of them.
	warpSum := ptx.LoadIf(k, ptx.Lt(k, lane, u32(scanThreads/32)), ptx.At(k, sums, lane), ptx.Imm(float32(0)))
	warpsUpTo := scanWarp(k, warpSum, lane)
	all := ptx.Shuffle(k, ptx.ShuffleIndex, warpsUpTo, u32(scanThreads/32-1), 32, ptx.FullWarp())
	warpsBefore := ptx.Shuffle(k, ptx.ShuffleIndex, warpsUpTo, ptx.Sub(k, warp, u32(1)), 32, ptx.FullWarp())
	warpsBefore = ptx.Select(k, ptx.Eq(k, warp, u32(0)), ptx.Imm(float32(0)), warpsBefore)

	k.If(ptx.Eq(k, tid, u32(0)), func() { chain(k, state, tile, all, before) })
	k.Barrier()
	threadBefore := ptx.Shuffle(k, ptx.ShuffleUp, upTo, u32(1), 32, ptx.FullWarp())
	threadBefore = ptx.Select(k, ptx.Eq(k, lane, u32(0)), ptx.Imm(float32(0)), threadBefore)
	base := ptx.Add(k, ptx.Add(k, ptx.Load(k, before), warpsBefore), threadBefore)
	for j := range own {
		i := ptx.Add(k, first, u32(j))
		ptx.StoreIf(k, ptx.Lt(k, i, n), ptx.At(k, y, i), ptx.Add(k, base, own[j]))
	}
}

// scanWarp is the sum of x over the lanes up to each (Hillis and Steele).
func scanWarp(k *ptx.Kernel, x ptx.Reg[float32], lane ptx.Reg[uint32]) ptx.Reg[float32] {
	for d := 1; d < 32; d *= 2 {
		below := ptx.Shuffle(k, ptx.ShuffleUp, x, u32(d), 32, ptx.FullWarp())
		x = ptx.Select(k, ptx.Ge(k, lane, u32(d)), ptx.Add(k, x, below), x)
	}
	return x
}

// chain waits for the sum of all tiles before this one, puts it into before, and passes on the sum with this tile. state[1+t] is the sum
// up to tile t in its lower half and 1 in its upper one: both arrive at once, so that no fence is needed.
func chain(k *ptx.Kernel, state ptx.Ptr[ptx.Global, uint64], tile ptx.Reg[uint32], all ptx.Reg[float32],
	before ptx.Ptr[ptx.Shared, float32]) {
	sum := ptx.VarOf(k, ptx.Imm(float32(0)))
	k.If(ptx.Gt(k, tile, u32(0)), func() {
		k.Loop(func() {
			bits, ready := ptx.Unpack64(k, ptx.Load(k, ptx.At(k, state, tile), ptx.Relaxed(ptx.ScopeGPU)))
			sum.Set(ptx.Bitcast[float32](k, bits))
			k.BreakIf(ptx.Ne(k, ready, u32(0)))
		})
	})
	ptx.Store(k, before, sum.Get())
	upTo := ptx.Bitcast[uint32](k, ptx.Add(k, sum.Get(), all))
	ptx.Store(k, ptx.At(k, state, tile).At(1), ptx.Pack64(k, upTo, u32(1)), ptx.Relaxed(ptx.ScopeGPU))
}
