package cpu

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// stage arranges a copy of a host input where a destination overlaps it and would be written while the input is still needed:
// results are as if all inputs had been copied. Inputs of a detached program are copied at once.
func (r *run) stage(s program.Slot) error {
	x := r.x
	t := x.p.Values[s]
	if t.Len() == 0 || x.last[s] < 0 && !x.detached() || !x.detached() && !r.conflict(s) {
		return nil
	}
	b, err := x.d.memory.Take(t.Bytes())
	if err != nil {
		return fmt.Errorf("copy of input %v: %w", t.Type, err)
	}
	r.held = append(r.held, b)
	to := b.view(0, t.Len())
	if x.detached() {
		copy(to.bytes(t.DType), r.views[s].bytes(t.DType))
		r.views[s] = to
		return nil
	}
	r.staged = append(r.staged, staged{s, to})
	return nil
}

// conflict reports whether a destination that overlaps host input s is written while the input is still needed.
func (r *run) conflict(s program.Slot) bool {
	x := r.x
	h, size := r.views[s], x.p.Values[s].DType.Size()
	for i := range x.steps {
		c := &x.steps[i]
		if x.last[s] < i {
			continue
		}
		for k, to := range c.to {
			if to.Kind != device.InResult {
				continue
			}
			d := r.results[to.Index]
			if !overlap(h, size, d, c.outs[k].DType.Size()) {
				continue
			}
			if x.last[s] > i || !c.over(s, x.p.Values[s].Shape) || h.p != d.p {
				return true
			}
		}
	}
	return false
}

// over reports whether the step may write its result over operand s while it reads it.
func (c *step) over(s program.Slot, shape []int) bool {
	if !c.inPlace || !program.EqualShape(shape, c.outs[0].Shape) {
		return false
	}
	// The vectors of a row operation are read for every row; even with the shape of the result they cannot be written to.
	return !c.rows || !slices.Contains(c.in[1:], s)
}

func overlap(a view, sizeA int, b view, sizeB int) bool {
	if a.n == 0 || b.n == 0 {
		return false
	}
	a0, b0 := uintptr(a.p), uintptr(b.p)
	return a0 < b0+uintptr(b.n*sizeB) && b0 < a0+uintptr(a.n*sizeA)
}
