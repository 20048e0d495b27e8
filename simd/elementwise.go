package simd

import (
	"slices"

	"github.com/wavelane/wavelane/internal/op"
)

// repeat is the longest run of copies that stands for an operand which does not vary along the last axis.
const repeat = 512

// elementwise lowers an entry of one to three operands with broadcasting.
func elementwise(s *spanOp, c *call) work {
	var p numbers
	copy(p[:], c.attr.Scalars)
	ns := s.cost.ns()
	// As many elements as the result has, which no operand exceeds, are in the result's order.
	if !slices.ContainsFunc(c.in, func(t op.Type) bool { return t.Len() != c.out.Len() }) {
		return one(c.out.Len(), ns, func(a *args, lo, hi int) {
			var x [3][]float32
			for k, v := range a.in {
				x[k] = v.f32()[lo:hi]
			}
			s.f(a.out.f32()[lo:hi], x[0], x[1], x[2], p)
		})
	}
	strides := make([][]int, len(c.in))
	for k, t := range c.in {
		strides[k] = op.BroadcastStrides(t.Shape, c.out.Shape)
	}
	shape, strides := op.Collapse(c.out.Shape, strides...)
	inner := shape[len(shape)-1]
	return one(c.out.Len(), ns+30/float64(inner), func(a *args, lo, hi int) {
		b := broadcast{spanOp: s, p: p, shape: shape, strides: strides}
		b.run(a, lo, hi)
	})
}

// broadcast walks a chunk of a result row by row of the last axis, along which every operand has stride 0 or 1.
type broadcast struct {
	*spanOp
	p       numbers
	shape   []int
	strides [][]int
	at      [3]int // offset of each operand
	index   [op.MaxRank]int
}

func (b *broadcast) run(a *args, lo, hi int) {
	last := len(b.shape) - 1
	inner := b.shape[last]
	for d, rest := last, lo; d >= 0; d-- {
		b.index[d] = rest % b.shape[d]
		rest /= b.shape[d]
		for k := range b.strides {
			if d < last {
				b.at[k] += b.index[d] * b.strides[k][d]
			}
		}
	}
	buffers := borrow(3 * repeat)
	defer scratch.Put(buffers)
	y := a.out.f32()
	for j := b.index[last]; lo < hi; j = 0 {
		n := min(inner-j, hi-lo)
		b.row(a, y[lo:lo+n], j, *buffers)
		lo += n
		b.next(last)
	}
}

// row computes elements of one row from j on.
func (b *broadcast) row(a *args, y []float32, j int, buffers []float32) {
	var x [3][]float32
	constant, which := 0, 0 // operands that do not vary along the row, the last of them
	for k, st := range b.strides {
		v := a.in[k].f32()
		if st[len(st)-1] != 0 {
			x[k] = v[b.at[k]+j:][:len(y)]
			continue
		}
		constant++
		which = k
	}
	switch {
	case constant == 0:
		b.f(y, x[0], x[1], x[2], b.p)
		return
	case constant == 1 && b.fixed[which] != nil:
		b.fixed[which](y, x[0], x[1], x[2], numbers{a.in[which].f32()[b.at[which]]})
		return
	}
	for k, st := range b.strides {
		if st[len(st)-1] == 0 {
			x[k] = buffers[k*repeat:][:min(len(y), repeat)]
			fillWith(x[k], a.in[k].f32()[b.at[k]])
		}
	}
	for lo := 0; lo < len(y); lo += repeat {
		hi := min(lo+repeat, len(y))
		part := x
		for k, st := range b.strides {
			if st[len(st)-1] != 0 {
				part[k] = x[k][lo:hi]
			} else {
				part[k] = x[k][:hi-lo]
			}
		}
		b.f(y[lo:hi], part[0], part[1], part[2], b.p)
	}
}

// next moves the operands to the following row.
func (b *broadcast) next(last int) {
	for d := last - 1; d >= 0; d-- {
		b.index[d]++
		for k := range b.strides {
			b.at[k] += b.strides[k][d]
		}
		if b.index[d] < b.shape[d] {
			return
		}
		for k := range b.strides {
			b.at[k] -= b.strides[k][d] * b.shape[d]
		}
		b.index[d] = 0
	}
}
