package conformance

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

func init() {
	byName["kv_append"], byName["kv_append_paged"] = appendCases, appendCases
	byName["paged_attention"] = pagedCases
	largeByName["kv_append"] = func(b *builder) {
		b.add("", program.Attr{}, func(r *source) []operand {
			return []operand{r.words(compute.Float16, 70_000, 2, 1, 3), r.floats(-9, 9, 70_000, 1, 1, 3),
				{program.Type{DType: compute.Int32, Shape: []int{70_000}}, r.words(compute.Int32, 70_000).data}}
		})
	}
	largeByName["kv_append_paged"] = func(b *builder) {
		b.add("", program.Attr{}, func(r *source) []operand {
			return []operand{r.words(compute.Float32, 300, 256, 1, 4), r.floats(-9, 9, 1, 70_000, 1, 4), lengthsOf([]int32{11}), r.table(300, 1, 280)}
		})
	}
	largeByName["paged_attention"] = func(b *builder) {
		b.paged("", pagedSizes{1, 2, 1, 8, 16, 2500}, compute.AttentionOptions{Causal: true}, attentionTypes{compute.Float32, compute.Float16}, 40_000)
		b.paged("", pagedSizes{2, 1, 1, 4, 1, 70_000}, compute.AttentionOptions{Window: 9}, attentionTypes{}, 69_999)
		b.paged("", pagedSizes{1, 2, 1, 32, 16, 2500}, compute.AttentionOptions{Causal: true}, attentionTypes{compute.Float32, compute.Uint32}, 40_000)
	}
}

// pagedSizes are of a cache in pages: queries, heads of queries and of keys, elements of a head, keys of a page, entries of the
// table for a sequence.
type pagedSizes struct{ n, heads, kv, d, page, entries int }

