package quantised

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// Products of up to eight rows of x with weights whose rows are along the result. A lane has some columns, and walks down the rows of
// weights; the warps of a block have the same columns of other rows. With one row of x a lane has a whole unit, whose scales it unpacks
// once for 32 weights; with more it has a word of it, lest sums take all registers.
var quantColumnRooms = []int{1, thinVectors}

// columnsParams are those of quant_columns.
type columnsParams struct {
	M, N, K, Split int `array:"sizes"` // Split is the depth of a split
	packedRow
	Across  scalar.Divide // blocks of a split
	X       kit.Buffer
	Weights kit.Buffer `of:"u32"`
	C       kit.Buffer
}

var quantColumnKernels = ofFormats(func(f *blockFormat) (rooms []*kit.Kernel) {
	for _, room := range quantColumnRooms {
		rooms = append(rooms, kit.Register(kit.Kernel{Family: "quant_" + f.name(), Name: fmt.Sprintf("quant_columns_%s_%d", f.name(), room),
			Block:  [3]int{threadgroup.Threads, 1, 1},
			Doc:    fmt.Sprintf("c[split] = x·w over a split of the depth, for up to %d rows of x, where rows of weights are along the result.", room),
			Params: columnsParams{},
			Build: func(k *ptx.Kernel) {
				(&quantColumns{blockFormat: f, k: k, calc: scalar.Math{K: k}, room: room}).Build()
			}}))
	}
	return rooms
})

// quantColumns is a kernel under construction.
type quantColumns struct {
	*blockFormat
	k    *ptx.Kernel
	calc scalar.Math
	room int
	*kit.Params
	of columnsParams
}

func (q *quantColumns) whole() bool { return q.room == 1 }

// values is how many columns a lane has.
func (f *blockFormat) columnValues(room int) int {
	if room == 1 {
		return 32
	}
	return 8
}

// slots is how many lanes have columns.
func (q *quantColumns) slots() ptx.Reg[uint32] {
	return q.U32(&q.of.N).Shr(scalar.Log2(q.columnValues(q.room)))
}

// slot is the block, the unit and the word that a lane has, or the last one where there are fewer.
func (q *quantColumns) slot(tile, lane ptx.Reg[uint32]) (block ptx.Reg[uint32], unit, word number) {
	k := q.k
	i := tile.Mad(32, lane).Min(q.slots().Sub(1))
	word = known(0)
	if !q.whole() {
		i, word = i.Shr(2), found(i.And(3))
	}
	unit = known(0)
	if q.units() > 1 {
		unit = found(i.And(q.units() - 1))
	}
	return shiftRight(k, i, known(scalar.Log2(q.units()))), unit, word
}

