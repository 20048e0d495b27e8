package wgslkernels

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/wgsl"
)

// gather is the code of [catalogue.Gather].
func gather(s *step) error {
	d, err := catalogue.GatherAxis(s.Operands[0].Shape, s.Operands[1].Shape, s.Attr.Options.(compute.GatherOptions))
	if err != nil {
		return err
	}
	return s.take(d)
}

// takeAlong is the code of [catalogue.TakeAlong].
func takeAlong(s *step) error {
	d, err := catalogue.TakeAlongDims(s.Operands[0].Shape, s.Operands[1].Shape)
	if err != nil {
		return err
	}
	return s.take(d)
}

// take makes the result of rows that indices name.
func (s *step) take(d catalogue.GatherDims) error {
	lanes, vec := s.workgroup(), d.Inner%4 == 0
	k := cached(fmt.Sprintf("gather/%v/%d", vec, lanes), func() *wgsl.Kernel {
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.ReadWrite}, Uniform: 48, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("gather.wgsl", struct {
				Vec   bool
				Lanes int
			}{vec, lanes})}
	})
	unit, own := 1, 0
	if vec {
		unit = 4
	}
	if d.Own {
		own = d.Count
	}
	var other uint32
	if s.Result.DType == compute.Float32 {
		other = math.Float32bits(float32(math.NaN()))
	}
	// Parts of the result, and for each of them the parts of x that its rows may come from.
	const wayOut = "take from narrower rows"
	rows, err := s.planes(d.Outer*d.Count, d.Inner, d.Inner, "a row", wayOut)
	if err != nil {
		return err
	}
	shard, err := s.planes(max(d.Outer*d.Rows, 1), d.Inner, d.Inner, "a row", wayOut)
	if err != nil {
		return err
	}
	for i := 0; i < d.Outer*d.Count; i += rows {
		n := min(rows, d.Outer*d.Count-i)
		y, y0 := s.window(result, i*d.Inner, n*d.Inner)
		from, to := i/d.Count, (i+n-1)/d.Count+1 // of the outer axis
		first, end := 0, d.Count
		switch {
		case d.Own:
			first, end = i, i+n
		case to == from+1:
			first, end = i-from*d.Count, i-from*d.Count+n
		}
		if wgsl.BufferSize(4*(end-first))+uint64(s.align()) > s.caps.MaxBinding {
			return s.tooLarge("the indices", end-first, "take by parts of them")
		}
		indices, indices0 := s.window(operand(1), first, end-first)
		indices0 -= first // the kernel counts them from the first of all
		for low := from * d.Rows; low == from*d.Rows || low < to*d.Rows; low += shard {
			high := min(low+shard, to*d.Rows)
			x, x0 := s.window(operand(0), low*d.Inner, (high-low)*d.Inner)
			total := n * d.Inner / unit
			params := words(total, d.Inner/unit, low, high, d.Rows, d.Count, own, int(other), i, x0/unit, indices0, y0/unit)
			s.dispatch(k, s.linear(ceilDiv(total, lanes)), params, x, indices, y)
		}
	}
	return nil
}
