package cache

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// KVAppend lowers appending to a contiguous cache.
func KVAppend(s *kit.Step) error {
	r, err := catalogue.KVAppendShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape)
	if err == nil {
		appendRows(s, r, catalogue.Paging{}, max(0, r.N-r.Capacity), kit.In(2))
	}
	return err
}

// KVAppendPaged lowers appending to a cache in pages.
func KVAppendPaged(s *kit.Step) error {
	r, p, err := catalogue.KVAppendPagedShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape, s.Operands[3].Shape)
	if err == nil && p.PerSequence > 0 {
		appendRows(s, r, p, 0, kit.In(3))
	}
	return err
}

// appendRows writes rows from number first on to their slots in the result, which holds the cache already.
func appendRows(s *kit.Step, r catalogue.CacheRows, p catalogue.Paging, first int, table kit.Buffer) {
	if s.Result.DType == compute.Uint32 {
		packRows(s, r, p, first, table)
		return
	}
	kernel, width := appendKernels[s.Result.DType], r.Width
	if from := s.Operands[1].DType; from == s.Result.DType {
		kernel, width = appendKernels[compute.Float32], width*from.Size()/2 // in words of two bytes
	}
	k, unit := kernel[0], 8
	if width%8 != 0 {
		k, unit = kernel[1], 1
	}
	width /= unit
	rows := r.N - first
	total := r.Batch * rows * width
	if total == 0 {
		return
	}
	if total > math.MaxInt32 {
		s.Err = fmt.Errorf("%d words of rows, at most %d are possible: %w", total, math.MaxInt32, compute.ErrTooLarge)
		return
	}
	s.Launch(k, [3]int{kit.CeilDiv(total, appendThreads), 1, 1}, appendParams{Total: total, Units: scalar.Divide(width),
		Written: scalar.Divide(rows), Slots: scalar.Divide(r.Capacity), Rows: r.N, First: first, Entries: p.PerSequence, Pages: p.Pages,
		From: kit.In(1), Positions: kit.In(2), Table: table, Cache: kit.Out})
}

const appendThreads = 256

// appendParams are those of kv_append.
type appendParams struct {
	Total                 int           // units of the rows
	Units, Written, Slots scalar.Divide `array:"counts"` // units of a row, rows of a sequence that are written, slots of a ring or page
	Rows, First           int           // rows of a sequence, and the first that is written
	Entries, Pages        int           // of the table for a sequence, 0 for rings
	From                  kit.Buffer    `name:"rows" of:"numbers"`
	Positions             kit.Buffer    `of:"s32"`
	Table                 kit.Buffer    `of:"u32"`
	Cache                 kit.Buffer    `of:"numbers"`
}

// appendKernels are those that make elements of a type of Float32; the one for Float32 itself moves words of two bytes. The first
// of each takes eight at a time, the second one.
var appendKernels = map[compute.DType][2]*kit.Kernel{
	compute.Float32:  {appendKernel("kv_append_8", 8, appendWords), appendKernel("kv_append_1", 1, appendWords)},
	compute.Float16:  {appendKernel("kv_append_f16_8", 8, appendF16), appendKernel("kv_append_f16_1", 1, appendF16)},
	compute.BFloat16: {appendKernel("kv_append_bf16_8", 8, appendBF16), appendKernel("kv_append_bf16_1", 1, appendBF16)},
}

// appendWords, appendF16 and appendBF16 are n elements, at multiples of as many: words of two bytes, two to a register if n is
// more than one.
func appendWords(k *ptx.Kernel, rows ptx.Ptr[ptx.Global, uint32], at ptx.Reg[uint32], n int) []ptx.Reg[uint32] {
	if n == 1 {
		return []ptx.Reg[uint32]{ptx.Convert[uint32](ptx.Cast[uint16](rows).At(ptx.Convert[uint64](at)).Load())}
	}
	x := rows.At(at.MulWide(n / 2)).Load4()
	return x[:]
}

func appendF16(k *ptx.Kernel, rows ptx.Ptr[ptx.Global, uint32], at ptx.Reg[uint32], n int) []ptx.Reg[uint32] {
	return rounded16(k, rows, at, n, func(x scalar.Float) ptx.Reg[uint16] { return ptx.Bitcast[uint16](ptx.Convert[ptx.F16](x)) })
}

func appendBF16(k *ptx.Kernel, rows ptx.Ptr[ptx.Global, uint32], at ptx.Reg[uint32], n int) []ptx.Reg[uint32] {
	return rounded16(k, rows, at, n, func(x scalar.Float) ptx.Reg[uint16] { return scalar.RoundBF16(k, x) })
}

func rounded16(k *ptx.Kernel, rows ptx.Ptr[ptx.Global, uint32], at ptx.Reg[uint32], n int, round func(x scalar.Float) ptx.Reg[uint16]) []ptx.Reg[uint32] {
	from := ptx.Cast[float32](rows).At(at.MulWide(n))
	if n == 1 {
		return []ptx.Reg[uint32]{ptx.Convert[uint32](round(from.Load()))}
	}
	var y []ptx.Reg[uint32]
	for i := 0; i < n; i += 4 {
		x := from.At(i).Load4()
		y = append(y, ptx.Pack32(round(x[0]), round(x[1])), ptx.Pack32(round(x[2]), round(x[3])))
	}
	return y
}

func appendKernel(name string, unit int, load func(k *ptx.Kernel, rows ptx.Ptr[ptx.Global, uint32], at ptx.Reg[uint32], n int) []ptx.Reg[uint32]) *kit.Kernel {
	return kit.Define(kit.Kernel{Family: "cache", Name: name, Block: [3]int{appendThreads, 1, 1},
		Doc: "Writes rows into a cache at positions, a ring for each sequence or pages that a table names."},
		func(k *ptx.Kernel, p *kit.Params, at *appendParams) {
			total, rows := p.U32(&at.Total), kit.Ptr[uint32](p, &at.From, ptx.Align(2*unit))
			positions, table := kit.Ptr[uint32](p, &at.Positions), kit.Ptr[uint32](p, &at.Table)
			cache := kit.Ptr[uint32](p, &at.Cache, ptx.Align(2*unit))
			width, written, slots := p.Divisor(&at.Units), p.Divisor(&at.Written), p.Divisor(&at.Slots)
			n, first := p.U32(&at.Rows), p.U32(&at.First)
			entries, pages := p.U32(&at.Entries), p.U32(&at.Pages)

			id := k.GlobalID(ptx.X)
			k.ReturnIf(id.Ge(total))
			row, col := width.Split(k, id)
			sequence, i := written.Split(k, row)
			i = i.Add(first)
			position := positions.At(sequence).Load().Add(i)
			k.ReturnIf(ptx.Bitcast[int32](position).Lt(0))
			entry, slot := slots.Split(k, position)
			page := ptx.VarOf(k, sequence) // a ring is one page
			k.If(entries.Ne(0), func() {
				k.ReturnIf(entry.Ge(entries))
				page.Set(table.At(sequence.Mad(entries, entry)).Load())
				k.ReturnIf(page.Get().Ge(pages)) // as unsigned numbers: negative ones are beyond it, too
			})
			from := sequence.Mad(n, i).Mad(width.D, col)
			to := page.Get().Mad(slots.D, slot).Mad(width.D, col)
			x := load(k, rows, from, unit)
			if unit == 1 {
				ptx.Cast[uint16](cache).At(ptx.Convert[uint64](to)).Store(ptx.Convert[uint16](x[0]))
				return
			}
			cache.At(to.MulWide(unit / 2)).Store4([4]ptx.Reg[uint32](x))
		})
}
