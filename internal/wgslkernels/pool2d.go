package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/wgsl"
)

const largeWindow = 256 // elements from which two passes, across and down, are faster than one

func pool2d(s *step, largest bool) error {
	d, err := catalogue.PoolShape(s.Operands[0].Shape, s.Attr.Options.(compute.PoolOptions))
	if err != nil {
		return err
	}
	if max(d.KH, d.KW) > loopBudget/3 {
		return s.tooLarge("a side of the window", max(d.KH, d.KW), fmt.Sprintf("pool in two steps, the first at most %d wide", loopBudget/3))
	}
	read, written := d.H*d.W, d.OutH*d.OutW
	twice := d.KH*d.KW >= largeWindow && min(d.KH, d.KW) > 1
	if twice {
		written = max(written, d.H*d.OutW)
	}
	planes, err := s.planes(d.N, read, written, "a plane", "pool bands of its rows")
	if err != nil {
		return err
	}
	written = d.OutH * d.OutW
	// A maximum of maxima is the maximum; a mean of means the mean, as all lines of a window are equally long.
	across, down := d, d
	across.KH, across.OutH, across.Stride[0], across.Pad[0] = 1, d.H, 1, 0
	down.KW, down.W, down.Stride[1], down.Pad[1] = 1, d.OutW, 1, 0
	var between Buffer
	if twice {
		between = s.NewScratch(4 * planes * d.H * d.OutW)
	}
	for n := 0; n < d.N; n += planes {
		count := min(planes, d.N-n)
		x, x0 := s.window(operand(0), n*read, count*read)
		y, y0 := s.window(result, n*written, count*written)
		if twice {
			s.poolPass(across, largest, count, x, between, x0, 0)
			s.poolPass(down, largest, count, between, y, 0, y0)
		} else {
			s.poolPass(d, largest, count, x, y, x0, y0)
		}
	}
	return nil
}

func (s *step) poolPass(d catalogue.ConvDims, largest bool, planes int, x, y Buffer, x0, y0 int) {
	lanes := s.workgroup()
	k := cached(fmt.Sprintf("pool2d/%v/%d", largest, lanes), func() *wgsl.Kernel {
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.ReadWrite}, Uniform: 64, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("pool2d.wgsl", struct {
				Max   bool
				Lanes int
			}{largest, lanes})}
	})
	total := planes * d.OutH * d.OutW
	s.dispatch(k, s.linear(ceilDiv(total, lanes)), words(d.H, d.W, d.OutH, d.OutW, d.KH, d.KW, d.Stride[0], d.Stride[1],
		d.Pad[0], d.Pad[1], total, x0, y0), x, y)
}
