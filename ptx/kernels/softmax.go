package kernels

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// Softmax is the softmax of each row, of any length: one block per row, which reads the row once for maximum and sum together and once more
// to write. (Online normaliser: Milakov and Gimelshein, 2018.)
func Softmax() Kernel {
	return Kernel{
		Name: "softmax", Sizes: "rows cols", Block: [3]int{reduceThreads, 1, 1},
		Grid: func(sizes ...int) [3]int { return [3]int{sizes[0], 1, 1} },
		Doc: "y[r][c] = exp(x[r][c]) / Σ exp(x[r][…]), without overflow; NaN where a row has NaN or +Inf or nothing but −Inf. " +
			"Parameters: u32 cols, f32* x, f32* y. One block per row. y may be x.",
		build: buildSoftmax,
	}
}

func buildSoftmax(k *ptx.Kernel) {
	cols := ptx.Param[uint32](k, "cols")
	x := ptx.PointerParam[float32](k, "x")
	y := ptx.PointerParam[float32](k, "y")
	maxima := ptx.SharedArray[float32](k, "warp_maxima", reduceThreads/32)
	sums := ptx.SharedArray[float32](k, "warp_sums", reduceThreads/32)
	add := func(a, b ptx.Reg[float32]) ptx.Reg[float32] { return ptx.Add(k, a, b) }
	larger := func(a, b ptx.Reg[float32]) ptx.Reg[float32] { return ptx.Max(k, a, b) }
	inf := ptx.Imm(float32(math.Inf(-1)))
	tid, r := k.Tid(ptx.X), k.Ctaid(ptx.X)
	x, y = row(k, x, r, cols), row(k, y, r, cols)

	// What is subtracted: the maximum, but 0 as long as that is −Inf, so that −Inf − −Inf never happens. The difference is taken before it is
	// scaled: one fused operation would do both, with an error that grows with the elements instead of their distance.
	base := func(m ptx.Reg[float32]) ptx.Reg[float32] {
		return ptx.Select(k, ptx.Eq(k, m, inf), ptx.Imm(float32(0)), m)
	}
	exp := func(v, base ptx.Reg[float32]) ptx.Reg[float32] {
		return ptx.Ex2(k, ptx.Mul(k, ptx.Sub(k, v, base), ptx.Imm(float32(math.Log2E))))
	}

	m, s := ptx.VarOf(k, inf), ptx.VarOf(k, ptx.Imm(float32(0)))
	ptx.For(k, tid, cols, u32(reduceThreads), func(i ptx.Reg[uint32]) {
		v := ptx.Load(k, ptx.At(k, x, i))
		old := ptx.Copy(k, m.Get())
		m.Set(larger(old, v))
		top := base(m.Get())
		s.Set(ptx.Fma(k, s.Get(), exp(old, top), exp(v, top)))
	})
	top := base(blockReduce(k, m.Get(), maxima, float32(math.Inf(-1)), larger))
	sum := blockReduce(k, ptx.Mul(k, s.Get(), exp(m.Get(), top)), sums, 0, add)
	inverse := ptx.Rcp(k, sum)
	ptx.For(k, tid, cols, u32(reduceThreads), func(i ptx.Reg[uint32]) {
		ptx.Store(k, ptx.At(k, y, i), ptx.Mul(k, exp(ptx.Load(k, ptx.At(k, x, i)), top), inverse))
	})
}
