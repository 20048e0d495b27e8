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
// Errors wrap [compute.ErrShape] for lengths, [compute.ErrDType] for a type that has no conversion, and [compute.ErrArgument] for
// NaN, infinities, and values whose scale exceeds what the format can hold, 65,504. What dst holds after an error is undefined.
func Quantize(dst []byte, t Type, src []float32) error {
	if err := checkQuantize(dst, t, src); err != nil {
		return err
	}
	t.format().quantize(dst, src)
	return Check(t, dst)
}

// QuantizeWeighted is [Quantize] with a weight for each column of a matrix: how much its error matters, for instance the mean
// square of the activations that meet it (the importance matrix of GGML). src is rows of len(weights) values, and each row is
// whole blocks. Weights are finite and not negative. F32, F16, BF16, Q8_0, Q8_1 and Q8_K do not look at them. A group of values
// whose weights are all zero may become zeros.
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
		if !(w >= 0 && w <= math.MaxFloat32) {
			return fmt.Errorf("quant: weight %d is %v: %w", i, w, compute.ErrArgument)
		}
	}
	f := t.format()
	if f.weighted == nil {
		f.quantize(dst, src)
		return Check(t, dst)
	}
	for size := cols / f.len * f.size; len(src) > 0; src, dst = src[cols:], dst[size:] {
		f.weighted(dst[:size], src[:cols], weights)
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
	for i, x := range src {
		if math.Float32bits(x)&infinity == infinity {
			return fmt.Errorf("quant: value %d is %v, which %v cannot hold: %w", i, x, t, compute.ErrArgument)
		}
	}
	return nil
}

// infinity is the exponent of infinities and NaNs.
const infinity = 0xff << 23

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

// Check says where blocks have a scale that is infinite or NaN, or a value that is, for types without scales. The error wraps
// [compute.ErrArgument], or [compute.ErrShape] if the blocks are not whole.
func Check(t Type, blocks []byte) error {
	f := t.format()
	if f.len == 0 {
		return fmt.Errorf("quant: no %v: %w", t, compute.ErrDType)
	}
	if len(blocks)%f.size != 0 {
		return fmt.Errorf("quant: %d bytes are no whole blocks of %v, which have %d: %w", len(blocks), t, f.size, compute.ErrShape)
	}
	const half, brain = 0x1f << 10, 0xff << 7 // exponents
	for at := 0; at < len(blocks); at += f.size {
		b := blocks[at : at+f.size]
		bad := false
		switch t {
		case F32, Q8_K:
			bad = binary.LittleEndian.Uint32(b)&infinity == infinity
		case BF16:
			bad = binary.LittleEndian.Uint16(b)&brain == brain
		default:
			for _, s := range f.scales {
				bad = bad || binary.LittleEndian.Uint16(b[s:])&half == half
			}
		}
		if bad {
			return fmt.Errorf("quant: block %d of %v has a scale beyond its range: %w", at/f.size, t, compute.ErrArgument)
		}
	}
	return nil
}
