package quant

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
)

// Quantize writes the blocks of src to dst: whole blocks, and exactly as many bytes as [Type.RowSize] says. A matrix is
// quantised in one call if its rows are whole blocks.
//
// Errors wrap [compute.ErrShape] for lengths, [compute.ErrDType] for a type that has no conversion, and [compute.ErrArgument]
// for NaN, infinities, and values that would need a scale beyond the 65,504 of binary16, in formats that have such scales.
// What dst holds after an error is undefined.
func Quantize(dst []byte, t Type, src []float32) error {
	if err := checkQuantize(dst, t, src); err != nil {
		return err
	}
	quantizers[t].quantize(dst, src)
	return Check(t, dst)
}

// QuantizeWeighted is [Quantize] with a weight for each column of a matrix: how much its error matters, for instance the mean
// square of the activations that meet it (the importance matrix of GGML). src is rows of len(weights) values, and each row is
// whole blocks. Weights are from 0 to 1e12. F32, F16, BF16, Q8_0, Q8_1 and Q8_K ignore them. A group of values whose weights
// are all zero may become zeros.
func QuantizeWeighted(dst []byte, t Type, src, weights []float32) error {
	if err := checkQuantize(dst, t, src); err != nil {
		return err
	}
	cols := len(weights)
	if _, err := t.RowSize(cols); err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	if cols == 0 && len(src) > 0 || cols > 0 && len(src)%cols != 0 {
		return fmt.Errorf("quant: %d values are no whole rows of %d weights: %w", len(src), cols, compute.ErrShape)
	}
	for i, w := range weights {
		if !(w >= 0 && w <= maxWeight) {
			return fmt.Errorf("quant: weight %d is %v, not from 0 to %g: %w", i, w, float64(maxWeight), compute.ErrArgument)
		}
	}
	f, q := t.format(), quantizers[t]
	if q.weighted == nil {
		q.quantize(dst, src)
		return Check(t, dst)
	}
	for size := cols / f.len * f.size; len(src) > 0; src, dst = src[cols:], dst[size:] {
		q.weighted(dst[:size], src[:cols], weights)
		if err := Check(t, dst[:size]); err != nil {
			return err
		}
	}
	return nil
}

func checkQuantize(dst []byte, t Type, src []float32) error {
	if err := checkConvert(t, len(src), len(dst)); err != nil {
		return err
	}
	most := float32(math.MaxFloat32)
	if f := t.format(); f.scales[0].exponent == halfInfinity {
		most = maxValue
	}
	for i, x := range src {
		if !(abs(x) <= most) {
			return fmt.Errorf("quant: value %d is %v, which %v cannot hold: %w", i, x, t, compute.ErrArgument)
		}
	}
	return nil
}

// Within these bounds the sums of the search do not overflow and hide that a scale did. No format with scales in binary16 has
// values beyond 2.7e8.
const (
	maxValue  = 1e9
	maxWeight = 1e12
)

// scale is where a scale stands in a block, and the exponent of infinities and NaNs in its format.
type scale struct {
	offset   int
	exponent uint32
}

const (
	infinity      = 0xff << 23 // of float32
	halfInfinity  = 0x1f << 10 // of binary16
	brainInfinity = 0xff << 7  // of bfloat16
)

// halves are scales in binary16.
func halves(offsets ...int) []scale {
	s := make([]scale, len(offsets))
	for i, at := range offsets {
		s[i] = scale{at, halfInfinity}
	}
	return s
}

// Dequantize writes the values of the blocks in src to dst, which has exactly [Type.BlockLen] values for each block.
//
// Every byte string of the right length is valid and gives the floats that GGML gives. An infinite or NaN scale is no error: it
// gives infinities and NaNs in its block only; [Check] finds them. Errors wrap [compute.ErrShape] and [compute.ErrDType].
func Dequantize(dst []float32, t Type, src []byte) error {
	if err := checkConvert(t, len(dst), len(src)); err != nil {
		return err
	}
	t.format().dequantize(dst, src)
	return nil
}

func checkConvert(t Type, values, bytes int) error {
	size, err := t.RowSize(values)
	switch {
	case err != nil:
		return err
	case !t.Convertible():
		return fmt.Errorf("quant: %v is not converted: %w: %w", t, compute.ErrDType, compute.ErrUnsupported)
	case size != bytes:
		return fmt.Errorf("quant: %d values of %v are %d bytes, not %d: %w", values, t, size, bytes, compute.ErrShape)
	}
	return nil
}

// Check reports where blocks have an infinite or NaN scale or, for types without scales, such a value. The error wraps
// [compute.ErrArgument], [compute.ErrShape] if there is a part of a block, and [compute.ErrDType] if t is not valid. For
// types that cannot be converted it returns nil.
func Check(t Type, blocks []byte) error {
	f := t.format()
	if f.len == 0 {
		return fmt.Errorf("quant: no %v: %w", t, compute.ErrDType)
	}
	if len(blocks)%f.size != 0 {
		return fmt.Errorf("quant: %d bytes are no whole blocks of %v, which have %d: %w",
			len(blocks), t, f.size, compute.ErrShape)
	}
	first := len(blocks)
	for _, s := range f.scales {
		first = min(first, firstBeyond(blocks, f.size, s))
	}
	if first < len(blocks) {
		return fmt.Errorf("quant: block %d of %v has a scale beyond its range: %w", first/f.size, t, compute.ErrArgument)
	}
	return nil
}

// firstBeyond returns the offset of the first infinite or NaN scale, or len(blocks).
func firstBeyond(blocks []byte, size int, s scale) int {
	switch s.exponent {
	case infinity:
		for at := s.offset; at+4 <= len(blocks); at += size {
			if binary.LittleEndian.Uint32(blocks[at:])&infinity == infinity {
				return at
			}
		}
	default:
		exponent := uint16(s.exponent)
		for at := s.offset; at+2 <= len(blocks); at += size {
			if binary.LittleEndian.Uint16(blocks[at:])&exponent == exponent {
				return at
			}
		}
	}
	return len(blocks)
}
