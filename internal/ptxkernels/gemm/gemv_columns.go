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
			"rows of the result, and so many warps of a block share out the depth.", room,
			32*columnsOf(scalar.WideElements[T](), room)),
		Params: gemvParams{},
		BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) {
			blocks := gemvResident(room)
			if columnsOf(scalar.WideElements[T](), room) > 4 {
				blocks = min(blocks, 2)
			}
			newGemv[T](k, room, blocks, e).buildColumns()
		}})
}

func (g *gemv[T]) buildColumns() {
	k, tid := g.k, g.k.Tid(ptx.X)
	rows, mine := g.Divided(&g.Rows), columnsOf(scalar.WideElements[T](), g.room)
	warpColumns := g.warpColumns()
	z, block := g.Divisor(&g.Across).Split(k, g.block)
	lane, warp := tid.And(31), tid.Shr(5)
	along := ptx.U32(1).Shl(g.shape) // warps that share out the depth
	perBlock := ptx.U32(warpColumns * gemvThreads / 32).Shr(g.shape)
	start := block.Mul(perBlock)
	base := warp.Shr(g.shape).Mad(warpColumns, start)

	d := g.first.Add(warp.And(along.Sub(1)))
	rest := g.end.Max(d).Sub(d)
	count := rest.Add(along.Sub(1)).Shr(g.shape)
	matrix := g.m.At(ptx.Convert[uint64](z).Mul(g.strideM))
	matrix = matrix.At(d.MulWide(rows))
	step := along.MulWide(rows).Mul(16 / scalar.WideElements[T]()) // in bytes
	stepX := along.MulWide(g.U32(&g.VectorK)).Shl(2)               // in bytes

	g.zeros(mine * g.room)
	walk := func(columns []ptx.Ptr[ptx.Global, T], load func(at []*ptx.PtrVar[ptx.Global, T]) []ptx.Reg[float32]) {
		var at []*ptx.PtrVar[ptx.Global, T]
		var x []*ptx.PtrVar[ptx.Global, float32]
		for _, p := range columns {
			at = append(at, ptx.PtrVarOf(p))
		}
		for _, p := range g.vectorsOf(z, d) {
			x = append(x, ptx.PtrVarOf(p))
		}
		g.accumulate(count, func() {
			m := load(at)
			for v := range x {
				y := x[v].Get().Load(ptx.ReadOnly)
				for i := range m {
					s := g.chains[mine*v+i]
					s.Set(m[i].Fma(y, s.Get()))
				}
				x[v].Set(x[v].Get().Bytes(stepX))
			}
			for _, p := range at {
				p.Set(p.Get().Bytes(step))
			}
		})
	}
	// Columns after the last are computed as it is.
	k.If(g.vector, func() {
		last := rows.Sub(mine)
		column := matrix.At(lane.Mad(mine, base).Min(last))
		walk([]ptx.Ptr[ptx.Global, T]{column}, func(at []*ptx.PtrVar[ptx.Global, T]) []ptx.Reg[float32] {
			if mine == scalar.WideElements[T]() {
				return scalar.LoadWide(k, at[0].Get())
			}
			four := at[0].Get().Load4(ptx.ReadOnly)
			return scalar.AllToFloat32(k, four[:])
		})
	}, func() {
		var columns []ptx.Ptr[ptx.Global, T]
		for i := range mine {
			column := base.Add(lane).Add(32 * i)
			columns = append(columns, matrix.At(column.Min(rows.Sub(1))))
		}
		walk(columns, func(at []*ptx.PtrVar[ptx.Global, T]) (m []ptx.Reg[float32]) {
			for _, p := range at {
				m = append(m, scalar.ToFloat32(k, p.Get().Load(ptx.ReadOnly)))
			}
			return m
		})
	})
	partial := g.keep(warp, lane)
	k.Barrier()

	ptx.For(k, tid, perBlock, gemvThreads, func(i ptx.Reg[uint32]) {
		column := start.Add(i)
		k.If(column.Lt(rows), func() {
			from := i.Div(warpColumns).Shl(g.shape) // the first of the warps that have it
			at := ptx.PtrVarOf(partial.At(from.Mad(warpColumns*g.room, i.Rem(warpColumns))))
			y := make([]*ptx.Var[float32], g.room)
			for v := range y {
				y[v] = ptx.VarOf(k, ptx.Imm(float32(0)))
			}
			ptx.For(k, 0, along, 1, func(ptx.Reg[uint32]) {
				for v := range y {
					y[v].Set(y[v].Get().Add(at.Get().At(v * warpColumns).Load()))
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
	at := partial.At(warp.Mul(g.room * warpColumns))
	k.If(g.vector, func() {
		for i := 0; i < mine*g.room; i += 4 {
			s := g.sums[i : i+4]
			to := at.At(lane.Mul(mine)).At(i/mine*warpColumns + i%mine)
			to.Store4([4]ptx.Reg[float32]{s[0].Get(), s[1].Get(), s[2].Get(), s[3].Get()})
		}
	}, func() {
		for i, s := range g.sums {
			at.At(lane).At(i/mine*warpColumns + i%mine*32).Store(s.Get())
		}
	})
	return partial
}
