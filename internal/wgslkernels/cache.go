package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/wgsl"
)

// kvAppend is the code of [catalogue.KVAppend].
func kvAppend(s *step) error {
	r, err := catalogue.KVAppendShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape)
	if err != nil {
		return err
	}
	return s.appendRows(appending{CacheRows: r, first: max(0, r.N-r.Capacity), total: r.Batch * r.Capacity})
}

// kvAppendPaged is the code of [catalogue.KVAppendPaged].
func kvAppendPaged(s *step) error {
	r, p, err := catalogue.KVAppendPagedShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape, s.Operands[3].Shape)
	if err != nil || p.PerSequence == 0 {
		return err
	}
	return s.appendRows(appending{CacheRows: r, Paging: p, total: p.Pages * p.PageSize})
}

// appending is an append of rows to a cache of total slots.
type appending struct {
	catalogue.CacheRows
	catalogue.Paging
	first int // row of each sequence that is written
	total int
	way   string
	unit  int // elements of a thread
	row   int // elements of a row of the cache, words if it is packed
}

// appendRows writes rows to their slots in the result, which holds the cache already: parts of the rows, and for each of them
// parts of the cache.
func (s *step) appendRows(c appending) error {
	from, to := s.Operands[1].DType, s.Result.DType
	c.row = c.Width
	switch {
	case to == compute.Uint32:
		c.way, c.unit, c.row = "packed", 2*catalogue.CacheBlock, s.Result.Shape[len(s.Result.Shape)-1]
	case to != compute.Float32 && c.Width%2 == 1:
		c.way, c.unit = "odd", 1
	case from == to:
		c.way, c.unit = "words", 4/to.Size()
	default:
		c.way, c.unit = "pairs", 2
	}
	k := s.appendKernel(c.way, from, to)
	if c.Batch*c.N == 0 || c.Width == 0 {
		return nil
	}
	fit := func(d compute.DType, row, most int) int {
		return min(most, (int(s.caps.MaxBinding)-s.align())/(d.Size()*row))
	}
	rows, shard := fit(from, c.Width, c.Batch*c.N), fit(to, c.row, c.total)
	if rows < 1 || shard < 1 {
		return s.tooLarge("a row", c.Width, "append fewer heads at a time")
	}
	for row := 0; row < c.Batch*c.N; row += rows {
		end := min(row+rows, c.Batch*c.N)
		for low := 0; low < c.total; low += shard {
			s.appendPass(c, k, row, end, low, min(low+shard, c.total))
		}
	}
	return nil
}

func (s *step) appendPass(c appending, k *wgsl.Kernel, row, end, low, high int) {
	sequence, last := row/c.N, ceilDiv(end, c.N)
	rows, rows0 := s.windowOf(s.Operands[1].DType, operand(1), row*c.Width, (end-row)*c.Width)
	positions, positions0 := s.window(operand(2), sequence, last-sequence)
	table, table0 := positions, 0
	if c.PerSequence > 0 {
		table, table0 = s.window(operand(3), sequence*c.PerSequence, (last-sequence)*c.PerSequence)
	}
	y, y0 := s.windowOf(s.Result.DType, result, low*c.row, (high-low)*c.row)
	each := ceilDiv(c.Width, c.unit) // units of a row
	if c.way != "packed" {
		y0 /= c.unit
	}
	if s.Operands[1].DType != compute.Float32 {
		rows0 /= c.unit
	}
	units := (end - row) * each
	lanes := int(k.Workgroup[0])
	s.dispatch(k, s.linear(ceilDiv(units, lanes)), words(units, each, row, c.N, c.first, c.Capacity, c.PerSequence, c.Pages,
		low, high, sequence, rows0, positions0, table0, y0, c.Width, c.row), rows, positions, table, y)
}

func (s *step) appendKernel(way string, from, to compute.DType) *wgsl.Kernel {
	round := map[compute.DType]string{compute.Float16: "half_of", compute.BFloat16: "bf16_of"}[to]
	name, target := from.String(), to.String()
	if from == to && from != compute.Float32 {
		name, target = "bits", "bits" // whatever they mean
	}
	lanes := s.workgroup()
	return cached(fmt.Sprintf("cache_append/%s/%s/%s/%d", way, name, target, lanes), func() *wgsl.Kernel {
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.Read, wgsl.ReadWrite}, Uniform: 80, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("cache_append.wgsl", struct {
				Way, From, To, Round string
				Lanes                int
			}{way, name, target, round, lanes})}
	})
}
