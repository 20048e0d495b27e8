package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/wgsl"
)

func pagedAttention(s *step) error {
	d, p, err := catalogue.PagedShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape, s.Operands[3].Shape, s.Operands[4].Shape,
		s.Attr.Options.(compute.AttentionOptions))
	if err != nil {
		return err
	}
	return s.attendSplit(splitAttention{AttentionDims: d, Paging: p, q: operand(0), k: 1, v: 2, table: 3, lengths: 4})
}

// splitAttention is an attention whose keys are split among workgroups, and over dispatches where no binding holds them.
type splitAttention struct {
	catalogue.AttentionDims
	catalogue.Paging
	q              Buffer // f32
	k, v           int    // operands
	table, lengths int    // operands, 0 for none
	parts, shards  int    // of the keys of a sequence; of the rows of the cache
	fit            int    // rows of a shard at most
	row            int    // elements of a row of the cache, words if it is packed
}

const (
	decodeRows = 8  // queries of a workgroup at most
	decodeKeys = 64 // that a workgroup takes at a time, one in each thread
)

// decodes reports whether the keys are best split among workgroups, because few queries share a head of keys.
func decodes(d catalogue.AttentionDims) bool { return d.N*d.Group() <= 2*decodeRows }

// attendSplit is attention by attention_decode.wgsl: for few queries, and correct for any number.
func (s *step) attendSplit(c splitAttention) error {
	n := s.Result.Len()
	if s.Operands[0].DType != compute.Float32 {
		whole := c.q
		c.q = s.NewScratch(4 * s.Operands[0].Len())
		s.cast(whole, s.Operands[0].DType, c.q, compute.Float32, s.Operands[0].Len())
	}
	y := result
	if s.Result.DType != compute.Float32 {
		y = s.NewScratch(4 * n)
	}
	size := s.Operands[c.k].DType.Size()
	if c.row = c.KVHeads * c.D; s.Operands[c.k].DType == compute.Uint32 {
		c.row = s.Operands[c.k].Shape[len(s.Operands[c.k].Shape)-1]
	}
	row := c.row * size
	c.fit = (int(s.caps.MaxBinding) - s.align()) / max(row, 1)
	if c.fit < 1 {
		return s.tooLarge("a key of all heads", row/4, "attend to fewer heads at a time")
	}
	total := c.Pages * c.PageSize
	if c.table == 0 {
		total = c.NK // of a sequence: others are other dispatches
	}
	c.shards = max(1, ceilDiv(total, c.fit))
	rows := c.N * c.Group()
	of := min(room(rows), decodeRows)
	tiles := ceilDiv(rows, of)
	// So often the loops of a thread go round for keys that a workgroup takes at a time.
	iterations := 20 + 9*of + 6*ceilDiv(c.D, 16) + decodeWidth(c.D)/4
	c.parts = max(1, min(ceilDiv(manyTasks/4, max(1, c.Batch*c.KVHeads*tiles)), ceilDiv(c.NK, 4*decodeKeys)),
		ceilDiv(c.NK, (loopBudget/iterations-1)*decodeKeys))
	all := c.parts * c.shards
	perSequence := 4 * c.KVHeads * all * rows * (c.D + 2)
	partial := s.NewScratch(c.Batch * perSequence)
	of32 := func(elements int) extent { return perTask(4 * elements) }
	extents := []extent{of32(c.N * c.Heads * c.D), perTask(perSequence)}
	switch {
	case c.table == 0 && c.shards == 1:
		extents = append(extents, perTask(c.NK*row))
	case c.table == 0: // one sequence at a time
		extents = append(extents, perTask(int(s.caps.MaxBinding)/2+1))
	}
	k := s.decodeKernel(s.Operands[c.k].DType, of, c.D)
	emit := func(first, end int, parts []part) {
		low, high := first*c.NK, end*c.NK
		if c.table > 0 {
			low, high = 0, total
		}
		for shard := range c.shards {
			from, to := low+shard*c.fit, high
			if c.shards > 1 {
				to = min(from+c.fit, high)
			}
			s.decodePass(c, k, partial, first, end, from, to, shard*c.parts, tiles, rows)
		}
		s.combinePass(c, partial, y, first, end, rows)
	}
	if err := s.ranges(c.Batch, emit, extents...); err != nil {
		return err
	}
	if y != result {
		s.cast(y, compute.Float32, result, s.Result.DType, n)
	}
	return nil
}

