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

// packRows is appendRows for a packed cache.
func packRows(s *kit.Step, r catalogue.CacheRows, p catalogue.Paging, first int, table kit.Buffer) {
	rows := r.N - first
	total := r.Batch * rows * r.Width / 4
	if total == 0 {
		return
	}
	if total > math.MaxInt32 {
		s.Err = fmt.Errorf("%d words of rows, at most %d are possible: %w", total, math.MaxInt32, compute.ErrTooLarge)
		return
	}
	pages := r.Batch // a ring is a page
	if p.PerSequence > 0 {
		pages = p.Pages
	}
	s.Launch(packKernel, [3]int{kit.CeilDiv(total, appendThreads), 1, 1}, packParams{Total: total, Units: scalar.Divide(r.Width / 4),
		Written: scalar.Divide(rows), Slots: scalar.Divide(r.Capacity), Rows: r.N, First: first, Entries: p.PerSequence, Pages: pages,
		Words: s.Result.Shape[len(s.Result.Shape)-1], From: kit.In(1), Positions: kit.In(2), Table: table, Cache: kit.Out})
}

// packParams are those of kv_append_packed.
type packParams struct {
	Total                 int           // words of bytes of the rows
	Units, Written, Slots scalar.Divide `array:"counts"` // of a row, rows of a sequence that are written, slots of a ring or page
	Rows, First           int           // rows of a sequence, and the first that is written
	Entries, Pages, Words int           // of the table for a sequence, 0 for rings; that there are, or rings; of a row of the cache
	From                  kit.Buffer    `name:"rows"`
	Positions             kit.Buffer    `of:"s32"`
	Table                 kit.Buffer    `of:"u32"`
	Cache                 kit.Buffer    `of:"u32"`
}

// packKernel has a thread for each four values, so that eight neighbours have a block.
var packKernel = kit.Define(kit.Kernel{Family: "cache_packed", Name: "kv_append_packed", Block: [3]int{appendThreads, 1, 1},
	Doc: "Writes rows into a packed cache at positions, a ring for each sequence or pages that a table names: bytes, and the scales of 32 each."},
	func(k *ptx.Kernel, p *kit.Params, at *packParams) {
		total := p.U32(&at.Total)
		width, written, slots := p.Divisor(&at.Units), p.Divisor(&at.Written), p.Divisor(&at.Slots)
		n, start, entries := p.U32(&at.Rows), p.U32(&at.First), p.U32(&at.Entries)
		pages, words := p.U32(&at.Pages), p.U32(&at.Words)
		rows, positions := kit.Ptr[float32](p, &at.From, ptx.Align(16)), kit.Ptr[uint32](p, &at.Positions)
		table, cache := kit.Ptr[uint32](p, &at.Table), kit.Ptr[uint32](p, &at.Cache, ptx.Align(16))
		c := scalar.Math{K: k}

		id := k.GlobalID(ptx.X)
		there := id.Lt(total) // of eight neighbours all or none
		row, word := width.Split(k, id)
		sequence, i := written.Split(k, row)
		i = i.Add(start)
		from := sequence.Mad(n, i).Mad(width.D, word)
		x := scalar.Zeros(k, 4)
		k.When(there, func() {
			v := rows.At(from.MulWide(4)).Load4()
			x.Set(v[:])
		})
		values := x.Get()

		// As bits, magnitudes have their order, and after all numbers comes what is none.
		most := ptx.Bitcast[uint32](values[0].Abs())
		for _, v := range values[1:] {
			most = most.Max(ptx.Bitcast[uint32](v.Abs()))
		}
		for d := 1; d < 8; d *= 2 {
			most = most.Max(most.Shuffle(ptx.ShuffleXor, d, 32, ptx.FullWarp()))
		}
		half := ptx.Convert[ptx.F16](ptx.Bitcast[float32](most.Min(math.Float32bits(math.MaxFloat32))).Mul(1. / 127))
		bits := ptx.Convert[uint32](ptx.Bitcast[uint16](half))
		finite := most.Lt(math.Float32bits(float32(math.Inf(1)))).And(bits.Lt(0x7c00))
		scale := scalar.ToFloat32(k, half)
		some := finite.And(bits.Ne(0))
		inverse := c.Where(some, scale.Rcp(), ptx.F32(0))
		var q [4]ptx.Reg[uint32]
		for j, v := range values {
			// One off at most. Between two multiples of the scale, products are exact.
			size := v.Abs()
			m := size.Fma(inverse, 0.5).Min(127).Round(ptx.RMI)
			above, below := m.Add(0.5).Mul(scale), m.Sub(0.5).Mul(scale)
			m = c.Where(size.Ge(above).And(m.Lt(127)), m.Add(1), m)
			m = c.Where(size.Lt(below).And(m.Gt(0)), m.Sub(1), m)
			m = c.Where(some, m, ptx.F32(0))
			q[j] = ptx.Bitcast[uint32](ptx.Convert[int32](c.Where(v.Lt(0), m.Neg(), m), ptx.RZI))
		}
		packed := q[0].Prmt(q[1], 0x0040).Prmt(q[2].Prmt(q[3], 0x0040), 0x5410)

		position := ptx.LoadIf(there, positions.At(sequence), 0).Add(i)
		k.ReturnIf(there.And(ptx.Bitcast[int32](position).Ge(0)).Not())
		entry, slot := slots.Split(k, position)
		page := ptx.VarOf(k, sequence) // of a ring
		k.If(entries.Ne(0), func() {
			k.ReturnIf(entry.Ge(entries))
			page.Set(table.At(sequence.Mad(entries, entry)).Load())
		})
		k.ReturnIf(page.Get().Ge(pages)) // as unsigned numbers: negative ones are beyond it, too
		to := cache.At(page.Get().Mad(slots.D, slot).MulWide(words))
		to.At(word).Store(packed)
		scales := ptx.Cast[uint16](to.At(width.D))
		k.If(word.And(7).Eq(0), func() {
			scales.At(word.Shr(3)).Store(ptx.Convert[uint16](ptx.Select(finite, bits, 0x7e00)))
		})
		k.If(word.Eq(0), func() { // what is left of the row
			ptx.For(k, width.D.Shr(3), words.Sub(width.D).Shl(1), 1, func(i ptx.Reg[uint32]) {
				scales.At(i).Store(0)
			}, ptx.NoUnroll())
		})
	})
