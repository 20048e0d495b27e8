package kernels

import "github.com/wavelane/wavelane/ptx"

// maxBlocks bounds the grids of kernels that stride over their data: a few waves on the largest GPUs.
const maxBlocks = 4096

// VectorAdd is out = x + y.
func VectorAdd() Kernel {
	return Kernel{
		Name: "vector_add", Sizes: "n", Block: [3]int{256, 1, 1}, Grid: linear(1024, maxBlocks),
		Doc: "out[i] = x[i] + y[i] for i < n. Parameters: u32 n, f32* x, f32* y, f32* out. out may be x or y.",
		build: func(k *ptx.Kernel) {
			n := ptx.Param[uint32](k, "n")
			x := ptx.PointerParam[float32](k, "x", ptx.Align(16))
			y := ptx.PointerParam[float32](k, "y", ptx.Align(16))
			out := ptx.PointerParam[float32](k, "out", ptx.Align(16))
			zip(k, n, x, y, out, func(x, y ptx.Reg[float32]) ptx.Reg[float32] { return ptx.Add(k, x, y) })
		},
	}
}

// Saxpy is y = a·x + y.
func Saxpy() Kernel {
	return Kernel{
		Name: "saxpy", Sizes: "n", Block: [3]int{256, 1, 1}, Grid: linear(1024, maxBlocks),
		Doc: "y[i] = a·x[i] + y[i] for i < n, rounded once. Parameters: u32 n, f32 a, f32* x, f32* y.",
		build: func(k *ptx.Kernel) {
			n := ptx.Param[uint32](k, "n")
			a := ptx.Param[float32](k, "a")
			x := ptx.PointerParam[float32](k, "x", ptx.Align(16))
			y := ptx.PointerParam[float32](k, "y", ptx.Align(16))
			zip(k, n, x, y, y, func(x, y ptx.Reg[float32]) ptx.Reg[float32] { return ptx.Fma(k, a, x, y) })
		},
	}
}

// zip is out[i] = f(x[i], y[i]) for i < n: four at a time, then up to three one by one.
func zip(k *ptx.Kernel, n ptx.Reg[uint32], x, y, out ptx.Ptr[ptx.Global, float32], f func(x, y ptx.Reg[float32]) ptx.Reg[float32]) {
	first := k.GlobalID(ptx.X)
	threads := ptx.Mul(k, k.Ntid(ptx.X), k.Nctaid(ptx.X))
	quads := ptx.Shr(k, n, u32(2))
	ptx.For(k, first, quads, threads, func(i ptx.Reg[uint32]) {
		i = ptx.Shl(k, i, u32(2))
		a, b := ptx.Load4(k, ptx.At(k, x, i)), ptx.Load4(k, ptx.At(k, y, i))
		var r [4]ptx.Reg[float32]
		for j := range r {
			r[j] = f(a[j], b[j])
		}
		ptx.Store4(k, ptx.At(k, out, i), r)
	})
	last := ptx.Add(k, ptx.Shl(k, quads, u32(2)), first)
	k.If(ptx.Lt(k, last, n), func() {
		r := f(ptx.Load(k, ptx.At(k, x, last)), ptx.Load(k, ptx.At(k, y, last)))
		ptx.Store(k, ptx.At(k, out, last), r)
	})
}
