package reference

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func reduceTable() table {
	return table{
		catalogue.Sum:    {values: reduced(sum)},
		catalogue.Mean:   {values: reduced(mean)},
		catalogue.Max:    {values: reduced(rowMax)},
		catalogue.Min:    {values: reduced(func(x []float64) float64 { return x[best(x, less)] })},
		catalogue.ArgMax: {values: reduced(func(x []float64) float64 { return float64(best(x, greater)) })},
		catalogue.ArgMin: {values: reduced(func(x []float64) float64 { return float64(best(x, less)) })},
		catalogue.NormL1: {values: reduced(func(x []float64) float64 { return sum(absolute(x)) })},
		catalogue.NormL2: {values: reduced(func(x []float64) float64 {
			squares := dot(x, x)
			if squares > math.MaxFloat32 {
				return math.Inf(1)
			}
			return math.Sqrt(squares)
		})},
		catalogue.NormLInf: {values: reduced(func(x []float64) float64 {
			if len(x) == 0 {
				return 0
			}
			return rowMax(absolute(x))
		})},
		catalogue.SumSquares: {values: reduced(func(x []float64) float64 { return dot(x, x) })},
		catalogue.DotProduct: {values: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
			rows, cols := program.ReduceRows(in[0].Shape, a.Options.(compute.Axis))
			y := make([]float64, rows)
			for r := range y {
				y[r] = dot(in[0].Data[r*cols:(r+1)*cols], in[1].Data[r*cols:(r+1)*cols])
			}
			return y
		})},
	}
}

// reduced applies f to each row, or to everything.
func reduced(f func(row []float64) float64) function {
	return one(func(in []Array, a program.Attr, _ program.Type) []float64 {
		rows, cols := program.ReduceRows(in[0].Shape, a.Options.(compute.Axis))
		y := make([]float64, rows)
		for r := range y {
			y[r] = f(in[0].Data[r*cols : (r+1)*cols])
		}
		return y
	})
}

func greater(v, b float64) bool { return v > b }
func less(v, b float64) bool    { return v < b }

func mean(x []float64) float64 { return sum(x) / float64(len(x)) }

func absolute(x []float64) []float64 { return MapArray(Array{Data: x}, math.Abs).Data }

// best returns the index of the first element that beats all others, or of the first NaN.
func best(x []float64, beats func(v, best float64) bool) int {
	b := 0
	for i, v := range x {
		if v != v {
			return i
		}
		if beats(v, x[b]) {
			b = i
		}
	}
	return b
}

func sum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}
