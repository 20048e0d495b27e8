package reference

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func windowTable() table {
	return table{
		catalogue.MaxPool2D: {values: pooled(rowMax)},
		catalogue.AvgPool2D: {values: pooled(mean)},
		catalogue.Conv2D: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			return activate(convReference(in, a), a.Options.(compute.Conv2DOptions).Act)
		}),
			magnitudes: one(func(in []Array, a program.Attr, out program.Type) []float64 {
				return convReference(Absolute(in), a)
			})},
	}
}

// pooled applies f to the elements of each window.
func pooled(f func([]float64) float64) function {
	return one(func(in []Array, a program.Attr, out program.Type) []float64 {
		d, _ := catalogue.PoolShape(in[0].Shape, a.Options.(compute.PoolOptions))
		y := make([]float64, out.Len())
		var window []float64
		program.Walk([]int{d.N, d.OutH, d.OutW}, func(i int, p []int) {
			plane := in[0].Data[p[0]*d.H*d.W:]
			window = window[:0]
			d.Taps(p[1], p[2], func(_, _, yy, xx int) { window = append(window, plane[yy*d.W+xx]) })
			if len(window) == 0 { // cannot happen: padding is at most half a window
				y[i] = math.NaN()
				return
			}
			y[i] = f(window)
		})
		return y
	})
}

func convReference(in []Array, a program.Attr) []float64 {
	d, _ := catalogue.ConvShape(in[0].Shape, in[1].Shape, a.Options.(compute.Conv2DOptions))
	return convSums(in, d)
}

// convSums is a convolution of those sizes, without activation.
func convSums(in []Array, d catalogue.ConvDims) []float64 {
	y := make([]float64, d.N*d.OutC*d.OutH*d.OutW)
	cg, og := d.C/d.Groups, d.OutC/d.Groups
	program.Walk([]int{d.N, d.OutC, d.OutH, d.OutW}, func(i int, p []int) {
		s := 0.0
		for c := range cg {
			plane := in[0].Data[(p[0]*d.C+p[1]/og*cg+c)*d.H*d.W:]
			filter := in[1].Data[(p[1]*cg+c)*d.KH*d.KW:]
			d.Taps(p[2], p[3], func(ky, kx, yy, xx int) { s += plane[yy*d.W+xx] * filter[ky*d.KW+kx] })
		}
		if len(in) == 3 {
			s += in[2].Data[p[1]]
		}
		y[i] = s
	})
	return y
}
