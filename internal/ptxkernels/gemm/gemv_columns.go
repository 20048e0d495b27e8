package gemm

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// columnsOf is how many rows of the result a lane of gemv_columns has: 16 bytes of the matrix, but no more than there are registers
// for the sums of.
func columnsOf(width, room int) int {
	if room > 2 {
		return 4
	}
	return width
}

// warpColumns is how many of them a warp has.
func (g *gemv[T]) warpColumns() int { return 32 * columnsOf(scalar.WideElements[T](), g.room) }

// gemvColumnsKernel is for matrices in which rows of the result are neighbours in memory: as [k, rows].
func gemvColumnsKernel[T scalar.Floating](name string, room int) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "matmul", Name: fmt.Sprint("gemv_columns_", name, room), Block: [3]int{gemvThreads, 1, 1},
		Doc: fmt.Sprintf("result = act(matrixᵀ·vectors + bias) over a split of the depth, for up to %d vectors; a warp has %d "+
			"rows of the result, and so many warps of a block share out the depth. Parameters: %s.", room,
			32*columnsOf(scalar.WideElements[T](), room), gemvParamsInDoc),
		BuildEpilogue: func(k *ptx.Kernel, e *kit.Epilogue) {
			blocks := gemvResident(room)
			if columnsOf(scalar.WideElements[T](), room) > 4 {
				blocks = min(blocks, 2)
			}
			newGemv[T](k, room, blocks, e).buildColumns()
		}})
}

