package simd

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
)

// pool2d lowers a pooling.
func pool2d(mean bool) func(*call) work {
	return func(c *call) work {
		d, _ := catalogue.PoolShape(c.in[0].Shape, c.attr.Options.(compute.PoolOptions)) // checked
		p := &pooling{d, mean}
		return one(d.N*d.OutH, p.ns(), func(a *args, lo, hi int) { p.do(a.out.f32(), a.in[0].f32(), lo, hi) })
	}
}
