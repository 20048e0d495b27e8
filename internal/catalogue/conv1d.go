package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Conv1DShape derives the sizes of a conv1d: those of a conv2d of planes of one line, but that padding may be on the left side
// only.
func Conv1DShape(x, w []int, o compute.Conv1DOptions) (ConvDims, error) {
	if len(x) != 3 || len(w) != 3 {
		return ConvDims{}, fmt.Errorf("needs input [n c length] with weights [o c k]: %w", compute.ErrShape)
	}
	pad := o.Pad
	if o.Causal {
		if pad != 0 {
			return ConvDims{}, fmt.Errorf("padding %d for a causal convolution, which has its own: %w", pad, compute.ErrArgument)
		}
		const limit = 1 << 30 // more is refused as padding
		pad = min(max(w[2]-1, 0), limit) * min(max(o.Dilation, 1), limit)
	}
	d, err := ConvShape([]int{x[0], x[1], 1, x[2]}, []int{w[0], w[1], 1, w[2]}, compute.Conv2DOptions{
		Stride: [2]int{1, o.Stride}, Pad: [2]int{0, pad}, Dilation: [2]int{1, o.Dilation}, Groups: o.Groups})
	if err == nil && o.Causal {
		d.OutW = (d.W + d.Stride[1] - 1) / d.Stride[1]
	}
	return d, err
}

// Conv1D is the convolution of sequences.
var Conv1D = &program.Entry{Name: "conv1d", Method: "Conv1D", Class: program.Window, Dots: windowFlops,
	Doc: "act(x ⋆ weights + bias), where ⋆ is the cross-correlation along the length",
	Special: "x is [n, c, length], weights are [o, c/groups, k] and bias is [o]. The short " +
		"convolution of state-space models is causal, depthwise (groups = c = o) and has SiLU. Padding contributes " +
		"nothing: an infinite weight over it does not give NaN.",
	Inputs:  []program.Input{{Name: "x"}, {Name: "weights"}, {Name: "bias", Optional: true}},
	Options: compute.Conv1DOptions{}, Tol: sumTol, Domain: [2]float64{-1, 1},
	Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
		o := a.Options.(compute.Conv1DOptions)
		d, err := Conv1DShape(in[0].Shape, in[1].Shape, o)
		if err != nil {
			return program.Type{}, err
		}
		if len(in) == 3 && !program.EqualShape(in[2].Shape, []int{d.OutC}) {
			return program.Type{}, fmt.Errorf("bias must have shape [%d]: %w", d.OutC, compute.ErrShape)
		}
		if _, err := ActivationEntry(o.Act); err != nil {
			return program.Type{}, err
		}
		return program.F32(d.N, d.OutC, d.OutW), nil
	}}