// decodePass runs sequences first … end over the rows low … high of the cache.
func (s *step) decodePass(c splitAttention, k *wgsl.Kernel, partial Buffer, first, end, low, high, part0, tiles, rows int) {
	kind, head := s.Operands[c.k].DType, c.row
	q, q0 := s.window(c.q, first*c.N*c.Heads*c.D, (end-first)*c.N*c.Heads*c.D)
	keys, k0 := s.windowOf(kind, operand(c.k), low*head, (high-low)*head)
	values, _ := s.windowOf(kind, operand(c.v), low*head, (high-low)*head)
	lengths, lengths0, table, table0 := q, 0, q, 0
	if c.lengths > 0 {
		lengths, lengths0 = s.window(operand(c.lengths), first, end-first)
	}
	if c.table > 0 {
		table, table0 = s.window(operand(c.table), first*c.PerSequence, (end-first)*c.PerSequence)
	}
	each := c.KVHeads * c.parts * c.shards * rows * (c.D + 2)
	out, out0 := s.window(partial, first*each, (end-first)*each)
	total := (end - first) * c.KVHeads * c.parts * tiles
	scale, bend := c.Scale, c.SoftCap
	if bend > 0 {
		scale /= bend
	}
	params := words(total, tiles, c.parts, c.parts*c.shards, part0, c.N, c.Heads, c.KVHeads, c.D, c.Group(), rows, c.NK, first, low, high,
		max(c.PageSize, 1), c.PerSequence, c.Pages, flag(c.lengths > 0), flag(c.table == 0), flag(c.Causal), c.Window)
	params = append(params, bits(scale), bits(bend), infBits, uint32(q0), uint32(k0), uint32(lengths0), uint32(table0), uint32(out0), uint32(c.row))
	s.dispatch(k, s.linear(total), params, q, keys, values, lengths, table, out)
}

// decodeWidth is how many columns of the result the threads of a workgroup have at a time, of heads of d elements.
func decodeWidth(d int) int { return max(64, room(d)) }

func (s *step) decodeKernel(kind compute.DType, rows, d int) *wgsl.Kernel {
	vec, width := d%4 == 0, decodeWidth(d)
	return cached(fmt.Sprintf("attention_decode/%v/%d/%v/%d", kind, rows, vec, width), func() *wgsl.Kernel {
		text := struct {
			Kind, Unit, Functions string
			Rows, Width, Groups   int
			Arrays, Components    []string
		}{kind.String(), attentionUnit(kind, vec), functionsOf("inf()", "safe_tanh"), rows, width, 4 * decodeKeys / width,
			[]string{"keys", "values"}, components}
		text.Functions += attentionLoad("q", compute.Float32, false)
		if kind == compute.Uint32 {
			text.Unit = "u32"
		} else {
			text.Functions += attentionLoad("keys", kind, vec) + attentionLoad("values", kind, vec)
		}
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.Read, wgsl.Read, wgsl.Read, wgsl.ReadWrite}, Uniform: 128, Workgroup: [3]uint32{decodeKeys, 1, 1},
			Shared: 4 * (rows*(width+decodeKeys+8) + 21*decodeKeys), Source: render("attention_decode.wgsl", text)}
	})
}

// combinePass joins the parts of sequences first … end.
func (s *step) combinePass(c splitAttention, partial, y Buffer, first, end, rows int) {
	lanes := s.workgroup()
	k := cached(fmt.Sprint("attention_combine/", lanes), func() *wgsl.Kernel {
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.ReadWrite}, Uniform: 48, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("attention_combine.wgsl", struct{ Lanes int }{lanes})}
	})
	each := c.KVHeads * c.parts * c.shards * rows * (c.D + 2)
	in, in0 := s.window(partial, first*each, (end-first)*each)
	total := (end - first) * c.N * c.Heads * c.D
	out, out0 := s.window(y, first*c.N*c.Heads*c.D, total)
	s.dispatch(k, s.linear(ceilDiv(total, lanes)), words(total, c.parts*c.shards, c.N, c.Heads, c.KVHeads, c.D, c.Group(), rows, in0, out0), in, out)
}
