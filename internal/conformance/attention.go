package conformance

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	byName["attention"] = attentionCases
	largeByName["attention"] = largeAttention
	byName["attention_lse"] = lseCases
	largeByName["attention_lse"] = func(b *builder) {
		b.attend("", attentionSizes{1, 20, 20_000, 1, 1, 4}, compute.AttentionOptions{}, attentionTypes{})
	}
}

// attentionSizes are batch, queries, keys, heads of queries and of keys, and elements of a head.
type attentionSizes struct{ b, n, nk, heads, kv, d int }

func (s attentionSizes) shapes() (q, k []int) {
	return []int{s.b, s.n, s.heads, s.d}, []int{s.b, s.nk, s.kv, s.d}
}

// attentionTypes are the types of queries, and of keys and values.
type attentionTypes struct{ q, kv compute.DType }

// attend adds a case of random operands, with lengths if there are any.
func (b *builder) attend(note string, s attentionSizes, o compute.AttentionOptions, t attentionTypes, lengths ...int32) *testCase {
	return b.add(note, program.Attr{Options: o}, func(r *source) []operand {
		q, k := s.shapes()
		in := []operand{r.domain(b.Entry, q...).as(t.q), r.domain(b.Entry, k...).as(t.kv), r.domain(b.Entry, k...).as(t.kv)}
		if lengths != nil {
			in = append(in, operand{program.Type{DType: compute.Int32, Shape: []int{s.b}}, append([]int32{}, lengths...)})
		}
		return in
	})
}

