package catalogue

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// SwiGLUBackward is that of silu(gate)·up.
var SwiGLUBackward = &program.Entry{Name: "swiglu_backward", Method: "SwiGLUBackward", Class: program.Layer,
	Doc: "the gradients of silu(gate)·up for gate and up",
	Special: "With s = sigmoid(gate), that of gate is dy·up·s·(1 + gate·(1−s)), and that of up is " +
		"dy·silu(gate). All operands have one shape. At gate = ±Inf, silu and its slope are their limits.",
	Inputs: []program.Input{{Name: "gate"}, {Name: "up"}, {Name: "dy"}}, Results: []string{"dgate", "dup"}, Tol: program.Tolerance{Abs: 1e-30, Rel: 1e-5, Mag: 4e-6},
	InferAll: func(in []program.Type, _ program.Attr) ([]program.Type, error) {
		if !program.EqualShape(in[0].Shape, in[1].Shape) || !program.EqualShape(in[0].Shape, in[2].Shape) {
			return nil, fmt.Errorf("operands must have one shape: %w", compute.ErrShape)
		}
		return in[:2:2], nil
	},
}

// ClipByNorm takes the norm from the device: sum_squares and clip_by_norm need no round trip.
var ClipByNorm = elementwise(program.Entry{Name: "clip_by_norm", Method: "ClipByNorm", Class: program.Binary,
	Doc: "x·min(1, limit/√sumsq), which limits the norm of x",
	Special: "sumsq is the square of the norm, as sum_squares gives it. The result is x where sumsq " +
		"is 0, and NaN where sumsq is negative or NaN. With the sum of the squares of several tensors, each of " +
		"them is clipped by their common norm.",
	Inputs: []program.Input{{Name: "x"}, {Name: "sumsq"}}, Scalars: []program.Scalar{scalar("limit", 1, 0.5)}, Tol: program.Tolerance{Rel: 2e-6},
	F: func(x, p []float64) float64 {
		if x[1] == 0 {
			return x[0]
		}
		f := p[0] / math.Sqrt(x[1])
		if f > 1 {
			f = 1
		}
		return x[0] * f
	}})

// AdamCoefficients are what a step of adam multiplies by: p' = Decay·p − Rate·m'/(Root·√v' + Eps).
type AdamCoefficients struct {
	LR, Beta1, Beta2, Eps, Decay float64
	Rate, Root                   float64 // LR/(1−Beta1ᵗ) and 1/√(1−Beta2ᵗ)
}

// AdamOf returns the coefficients for step number t; 0 means that of the options.
func AdamOf(o compute.AdamOptions, t float64) AdamCoefficients {
	or := func(v float32, otherwise float64) float64 {
		if v == 0 {
			return otherwise
		}
		return float64(v)
	}
	c := AdamCoefficients{LR: or(o.LR, 1e-3), Beta1: or(o.Beta1, 0.9), Beta2: or(o.Beta2, 0.999), Eps: or(o.Eps, 1e-8)}
	if t == 0 {
		t = float64(max(o.Step, 1))
	}
	c.Decay = 1 - c.LR*float64(o.WeightDecay)
	c.Rate = c.LR / -math.Expm1(t*math.Log(c.Beta1))
	c.Root = 1 / math.Sqrt(-math.Expm1(t*math.Log(c.Beta2)))
	return c
}

// Adam is AdamW where it decays weights.
var Adam = &program.Entry{Name: "adam", Method: "Adam", Class: program.Layer,
	Doc: "one step of Adam (Kingma and Ba, 2015) or, with weight decay, AdamW (Loshchilov and Hutter, " +
		"2019)",
	Special: "m becomes Beta1·m + (1−Beta1)·grad, and v becomes Beta2·v + (1−Beta2)·grad². p becomes " +
		"p − LR·(m/(1−Beta1ᵗ)/(√(v/(1−Beta2ᵗ)) + Eps) + WeightDecay·p), where t is the number of the step, from 1 " +
		"on. m and v begin as 0; all four operands have one shape. With step, an Int32 of shape [1], a compiled " +
		"plan reads t when it runs; numbers below 1 count as 1.",
	Inputs: []program.Input{{Name: "p"}, {Name: "m"}, {Name: "v"}, {Name: "grad"},
		{Name: "step", Types: []compute.DType{compute.Int32}, Optional: true}},
	Results: []string{"p", "m", "v"}, Updates: 3, Options: compute.AdamOptions{}, Tol: program.Tolerance{Mag: 4e-6},
	InferAll: func(in []program.Type, a program.Attr) ([]program.Type, error) {
		for _, t := range in[1:4] {
			if !program.EqualShape(t.Shape, in[0].Shape) {
				return nil, fmt.Errorf("p, m, v and grad must have one shape: %w", compute.ErrShape)
			}
		}
		if len(in) == 5 && !program.EqualShape(in[4].Shape, []int{1}) {
			return nil, fmt.Errorf("step must have shape [1]: %w", compute.ErrShape)
		}
		o := a.Options.(compute.AdamOptions)
		for _, b := range []float32{o.Beta1, o.Beta2} {
			if !(b >= 0 && b < 1) {
				return nil, fmt.Errorf("betas %v and %v must be at least 0 and below 1: %w", o.Beta1, o.Beta2, compute.ErrArgument)
			}
		}
		if !(o.Eps >= 0) || !(o.WeightDecay >= 0) || !(o.LR >= 0) || o.Step < 0 {
			return nil, fmt.Errorf("%+v must not be negative: %w", o, compute.ErrArgument)
		}
		return in[:3:3], nil
	},
}
