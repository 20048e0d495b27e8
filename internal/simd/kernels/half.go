package kernels

import "math"

// Conversions between float32 and bytes, and floats of 16 bits: F16 is IEEE's binary16, BF16 the upper half of a float32. Widening is
// exact. Narrowing rounds to the nearest number, halves to even; what is too large becomes Inf. NaN keeps the upper bits of its
// fraction and becomes quiet, but for a BF16 that is widened. Of what has no byte, numbers above 255 become 255, others and NaN 0.
// Bits are the same on every tier.
//
// The first slice says how many elements there are. The two must not overlap.

// WidenF16 computes
//
//	y[i] = float32(x[i])
func WidenF16(y []float32, x []uint16) {
	x = x[:len(y)]
	done := widenF16(y, x)
	widenF16Go(y[done:], x[done:])
}

// WidenF16Rows widens rows of n elements that lie stride elements apart in x, and side by side in y.
func WidenF16Rows(y []float32, x []uint16, n, stride int) {
	if len(y) == 0 || widenF16Rows(y, x[:(len(y)/n-1)*stride+n], n, stride) {
		return
	}
	for ; len(y) > 0; y = y[n:] {
		WidenF16(y[:n], x)
		x = x[min(stride, len(x)):]
	}
}

// WidenBF16 computes
//
//	y[i] = float32(x[i])
func WidenBF16(y []float32, x []uint16) {
	x = x[:len(y)]
	done := widenBF16(y, x)
	widenBF16Go(y[done:], x[done:])
}

// NarrowF16 computes
//
//	y[i] = float16(x[i])
func NarrowF16(y []uint16, x []float32) {
	x = x[:len(y)]
	done := narrowF16(y, x)
	narrowF16Go(y[done:], x[done:])
}

// NarrowBF16 computes
//
//	y[i] = bfloat16(x[i])
func NarrowBF16(y []uint16, x []float32) {
	x = x[:len(y)]
	done := narrowBF16(y, x)
	narrowBF16Go(y[done:], x[done:])
}

// WidenU8 computes
//
//	y[i] = float32(x[i])
func WidenU8(y []float32, x []uint8) {
	x = x[:len(y)]
	for i := widenU8(y, x); i < len(x); i++ {
		y[i] = float32(x[i])
	}
}

// NarrowU8 computes
//
//	y[i] = uint8(x[i])
func NarrowU8(y []uint8, x []float32) {
	x = x[:len(y)]
	done := narrowU8(y, x)
	y = y[done:]
	for i, v := range x[done:] {
		switch {
		case v >= 255:
			y[i] = 255
		case v > 0:
			// The sum's last place is 1, which rounds.
			y[i] = uint8(math.Float32bits(v + 0x1p23))
		default: // also NaN
			y[i] = 0
		}
	}
}

func widenF16Go(y []float32, x []uint16) {
	x = x[:len(y)]
	for i, h := range x {
		y[i] = Half(h)
	}
}

// Half is the value of a half. Its exponent counts from 112 less, which one multiplication makes up for, of subnormal numbers too.
func Half(h uint16) float32 {
	bits := uint32(h&0x7fff) << 13
	f := math.Float32bits(math.Float32frombits(bits) * 0x1p112)
	if bits >= 0x7c00<<13 { // Inf, or NaN made quiet
		f = bits | 0x7f800000
		if bits > 0x7c00<<13 {
			f |= 0x400000
		}
	}
	return math.Float32frombits(f | uint32(h&0x8000)<<16)
}

func widenBF16Go(y []float32, x []uint16) {
	x = x[:len(y)]
	for i, h := range x {
		y[i] = math.Float32frombits(uint32(h) << 16)
	}
}

func narrowF16Go(y []uint16, x []float32) {
	y = y[:len(x)]
	for i, v := range x {
		b := math.Float32bits(v)
		sign := uint16(b >> 16 & 0x8000)
		b &= 0x7fffffff
		switch {
		case b < 0x38800000: // subnormal in 16 bits: their last place is that of numbers from 0.5 on in 32
			f := math.Float32frombits(b) + 0.5
			y[i] = sign | uint16(math.Float32bits(f)-0x3f000000)
		case b < 0x47800000: // rounding may carry into the exponent, and into Inf
			y[i] = sign | uint16((b-112<<23+0xfff+b>>13&1)>>13)
		case b <= 0x7f800000:
			y[i] = sign | 0x7c00
		default:
			y[i] = sign | 0x7e00 | uint16(b>>13&0x3ff)
		}
	}
}

func narrowBF16Go(y []uint16, x []float32) {
	y = y[:len(x)]
	for i, v := range x {
		b := math.Float32bits(v)
		r := b + 0x7fff + b>>16&1
		if b&0x7fffffff > 0x7f800000 {
			r = b | 0x400000
		}
		y[i] = uint16(r >> 16)
	}
}
