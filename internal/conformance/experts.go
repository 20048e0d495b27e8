package conformance

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

func init() {
	byName["matmul_experts"] = expertCases
	largeByName["matmul_experts"] = func(b *builder) {
		b.experts("", compute.ExpertOptions{Format: compute.Q4_0, Q8: true}, 70_001, []int{3, 2}, false, 5, 32)
		b.experts("some matrices at a time", compute.ExpertOptions{Format: compute.Q8_0}, 3, []int{2, 2}, false, 6000, 4096)
		b.experts("", compute.ExpertOptions{}, 4, []int{3, 3}, true, 3000, 5000)
	}
}

// experts adds a case of so many matrices [n, k], and indices of a shape. Each index has a row of x of its own, or those of the last axis have
// one together.
func (b *builder) experts(note string, o compute.ExpertOptions, matrices int, chosen []int, own bool, n, k int) *testCase {
	return b.add(note, program.Attr{Options: o}, func(r *source) []operand {
		lead := chosen
		if !own {
			lead = chosen[:len(chosen)-1]
		}
		x := r.domain(b.Entry, append(slices.Clone(lead), k)...)
		w := r.floats(-1, 1, matrices, n, k)
		if o.Format != 0 {
			w = r.packed(o.Format, matrices*n, k)
			w.Shape = []int{matrices, n, w.Shape[1]}
		}
		ids := make([]int32, program.Len(chosen))
		for i := range ids {
			ids[i] = r.Int32N(int32(matrices))
		}
		return []operand{x, w, {program.Type{DType: compute.Int32, Shape: chosen}, ids}}
	})
}

func expertCases(b *builder) {
	for i, f := range blockFormats {
		block := quant.Type(f.BlockFormat).BlockLen()
		for _, q := range []bool{false, true} {
			o := compute.ExpertOptions{Format: f.BlockFormat, Q8: q}
			b.experts("", o, 3+i, []int{2}, i%2 == 0, 5, block*(1+i%3))
			b.experts("", o, 4, []int{1, 3}, i%2 == 1, 70, block)
			b.experts("", o, 5, []int{7, 2}, false, 9, block*2)
			b.experts("", o, 3, []int{6, 2}, true, 67, block)
			b.experts("many of each", o, 2, []int{19, 2}, q, 11, block)
		}
	}
	for _, own := range []bool{false, true} {
		b.experts("", compute.ExpertOptions{}, 1, []int{1}, own, 1, 1)
		b.experts("", compute.ExpertOptions{}, 6, []int{4}, own, 7, 33)
		b.experts("", compute.ExpertOptions{}, 4, []int{5, 3}, own, 130, 17)
		b.experts("", compute.ExpertOptions{}, 3, []int{2, 3, 2}, own, 5, 64)
		b.experts("K = 0", compute.ExpertOptions{}, 3, []int{2, 2}, own, 5, 0)
		b.experts("K = 0", compute.ExpertOptions{Format: compute.Q4_K, Q8: own}, 3, []int{2, 2}, own, 5, 0)
		b.experts("nothing chosen", compute.ExpertOptions{}, 3, []int{2, 0}, own, 5, 4)
		b.experts("no rows", compute.ExpertOptions{Format: compute.Q8_0}, 3, []int{0, 2}, own, 5, 32)
		b.experts("no elements", compute.ExpertOptions{}, 3, []int{2, 2}, own, 0, 8)
		for _, f := range []compute.BlockFormat{0, compute.Q5_0} {
			c := b.experts(fmt.Sprint("indices outside, ", f), compute.ExpertOptions{Format: f}, 3, []int{3, 4}, own, 6, 64)
			inside := c.inputs
			c.inputs = func(r *source) []operand {
				in := inside(r)
				ids := in[2].data.([]int32)
				ids[1], ids[4], ids[11] = -1, 3, 1<<31-1
				return in
			}
		}
	}
	c := b.experts("", compute.ExpertOptions{}, 3, []int{4, 1}, true, 8, 8)
	b.again(c, inPlace)
	b.again(c, shifted)
}