func attentionCases(b *builder) {
	var plain compute.AttentionOptions
	var f32 attentionTypes
	causal := compute.AttentionOptions{Causal: true}
	cache := attentionTypes{compute.Float32, compute.Float16}

	b.attend("", attentionSizes{1, 1, 1, 1, 1, 1}, plain, f32)
	b.attend("", attentionSizes{1, 1, 5, 1, 1, 3}, plain, f32)
	b.attend("", attentionSizes{2, 3, 7, 2, 1, 8}, causal, f32)
	b.attend("", attentionSizes{1, 17, 17, 4, 4, 16}, causal, f32)
	b.attend("", attentionSizes{1, 33, 65, 2, 1, 32}, plain, f32)
	b.attend("", attentionSizes{1, 64, 64, 1, 1, 64}, causal, f32)
	b.attend("", attentionSizes{1, 65, 129, 2, 1, 64}, compute.AttentionOptions{Causal: true, Window: 20}, f32)
	b.attend("", attentionSizes{1, 5, 70, 6, 2, 40}, compute.AttentionOptions{Window: 9}, f32)
	b.attend("queries before the first key see none", attentionSizes{1, 130, 67, 1, 1, 80}, causal, f32)
	b.attend("", attentionSizes{1, 130, 31, 1, 1, 12}, compute.AttentionOptions{Window: 3}, f32)
	b.attend("", attentionSizes{1, 4, 33, 2, 1, 128}, compute.AttentionOptions{Window: 7}, f32)
	b.attend("", attentionSizes{1, 3, 20, 1, 1, 256}, compute.AttentionOptions{Scale: 0.25}, f32)
	b.attend("", attentionSizes{1, 66, 35, 1, 1, 255}, plain, f32)
	b.attend("scores of hundreds, bent", attentionSizes{1, 9, 40, 2, 2, 20}, compute.AttentionOptions{Scale: 20, SoftCap: 50}, f32)
	b.attend("one new query", attentionSizes{2, 1, 120, 8, 2, 64}, causal, f32, 120, 101)
	b.attend("a window of one", attentionSizes{1, 9, 9, 1, 1, 5}, compute.AttentionOptions{Causal: true, Window: 1}, f32)
	b.add("without batch", program.Attr{Options: causal}, func(r *source) []operand {
		return []operand{r.domain(b.Entry, 9, 6, 24), r.domain(b.Entry, 12, 3, 24), r.domain(b.Entry, 12, 3, 24)}
	})

	some := attentionSizes{5, 2, 24, 4, 2, 16}
	b.attend("lengths", some, causal, f32, 0, 24, 7, 1, -3)
	b.attend("lengths", some, plain, f32, 0, 24, 7, 1, -3)
	b.attend("lengths", attentionSizes{2, 40, 70, 1, 1, 31}, compute.AttentionOptions{Causal: true, SoftCap: 2, Window: 30}, f32, 70, 55)
	b.attend("rings", attentionSizes{4, 3, 16, 2, 1, 20}, causal, f32, 16, 17, 31, 1000)
	b.attend("rings", attentionSizes{3, 5, 37, 2, 1, 64}, compute.AttentionOptions{Causal: true, Window: 6}, f32, 50, 37, math.MaxInt32)

	b.attend("a cache of halves", attentionSizes{1, 1, 90, 4, 1, 64}, causal, cache, 77)
	b.attend("a cache of halves", attentionSizes{2, 19, 40, 2, 1, 27}, causal, cache)
	b.attend("a cache of halves", attentionSizes{1, 70, 50, 1, 1, 96}, plain, cache)

	for _, d := range []compute.DType{compute.Float16, compute.BFloat16} {
		all := attentionTypes{d, d}
		for _, n := range []int{1, 3, 7} {
			b.attend("", attentionSizes{1, n, 20, 2, 2, 64}, causal, attentionTypes{compute.Float32, d})
		}
		b.attend("", attentionSizes{1, 40, 70, 2, 1, 64}, causal, all)
		b.attend("", attentionSizes{2, 66, 130, 1, 1, 128}, compute.AttentionOptions{Causal: true, Window: 50}, all, 129, 30)
		b.attend("", attentionSizes{1, 3, 9, 2, 2, 15}, plain, all)
		b.attend("", attentionSizes{1, 17, 40, 1, 1, 40}, compute.AttentionOptions{SoftCap: 3}, all, 1000)
		b.attend("", attentionSizes{1, 50, 70, 6, 2, 72}, causal, all)
		b.attend("", attentionSizes{2, 17, 129, 2, 1, 80}, compute.AttentionOptions{Causal: true, Window: 70, SoftCap: 30}, all, 128, 7)
		b.attend("", attentionSizes{1, 140, 100, 1, 1, 16}, compute.AttentionOptions{Window: 20}, all)
		b.attend("a ring", attentionSizes{1, 20, 100, 1, 1, 64}, causal, all, 130)
		b.attend("", attentionSizes{1, 18, 65, 1, 1, 256}, causal, all)
		for _, n := range []int{64, 128, 256} {
			b.add("keys that are not in use are not read", program.Attr{Options: plain}, func(r *source) []operand {
				k, v := r.domain(b.Entry, 1, 70, 1, n), r.domain(b.Entry, 1, 70, 1, n)
				for i := 50 * n; i < 70*n; i++ {
					k.set(float32(math.NaN()), i)
					v.set(float32(math.NaN()), i)
				}
				return []operand{r.domain(b.Entry, 1, 20, 1, n).as(d), k.as(d), v.as(d), lengthsOf([]int32{50})}
			})
		}
	}
	b.attend("", attentionSizes{1, 3, 20, 4, 2, 64}, causal, attentionTypes{compute.Float16, compute.Float32})

	for _, s := range []attentionSizes{{0, 3, 3, 2, 1, 4}, {2, 0, 3, 2, 1, 4}, {2, 3, 0, 2, 1, 4}, {2, 3, 3, 0, 0, 4}, {1, 1, 0, 1, 1, 64}} {
		b.attend("empty", s, causal, f32)
	}
	b.attend("empty", attentionSizes{2, 3, 0, 2, 1, 4}, plain, f32, 0, 9)
	decodeCases(b)
	attentionSpecials(b)

	c := b.attend("", attentionSizes{1, 12, 12, 2, 2, 8}, causal, f32)
	b.again(c, inPlace)
	b.again(c, shifted)
	b.attend("one value for all operands", attentionSizes{1, 20, 20, 3, 3, 32}, plain, f32).same = true
}

