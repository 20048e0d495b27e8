package reference

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func rowsTable() table {
	return table{
		catalogue.Softmax: {values: one(eachRowOf(func(y, x []float64, _ [][]float64, _ []float32) {
			total := shiftedExp(y, x)
			for i := range y {
				y[i] /= total
			}
		}))},
		catalogue.LogSoftmax: {values: one(eachRowOf(func(y, x []float64, _ [][]float64, _ []float32) {
			l := math.Log(shiftedExp(y, x))
			m := rowMax(x)
			for i := range y {
				y[i] = x[i] - m - l
			}
		}))},
		catalogue.LayerNorm: {values: one(layerNorm), magnitudes: one(layerNormMagnitude)},
		catalogue.RMSNorm:   {values: one(rmsNorm)},
		catalogue.L2Normalize: {values: one(eachRowOf(func(y, x []float64, _ [][]float64, p []float32) {
			r := 1 / math.Sqrt(dot(x, x)+float64(p[0]))
			for i := range y {
				y[i] = x[i] * r
			}
		}))},
	}
}

func layerNorm(in []Array, a program.Attr, out program.Type) []float64 {
	return eachRowOf(func(y, x []float64, v [][]float64, p []float32) {
		mean, rstd := moments(x, p[0])
		for i := range y {
			y[i] = (x[i]-mean)*rstd*v[0][i] + v[1][i]
		}
	})(in, a, out)
}

func layerNormMagnitude(in []Array, a program.Attr, _ program.Type) []float64 {
	rows, cols := program.RowsCols(in[0].Shape)
	m := make([]float64, rows*cols)
	for r := range rows {
		x := in[0].Data[r*cols : (r+1)*cols]
		_, rstd := moments(x, a.Scalars[0])
		largest := slices.Max(append(MapArray(Array{Data: x}, math.Abs).Data, 0))
		for i := range x {
			m[r*cols+i] = math.Abs(in[1].Data[i])*largest*rstd + math.Abs(in[2].Data[i])
		}
	}
	return m
}

func rmsNorm(in []Array, a program.Attr, out program.Type) []float64 {
	return eachRowOf(func(y, x []float64, v [][]float64, p []float32) {
		r := 1 / math.Sqrt(dot(x, x)/float64(len(x))+float64(p[0]))
		for i := range y {
			y[i] = x[i] * r * v[0][i]
		}
	})(in, a, out)
}

// eachRowOf applies f to each row of the last axis of x; the other operands are vectors of a row's length.
func eachRowOf(f func(y, x []float64, vectors [][]float64, p []float32)) single {
	return func(in []Array, a program.Attr, _ program.Type) []float64 {
		rows, cols := program.RowsCols(in[0].Shape)
		y := make([]float64, rows*cols)
		var vectors [][]float64
		for _, v := range in[1:] {
			vectors = append(vectors, v.Data)
		}
		if cols == 0 {
			return y
		}
		for r := range rows {
			f(y[r*cols:(r+1)*cols], in[0].Data[r*cols:(r+1)*cols], vectors, a.Scalars)
		}
		return y
	}
}

// rowMax propagates NaN.
func rowMax(x []float64) float64 { return x[best(x, func(v, b float64) bool { return v > b })] }

func shiftedExp(y, x []float64) (total float64) {
	m := rowMax(x)
	for i, v := range x {
		y[i] = math.Exp(v - m)
	}
	return sum(y)
}

func moments(x []float64, eps float32) (mean, rstd float64) {
	n := float64(len(x))
	mean = sum(x) / n
	variance := 0.0
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	return mean, 1 / math.Sqrt(variance/n+float64(eps))
}
