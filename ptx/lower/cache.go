package lower

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/ptx"
)

func KVAppend(s *step) error {
	r, err := catalogue.KVAppendShape(s.in[0].Shape, s.in[1].Shape, s.in[2].Shape)
	if err == nil {
		appendRows(s, r, catalogue.Paging{}, max(0, r.N-r.Capacity), operand(2))
	}
	return err
}

func KVAppendPaged(s *step) error {
	r, p, err := catalogue.KVAppendPagedShape(s.in[0].Shape, s.in[1].Shape, s.in[2].Shape, s.in[3].Shape)
	if err == nil && p.PerSequence > 0 {
		appendRows(s, r, p, 0, operand(3))
	}
	return err
}

// appendRows writes rows from number first on to their slots in the result, which holds the cache already.
func appendRows(s *step, r catalogue.CacheRows, p catalogue.Paging, first int, table Buffer) {
	kernel, width := appendKernels[s.out.DType], r.Width
	if from := s.in[1].DType; from == s.out.DType {
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
		s.err = fmt.Errorf("%d words of rows, at most %d are possible: %w", total, math.MaxInt32, compute.ErrTooLarge)
		return
	}
	counts := append(divisorOf(width), divisorOf(rows)...)
	counts = append(counts, divisorOf(r.Capacity)...)
	counts = append(counts, words(r.N, first, p.PerSequence, p.Pages)...)
	s.launch(k, [3]int{ceilDiv(total, appendThreads), 1, 1}, total, counts, operand(1), operand(2), table, result)
}

const appendThreads = 256

// appendKernels are those that make elements of a type of Float32; the one for Float32 itself moves words of two bytes. The first
// of each takes eight at a time, the second one.
var appendKernels = map[compute.DType][2]*Kernel{
	compute.Float32:  {appendKernel("kv_append_8", 8, appendWords), appendKernel("kv_append_1", 1, appendWords)},
	compute.Float16:  {appendKernel("kv_append_f16_8", 8, appendF16), appendKernel("kv_append_f16_1", 1, appendF16)},
	compute.BFloat16: {appendKernel("kv_append_bf16_8", 8, appendBF16), appendKernel("kv_append_bf16_1", 1, appendBF16)},
}

// appendWords, appendF16 and appendBF16 are n elements, at multiples of as many: words of two bytes, two to a register if n is
// more than one.
func appendWords(k *ptx.Kernel, rows ptx.Ptr[ptx.Global, uint32], at ptx.Reg[uint32], n int) []ptx.Reg[uint32] {
	if n == 1 {
		return []ptx.Reg[uint32]{ptx.Convert[uint32](k, ptx.Load(k, ptx.At(k, ptx.Cast[uint16](rows), ptx.Convert[uint64](k, at))))}
	}
	x := ptx.Load4(k, ptx.At(k, rows, ptx.MulWideU32(k, at, u32(n/2))))
	return x[:]
}

func appendF16(k *ptx.Kernel, rows ptx.Ptr[ptx.Global, uint32], at ptx.Reg[uint32], n int) []ptx.Reg[uint32] {
	return rounded16(k, rows, at, n, func(x float) ptx.Reg[uint16] { return ptx.Bitcast[uint16](k, ptx.Convert[ptx.F16](k, x)) })
}

func appendBF16(k *ptx.Kernel, rows ptx.Ptr[ptx.Global, uint32], at ptx.Reg[uint32], n int) []ptx.Reg[uint32] {
	return rounded16(k, rows, at, n, func(x float) ptx.Reg[uint16] { return roundBF16(k, x) })
}

func rounded16(k *ptx.Kernel, rows ptx.Ptr[ptx.Global, uint32], at ptx.Reg[uint32], n int, round func(x float) ptx.Reg[uint16]) []ptx.Reg[uint32] {
	from := ptx.At(k, ptx.Cast[float32](rows), ptx.MulWideU32(k, at, u32(n)))
	if n == 1 {
		return []ptx.Reg[uint32]{ptx.Convert[uint32](k, round(ptx.Load(k, from)))}
	}
	var y []ptx.Reg[uint32]
	for i := 0; i < n; i += 4 {
		x := ptx.Load4(k, from.At(i))
		y = append(y, ptx.Pack32(k, round(x[0]), round(x[1])), ptx.Pack32(k, round(x[2]), round(x[3])))
	}
	return y
}

func appendKernel(name string, unit int, load func(k *ptx.Kernel, rows ptx.Ptr[ptx.Global, uint32], at ptx.Reg[uint32], n int) []ptx.Reg[uint32]) *Kernel {
	return register(Kernel{Family: "cache", Name: name, Block: [3]int{appendThreads, 1, 1},
		Doc: "Writes rows into a cache at positions, a ring for each sequence or pages that a table names. Parameters: u32 total " +
			"(units of the rows), u32 counts[] (divisors: units of a row, rows of a sequence that are written, slots of a ring or page; " +
			"then rows of a sequence, the first one that is written, entries of the table for a sequence, 0 for rings, pages), rows, " +
			"s32* positions, u32* table, cache.",
		build: func(k *ptx.Kernel) {
			total := ptx.Param[uint32](k, "total")
			counts := ptx.ParamArray[uint32](k, "counts", 3*divisorWords+4)
			rows := ptx.PointerParam[uint32](k, "rows", ptx.Align(2*unit))
			positions := ptx.PointerParam[uint32](k, "positions")
			table := ptx.PointerParam[uint32](k, "table")
			cache := ptx.PointerParam[uint32](k, "cache", ptx.Align(2*unit))
			width, written, slots := divisorAt(k, counts, 0), divisorAt(k, counts, divisorWords), divisorAt(k, counts, 2*divisorWords)
			n, first := counts.At(k, 3*divisorWords), counts.At(k, 3*divisorWords+1)
			entries, pages := counts.At(k, 3*divisorWords+2), counts.At(k, 3*divisorWords+3)

			id := k.GlobalID(ptx.X)
			k.ReturnIf(ptx.Ge(k, id, total))
			row, col := width.split(k, id)
			sequence, i := written.split(k, row)
			i = ptx.Add(k, i, first)
			position := ptx.Add(k, ptx.Load(k, ptx.At(k, positions, sequence)), i)
			k.ReturnIf(ptx.Lt(k, ptx.Bitcast[int32](k, position), s32(0)))
			entry, slot := slots.split(k, position)
			page := ptx.VarOf(k, sequence) // a ring is one page
			k.If(ptx.Ne(k, entries, u32(0)), func() {
				k.ReturnIf(ptx.Ge(k, entry, entries))
				page.Set(ptx.Load(k, ptx.At(k, table, ptx.Mad(k, sequence, entries, entry))))
				k.ReturnIf(ptx.Ge(k, page.Get(), pages)) // as unsigned numbers: negative ones are beyond it, too
			})
			from := ptx.Mad(k, ptx.Mad(k, sequence, n, i), width.d, col)
			to := ptx.Mad(k, ptx.Mad(k, page.Get(), slots.d, slot), width.d, col)
			x := load(k, rows, from, unit)
			if unit == 1 {
				ptx.Store(k, ptx.At(k, ptx.Cast[uint16](cache), ptx.Convert[uint64](k, to)), ptx.Convert[uint16](k, x[0]))
				return
			}
			ptx.Store4(k, ptx.At(k, cache, ptx.MulWideU32(k, to, u32(unit/2))), [4]ptx.Reg[uint32](x))
		}})
}