func (g *gemv[T]) buildColumns() {
	k, tid := g.k, g.k.Tid(ptx.X)
	rows, mine := g.size(gemvRows), columnsOf(scalar.WideElements[T](), g.room)
	warpColumns := g.warpColumns()
	z, block := scalar.DivisorAt(k, g.sizes, gemvAcross).Split(k, g.block)
	lane, warp := ptx.And(k, tid, scalar.U32(31)), ptx.Shr(k, tid, scalar.U32(5))
	along := ptx.Shl(k, scalar.U32(1), g.shape) // warps that share out the depth
	perBlock := ptx.Shr(k, scalar.U32(warpColumns*gemvThreads/32), g.shape)
	start := ptx.Mul(k, block, perBlock)
	base := ptx.Mad(k, ptx.Shr(k, warp, g.shape), scalar.U32(warpColumns), start)

	d := ptx.Add(k, g.first, ptx.And(k, warp, ptx.Sub(k, along, scalar.U32(1))))
	rest := ptx.Sub(k, ptx.Max(k, g.end, d), d)
	count := ptx.Shr(k, ptx.Add(k, rest, ptx.Sub(k, along, scalar.U32(1))), g.shape)
	matrix := ptx.At(k, g.m, ptx.Mul(k, ptx.Convert[uint64](k, z), g.strideM))
	matrix = ptx.At(k, matrix, ptx.MulWideU32(k, d, rows))
	step := ptx.Mul(k, ptx.MulWideU32(k, along, rows), scalar.U64(16/scalar.WideElements[T]())) // in bytes
	stepX := ptx.Shl(k, ptx.MulWideU32(k, along, g.size(gemvVectorK)), scalar.U32(2))           // in bytes

	g.zeros(mine * g.room)
	walk := func(columns []ptx.Ptr[ptx.Global, T], load func(at []*ptx.PtrVar[ptx.Global, T]) []ptx.Reg[float32]) {
		var at []*ptx.PtrVar[ptx.Global, T]
		var x []*ptx.PtrVar[ptx.Global, float32]
		for _, p := range columns {
			at = append(at, ptx.PtrVarOf(k, p))
		}
		for _, p := range g.vectorsOf(z, d) {
			x = append(x, ptx.PtrVarOf(k, p))
		}
		g.accumulate(count, func() {
			m := load(at)
			for v := range x {
				y := ptx.Load(k, x[v].Get(), ptx.ReadOnly)
				for i := range m {
					s := g.chains[mine*v+i]
					s.Set(ptx.Fma(k, m[i], y, s.Get()))
				}
				x[v].Set(ptx.AtByte(k, x[v].Get(), stepX))
			}
			for _, p := range at {
				p.Set(ptx.AtByte(k, p.Get(), step))
			}
		})
	}
	// Columns behind the last are computed as it is.
	k.If(g.vector, func() {
		last := ptx.Sub(k, rows, scalar.U32(mine))
		column := ptx.At(k, matrix, ptx.Min(k, ptx.Mad(k, lane, scalar.U32(mine), base), last))
		walk([]ptx.Ptr[ptx.Global, T]{column}, func(at []*ptx.PtrVar[ptx.Global, T]) []ptx.Reg[float32] {
			if mine == scalar.WideElements[T]() {
				return scalar.LoadWide(k, at[0].Get())
			}
			four := ptx.Load4(k, at[0].Get(), ptx.ReadOnly)
			return scalar.AllToFloat32(k, four[:])
		})
	}, func() {
		var columns []ptx.Ptr[ptx.Global, T]
		for i := range mine {
			column := ptx.Add(k, ptx.Add(k, base, lane), scalar.U32(32*i))
			columns = append(columns, ptx.At(k, matrix, ptx.Min(k, column, ptx.Sub(k, rows, scalar.U32(1)))))
		}
		walk(columns, func(at []*ptx.PtrVar[ptx.Global, T]) (m []ptx.Reg[float32]) {
			for _, p := range at {
				m = append(m, scalar.ToFloat32(k, ptx.Load(k, p.Get(), ptx.ReadOnly)))
			}
			return m
		})
	})
	partial := g.keep(warp, lane)
	k.Barrier()

	ptx.For(k, tid, perBlock, scalar.U32(gemvThreads), func(i ptx.Reg[uint32]) {
		column := ptx.Add(k, start, i)
		k.If(ptx.Lt(k, column, rows), func() {
			from := ptx.Shl(k, ptx.Div(k, i, scalar.U32(warpColumns)), g.shape) // the first of the warps that have it
			at := ptx.PtrVarOf(k, ptx.At(k, partial, ptx.Mad(k, from, scalar.U32(warpColumns*g.room), ptx.Rem(k, i, scalar.U32(warpColumns)))))
			y := make([]*ptx.Var[float32], g.room)
			for v := range y {
				y[v] = ptx.VarOf(k, ptx.Imm(float32(0)))
			}
			ptx.For(k, scalar.U32(0), along, scalar.U32(1), func(ptx.Reg[uint32]) {
				for v := range y {
					y[v].Set(ptx.Add(k, y[v].Get(), ptx.Load(k, at.Get().At(v*warpColumns))))
				}
				at.Advance(warpColumns * g.room)
			}, ptx.NoUnroll())
			var sums []ptx.Reg[float32]
			for _, s := range y {
				sums = append(sums, s.Get())
			}
			g.Finish(z, column, sums)
		})
	}, ptx.NoUnroll())
}

// keep writes the thread's sums to shared memory, [warps][vectors][columns].
func (g *gemv[T]) keep(warp, lane ptx.Reg[uint32]) ptx.Ptr[ptx.Shared, float32] {
	k, warpColumns := g.k, g.warpColumns()
	mine := warpColumns / 32
	partial := ptx.SharedArray[float32](k, "column_sums", gemvThreads/32*g.room*warpColumns, ptx.Align(16))
	at := ptx.At(k, partial, ptx.Mul(k, warp, scalar.U32(g.room*warpColumns)))
	k.If(g.vector, func() {
		for i := 0; i < mine*g.room; i += 4 {
			s := g.sums[i : i+4]
			to := ptx.At(k, at, ptx.Mul(k, lane, scalar.U32(mine))).At(i/mine*warpColumns + i%mine)
			ptx.Store4(k, to, [4]ptx.Reg[float32]{s[0].Get(), s[1].Get(), s[2].Get(), s[3].Get()})
		}
	}, func() {
		for i, s := range g.sums {
			ptx.Store(k, ptx.At(k, at, lane).At(i/mine*warpColumns+i%mine*32), s.Get())
		}
	})
	return partial
}
