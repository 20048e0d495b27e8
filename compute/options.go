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
	SiLU    // x·sigmoid(x)
	Sigmoid
	Tanh
)

var activations = [...]string{"none", "relu", "gelu", "gelu_erf", "silu", "sigmoid", "tanh"}

// String returns the name of the unary operation, or "none".
func (a Activation) String() string { return nameOf(activations[:], "Activation", uint8(a)) }

func nameOf(names []string, kind string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

// Axis is what a reduction runs over.
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
	TF32                           // operands rounded to 11 significant bits, as tensor cores do
	FP32Tensor                     // float32 composed of several products on tensor cores: nearly as exact, but rounded differently
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

// TransposeOptions orders the axes of the result: axis i of the result is axis Perm[i] of the input. A nil Perm exchanges the
// last two axes. Rows of the last axis that the permutation leaves contiguous are copied as rows: {1, 0, 2} makes [heads, n,
// d] of [n, heads, d].
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

// RandomOptions gives the shape of the result and the stream of random numbers.
type RandomOptions struct {
	Shape  []int
	Stream int // from 0 to 2³¹−1: different streams of one seed are independent
}

// ReshapeOptions gives a new shape over the same elements; one entry may be -1.
type ReshapeOptions struct {
	Shape []int
}

// GatherOptions names the axis along which gather takes; negative counts from the end.
type GatherOptions struct {
	Axis int
}

// Conv1DOptions parametrises conv1d, which cross-correlates input [n, c, length] with weights [o, c/groups, k].
// Zero stride, dilation and groups mean 1.
type Conv1DOptions struct {
	Stride   int
	Pad      int // zeros added on either side
	Dilation int
	Groups   int  // as many as channels: each channel has filters of its own (depthwise)
	Causal   bool // (k − 1)·dilation zeros before and none after it: no element of the result sees later ones. Pad must be 0.
	Act      Activation
}

// BiasActivationOptions names the function that follows the addition.
type BiasActivationOptions struct {
	Act Activation
}

// AttentionOptions parametrises attention. With L keys in use, query i of n has position L − n + i: the last query is at the
// last key.
type AttentionOptions struct {
	// Causal hides the keys after a query's position from it.
	Causal bool
	// Window, if not 0, hides keys that are that many positions or more away from the query: with Causal, a query sees its own
	// position and the Window − 1 before it. At most 2³⁰.
	Window int
	// SoftCap, if not 0, replaces scores s by SoftCap·tanh(s/SoftCap) before they are masked.
	SoftCap float32
	// Scale multiplies scores; 0 means 1/√d.
	Scale float32
}

// RopeOptions parametrises rope. The zero value is the original: interleaved pairs over the whole head, base 10000.
type RopeOptions struct {
	// NeoX pairs element i with element i + Dims/2 instead of 2i with 2i + 1.
	NeoX bool
	// Dims is the number of leading elements of each head that are rotated, even; 0 means all.
	Dims int
	// Base of the frequencies, Base^(−2i/Dims) for pair i; 0 means 10000, else at least 1.
	Base float32
	// Scale multiplies all frequencies (position interpolation by a factor f is 1/f); 0 means 1.
	Scale float32
	// Precise reduces angles so that the error does not grow with the position, up to 2²⁰ and beyond. The default computes
	// them in float32 where that is faster: its error is up to 2e-6 of the angle, as in most implementations.
	Precise bool
}

// CumSumOptions parametrises cumsum over the last axis. The zero value gives inclusive sums from the first element on.
type CumSumOptions struct {
	Exclusive bool // without the element itself: the first sum is 0
	Reverse   bool // from the last element down
}

// TopKOptions parametrises top_k.
type TopKOptions struct {
	K int // elements of each row, 1 to 1024 and at most as many as the row has
}

// CrossEntropyOptions parametrises cross_entropy and its gradient. The zero value scores every row against its own target.
type CrossEntropyOptions struct {
	// LabelSmoothing ε in [0, 1] gives the target the probability 1−ε and spreads ε evenly over all classes.
	LabelSmoothing float32
	// Shift scores row i of each sequence, which are the last axis of targets, against target i+1, as language models are
	// trained. The last row of a sequence has no target: its loss and gradient are 0.
	Shift bool
	// Ignore leaves out rows whose target is IgnoreIndex: their loss and gradient are 0.
	Ignore      bool
	IgnoreIndex int32
}

// AdamOptions parametrises adam. A field of 0 takes the default that it names; WeightDecay has none.
type AdamOptions struct {
	LR          float32 // learning rate; 0 means 1e-3
	Beta1       float32 // decay of the mean of gradients, below 1; 0 means 0.9
	Beta2       float32 // decay of the mean of their squares, below 1; 0 means 0.999
	Eps         float32 // keeps the quotient finite; 0 means 1e-8
	WeightDecay float32 // per step and learning rate, decoupled from the gradient (AdamW)
	Step        int     // number of this step, from 1 on; 0 means 1. An operand step replaces it
}

// QuantOptions are for products with quantised weights.
type QuantOptions struct {
	Format BlockFormat // of the weights
	// Q8 lets a device round the activations x to 8 bits before they are multiplied, in blocks of 32 values that have the scale
	// max|x| / 127, where it multiplies integers faster than floats. The squared error is below 1e-4 of the result's for
	// ordinary activations, and more where outliers stand in a block with small values. A device may round less, as to float16
	// for tensor cores. The default multiplies the float32 activations, to the accuracy of float32.
	Q8 bool
}

// QuantQKVOptions are [QuantOptions] of three weights, whose formats may differ.
type QuantQKVOptions struct {
	Q, K, V BlockFormat
	Q8      bool // see QuantOptions
}

// ExpertOptions are for products with the matrices of a mixture of experts.
type ExpertOptions struct {
	Format BlockFormat // of packed weights; 0 for Float32
	Q8     bool        // see QuantOptions; for packed weights
}

// DequantizeOptions name the format of weights and the type to convert them to.
type DequantizeOptions struct {
	Format BlockFormat // of the weights
	Result DType       // Float32 (the zero value) or Float16
}
