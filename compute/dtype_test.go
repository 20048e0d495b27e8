package compute

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

// Every F16 has its exact value and comes back; NaN stays NaN, and becomes quiet.
func TestF16(t *testing.T) {
	for i := range 1 << 16 {
		h := float16.Frombits(uint16(i))
		x := F16(i).Float32()
		require.Equal(t, math.Float32bits(h.Float32()), math.Float32bits(x), "%#04x", i)
		if h.IsNaN() {
			h |= 0x200
		}
		require.Equal(t, F16(h.Bits()), F16Of(x), "%#04x", i)
	}
}

// Rounding is to nearest even, beside and between all F16s: subnormal ones, those that overflow, infinities and NaN.
func TestF16Rounds(t *testing.T) {
	for i := range 1 << 16 {
		x := float64(float16.Frombits(uint16(i)).Float32())
		between := float32((x + float64(float16.Frombits(uint16(i+1)).Float32())) / 2)
		for _, b := range []uint32{math.Float32bits(float32(x)), math.Float32bits(between), uint32(i) << 16} {
			for _, b := range []uint32{b - 1, b, b + 1} {
				v := math.Float32frombits(b)
				require.Equal(t, F16(float16.Fromfloat32(v).Bits()), F16Of(v), "%#08x", b)
			}
		}
	}
	for x, want := range map[float32]F16{1: 0x3c00, -2: 0xc000, 65504: 0x7bff, 65519: 0x7bff, 65520: 0x7c00, -1e9: 0xfc00,
		0x1p-14: 0x0400, 0x1p-24: 1, 0x1p-25: 0, 0x1.8p-25: 1, 0x3p-25: 2, float32(math.Inf(1)): 0x7c00, 1 + 0x1p-11: 0x3c00, 1 + 0x3p-11: 0x3c02} {
		require.Equal(t, want, F16Of(x), "%v", x)
	}
}
