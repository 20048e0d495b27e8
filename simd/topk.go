package simd

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// TopK finds the k = len(values) = len(indices) largest elements of x, k at most len(x), in descending order, with their
// indices. Of equal elements the one of lower index comes first; zeros of either sign are equal. NaN counts as larger than
// every number. Values must not overlap x, which has fewer than 2³¹ elements.
func TopK(values []float32, indices []int32, x []float32) {
	engine.MustLen("TopK", len(indices), len(values))
	if k := len(values); k > len(x) || len(x) > 1<<31-1 {
		panic(fmt.Errorf("simd.TopK: the largest %d of %d elements: %w", k, len(x), compute.ErrShape))
	}
	engine.MustApart("TopK", values, x)
	if len(values) == 0 {
		return
	}
	h := heap{values, indices}
	copy(h.values, x)
	for i := range h.indices {
		h.indices[i] = int32(i)
	}
	for i := len(values)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
	const block = 256 // elements that one look shows to be too small
	for at := len(values); at < len(x); at += block {
		part := x[at:min(at+block, len(x))]
		least := h.values[0]
		if least != least || kernels.Max(part) <= least { // nothing later comes before NaN
			continue
		}
		for i, v := range part {
			if !(v <= h.values[0]) && h.values[0] == h.values[0] {
				h.values[0], h.indices[0] = v, int32(at+i)
				h.sink(0)
			}
		}
	}
	for n := len(values) - 1; n > 0; n-- {
		h.swap(0, n)
		h = heap{h.values[:n], h.indices[:n]}
		h.sink(0)
	}
}

// heap has the element on top that comes last in the result.
type heap struct {
	values  []float32
	indices []int32
}

func (h *heap) swap(i, j int) {
	h.values[i], h.values[j] = h.values[j], h.values[i]
	h.indices[i], h.indices[j] = h.indices[j], h.indices[i]
}

// before reports whether element i comes before element j in the result.
func (h *heap) before(i, j int) bool {
	v, w := h.values[i], h.values[j]
	switch {
	case v > w:
		return true
	case v < w:
		return false
	case (v != v) != (w != w):
		return v != v
	}
	return h.indices[i] < h.indices[j]
}

// sink moves element i down to where it belongs.
func (h *heap) sink(i int) {
	for {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.values); child++ {
			if h.before(last, child) {
				last = child
			}
		}
		if last == i {
			return
		}
		h.swap(i, last)
		i = last
	}
}
