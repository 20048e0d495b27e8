package simd

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// window reduces rows y0 to y1 and columns x0 to x1 of a plane of the given width.
type window func(plane []float32, width, y0, y1, x0, x1 int) float32

// pool2d lowers a pooling; each unit is one row of the result.
func pool2d(f window) func(*call) work {
	return func(c *call) work {
		d, _ := op.PoolShape(c.in[0].Shape, c.attr.Options.(compute.PoolOptions)) // checked
		cost := float64(d.OutW) * (5 + float64(min(d.KH, d.H)*min(d.KW, d.W)))
		return one(d.N*d.OutH, cost, func(a *args, lo, hi int) {
			for u := lo; u < hi; u++ {
				plane := a.in[0].f32()[u/d.OutH*d.H*d.W:][:d.H*d.W]
				y := a.out.f32()[u*d.OutW : (u+1)*d.OutW]
				top := u%d.OutH*d.Stride[0] - d.Pad[0]
				y0, y1 := max(top, 0), min(top+d.KH, d.H)
				for ox := range y {
					left := ox*d.Stride[1] - d.Pad[1]
					y[ox] = f(plane, d.W, y0, y1, max(left, 0), min(left+d.KW, d.W))
				}
			}
		})
	}
}

func maxWindow(plane []float32, width, y0, y1, x0, x1 int) float32 {
	if y0 >= y1 || x0 >= x1 { // of an empty plane
		return float32(math.NaN())
	}
	m := plane[y0*width+x0]
	for y := y0; y < y1; y++ {
		for _, v := range plane[y*width+x0 : y*width+x1] {
			m = max(m, v)
		}
	}
	return m
}

func meanWindow(plane []float32, width, y0, y1, x0, x1 int) float32 {
	s := 0.0
	for y := y0; y < y1; y++ {
		for _, v := range plane[y*width+x0 : max(y*width+x1, y*width+x0)] {
			s += float64(v)
		}
	}
	return float32(s / float64((y1-y0)*(x1-x0)))
}
