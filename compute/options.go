package compute

import "fmt"

// Activation is an elementwise function applied to the result of a matmul or convolution before it is stored.
// Each is exactly the unary operation of the same name.
type Activation uint8

// Activations.
const (
	NoActivation Activation = iota
	ReLU
	GELU    // tanh form
	GELUErf // erf form
	SiLU    // x·sigmoid(x), the swish operation
	Sigmoid
	Tanh
)

var activations = [...]string{"none", "relu", "gelu", "gelu_erf", "swish", "sigmoid", "tanh"}

// String returns the name of the unary operation, or "none".
func (a Activation) String() string { return nameOf(activations[:], "Activation", uint8(a)) }

func nameOf(names []string, kind string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

// Axis says along what a reduction runs.
type Axis uint8

// Axes.
const (
	AllAxes  Axis = iota // the whole tensor, to a result of shape []
	LastAxis             // the last axis, which the result loses
)

func (a Axis) String() string { return nameOf([]string{"all", "last"}, "Axis", uint8(a)) }

// Precision says how exactly a product of float32 matrices has to be computed. A device may always be more exact.
type Precision uint8

// Precisions.
const (
	FullPrecision Precision = iota // products and sums in float32
	TF32                           // operands rounded to 11 significant bits, as tensor cores take them
	FP32Tensor                     // float32 made up of several products on tensor cores: nearly as exact, rounded otherwise
)

func (p Precision) String() string {
	return nameOf([]string{"full", "tf32", "fp32_tensor"}, "Precision", uint8(p))
}

// MatMulOptions changes how matmul reads its operands and what it does with its result.
type MatMulOptions struct {
	TransA    bool // a is stored as [..., k, m]
	TransB    bool // b is stored as [..., n, k]
	Act       Activation
	Result    DType     // of the result: Float32, Float16 or BFloat16, rounded to nearest even after the activation
	Precision Precision // of Float32 operands
}

// Conv2DOptions parametrises conv2d, which cross-correlates NCHW input with OIHW weights.
// Zero strides, dilations and groups mean 1.
type Conv2DOptions struct {
	Stride   [2]int // down, across
	Pad      [2]int // zeros added above and below, left and right
	Dilation [2]int
	Groups   int
	Act      Activation
}

// PoolOptions parametrises max_pool2d and avg_pool2d over NCHW input.
// Zero strides mean the window's size. Padding never takes part: neither in a maximum nor in an average's count.
type PoolOptions struct {
	Size   [2]int // window: rows, columns
	Stride [2]int
	Pad    [2]int // at most half the window
}

// TransposeOptions orders the axes of the result: axis i of the result is axis Perm[i] of the input.
// A nil Perm exchanges the last two axes. Rows of the last axis that stay whole are moved as such: {1, 0, 2} makes [heads, n, d]
// of [n, heads, d].
type TransposeOptions struct {
	Perm []int
}

// ConcatOptions names the axis along which tensors are joined; negative counts from the end.
type ConcatOptions struct {
	Axis int
}

// SliceOptions selects, along each axis, Size elements from Start on, Step apart.
// A nil Step means 1 everywhere. Two slices with Step 2, from 0 and from 1, split an axis of interleaved pairs.
type SliceOptions struct {
	Start []int
	Size  []int
	Step  []int
}

// PadOptions adds elements of the given value before and after each axis.
type PadOptions struct {
	Before []int
	After  []int
	Value  float32
}

// CastOptions names the element type to convert to.
type CastOptions struct {
	To DType
}

// FillOptions gives the shape that fill produces.
type FillOptions struct {
	Shape []int
}

// RandomOptions says how many random numbers to make, and which.
type RandomOptions struct {
	Shape  []int
	Stream int // from 0 to 2³¹−1: keeps apart what is drawn with one seed
}

// ReshapeOptions gives a new shape over the same elements; one entry may be -1.
type ReshapeOptions struct {
	Shape []int
}
