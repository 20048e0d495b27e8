package conformance

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

func init() {
	byName["paged_attention"] = pagedCases
	largeByName["paged_attention"] = func(b *builder) {
		b.paged("", pagedSizes{1, 2, 1, 8, 16, 2500}, compute.AttentionOptions{Causal: true}, attentionTypes{compute.Float32, compute.Float16}, 40_000)
		b.paged("", pagedSizes{2, 1, 1, 4, 1, 70_000}, compute.AttentionOptions{Window: 9}, attentionTypes{}, 69_999)
	}
}

// pagedSizes are of a cache in pages: queries, heads of queries and of keys, elements of a head, keys of a page, entries of the
// table for a sequence.
type pagedSizes struct{ n, heads, kv, d, page, entries int }

// paged adds a case of one sequence for each length, whose pages lie in no order and leave a few unused.
func (b *builder) paged(note string, s pagedSizes, o compute.AttentionOptions, t attentionTypes, lengths ...int32) *testCase {
	return b.add(note, op.Attr{Options: o}, func(r *source) []operand {
		batch := len(lengths)
		pages := []int{batch*s.entries + 3, s.page, s.kv, s.d}
		return []operand{r.domain(b.Entry, batch, s.n, s.heads, s.d).as(t.q), r.domain(b.Entry, pages...).as(t.kv),
			r.domain(b.Entry, pages...).as(t.kv), r.table(pages[0], batch, s.entries), lengthsOf(lengths)}
	})
}

// table names different pages.
func (r *source) table(pages, batch, entries int) operand {
	ids := make([]int32, batch*entries)
	for i, id := range r.Perm(pages)[:len(ids)] {
		ids[i] = int32(id)
	}
	return operand{op.Type{DType: compute.Int32, Shape: []int{batch, entries}}, ids}
}

func lengthsOf(n []int32) operand {
	return operand{op.Type{DType: compute.Int32, Shape: []int{len(n)}}, append([]int32{}, n...)}
}

func pagedCases(b *builder) {
	var plain compute.AttentionOptions
	var f32 attentionTypes
	causal := compute.AttentionOptions{Causal: true}
	half := attentionTypes{compute.Float32, compute.Float16}
	brain := attentionTypes{compute.Float32, compute.BFloat16}
	b.paged("", pagedSizes{1, 1, 1, 1, 1, 1}, plain, f32, 1)
	b.paged("pages of one key", pagedSizes{1, 2, 2, 33, 1, 40}, causal, f32, 37, 40)
	b.paged("", pagedSizes{1, 4, 1, 64, 16, 3}, causal, f32, 45, 0, 48, 1)
	b.paged("", pagedSizes{1, 8, 1, 128, 17, 6}, causal, half, 90, 33)
	b.paged("", pagedSizes{2, 8, 1, 80, 16, 3}, compute.AttentionOptions{Causal: true, Window: 11}, half, 48, 17)
	b.paged("", pagedSizes{1, 2, 1, 256, 4, 9}, causal, brain, 35)
	b.paged("", pagedSizes{3, 6, 2, 20, 8, 7}, compute.AttentionOptions{SoftCap: 3}, brain, 56, 2)
	b.paged("", pagedSizes{4, 4, 2, 33, 17, 4}, compute.AttentionOptions{Causal: true, Window: 5, SoftCap: 2}, half, 60)
	b.paged("many queries", pagedSizes{37, 2, 1, 24, 5, 8}, causal, half, 40, 21)
	b.paged("lengths beyond the table and below 0", pagedSizes{1, 1, 1, 8, 4, 3}, causal, f32, 13, math.MaxInt32, -5, math.MinInt32)
	b.paged("no entries", pagedSizes{2, 2, 1, 8, 4, 0}, causal, f32, 3, 0)
	b.paged("no elements in pages", pagedSizes{2, 2, 1, 8, 0, 4}, causal, f32, 3)
	b.paged("no sequences", pagedSizes{2, 2, 1, 8, 4, 2}, causal, f32)
	b.paged("halves of queries", pagedSizes{1, 4, 2, 64, 16, 6}, causal, attentionTypes{compute.Float16, compute.Float16}, 90, 77)
	b.add("pages that do not exist", op.Attr{Options: causal}, func(r *source) []operand {
		table := operand{op.Type{DType: compute.Int32, Shape: []int{2, 4}},
			[]int32{2, -1, 0, 7, math.MinInt32, math.MaxInt32, 8, -8}}
		return []operand{r.domain(b.Entry, 2, 2, 2, 12), r.domain(b.Entry, 7, 3, 1, 12), r.domain(b.Entry, 7, 3, 1, 12), table,
			lengthsOf([]int32{12, 10})}
	})
	b.add("sequences share pages", op.Attr{Options: plain}, func(r *source) []operand {
		table := operand{op.Type{DType: compute.Int32, Shape: []int{3, 3}}, []int32{2, 0, 1, 2, 0, 3, 2, 2, 2}}
		return []operand{r.domain(b.Entry, 3, 1, 4, 32), r.domain(b.Entry, 4, 6, 4, 32), r.domain(b.Entry, 4, 6, 4, 32), table,
			lengthsOf([]int32{18, 14, 17})}
	})
	b.add("without batch, not in use is not read", op.Attr{Options: causal}, func(r *source) []operand {
		k, v := r.domain(b.Entry, 3, 4, 2, 8), r.domain(b.Entry, 3, 4, 2, 8)
		for i := (4 + 2) * 16; i < 8*16; i++ { // page 1 from its third key on
			k.set(float32(math.NaN()), i)
			v.set(float32(math.Inf(1)), i)
		}
		return []operand{r.domain(b.Entry, 2, 4, 8), k, v, {op.Type{DType: compute.Int32, Shape: []int{1, 2}}, []int32{2, 1}}, lengthsOf([]int32{6})}
	})
	c := b.paged("", pagedSizes{5, 1, 1, 7, 5, 1}, plain, f32, 5)
	b.again(c, inPlace)
	b.again(c, shifted)
}
