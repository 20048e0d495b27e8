package compute

import (
	"fmt"
	"math"
)

// DType is the element type of a tensor.
type DType uint8

// Element types. Arithmetic is done in Float32; Float16 and BFloat16 are storage formats (see the cast operation) that products
// of matrices take as they are. Int32 and Uint32 hold indices. Uint8 is what pictures are uploaded and read back as; the cast
// operation converts it.
const (
	Float32 DType = iota
	Int32
	Uint32
	Float16
	BFloat16
	Uint8
)

var dtypes = [...]struct {
	name string
	size int
}{
	Float32:  {"f32", 4},
	Int32:    {"i32", 4},
	Uint32:   {"u32", 4},
	Float16:  {"f16", 2},
	BFloat16: {"bf16", 2},
	Uint8:    {"u8", 1},
}

// Size returns the number of bytes of one element.
func (d DType) Size() int { return dtypes[d].size }

func (d DType) String() string {
	if int(d) < len(dtypes) {
		return dtypes[d].name
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// F16 is an element of Float16: a binary16 of IEEE 754.
type F16 uint16

// F16Of returns the nearest F16 of x, ties to even: ±Inf from 65520 on. NaN stays NaN.
func F16Of(x float32) F16 {
	b := math.Float32bits(x)
	sign := F16(b >> 16 & 0x8000)
	switch b &= 0x7fffffff; {
	case b < 0x38800000: // subnormal, with the last place of a float32 from 0.5 on
		return sign | F16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	case b < 0x47800000: // rounding may carry into the exponent, and make Inf
		return sign | F16((b-112<<23+0xfff+b>>13&1)>>13)
	case b <= 0x7f800000:
		return sign | 0x7c00
	}
	return sign | 0x7e00 | F16(b>>13&0x3ff) // quiet
}

// Float32 returns the value, exactly.
func (h F16) Float32() float32 {
	bits := uint32(h&0x7fff) << 13
	f := math.Float32bits(math.Float32frombits(bits) * 0x1p112) // the exponent's bias is 112 less, of subnormal numbers too
	switch {
	case bits > 0x7c00<<13:
		f = bits | 0x7fc00000 // quiet
	case bits == 0x7c00<<13:
		f = 0x7f800000
	}
	return math.Float32frombits(f | uint32(h&0x8000)<<16)
}

// BF16 is an element of BFloat16: the upper half of the bits of a float32.
type BF16 uint16

// BF16Of returns the nearest BF16 of x, ties to even; NaN stays NaN.
func BF16Of(x float32) BF16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return BF16(b>>16) | 0x40 // quiet, and not Inf
	}
	return BF16((b + 0x7fff + b>>16&1) >> 16)
}

// Float32 returns the value, exactly.
func (b BF16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }
