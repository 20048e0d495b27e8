package kernels

import "github.com/wavelane/wavelane/ptx"

// Histogram counts keys: each block in shared memory, which it then adds to the result.
func Histogram() Kernel {
	return Kernel{
		Name: "histogram", Sizes: "n", Block: [3]int{256, 1, 1}, Grid: linear(16*256, 1024),
		Doc: "count[b] += how often x[0 … n) is b, for b < bins; larger keys are not counted. Parameters: u32 n, u32 bins, u32* x, " +
			"u32* count. Needs 4·bins bytes of dynamic shared memory.",
		build: func(k *ptx.Kernel) {
			n := ptx.Param[uint32](k, "n")
			bins := ptx.Param[uint32](k, "bins")
			x := ptx.PointerParam[uint32](k, "x")
			count := ptx.PointerParam[uint32](k, "count")
			own := ptx.DynamicShared[uint32](k)
			tid, threads := k.Tid(ptx.X), k.Ntid(ptx.X)
			ptx.For(k, tid, bins, threads, func(b ptx.Reg[uint32]) { ptx.Store(k, ptx.At(k, own, b), u32(0)) })
			k.Barrier()
			ptx.For(k, k.GlobalID(ptx.X), n, ptx.Mul(k, threads, k.Nctaid(ptx.X)), func(i ptx.Reg[uint32]) {
				key := ptx.Load(k, ptx.At(k, x, i))
				k.When(ptx.Lt(k, key, bins), func() { ptx.Reduce(k, ptx.OpAdd, ptx.At(k, own, key), u32(1)) })
			})
			k.Barrier()
			ptx.For(k, tid, bins, threads, func(b ptx.Reg[uint32]) {
				c := ptx.Load(k, ptx.At(k, own, b))
				k.When(ptx.Ne(k, c, u32(0)), func() { ptx.Reduce(k, ptx.OpAdd, ptx.At(k, count, b), c) })
			})
		},
	}
}
