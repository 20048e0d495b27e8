package quant

import (
	"fmt"
	"math"
	"strings"

	"github.com/wavelane/wavelane/compute"
)

// Type is a format of tensor elements, with GGML's number for it: the number that stands in GGUF files.
type Type uint32

// The types of GGML. Those that [Types] returns can be converted.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

// format is what there is to know of a type.
type format struct {
	name string
	len  int // values of a block
	size int // bytes of a block

	// The rest is nil where a type is only listed. Lengths have been checked when it is called.
	scales     []scale
	dequantize func(dst []float32, src []byte)
}

// quantizer is separate from format: programs that only read weights are linked without the searches.
type quantizer struct {
	quantize func(dst []byte, src []float32)
	weighted func(dst []byte, src, weights []float32) // of one row; nil where weights make no difference
}

var formats = [...]format{
	F32:     {"F32", 1, 4, []scale{{0, infinity}}, dequantizeF32},
	F16:     {"F16", 1, 2, halves(0), dequantizeF16},
	BF16:    {"BF16", 1, 2, []scale{{0, brainInfinity}}, dequantizeBF16},
	Q4_0:    {"Q4_0", 32, Q4_0Size, halves(Q4_0Scale), dequantizeQ4_0},
	Q4_1:    {"Q4_1", 32, Q4_1Size, halves(Q4_1Scale, Q4_1Min), dequantizeQ4_1},
	Q5_0:    {"Q5_0", 32, Q5_0Size, halves(Q5_0Scale), dequantizeQ5_0},
	Q5_1:    {"Q5_1", 32, Q5_1Size, halves(Q5_1Scale, Q5_1Min), dequantizeQ5_1},
	Q8_0:    {"Q8_0", 32, Q8_0Size, halves(Q8_0Scale), dequantizeQ8_0},
	Q8_1:    {"Q8_1", 32, Q8_1Size, halves(Q8_1Scale, Q8_1Sum), dequantizeQ8_1},
	Q2_K:    {"Q2_K", 256, Q2_KSize, halves(Q2_KScale, Q2_KMin), dequantizeQ2_K},
	Q3_K:    {"Q3_K", 256, Q3_KSize, halves(Q3_KScale), dequantizeQ3_K},
	Q4_K:    {"Q4_K", 256, Q4_KSize, halves(Q4_KScale, Q4_KMin), dequantizeQ4_K},
	Q5_K:    {"Q5_K", 256, Q5_KSize, halves(Q5_KScale, Q5_KMin), dequantizeQ5_K},
	Q6_K:    {"Q6_K", 256, Q6_KSize, halves(Q6_KScale), dequantizeQ6_K},
	Q8_K:    {"Q8_K", 256, Q8_KSize, []scale{{Q8_KScale, infinity}}, dequantizeQ8_K},
	IQ2_XXS: {name: "IQ2_XXS", len: 256, size: 66},
	IQ2_XS:  {name: "IQ2_XS", len: 256, size: 74},
	IQ3_XXS: {name: "IQ3_XXS", len: 256, size: 98},
	IQ1_S:   {name: "IQ1_S", len: 256, size: 50},
	IQ4_NL:  {name: "IQ4_NL", len: 32, size: 18},
	IQ3_S:   {name: "IQ3_S", len: 256, size: 110},
	IQ2_S:   {name: "IQ2_S", len: 256, size: 82},
	IQ4_XS:  {name: "IQ4_XS", len: 256, size: 136},
	I8:      {name: "I8", len: 1, size: 1},
	I16:     {name: "I16", len: 1, size: 2},
	I32:     {name: "I32", len: 1, size: 4},
	I64:     {name: "I64", len: 1, size: 8},
	F64:     {name: "F64", len: 1, size: 8},
	IQ1_M:   {name: "IQ1_M", len: 256, size: 56},
	TQ1_0:   {name: "TQ1_0", len: 256, size: 54},
	TQ2_0:   {name: "TQ2_0", len: 256, size: 66},
	MXFP4:   {name: "MXFP4", len: 32, size: 17},
	NVFP4:   {name: "NVFP4", len: 64, size: 36},
	Q1_0:    {name: "Q1_0", len: 128, size: 18},
	Q2_0:    {name: "Q2_0", len: 64, size: 18},
}

var quantizers = [...]quantizer{
	F32:  {quantize: quantizeF32},
	F16:  {quantize: quantizeF16},
	BF16: {quantize: quantizeBF16},
	Q4_0: {quantizeQ4_0, weightedQ4_0},
	Q4_1: {quantizeQ4_1, weightedQ4_1},
	Q5_0: {quantizeQ5_0, weightedQ5_0},
	Q5_1: {quantizeQ5_1, weightedQ5_1},
	Q8_0: {quantize: quantizeQ8_0},
	Q8_1: {quantize: quantizeQ8_1},
	Q2_K: {quantizeQ2_K, weightedQ2_K},
	Q3_K: {quantizeQ3_K, weightedQ3_K},
	Q4_K: {quantizeQ4_K, weightedQ4_K},
	Q5_K: {quantizeQ5_K, weightedQ5_K},
	Q6_K: {quantizeQ6_K, weightedQ6_K},
	Q8_K: {quantize: quantizeQ8_K},
}

// format returns the zero format for what is no type of GGML.
func (t Type) format() format {
	if uint64(t) < uint64(len(formats)) {
		return formats[t]
	}
	return format{}
}

// Types returns the types that [Quantize] and [Dequantize] convert, by GGML's numbers.
func Types() []Type {
	var ts []Type
	for t, f := range formats {
		if f.dequantize != nil {
			ts = append(ts, Type(t))
		}
	}
	return ts
}

// ParseType returns the type of a name such as "Q4_K". Case does not matter. Errors wrap [compute.ErrArgument].
func ParseType(name string) (Type, error) {
	for t, f := range formats {
		if f.name != "" && strings.EqualFold(f.name, name) {
			return Type(t), nil
		}
	}
	return 0, fmt.Errorf("quant: no type %q: %w", name, compute.ErrArgument)
}

// String is the name of a type, as GGML spells it.
func (t Type) String() string {
	if f := t.format(); f.name != "" {
		return f.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Valid says whether t is a type of GGML.
func (t Type) Valid() bool { return t.format().len != 0 }

// Convertible says whether [Quantize] and [Dequantize] take t.
func (t Type) Convertible() bool { return t.format().dequantize != nil }

// BlockLen is the number of values of a block, and zero if t is not valid.
func (t Type) BlockLen() int { return t.format().len }

// BlockSize is the number of bytes of a block, and zero if t is not valid.
func (t Type) BlockSize() int { return t.format().size }

// BitsPerWeight is the average number of bits of a value, and zero if t is not valid.
func (t Type) BitsPerWeight() float64 {
	f := t.format()
	return float64(8*f.size) / float64(max(f.len, 1))
}

// RowSize is the number of bytes of cols values, which must be whole blocks. Errors wrap [compute.ErrShape], and
// [compute.ErrDType] if t is not valid.
func (t Type) RowSize(cols int) (int, error) {
	f := t.format()
	switch {
	case f.len == 0:
		return 0, fmt.Errorf("quant: no %v: %w", t, compute.ErrDType)
	case cols < 0 || cols%f.len != 0:
		return 0, fmt.Errorf("quant: %d values are no whole blocks of %v, which have %d: %w", cols, t, f.len, compute.ErrShape)
	case cols/f.len > math.MaxInt/f.size:
		return 0, fmt.Errorf("quant: %d values of %v: %w", cols, t, compute.ErrTooLarge)
	}
	return cols / f.len * f.size, nil
}
