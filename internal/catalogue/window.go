package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// ConvDims are the sizes of a conv2d or a pooling with all defaults filled in. Input is [N, C, H, W], weights are
// [OutC, C/Groups, KH, KW], the result is [N, OutC, OutH, OutW].
type ConvDims struct {
	N, C, H, W       int
	OutC, OutH, OutW int
	KH, KW           int
	Stride           [2]int
	Pad              [2]int
	Dilation         [2]int
	Groups           int
}

// ConvShape derives the sizes of a conv2d. Input and weights have four axes each, or two each for one plane and one filter.
func ConvShape(x, w []int, o compute.Conv2DOptions) (ConvDims, error) {
	d := ConvDims{N: 1, C: 1, OutC: 1, Stride: defaultOne(o.Stride), Pad: o.Pad, Dilation: defaultOne(o.Dilation), Groups: max(o.Groups, 1)}
	perGroup := 1
	switch {
	case len(x) == 2 && len(w) == 2:
		d.H, d.W, d.KH, d.KW = x[0], x[1], w[0], w[1]
	case len(x) == 4 && len(w) == 4:
		d.N, d.C, d.H, d.W = x[0], x[1], x[2], x[3]
		d.OutC, perGroup, d.KH, d.KW = w[0], w[1], w[2], w[3]
	default:
		return d, fmt.Errorf("needs input [n c h w] with weights [o c h w], or [h w] with [h w]: %w", compute.ErrShape)
	}
	if o.Groups < 0 || d.C%d.Groups != 0 || d.OutC%d.Groups != 0 {
		return d, fmt.Errorf("%d groups do not divide %d input and %d output channels: %w", o.Groups, d.C, d.OutC, compute.ErrArgument)
	}
	if perGroup != d.C/d.Groups {
		return d, fmt.Errorf("weights take %d channels, input has %d per group: %w", perGroup, d.C/d.Groups, compute.ErrShape)
	}
	if d.KH == 0 || d.KW == 0 {
		return d, fmt.Errorf("empty filter: %w", compute.ErrShape)
	}
	return d, d.output()
}

// PoolShape derives the sizes of a pooling over the last two axes; axes before them are planes, counted in N.
func PoolShape(x []int, o compute.PoolOptions) (ConvDims, error) {
	if len(x) < 2 {
		return ConvDims{}, fmt.Errorf("needs at least [h w]: %w", compute.ErrShape)
	}
	d := ConvDims{N: program.Len(x[:len(x)-2]), C: 1, OutC: 1, H: x[len(x)-2], W: x[len(x)-1], KH: o.Size[0], KW: o.Size[1],
		Stride: o.Stride, Pad: o.Pad, Dilation: [2]int{1, 1}, Groups: 1}
	for i := range 2 {
		if o.Size[i] < 1 || o.Pad[i] > o.Size[i]/2 {
			return d, fmt.Errorf("window %v with padding %v: %w", o.Size, o.Pad, compute.ErrArgument)
		}
		if o.Stride[i] == 0 {
			d.Stride[i] = o.Size[i]
		}
	}
	return d, d.output()
}

func defaultOne(v [2]int) [2]int {
	for i := range v {
		if v[i] == 0 {
			v[i] = 1
		}
	}
	return v
}

func (d *ConvDims) output() error {
	size := [2]int{d.H, d.W}
	window := [2]int{d.KH, d.KW}
	var out [2]int
	for i := range 2 {
		if d.Stride[i] < 1 || d.Pad[i] < 0 || d.Dilation[i] < 1 {
			return fmt.Errorf("stride %v, padding %v, dilation %v: %w", d.Stride, d.Pad, d.Dilation, compute.ErrArgument)
		}
		const limit = 1 << 24 // far beyond any image, far below overflow
		if d.Stride[i] > limit || d.Pad[i] > limit || d.Dilation[i] > limit || window[i] > limit {
			return fmt.Errorf("stride %v, padding %v, dilation %v: %w", d.Stride, d.Pad, d.Dilation, compute.ErrTooLarge)
		}
		span := size[i] + 2*d.Pad[i] - d.Dilation[i]*(window[i]-1) - 1
		if span < 0 {
			return fmt.Errorf("window %v with dilation %v is larger than the padded input %v: %w", window, d.Dilation, size, compute.ErrShape)
		}
		out[i] = span/d.Stride[i] + 1
	}
	d.OutH, d.OutW = out[0], out[1]
	return nil
}

// Taps calls visit for every element of the padded window that lies inside the input: kernel position and input position.
func (d *ConvDims) Taps(oy, ox int, visit func(ky, kx, y, x int)) {
	for ky := range d.KH {
		y := oy*d.Stride[0] - d.Pad[0] + ky*d.Dilation[0]
		if y < 0 || y >= d.H {
			continue
		}
		for kx := range d.KW {
			if x := ox*d.Stride[1] - d.Pad[1] + kx*d.Dilation[1]; x >= 0 && x < d.W {
				visit(ky, kx, y, x)
			}
		}
	}
}

// Window entries.
var (
	Conv2D = &program.Entry{Name: "conv2d", Method: "Conv2D", Class: program.Window, Dots: windowFlops,
		Doc: "act(x ⋆ weights + bias), where ⋆ is the cross-correlation over the last two axes",
		Special: "x is [n, c, h, w], weights are [o, c/groups, kh, kw] and bias is [o]; or x is [h, w] " +
			"and weights are [kh, kw]. Padding contributes nothing: an infinite weight over it does not give NaN.",
		Inputs:  []program.Input{{Name: "x"}, {Name: "weights"}, {Name: "bias", Optional: true}},
		Options: compute.Conv2DOptions{}, Tol: sumTol, Domain: [2]float64{-1, 1},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			o := a.Options.(compute.Conv2DOptions)
			d, err := ConvShape(in[0].Shape, in[1].Shape, o)
			if err != nil {
				return program.Type{}, err
			}
			if len(in) == 3 && !program.EqualShape(in[2].Shape, []int{d.OutC}) {
				return program.Type{}, fmt.Errorf("bias must have shape [%d]: %w", d.OutC, compute.ErrShape)
			}
			if _, err := ActivationEntry(o.Act); err != nil {
				return program.Type{}, err
			}
			if len(in[0].Shape) == 2 {
				return program.F32(d.OutH, d.OutW), nil
			}
			return program.F32(d.N, d.OutC, d.OutH, d.OutW), nil
		}}
	MaxPool2D = pool(program.Entry{Name: "max_pool2d", Method: "MaxPool2D",
		Doc: "the largest element of each window over the last two axes", Special: "The result is NaN if any element of the window is."})
	AvgPool2D = pool(program.Entry{Name: "avg_pool2d", Method: "AvgPool2D",
		Doc: "the mean of the elements of each window over the last two axes", Special: "Padding is not counted.",
		Tol: sumTol})
)

func pool(e program.Entry) *program.Entry {
	e.Class, e.Inputs, e.Options = program.Window, []program.Input{{Name: "x"}}, compute.PoolOptions{}
	e.Infer = func(in []program.Type, a program.Attr) (program.Type, error) {
		s := in[0].Shape
		d, err := PoolShape(s, a.Options.(compute.PoolOptions))
		if err != nil {
			return program.Type{}, err
		}
		return program.F32(append(append([]int{}, s[:len(s)-2]...), d.OutH, d.OutW)...), nil
	}
	return &e
}
