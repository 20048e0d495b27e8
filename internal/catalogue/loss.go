package catalogue

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// SoftmaxBackward needs the result of softmax, not its operand.
var SoftmaxBackward = register(&program.Entry{Name: "softmax_backward", Method: "SoftmaxBackward", Class: program.Layer,
	Doc:    "the gradient of softmax, p·(dy − Σp·dy) of each row of the last axis, where p is what softmax gave",
	Inputs: []program.Input{{Name: "p"}, {Name: "dy"}}, Tol: program.Tolerance{Mag: 4e-6}, Domain: [2]float64{-1, 1},
	Infer: func(in []program.Type, _ program.Attr) (program.Type, error) {
		if len(in[0].Shape) == 0 {
			return program.Type{}, fmt.Errorf("a scalar has no rows: %w", compute.ErrShape)
		}
		if !program.EqualShape(in[0].Shape, in[1].Shape) {
			return program.Type{}, fmt.Errorf("p and dy must have one shape: %w", compute.ErrShape)
		}
		return in[0], nil
	},
	Ref: func(in []program.Array, _ program.Attr, _ program.Type) []float64 { return softmaxBackward(in, -1) },
	Magnitude: func(in []program.Array, _ program.Attr, _ program.Type) []float64 {
		return softmaxBackward(program.Absolute(in), 1)
	},
})

func softmaxBackward(in []program.Array, sign float64) []float64 {
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

const targetSpecial = "A target outside [0, classes) makes NaN of its row. Ignored rows are 0 whatever their logits are; " +
	"elsewhere NaN, +Inf or nothing but −Inf among the logits makes NaN."

// Losses against class numbers.
var (
	CrossEntropy = register(&program.Entry{Name: "cross_entropy", Method: "CrossEntropy", Class: program.Layer,
		Doc: "the cross-entropy log Σexp(logits) − logits[target] of each row of logits [..., classes] against the class that " +
			"targets [...] names, without forming the softmax; with label smoothing ε, logits[target] becomes " +
			"(1−ε)·logits[target] + ε·mean(logits)",
		Special: targetSpecial, Inputs: []program.Input{{Name: "logits"}, {Name: "targets", Types: []compute.DType{compute.Int32}}},
		Options: compute.CrossEntropyOptions{}, Tol: program.Tolerance{Abs: 1e-5, Rel: 2e-6, Mag: 1e-6}, Domain: [2]float64{-10, 10},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			if err := checkTargets(in, a); err != nil {
				return program.Type{}, err
			}
			return program.F32(in[1].Shape...), nil
		},
		Ref: func(in []program.Array, a program.Attr, _ program.Type) []float64 {
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
		},
		Magnitude: func(in []program.Array, a program.Attr, _ program.Type) []float64 { // the largest of the logits
			return eachTarget(in, a, 1, func(_ int, loss, x []float64, _ int, _ float64) {
				loss[0] = rowMax(program.MapArray(program.Array{Data: x}, math.Abs).Data)
			})
		},
	})
	CrossEntropyBackward = register(&program.Entry{Name: "cross_entropy_backward", Method: "CrossEntropyBackward", Class: program.Layer,
		Doc: "the gradient of cross_entropy with respect to logits, dloss·(softmax(logits) − p), where p is 1−ε at the target plus " +
			"ε/classes everywhere, with label smoothing ε, and dloss [...] is the gradient of each row's loss",
		Special: targetSpecial + " Options must be those of the loss.",
		Inputs:  []program.Input{{Name: "logits"}, {Name: "targets", Types: []compute.DType{compute.Int32}}, {Name: "dloss"}},
		Options: compute.CrossEntropyOptions{}, Tol: program.Tolerance{Abs: 1e-30, Mag: 2e-5}, Domain: [2]float64{-10, 10},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			if err := checkTargets(in, a); err != nil {
				return program.Type{}, err
			}
			if !program.EqualShape(in[2].Shape, in[1].Shape) {
				return program.Type{}, fmt.Errorf("dloss must have the shape %v of targets: %w", in[1].Shape, compute.ErrShape)
			}
			return in[0], nil
		},
		Ref: func(in []program.Array, a program.Attr, _ program.Type) []float64 {
			return crossEntropyGradient(in, a, func(p, target, dloss float64) float64 { return dloss * (p - target) })
		},
		Magnitude: func(in []program.Array, a program.Attr, _ program.Type) []float64 {
			return crossEntropyGradient(in, a, func(p, target, dloss float64) float64 { return math.Abs(dloss) * (p + target) })
		},
	})
)

func checkTargets(in []program.Type, a program.Attr) error {
	s, o := in[0].Shape, a.Options.(compute.CrossEntropyOptions)
	switch {
	case len(s) == 0 || !program.EqualShape(in[1].Shape, s[:len(s)-1]):
		return fmt.Errorf("targets must have the shape of logits without its last axis: %w", compute.ErrShape)
	case s[len(s)-1] == 0 && program.Len(s[:len(s)-1]) > 0:
		return fmt.Errorf("no classes to choose from: %w", compute.ErrShape)
	case o.Shift && len(s) < 2:
		return fmt.Errorf("Shift needs an axis of sequences: %w", compute.ErrShape)
	case !(o.LabelSmoothing >= 0 && o.LabelSmoothing <= 1):
		return fmt.Errorf("LabelSmoothing is %v, must be in [0, 1]: %w", o.LabelSmoothing, compute.ErrArgument)
	}
	return nil
}

// eachTarget calls f for each row with a target, its width elements of the result being dst; other rows stay 0, and those whose
// target is no class become NaN.
func eachTarget(in []program.Array, a program.Attr, width int, f func(row int, dst, x []float64, target int, smoothing float64)) []float64 {
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
func crossEntropyGradient(in []program.Array, a program.Attr, join func(p, target, dloss float64) float64) []float64 {
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