// Build writes the kernel.
func (q *quantColumns) Build() {
	k := q.k
	q.Params = kit.NewParams(k, &q.of)
	x, weights := kit.Ptr[float32](q.Params, &q.of.X), kit.Ptr[uint8](q.Params, &q.of.Weights, ptx.Align(16))
	y := kit.Ptr[float32](q.Params, &q.of.C)
	k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
	tid := k.Tid(ptx.X)
	lane, warp := tid.And(31), tid.Shr(5)
	split, tile := q.Divisor(&q.of.Across).Split(k, k.Ctaid(ptx.X))
	depth, each := q.U32(&q.of.K), q.U32(&q.of.Split)
	first := split.Mad(each, warp)
	end := depth.Min(split.Add(1).Mul(each))
	block, unit, word := q.slot(tile, lane)
	both := []number{known(0), known(1)}
	reader := q.reader(k, q.blocksOf(q.Params, &q.of.Blocks), unit, both, word, q.whole(), false)
	row := ptx.PtrVarOf(weights.Bytes(first.MulWide(q.U32(&q.of.Words)).Shl(2)))
	step := ptx.Convert[uint64](q.U32(&q.of.Words)).Shl(2 + scalar.Log2(threadgroup.Warps))
	m := q.U32(&q.of.M)
	rows := []ptx.Ptr[ptx.Global, float32]{x}
	for v := 1; v < q.room; v++ { // where there are fewer, the last is repeated
		rows = append(rows, x.At(ptx.U32(v).Min(m.Sub(1)).MulWide(depth)))
	}
	n := q.columnValues(q.room)
	sums := scalar.Zeros(k, n*q.room)
	ptx.For(k, first, end, threadgroup.Warps, func(d ptx.Reg[uint32]) {
		packed := reader.Load(row.Get(), block)
		var factors []scalar.Float
		for _, p := range rows {
			factors = append(factors, p.At(d).Load(ptx.ReadOnly))
		}
		scale, minimum := reader.scale(packed)
		for run := range 2 {
			for i, quants := range reader.quants(packed, run) {
				for j, w := range q.integers(k, quants) {
					if q.affine {
						w = w.Fma(scale[run], minimum[run].Neg())
					} else {
						w = w.Mul(scale[run])
					}
					for v, f := range factors {
						s := sums[v*n+run*n/2+4*i+j]
						s.Set(w.Fma(f, s.Get()))
					}
				}
			}
		}
		row.Set(row.Get().Bytes(step))
	}, ptx.NoUnroll())
	y = y.At(split.MulWide(m).Mul(ptx.Convert[uint64](q.U32(&q.of.N))))
	q.Write(y, sums, tile)
}

// Write adds up what the warps have, and writes it, row by row of x.
func (q *quantColumns) Write(y ptx.Ptr[ptx.Global, float32], sums scalar.Variables[float32], tile ptx.Reg[uint32]) {
	k := q.k
	n := q.columnValues(q.room)
	memory, tid := ptx.SharedArray[float32](k, "of_warps", n*threadgroup.Threads), k.Tid(ptx.X)
	for v := range q.room {
		if v > 0 {
			k.Barrier()
		}
		for j := range n {
			memory.At(tid).At(j * threadgroup.Threads).Store(sums[v*n+j].Get())
		}
		k.Barrier()
		ptx.For(k, tid, 32*n, threadgroup.Threads, func(o ptx.Reg[uint32]) {
			j, lane := o.Shr(5), o.And(31)
			from := memory.At(j.Mad(threadgroup.Threads, lane))
			sum := from.Load()
			for w := 1; w < threadgroup.Warps; w++ {
				sum = sum.Add(from.At(32 * w).Load())
			}
			block, unit, word := q.slot(tile, lane)
			there := tile.Mad(32, lane).Lt(q.slots())
			run := j.Shr(scalar.Log2(n / 2))
			at := block.Mad(q.len(), run.Mad(q.between(), j.And(n/2-1)))
			at = at.Add(q.firstOf(k, unit).plus(k, word.times(k, 4)).value(k))
			if v > 0 {
				there = there.And(ptx.U32(v).Lt(q.U32(&q.of.M)))
			}
			to := y.At(ptx.U32(v).MulWide(q.U32(&q.of.N)).Add(ptx.Convert[uint64](at)))
			ptx.StoreIf(there, to, sum)
		}, ptx.NoUnroll())
	}
}

// columns is for up to eight rows of x.
func (p *quantProduct) columns() {
	kernels := quantColumnKernels[p.blockFormat]
	kernel, room := kernels[0], quantColumnRooms[0]
	if p.m > 1 {
		kernel, room = kernels[1], quantColumnRooms[1]
	}
	across := kit.CeilDiv(p.n, 32*p.columnValues(room))
	parts, depth := p.splitsOf(across)
	p.Split(parts, func(r tiling.Result) {
		p.Launch(kernel, [3]int{across * parts, 1, 1}, columnsParams{p.m, p.n, p.depth, depth, packedRowOf(p.blockFormat, p.Type, p.n),
			scalar.Divide(across), p.x, p.w, r.Y})
	})
}