// paged adds a case of one sequence for each length, whose pages lie in no order and leave a few unused.
func (b *builder) paged(note string, s pagedSizes, o compute.AttentionOptions, t attentionTypes, lengths ...int32) *testCase {
	return b.add(note, program.Attr{Options: o}, func(r *source) []operand {
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
	return operand{program.Type{DType: compute.Int32, Shape: []int{batch, entries}}, ids}
}

// packedShape is that of a packed cache of keys […, heads, d].
func packedShape(keys []int) []int {
	n := len(keys)
	words, err := quant.PackedWords(quant.Type(catalogue.CacheFormat), keys[n-2]*keys[n-1])
	if err != nil {
		panic(err)
	}
	return append(slices.Clone(keys[:n-2]), words)
}

func lengthsOf(n []int32) operand {
	return operand{program.Type{DType: compute.Int32, Shape: []int{len(n)}}, append([]int32{}, n...)}
}

// decodeCases are of attention of few queries over caches: groups of several heads, lengths, rings.
func decodeCases(b *builder) {
	causal := compute.AttentionOptions{Causal: true}
	half := attentionTypes{compute.Float32, compute.Float16}
	b.attend("no key, one, all, some", attentionSizes{4, 1, 130, 8, 1, 33}, causal, half, 0, 1, 130, 77)
	b.attend("a long cache", attentionSizes{2, 1, 1100, 4, 1, 64}, causal, half, 1100, 700)
	b.attend("sixteen rows", attentionSizes{2, 4, 90, 8, 2, 80}, causal, half, 90, 3)
	b.attend("", attentionSizes{1, 1, 140, 1, 1, 256}, causal, attentionTypes{compute.Float32, compute.Float32}, 140)
	b.attend("", attentionSizes{2, 2, 75, 4, 4, 128}, compute.AttentionOptions{Causal: true, Window: 40, SoftCap: 3},
		attentionTypes{compute.Float32, compute.BFloat16}, 75, 50)
	b.attend("rings", attentionSizes{3, 3, 70, 4, 1, 40}, compute.AttentionOptions{Causal: true, Window: 33}, half, 71, 139, 1_000_000)

	packed := attentionTypes{compute.Float32, compute.Uint32}
	b.attend("packed: no key, one, all, some", attentionSizes{4, 1, 130, 8, 1, 32}, causal, packed, 0, 1, 130, 77)
	b.attend("packed", attentionSizes{2, 1, 1100, 4, 1, 64}, causal, packed, 1100, 700)
	b.attend("packed", attentionSizes{1, 1, 90, 9, 3, 64}, causal, packed, 90)
	b.attend("packed", attentionSizes{2, 4, 90, 8, 2, 96}, causal, packed, 90, 3)
	b.attend("packed", attentionSizes{1, 1, 140, 1, 1, 256}, causal, packed)
	b.attend("packed", attentionSizes{2, 2, 75, 5, 5, 128}, compute.AttentionOptions{Causal: true, Window: 40, SoftCap: 3}, packed, 75, 50)
	b.attend("packed rings", attentionSizes{3, 3, 70, 4, 1, 32}, compute.AttentionOptions{Causal: true, Window: 33}, packed, 71, 139, 1_000_000)
	b.attend("packed, many queries", attentionSizes{1, 50, 150, 4, 2, 32}, causal, packed, 130)
	b.attend("packed, halves of queries", attentionSizes{2, 20, 80, 4, 4, 32}, causal, attentionTypes{compute.Float16, compute.Uint32}, 80, 41)
	b.attend("packed, no keys", attentionSizes{2, 3, 0, 2, 1, 32}, causal, packed)
	b.add("packed, without batch", program.Attr{Options: causal}, func(r *source) []operand {
		kv := packed.kv
		return []operand{r.domain(b.Entry, 9, 6, 32), r.domain(b.Entry, 12, 3, 32).as(kv), r.domain(b.Entry, 12, 3, 32).as(kv)}
	})
	b.add("packed blocks of NaN that are not in use, and small scales", program.Attr{Options: causal}, func(r *source) []operand {
		var in []operand
		for range 2 {
			x := r.packed(catalogue.CacheFormat, 3*40, 64)
			words := x.Shape[1]
			for row := 50; row < 80; row++ { // of the second sequence, but ten
				x.data.([]uint32)[row*words+64/4] = 0x7e007e00
			}
			x.Shape = []int{3, 40, words}
			in = append(in, x)
		}
		return []operand{r.domain(b.Entry, 3, 2, 4, 32), in[0], in[1], lengthsOf([]int32{40, 10, 33})}
	})
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
	for _, t := range []attentionTypes{half, brain} {
		b.paged("heads of odd width", pagedSizes{1, 2, 2, 33, 3, 4}, plain, t, 7, 10)
	}
	b.paged("many queries", pagedSizes{37, 2, 1, 24, 5, 8}, causal, half, 40, 21)
	b.paged("lengths beyond the table and below 0", pagedSizes{1, 1, 1, 8, 4, 3}, causal, f32, 13, math.MaxInt32, -5, math.MinInt32)
	b.paged("no entries", pagedSizes{2, 2, 1, 8, 4, 0}, causal, f32, 3, 0)
	b.paged("no elements in pages", pagedSizes{2, 2, 1, 8, 0, 4}, causal, f32, 3)
	b.paged("no sequences", pagedSizes{2, 2, 1, 8, 4, 2}, causal, f32)
	b.paged("halves of queries", pagedSizes{1, 4, 2, 64, 16, 6}, causal, attentionTypes{compute.Float16, compute.Float16}, 90, 77)
	b.add("pages that do not exist", program.Attr{Options: causal}, func(r *source) []operand {
		table := operand{program.Type{DType: compute.Int32, Shape: []int{2, 4}},
			[]int32{2, -1, 0, 7, math.MinInt32, math.MaxInt32, 8, -8}}
		return []operand{r.domain(b.Entry, 2, 2, 2, 12), r.domain(b.Entry, 7, 3, 1, 12), r.domain(b.Entry, 7, 3, 1, 12), table,
			lengthsOf([]int32{12, 10})}
	})
	b.add("sequences share pages", program.Attr{Options: plain}, func(r *source) []operand {
		table := operand{program.Type{DType: compute.Int32, Shape: []int{3, 3}}, []int32{2, 0, 1, 2, 0, 3, 2, 2, 2}}
		return []operand{r.domain(b.Entry, 3, 1, 4, 32), r.domain(b.Entry, 4, 6, 4, 32), r.domain(b.Entry, 4, 6, 4, 32), table,
			lengthsOf([]int32{18, 14, 17})}
	})
	b.add("without batch, not in use is not read", program.Attr{Options: causal}, func(r *source) []operand {
		k, v := r.domain(b.Entry, 3, 4, 2, 8), r.domain(b.Entry, 3, 4, 2, 8)
		for i := (4 + 2) * 16; i < 8*16; i++ { // page 1 from its third key on
			k.set(float32(math.NaN()), i)
			v.set(float32(math.Inf(1)), i)
		}
		return []operand{r.domain(b.Entry, 2, 4, 8), k, v, {program.Type{DType: compute.Int32, Shape: []int{1, 2}}, []int32{2, 1}}, lengthsOf([]int32{6})}
	})
	packed := attentionTypes{compute.Float32, compute.Uint32}
	b.paged("packed", pagedSizes{1, 4, 1, 64, 16, 3}, causal, packed, 45, 0, 48, 1)
	b.paged("packed", pagedSizes{1, 9, 3, 64, 16, 6}, causal, packed, 90, 33)
	b.paged("packed", pagedSizes{2, 8, 2, 96, 17, 3}, compute.AttentionOptions{Causal: true, Window: 11, SoftCap: 3}, packed, 48, 17)
	b.paged("packed, many queries", pagedSizes{37, 2, 1, 32, 5, 8}, causal, packed, 40, 21)
	b.paged("packed, halves of queries", pagedSizes{1, 4, 2, 128, 16, 6}, causal, attentionTypes{compute.Float16, compute.Uint32}, 90, 77)
	b.add("packed, pages that do not exist", program.Attr{Options: causal}, func(r *source) []operand {
		table := operand{program.Type{DType: compute.Int32, Shape: []int{2, 4}}, []int32{2, -1, 0, 7, math.MinInt32, math.MaxInt32, 8, -8}}
		return []operand{r.domain(b.Entry, 2, 2, 2, 32), r.domain(b.Entry, 7, 3, 1, 32).as(packed.kv), r.domain(b.Entry, 7, 3, 1, 32).as(packed.kv), table,
			lengthsOf([]int32{12, 10})}
	})
	c := b.paged("", pagedSizes{5, 1, 1, 7, 5, 1}, plain, f32, 5)
	b.again(c, inPlace)
	b.again(c, shifted)
}

// appendSizes are of an append: sequences, new rows, slots of a cache or keys of a page, entries of the table, heads, elements.
type appendSizes struct{ b, n, slots, entries, heads, d int }

// storedTypes are those of caches and of rows.
var storedTypes = [][2]compute.DType{{compute.Float32, compute.Float32}, {compute.Float16, compute.Float32},
	{compute.BFloat16, compute.Float32}, {compute.Float16, compute.Float16}, {compute.BFloat16, compute.BFloat16}}

func appendCases(b *builder) {
	paged := b.Entry == catalogue.KVAppendPaged
	add := func(note string, s appendSizes, types [][2]compute.DType, positions ...int32) (c *testCase) {
		for _, t := range types {
			c = b.add(note, program.Attr{}, func(r *source) []operand {
				cache := []int{s.b, s.slots, s.heads, s.d}
				if paged {
					cache[0] = s.b*s.entries + 2
				}
				rows := r.words(t[1], s.b, s.n, s.heads, s.d)
				if t[1] == compute.Float32 && t[0] != t[1] { // what rounds
					rows = r.floats(-100, 100, s.b, s.n, s.heads, s.d)
				}
				if t[0] == compute.Uint32 {
					cache = packedShape(cache)
				}
				in := []operand{r.words(t[0], cache...), rows, lengthsOf(positions)}
				if paged {
					in = append(in, r.table(cache[0], s.b, s.entries))
				}
				return in
			})
		}
		return c
	}
	add("", appendSizes{1, 1, 1, 1, 1, 1}, storedTypes, 0)
	add("", appendSizes{2, 1, 9, 2, 2, 8}, storedTypes, 5, 0)
	add("", appendSizes{3, 4, 7, 3, 1, 33}, storedTypes, 6, 3, 12)
	add("", appendSizes{2, 3, 16, 2, 3, 10}, storedTypes, 15, 13)
	add("", appendSizes{2, 40, 17, 4, 2, 64}, storedTypes[:2], 0, 21)
	add("one slot", appendSizes{2, 3, 1, 5, 1, 5}, storedTypes, 0, 2)
	add("positions out of range", appendSizes{6, 3, 5, 2, 1, 6}, storedTypes[:2], -1, -3, math.MinInt32, math.MaxInt32-1, 1000, 8)
	packed := [][2]compute.DType{{compute.Uint32, compute.Float32}}
	for _, heads := range []int{1, 2, 3, 5, 8, 9} { // so many blocks, an odd number too, and words after them
		add("packed", appendSizes{2, 3, 6, 2, heads, 32}, packed, 4, 1)
	}
	add("packed", appendSizes{1, 40, 17, 4, 2, 128}, packed, 21)
	add("packed, positions out of range", appendSizes{6, 3, 5, 2, 1, 64}, packed, -1, -3, math.MinInt32, math.MaxInt32-1, 1000, 8)
	add("packed, no rows", appendSizes{2, 0, 5, 2, 1, 32}, packed, 1, 2)
	add("packed, no slots", appendSizes{2, 2, 0, 2, 1, 32}, packed, 1, 2)
	b.add("packed blocks of every kind", program.Attr{}, func(r *source) []operand {
		const blocks = 40
		rows := r.floats(-1, 1, 1, 1, blocks, 32)
		x := rows.data.([]float32)
		for i := range blocks {
			block := x[32*i:][:32]
			for j := range block {
				block[j] *= float32(math.Exp2(float64(3*i - 60))) // scales that vanish, are subnormal, overflow
			}
			switch i % 8 {
			case 1: // ties: with a scale of 2 to some power, which the largest has
				unit := float32(math.Exp2(float64(i - 12)))
				for j := range block {
					block[j] = unit * (float32(r.IntN(253)-126) + 0.5)
				}
				block[i%32] = -127 * unit
			case 3:
				block[5] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32}[i/8%4]
			case 5:
				clear(block)
			}
		}
		in := []operand{r.words(compute.Uint32, packedShape([]int{1, 2, blocks, 32})...), rows, lengthsOf([]int32{1})}
		if paged {
			in = append(in, operand{program.Type{DType: compute.Int32, Shape: []int{1, 1}}, []int32{0}})
		}
		return in
	})
	if paged { // eight elements of a row are written at once, or one
		for _, t := range append(packed, storedTypes...) {
			for _, n := range []int{3, 8} {
				b.add("pages that do not exist, and positions beyond the table", program.Attr{}, func(r *source) []operand {
					n, cache := n, []int{5, 4, 1, n}
					if t[0] == compute.Uint32 {
						n *= catalogue.CacheBlock
						cache = packedShape([]int{5, 4, 1, n})
					}
					table := operand{program.Type{DType: compute.Int32, Shape: []int{2, 3}}, []int32{5, -1, 0, 1, 2, math.MaxInt32}}
					rows := r.words(t[1], 2, 10, 1, n)
					if t[0] == compute.Uint32 {
						rows = r.floats(-9, 9, 2, 10, 1, n)
					}
					return []operand{r.words(t[0], cache...), rows, lengthsOf([]int32{3, 3}), table}
				})
			}
		}
	}
	add("no rows", appendSizes{2, 0, 5, 2, 1, 6}, storedTypes[:2], 1, 2)
	add("no slots", appendSizes{2, 2, 0, 2, 1, 6}, storedTypes[:2], 1, 2)
	add("no sequences", appendSizes{0, 2, 3, 2, 1, 6}, storedTypes[:1])
	add("no elements", appendSizes{2, 2, 3, 2, 1, 0}, storedTypes[:1], 1, 2)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	edges := []float32{nan, inf, -inf, 65504, 65519.996, 65520, -65520, 0x1p-14, 0x1p-24, 0x1p-25, 0x1.8p-25, 1 + 0x1p-11, 1 + 3*0x1p-11,
		1 + 0x1p-9, 1 + 0x1p-8, 1 + 3*0x1p-9, math.MaxFloat32, 0x1p-130}
	for _, t := range storedTypes[1:3] {
		b.add("edges", program.Attr{}, func(r *source) []operand {
			in := []operand{r.words(t[0], 2, 3, 1, len(edges)), f32s([]int{1, 1, 1, len(edges)}, edges...), lengthsOf([]int32{2})}
			if paged {
				return append(in, r.table(2, 1, 1))
			}
			return []operand{r.words(t[0], 1, 3, 1, len(edges)), in[1], in[2]}
		})
	}
	if !paged {
		add("rows beyond the capacity", appendSizes{2, 11, 4, 0, 1, 5}, storedTypes, 3, 0)
		add("packed rows beyond the capacity", appendSizes{2, 11, 4, 0, 3, 32}, packed, 3, 0)
		add("far beyond a wrap", appendSizes{2, 3, 7, 0, 1, 4}, storedTypes[:3], 1_000_003, math.MaxInt32-2)
	} else {
		b.add("pages that do not exist", program.Attr{}, func(r *source) []operand {
			table := operand{program.Type{DType: compute.Int32, Shape: []int{2, 4}}, []int32{1, -1, 5, 0, math.MinInt32, math.MaxInt32, 4, 3}}
			return []operand{r.words(compute.Float16, 5, 2, 1, 3), r.floats(-9, 9, 2, 8, 1, 3), lengthsOf([]int32{0, 1}), table}
		})
	}
	c := add("", appendSizes{2, 2, 6, 1, 1, 5}, storedTypes[:1], 3, 1)
	b.again(c, inPlace)
	b.again(c, shifted)
}
