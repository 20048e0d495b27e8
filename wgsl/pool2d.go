package wgsl

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

func init() {
	lowerings[op.MaxPool2D] = func(s *step) error { return pool2d(s, true) }
	lowerings[op.AvgPool2D] = func(s *step) error { return pool2d(s, false) }
}

func pool2d(s *step, largest bool) error {
	d, err := op.PoolShape(s.in[0].Shape, s.Attr.Options.(compute.PoolOptions))
	if err != nil {
		return err
	}
	lanes := s.workgroup()
	k := cached(fmt.Sprintf("pool2d/%v/%d", largest, lanes), func() *Kernel {
		return &Kernel{Bindings: []Access{Read, ReadWrite}, Uniform: 64, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("pool2d.wgsl", struct {
				Max   bool
				Lanes int
			}{largest, lanes})}
	})
	plane, pooled := d.H*d.W, d.OutH*d.OutW
	planes, err := s.planes(d.N, plane, pooled, "a plane", "pool bands of its rows")
	if err != nil {
		return err
	}
	for n := 0; n < d.N; n += planes {
		count := min(planes, d.N-n)
		x, x0 := s.window(operand(0), n*plane, count*plane)
		y, y0 := s.window(result, n*pooled, count*pooled)
		total := count * pooled
		s.dispatch(k, s.linear(ceilDiv(total, lanes)), words(d.H, d.W, d.OutH, d.OutW, d.KH, d.KW, d.Stride[0], d.Stride[1],
			d.Pad[0], d.Pad[1], total, x0, y0), x, y)
	}
	return nil
}
