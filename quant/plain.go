package quant

import (
	"encoding/binary"
	"math"

	"github.com/x448/float16"
)

// half reads the IEEE binary16 at the beginning of b.
func half(b []byte) float32 {
	return float16.Frombits(binary.LittleEndian.Uint16(b)).Float32()
}

// putHalf writes x at the beginning of b, rounded to nearest even, and returns the rounded value.
func putHalf(b []byte, x float32) float32 {
	h := float16.Fromfloat32(x)
	binary.LittleEndian.PutUint16(b, h.Bits())
	return h.Float32()
}

func dequantizeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func quantizeF32(dst []byte, src []float32) {
	for i, x := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
	}
}

func dequantizeF16(dst []float32, src []byte) {
	const halfToFloat = 1 << 112 // what the exponents differ in; the product is exact, for subnormal numbers, too
	for i := range dst {
		h := binary.LittleEndian.Uint16(src[2*i:])
		if h&halfInfinity == halfInfinity {
			dst[i] = float16.Frombits(h).Float32()
			continue
		}
		x := math.Float32frombits(uint32(h)&0x7fff<<13) * halfToFloat
		dst[i] = math.Float32frombits(math.Float32bits(x) | uint32(h)>>15<<31)
	}
}

func quantizeF16(dst []byte, src []float32) {
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], float16.Fromfloat32(x).Bits())
	}
}

func dequantizeBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
	}
}

// quantizeBF16 rounds to nearest even. There are no NaNs in src.
func quantizeBF16(dst []byte, src []float32) {
	for i, x := range src {
		u := math.Float32bits(x)
		binary.LittleEndian.PutUint16(dst[2*i:], uint16((u+0x7fff+u>>16&1)>>16))
	}
}
