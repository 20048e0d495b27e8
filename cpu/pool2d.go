package cpu

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
)

// pool2d lowers a pooling.
func pool2d(mean bool) func(*call) work {
	return func(c *call) work {
		d, _ := catalogue.PoolShape(c.in[0].Shape, c.attr.Options.(compute.PoolOptions)) // checked
		p := &engine.Pooling{ConvDims: d, Mean: mean}
		return one(d.N*d.OutH, p.Ns(), func(a *args, lo, hi int) { p.Do(a.out.f32(), a.in[0].f32(), lo, hi) })
	}
}