// lseCases are a few of attention's: what is more than attention is quickly told.
func lseCases(b *builder) {
	var f32 attentionTypes
	causal := compute.AttentionOptions{Causal: true}
	half := attentionTypes{compute.Float16, compute.Float16}
	b.attend("", attentionSizes{1, 1, 1, 1, 1, 1}, causal, f32)
	b.attend("", attentionSizes{2, 3, 7, 4, 2, 8}, causal, f32)
	b.attend("", attentionSizes{1, 33, 65, 2, 1, 32}, compute.AttentionOptions{Scale: 3}, f32)
	b.attend("", attentionSizes{1, 65, 40, 1, 1, 64}, causal, f32)
	b.attend("", attentionSizes{3, 5, 9, 1, 1, 3}, causal, f32, 9, 2, 0)
	b.attend("rings", attentionSizes{2, 3, 16, 2, 1, 20}, compute.AttentionOptions{Causal: true, Window: 3}, f32, 17, 1000)
	b.attend("", attentionSizes{1, 20, 20, 4, 2, 64}, causal, half)
	b.attend("", attentionSizes{2, 30, 80, 1, 1, 104}, compute.AttentionOptions{Causal: true, SoftCap: 5}, half, 20, 80)
	b.attend("empty", attentionSizes{2, 3, 0, 2, 1, 4}, causal, f32)
	b.attend("empty", attentionSizes{2, 3, 0, 2, 1, 4}, causal, f32, 0, 9)
	b.attend("empty", attentionSizes{2, 0, 3, 2, 1, 4}, causal, f32)
	b.add("without batch", program.Attr{Options: causal}, func(r *source) []operand {
		return []operand{r.domain(b.Entry, 9, 6, 24), r.domain(b.Entry, 12, 3, 24), r.domain(b.Entry, 12, 3, 24)}
	})
	b.add("NaN and infinite queries", program.Attr{Options: causal}, func(r *source) []operand {
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		return []operand{r.domain(b.Entry, 1, 6, 2, 8).set(nan, 5).set(inf, 40), r.domain(b.Entry, 1, 6, 2, 8), r.domain(b.Entry, 1, 6, 2, 8)}
	})
}

// attentionSpecials adds cases of special values.
func attentionSpecials(b *builder) {
	causal := program.Attr{Options: compute.AttentionOptions{Causal: true}}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, s := range []attentionSizes{{1, 3, 16, 2, 1, 8}, {1, 40, 64, 1, 1, 64}, {2, 1, 128, 4, 2, 32}} {
		q, k := s.shapes()
		b.add("queries of zeros average the values", program.Attr{Options: compute.AttentionOptions{}}, func(r *source) []operand {
			return []operand{r.integers(0, 0, q...), r.integers(-4, 4, k...), r.integers(-4, 4, k...)}
		}).exact = true
	}
	row := 2 * 8 // of keys: two heads of eight
	keys := func(r *source) operand { return r.domain(b.Entry, 1, 20, 2, 8) }
	queries := func(r *source) operand { return r.domain(b.Entry, 1, 6, 4, 8) }
	b.add("a NaN key hurts those who see it", causal, func(r *source) []operand {
		return []operand{queries(r), keys(r).set(nan, 17*row+3), keys(r)}
	})
	b.add("an infinite key", causal, func(r *source) []operand {
		return []operand{queries(r), keys(r).set(inf, 18*row+9), keys(r)}
	})
	b.add("NaN and infinite queries", causal, func(r *source) []operand {
		return []operand{queries(r).set(nan, 5).set(inf, 3*4*8+20).set(-inf, 70), keys(r), keys(r)}
	})
	b.add("what is not in use is not read", causal, func(r *source) []operand {
		k, v := keys(r), keys(r)
		for i := 11 * row; i < 20*row; i++ {
			k.set(nan, i)
			v.set(inf, i)
		}
		return []operand{queries(r), k, v, {program.Type{DType: compute.Int32, Shape: []int{1}}, []int32{11}}}
	})
	b.add("an infinite value of the oldest key", causal, func(r *source) []operand {
		return []operand{queries(r), keys(r), keys(r).set(inf, 0).set(nan, 9)}
	})
	b.add("scores of minus infinity", causal, func(r *source) []operand {
		q, k := r.floats(1, 2, 1, 3, 1, 4), r.floats(1, 2, 1, 3, 1, 4)
		return []operand{q, k.set(-inf, 0).set(-inf, 5), r.floats(-2, 2, 1, 3, 1, 4)}
	})
	b.add("an infinite score under a cap", program.Attr{Options: compute.AttentionOptions{SoftCap: 2}}, func(r *source) []operand {
		q, k := r.floats(1, 2, 1, 3, 1, 4), r.floats(1, 2, 1, 3, 1, 4)
		return []operand{q, k.set(-inf, 0).set(inf, 5), r.floats(-2, 2, 1, 3, 1, 4)}
	})
}

func largeAttention(b *builder) {
	var f32 attentionTypes
	b.attend("", attentionSizes{1, 1, 100_000, 1, 1, 4}, compute.AttentionOptions{}, f32)
	b.attend("", attentionSizes{1, 70_000, 2, 1, 1, 1}, compute.AttentionOptions{Causal: true}, f32)
	b.attend("", attentionSizes{1, 3, 40_000, 2, 1, 8}, compute.AttentionOptions{Causal: true, Window: 100}, f32)
}
