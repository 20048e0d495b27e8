package compute

import "fmt"

// BlockFormat is a format of quantised weights: GGML's number for it. Package quant has the layouts, and conversion to and from
// float32; its quant.Type has the same numbers, so that BlockFormat(t) is the format of a type of a model file.
type BlockFormat uint32

// The formats that products take weights in.
const (
	Q4_0 BlockFormat = 2
	Q4_1 BlockFormat = 3
	Q5_0 BlockFormat = 6
	Q5_1 BlockFormat = 7
	Q8_0 BlockFormat = 8
	Q2_K BlockFormat = 10
	Q3_K BlockFormat = 11
	Q4_K BlockFormat = 12
	Q5_K BlockFormat = 13
	Q6_K BlockFormat = 14
)

var blockFormats = map[BlockFormat]string{Q4_0: "Q4_0", Q4_1: "Q4_1", Q5_0: "Q5_0", Q5_1: "Q5_1", Q8_0: "Q8_0",
	Q2_K: "Q2_K", Q3_K: "Q3_K", Q4_K: "Q4_K", Q5_K: "Q5_K", Q6_K: "Q6_K"}

func (f BlockFormat) String() string {
	if s, ok := blockFormats[f]; ok {
		return s
	}
	return fmt.Sprintf("BlockFormat(%d)", uint32(f))
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

// DequantizeOptions tell what weights become.
type DequantizeOptions struct {
	Format BlockFormat // of the weights
	Result DType       // Float32 (the zero value) or Float16
}
