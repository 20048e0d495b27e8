package reference

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func lossTable() table {
	return table{
		catalogue.SoftmaxBackward: {values: one(func(in []Array, _ program.Attr, _ program.Type) []float64 { return softmaxBackward(in, -1) }),
			magnitudes: one(func(in []Array, _ program.Attr, _ program.Type) []float64 {
				return softmaxBackward(Absolute(in), 1)
			})},
		catalogue.CrossEntropy: {values: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
			return eachTarget(in, a, 1, func(_ int, loss, x []float64, target int, smoothing float64) {
				m := rowMax(x)
				total := 0.0
				for _, v := range x {
					total += math.Exp(v - m)
				}
				loss[0] = math.Log(total) + (m - (1-smoothing)*x[target])
				if smoothing > 0 {
					loss[0] -= smoothing * sum(x) / float64(len(x))
				}
			})
		}),
			magnitudes: one(func(in []Array, a program.Attr, _ program.Type) []float64 { // the largest of the logits
				return eachTarget(in, a, 1, func(_ int, loss, x []float64, _ int, _ float64) {
					loss[0] = rowMax(MapArray(Array{Data: x}, math.Abs).Data)
				})
			})},
		catalogue.CrossEntropyBackward: {values: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
			return crossEntropyGradient(in, a, func(p, target, dloss float64) float64 { return dloss * (p - target) })
		}),
			magnitudes: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
				return crossEntropyGradient(in, a, func(p, target, dloss float64) float64 { return math.Abs(dloss) * (p + target) })
			})},
	}
}

func softmaxBackward(in []Array, sign float64) []float64 {
	rows, cols := program.RowsCols(in[0].Shape)
	dx := make([]float64, rows*cols)
	for r := range rows {
		y, dy := in[0].Data[r*cols:(r+1)*cols], in[1].Data[r*cols:(r+1)*cols]
		s := dot(y, dy)
		for i := range y {
			dx[r*cols+i] = y[i] * (dy[i] + sign*s)
		}
	}
	return dx
}

// eachTarget calls f for each row with a target, its width elements of the result being dst; other rows stay 0, and those whose
// target is no class become NaN.
func eachTarget(in []Array, a program.Attr, width int, f func(row int, dst, x []float64, target int, smoothing float64)) []float64 {
	o := a.Options.(compute.CrossEntropyOptions)
	rows, classes := program.RowsCols(in[0].Shape)
	_, n := program.RowsCols(in[1].Shape)
	y := make([]float64, rows*width)
	for r := range rows {
		at := r
		if o.Shift {
			if at++; at%n == 0 {
				continue
			}
		}
		target, dst := in[1].Data[at], y[r*width:(r+1)*width]
		switch {
		case o.Ignore && target == float64(o.IgnoreIndex):
		case !(target >= 0 && target < float64(classes)):
			for i := range dst {
				dst[i] = math.NaN()
			}
		default:
			f(r, dst, in[0].Data[r*classes:(r+1)*classes], int(target), float64(o.LabelSmoothing))
		}
	}
	return y
}

// crossEntropyGradient joins the probability of each class with that of the target's distribution and the row's dloss.
func crossEntropyGradient(in []Array, a program.Attr, join func(p, target, dloss float64) float64) []float64 {
	_, classes := program.RowsCols(in[0].Shape)
	return eachTarget(in, a, classes, func(row int, dx, x []float64, target int, smoothing float64) {
		total := shiftedExp(dx, x)
		for i := range dx {
			p := smoothing / float64(classes)
			if i == target {
				p += 1 - smoothing
			}
			dx[i] = join(dx[i]/total, p, in[2].Data[row])
		}
	})
}
