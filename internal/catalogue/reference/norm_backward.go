package reference

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func normBackwardTable() table {
	return table{
		catalogue.RMSNormBackward: {values: func(in []Array, a program.Attr, _ []program.Type) [][]float64 {
			return normBackward(in[0], in[1], in[2], false, a.Scalars[0])
		},
			magnitudes: func(in []Array, a program.Attr, _ []program.Type) [][]float64 {
				return normBackwardMagnitude(in[0], in[1], in[2], false, a.Scalars[0])
			}},
		catalogue.LayerNormBackward: {values: func(in []Array, a program.Attr, _ []program.Type) [][]float64 {
			return normBackward(in[0], in[1], in[3], true, a.Scalars[0])
		},
			magnitudes: func(in []Array, a program.Attr, _ []program.Type) [][]float64 {
				return normBackwardMagnitude(in[0], in[1], in[3], true, a.Scalars[0])
			}},
	}
}

func normBackward(x, gamma, dy Array, layer bool, eps float32) [][]float64 {
	rows, cols := program.RowsCols(x.Shape)
	dx, dgamma, dbeta := make([]float64, rows*cols), make([]float64, cols), make([]float64, cols)
	g := make([]float64, cols)
	for r := range rows {
		x, dy, dx := x.Data[r*cols:(r+1)*cols], dy.Data[r*cols:(r+1)*cols], dx[r*cols:(r+1)*cols]
		mean, rstd := 0.0, 1/math.Sqrt(dot(x, x)/float64(cols)+float64(eps))
		if layer && cols > 0 {
			mean, rstd = moments(x, eps)
		}
		product, meanG := 0.0, 0.0
		for i := range g {
			g[i] = gamma.Data[i] * dy[i]
			product += g[i] * (x[i] - mean)
			dgamma[i] += dy[i] * ((x[i] - mean) * rstd)
			dbeta[i] += dy[i]
		}
		if layer {
			meanG = sum(g) / float64(cols)
		}
		c := product * rstd * rstd * rstd / float64(cols)
		for i := range g {
			dx[i] = (g[i]-meanG)*rstd - (x[i]-mean)*c
		}
	}
	if layer {
		return [][]float64{dx, dgamma, dbeta}
	}
	return [][]float64{dx, dgamma}
}

// normBackwardMagnitude takes for |x̂| the largest of a row, whose error has to do with that of the mean.
func normBackwardMagnitude(x, gamma, dy Array, layer bool, eps float32) [][]float64 {
	rows, cols := program.RowsCols(x.Shape)
	dx, dgamma, dbeta := make([]float64, rows*cols), make([]float64, cols), make([]float64, cols)
	for r := range rows {
		x, dy := x.Data[r*cols:(r+1)*cols], dy.Data[r*cols:(r+1)*cols]
		rstd, largest, meanG := 1/math.Sqrt(dot(x, x)/float64(cols)+float64(eps)), 0.0, 0.0
		if layer && cols > 0 {
			_, rstd = moments(x, eps)
		}
		for i, v := range x {
			largest = max(largest, math.Abs(v)*rstd)
			meanG += math.Abs(gamma.Data[i]*dy[i]) / float64(cols)
		}
		for i := range x {
			dx[r*cols+i] = rstd * (math.Abs(gamma.Data[i]*dy[i]) + meanG*(1+largest*largest))
			dgamma[i] += math.Abs(dy[i]) * largest
			dbeta[i] += math.Abs(dy[i])
		}
	}
	if layer {
		return [][]float64{dx, dgamma, dbeta}
	}
	return [][]float64{dx, dgamma}
}
