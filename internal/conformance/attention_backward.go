package conformance

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	byName["attention_backward"] = attentionBackwardCases
	largeByName["attention_backward"] = func(b *builder) {
		b.attendBack("", attentionSizes{1, 150, 300, 2, 1, 64}, compute.AttentionOptions{Causal: true})
		b.attendBack("", attentionSizes{1, 70_000, 2, 1, 1, 1}, compute.AttentionOptions{Causal: true, Window: 3})
	}
}

// attendBack adds a case of random operands, and of what the reference of attention_lse makes of them.
func (b *builder) attendBack(note string, s attentionSizes, o compute.AttentionOptions, lengths ...int32) *testCase {
	return b.add(note, program.Attr{Options: o}, func(r *source) []operand {
		q, k := s.shapes()
		in := []operand{r.domain(b.Entry, q...), r.domain(b.Entry, k...), r.domain(b.Entry, k...)}
		if lengths != nil {
			in = append(in, operand{program.Type{DType: compute.Int32, Shape: []int{s.b}}, slices.Clone(lengths)})
		}
		return b.backward(r, o, in)
	})
}

// backward makes operands of attention's gradient from those of attention.
func (b *builder) backward(r *source, o compute.AttentionOptions, in []operand) []operand {
	out, err := catalogue.AttentionLSE.Check(types(in), program.Attr{Options: o})
	if err != nil {
		panic(err) // our own cases
	}
	all := slices.Clone(in[:3])
	for i, x := range reference.Of(catalogue.AttentionLSE, arrays(in), program.Attr{Options: o}, out) {
		rounded := make([]float32, len(x.Data))
		for j, v := range x.Data {
			rounded[j] = float32(v)
		}
		all = append(all, operand{out[i], rounded})
	}
	return append(append(all, r.domain(b.Entry, in[0].Shape...)), in[3:]...)
}

func attentionBackwardCases(b *builder) {
	var plain compute.AttentionOptions
	causal := compute.AttentionOptions{Causal: true}
	b.attendBack("", attentionSizes{1, 1, 1, 1, 1, 1}, plain)
	b.attendBack("", attentionSizes{2, 3, 7, 2, 1, 8}, causal)
	b.attendBack("", attentionSizes{1, 17, 17, 4, 4, 16}, causal)
	b.attendBack("", attentionSizes{1, 33, 65, 6, 2, 33}, plain)
	b.attendBack("", attentionSizes{1, 65, 64, 1, 1, 64}, causal)
	b.attendBack("", attentionSizes{1, 66, 130, 2, 1, 40}, compute.AttentionOptions{Causal: true, Window: 20})
	b.attendBack("", attentionSizes{1, 130, 70, 1, 1, 12}, compute.AttentionOptions{Window: 9})
	b.attendBack("queries before the first key see none", attentionSizes{1, 130, 67, 1, 1, 8}, causal)
	b.attendBack("", attentionSizes{1, 9, 35, 2, 2, 80}, compute.AttentionOptions{Scale: 0.25})
	b.attendBack("", attentionSizes{1, 34, 20, 2, 1, 128}, causal)
	b.attendBack("", attentionSizes{1, 5, 40, 1, 1, 255}, compute.AttentionOptions{Window: 7})
	b.attendBack("", attentionSizes{1, 35, 9, 1, 1, 256}, plain)
	b.attendBack("bent", attentionSizes{2, 19, 40, 4, 2, 20}, compute.AttentionOptions{Scale: 1, SoftCap: 3, Causal: true})
	b.attendBack("scores of hundreds, bent", attentionSizes{1, 9, 40, 2, 2, 4}, compute.AttentionOptions{Scale: 20, SoftCap: 50})
	b.attendBack("lengths", attentionSizes{5, 2, 24, 4, 2, 16}, plain, 0, 24, 7, 1, -3)
	b.attendBack("lengths", attentionSizes{2, 40, 70, 1, 1, 31}, compute.AttentionOptions{Causal: true, SoftCap: 2, Window: 30}, 70, 35)
	b.attendBack("rings", attentionSizes{4, 3, 16, 2, 1, 20}, causal, 16, 17, 31, math.MaxInt32)
	b.attendBack("rings", attentionSizes{2, 5, 37, 2, 1, 64}, compute.AttentionOptions{Causal: true, Window: 6}, 50, 37)
	for _, s := range []attentionSizes{{0, 3, 3, 2, 1, 4}, {2, 0, 3, 2, 1, 4}, {2, 3, 0, 2, 1, 4}, {2, 3, 3, 0, 0, 4}, {2, 3, 3, 0, 1, 4}} {
		b.attendBack("empty", s, causal)
	}
	b.attendBack("empty", attentionSizes{2, 3, 0, 2, 1, 4}, plain, 0, 9)
	b.add("an empty sequence contributes nothing, whatever its rows hold", program.Attr{Options: plain}, func(r *source) []operand {
		lengths := operand{program.Type{DType: compute.Int32, Shape: []int{2}}, []int32{0, 5}}
		in := b.backward(r, plain, []operand{r.domain(b.Entry, 2, 3, 2, 8), r.domain(b.Entry, 2, 5, 2, 8), r.domain(b.Entry, 2, 5, 2, 8), lengths})
		for _, k := range []int{0, 1, 2, 3, 5} { // q, k, v, y, dy
			for i := range 3 * 2 * 8 {
				in[k].set(float32(math.NaN()), i)
			}
		}
		for i := range 2 * 3 { // lse
			in[4].set(float32(math.NaN()), i)
		}
		return in
	})
	b.add("without batch", program.Attr{Options: causal}, func(r *source) []operand {
		return b.backward(r, causal, []operand{r.domain(b.Entry, 9, 6, 24), r.domain(b.Entry, 12, 3, 24), r.domain(b.Entry, 12, 3, 24)})
	})
	b.add("what is not in use is not read", program.Attr{Options: plain}, func(r *source) []operand {
		nan, row := float32(math.NaN()), 2*8 // two heads of eight
		k, v := r.domain(b.Entry, 1, 20, 2, 8), r.domain(b.Entry, 1, 20, 2, 8)
		for i := 11 * row; i < 20*row; i++ {
			k.set(nan, i)
			v.set(nan, i)
		}
		lengths := operand{program.Type{DType: compute.Int32, Shape: []int{1}}, []int32{11}}
		return b.backward(r, plain, []operand{r.domain(b.Entry, 1, 6, 4, 8), k, v, lengths})
	})
	c := b.attendBack("", attentionSizes{1, 12, 12, 2, 2, 8}, causal)
	b.again(c, inPlace)
	b.again(c, shifted)
}
