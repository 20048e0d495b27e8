package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// SoftmaxBackward needs the result of softmax, not its operand.
var SoftmaxBackward = &program.Entry{Name: "softmax_backward", Method: "SoftmaxBackward", Class: program.Layer,
	Doc:     "the gradient of softmax, p·(dy − Σp·dy), of each row of the last axis",
	Special: "p is the result of softmax, dy its gradient.",
	Inputs:  []program.Input{{Name: "p"}, {Name: "dy"}}, Tol: program.Tolerance{Mag: 4e-6}, Domain: [2]float64{-1, 1},
	Infer: func(in []program.Type, _ program.Attr) (program.Type, error) {
		if len(in[0].Shape) == 0 {
			return program.Type{}, fmt.Errorf("a scalar has no rows: %w", compute.ErrShape)
		}
		if !program.EqualShape(in[0].Shape, in[1].Shape) {
			return program.Type{}, fmt.Errorf("p and dy must have one shape: %w", compute.ErrShape)
		}
		return in[0], nil
	},
}

const targetSpecial = "A target outside [0, classes) gives NaN in its row. Ignored rows give 0 whatever " +
	"their logits are. In other rows NaN or +Inf among the logits, or only −Inf, gives NaN."

// Losses against class numbers.
var (
	CrossEntropy = &program.Entry{Name: "cross_entropy", Method: "CrossEntropy", Class: program.Layer,
		Doc: "the cross-entropy log Σexp(logits) − logits[target] of each row",
		Special: "logits is [..., classes]; targets [...] holds a class for each row. The softmax is " +
			"never in memory. With label smoothing ε, logits[target] becomes (1−ε)·logits[target] + ε·mean(logits). " + targetSpecial, Inputs: []program.Input{{Name: "logits"}, {Name: "targets", Types: []compute.DType{compute.Int32}}},
		Options: compute.CrossEntropyOptions{}, Tol: program.Tolerance{Abs: 1e-5, Rel: 2e-6, Mag: 1e-6}, Domain: [2]float64{-10, 10},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			if err := checkTargets(in, a); err != nil {
				return program.Type{}, err
			}
			return program.F32(in[1].Shape...), nil
		},
	}
	CrossEntropyBackward = &program.Entry{Name: "cross_entropy_backward", Method: "CrossEntropyBackward", Class: program.Layer,
		Doc: "the gradient of cross_entropy with respect to logits, dloss·(softmax(logits) − p)",
		Special: "p is 1−ε at the target plus ε/classes everywhere, with label smoothing ε. dloss [...] " +
			"is the gradient of each row's loss. Options must be those of the loss. " + targetSpecial,
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
	}
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
