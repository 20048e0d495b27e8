package quant

import (
	"encoding/binary"
	"math"
)

// Blocks of 32 values. In those with nibbles, value j < 16 is the low nibble of quants[j] and value j + 16 its high nibble; the
// fifth bit of value j is bit j of the 32 bits called high.
const (
	// Q4_0: x = d·(q − 8), with the nibbles q.
	Q4_0Size   = 18
	Q4_0Scale  = 0 // d, binary16
	Q4_0Quants = 2 // 16 bytes

	// Q4_1: x = d·q + m, with the nibbles q.
	Q4_1Size   = 20
	Q4_1Scale  = 0 // d, binary16
	Q4_1Min    = 2 // m, binary16
	Q4_1Quants = 4 // 16 bytes

	// Q5_0: x = d·(q − 16).
	Q5_0Size   = 22
	Q5_0Scale  = 0 // d, binary16
	Q5_0High   = 2 // 4 bytes
	Q5_0Quants = 6 // 16 bytes

	// Q5_1: x = d·q + m.
	Q5_1Size   = 24
	Q5_1Scale  = 0 // d, binary16
	Q5_1Min    = 2 // m, binary16
	Q5_1High   = 4 // 4 bytes
	Q5_1Quants = 8 // 16 bytes

	// Q8_0: x = d·q.
	Q8_0Size   = 34
	Q8_0Scale  = 0 // d, binary16
	Q8_0Quants = 2 // 32 int8

	// Q8_1: x = d·q. Only activations have this format; GGML itself never dequantises it.
	Q8_1Size   = 36
	Q8_1Scale  = 0 // d, binary16
	Q8_1Sum    = 2 // d·(the sum of all q), binary16
	Q8_1Quants = 4 // 32 int8
)

func dequantizeQ4_0(dst []float32, src []byte) {
	for ; len(src) >= Q4_0Size && len(dst) >= 32; src, dst = src[Q4_0Size:], dst[32:] {
		b, x := (*[Q4_0Size]byte)(src), (*[32]float32)(dst)
		d := half(b[Q4_0Scale:])
		for j, q := range b[Q4_0Quants:] {
			x[j] = float32(int32(q&15)-8) * d
			x[j+16] = float32(int32(q>>4)-8) * d
		}
	}
}

func dequantizeQ4_1(dst []float32, src []byte) {
	for ; len(src) >= Q4_1Size && len(dst) >= 32; src, dst = src[Q4_1Size:], dst[32:] {
		b, x := (*[Q4_1Size]byte)(src), (*[32]float32)(dst)
		d, m := half(b[Q4_1Scale:]), half(b[Q4_1Min:])
		for j, q := range b[Q4_1Quants:] {
			x[j] = float32(float32(q&15)*d) + m
			x[j+16] = float32(float32(q>>4)*d) + m
		}
	}
}

func dequantizeQ5_0(dst []float32, src []byte) {
	for ; len(src) >= Q5_0Size && len(dst) >= 32; src, dst = src[Q5_0Size:], dst[32:] {
		b, x := (*[Q5_0Size]byte)(src), (*[32]float32)(dst)
		d, high := half(b[Q5_0Scale:]), binary.LittleEndian.Uint32(b[Q5_0High:])
		for j, q := range b[Q5_0Quants:] {
			x[j] = float32(int32(uint32(q&15)|high<<4&16)-16) * d
			x[j+16] = float32(int32(uint32(q>>4)|high>>12&16)-16) * d
			high >>= 1
		}
	}
}

func dequantizeQ5_1(dst []float32, src []byte) {
	for ; len(src) >= Q5_1Size && len(dst) >= 32; src, dst = src[Q5_1Size:], dst[32:] {
		b, x := (*[Q5_1Size]byte)(src), (*[32]float32)(dst)
		d, m, high := half(b[Q5_1Scale:]), half(b[Q5_1Min:]), binary.LittleEndian.Uint32(b[Q5_1High:])
		for j, q := range b[Q5_1Quants:] {
			x[j] = float32(float32(int32(uint32(q&15)|high<<4&16))*d) + m
			x[j+16] = float32(float32(int32(uint32(q>>4)|high>>12&16))*d) + m
			high >>= 1
		}
	}
}

func dequantizeQ8_0(dst []float32, src []byte) { dequantizeBytes(dst, src, Q8_0Size, Q8_0Quants) }
func dequantizeQ8_1(dst []float32, src []byte) { dequantizeBytes(dst, src, Q8_1Size, Q8_1Quants) }

// dequantizeBytes is for blocks of 32 int8 at the offset quants, after a scale at their beginning.
func dequantizeBytes(dst []float32, src []byte, size, quants int) {
	for ; len(dst) >= 32; src, dst = src[size:], dst[32:] {
		q, x := (*[32]byte)(src[quants:]), (*[32]float32)(dst)
		d := half(src)
		for j := range x {
			x[j] = float32(int8(q[j])) * d
		}
	}
}

// reciprocal is 1/d, zero for zero, and NaN where 1/d is infinite: then d is zero in binary16, and GGML's integers are zeros.
func reciprocal(d float32) float32 {
	switch r := 1 / d; {
	case d == 0:
		return 0
	case abs(r) > math.MaxFloat32:
		return float32(math.NaN())
	default:
		return r
	}
}

// truncate is x without its fraction, at most limit, for x ≥ 0, and zero for NaN.
func truncate(x float32, limit uint8) uint8 {
	if !(x > 0) {
		return 0
	}
	return uint8(min(int32(limit), int32(x)))
}

// round is x rounded to the nearest integer, halves away from zero, for |x| < 2²³, and zero for NaN. The sum is exact.
func round(x float32) int8 {
	if x != x {
		return 0
	}
	return int8(int32(float64(x) + math.Copysign(0.5, float64(x))))
}

func quantizeQ4_0(dst []byte, src []float32) {
	for ; len(src) > 0; src, dst = src[32:], dst[Q4_0Size:] {
		x := (*[32]float32)(src)
		d := extreme(x[:]) / -8
		r := reciprocal(d)
		putHalf(dst[Q4_0Scale:], d)
		var q [32]uint8
		for j, v := range x {
			q[j] = truncate(float32(v*r)+8.5, 15)
		}
		packNibbles(dst[Q4_0Quants:], &q)
	}
}

func quantizeQ4_1(dst []byte, src []float32) {
	for ; len(src) > 0; src, dst = src[32:], dst[Q4_1Size:] {
		var q [32]uint8
		quantizeRange(&q, dst, (*[32]float32)(src), 15)
		packNibbles(dst[Q4_1Quants:], &q)
	}
}

func quantizeQ5_0(dst []byte, src []float32) {
	for ; len(src) > 0; src, dst = src[32:], dst[Q5_0Size:] {
		x := (*[32]float32)(src)
		d := extreme(x[:]) / -16
		r := reciprocal(d)
		putHalf(dst[Q5_0Scale:], d)
		var q [32]uint8
		for j, v := range x {
			q[j] = truncate(float32(v*r)+16.5, 31)
		}
		packHigh(dst[Q5_0High:], &q)
		packNibbles(dst[Q5_0Quants:], &q)
	}
}

func quantizeQ5_1(dst []byte, src []float32) {
	for ; len(src) > 0; src, dst = src[32:], dst[Q5_1Size:] {
		var q [32]uint8
		quantizeRange(&q, dst, (*[32]float32)(src), 31)
		packHigh(dst[Q5_1High:], &q)
		packNibbles(dst[Q5_1Quants:], &q)
	}
}

// quantizeRange spreads the integers 0 … limit from the least to the largest value. Scale and minimum begin the block.
func quantizeRange(q *[32]uint8, block []byte, x *[32]float32, limit uint8) {
	low, high := x[0], x[0]
	for _, v := range x {
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
	}
	d := (high - low) / float32(limit)
	r := reciprocal(d)
	putHalf(block[Q4_1Scale:], d)
	putHalf(block[Q4_1Min:], low)
	for j, v := range x {
		q[j] = truncate(float32((v-low)*r)+0.5, limit)
	}
}

func packNibbles(dst []byte, q *[32]uint8) {
	b := (*[16]byte)(dst)
	for j := range b {
		b[j] = q[j]&15 | q[j+16]<<4
	}
}

// packHigh collects bit 4 of each integer.
func packHigh(dst []byte, q *[32]uint8) {
	var high uint32
	for j, v := range q {
		high |= uint32(v>>4&1) << j
	}
	binary.LittleEndian.PutUint32(dst, high)
}

func quantizeQ8_0(dst []byte, src []float32) {
	for ; len(src) > 0; src, dst = src[32:], dst[Q8_0Size:] {
		quantizeBytes(dst[Q8_0Quants:], dst[Q8_0Scale:], (*[32]float32)(src))
	}
}

func quantizeQ8_1(dst []byte, src []float32) {
	for ; len(src) > 0; src, dst = src[32:], dst[Q8_1Size:] {
		d, sum := quantizeBytes(dst[Q8_1Quants:], dst[Q8_1Scale:], (*[32]float32)(src))
		putHalf(dst[Q8_1Sum:], float32(sum)*d)
	}
}

// quantizeBytes returns the scale before it was rounded and the sum of the integers.
func quantizeBytes(quants, scale []byte, x *[32]float32) (d float32, sum int32) {
	d = abs(extreme(x[:])) / 127
	r := reciprocal(d)
	putHalf(scale, d)
	q := (*[32]byte)(quants)
	for j, v := range x {
		n := round(v * r)
		q[j] = byte(n)
		sum += int32(n)
	}
	return d, sum
}

func weightedQ4_0(dst []byte, src, weights []float32) {
	weightedSymmetric(dst, src, weights, Q4_0Size, 8, func(b []byte, q *[32]uint8) { packNibbles(b[Q4_0Quants:], q) })
}

func weightedQ5_0(dst []byte, src, weights []float32) {
	weightedSymmetric(dst, src, weights, Q5_0Size, 16, func(b []byte, q *[32]uint8) {
		packHigh(b[Q5_0High:], q)
		packNibbles(b[Q5_0Quants:], q)
	})
}

func weightedSymmetric(dst []byte, row, weights []float32, size int, limit int32, pack func([]byte, *[32]uint8)) {
	variance := sumSquares(row) / float32(len(row))
	var q [32]uint8
	var w [32]float32
	for at := 0; at < len(row); at += 32 {
		x := row[at : at+32]
		weigh(w[:], x, weights[at:], variance)
		putHalf(dst, searchSymmetric(q[:], x, w[:], limit))
		pack(dst, &q)
		dst = dst[size:]
	}
}

func weightedQ4_1(dst []byte, src, weights []float32) {
	weightedAffine(dst, src, weights, Q4_1Size, 15, func(b []byte, q *[32]uint8) { packNibbles(b[Q4_1Quants:], q) })
}

func weightedQ5_1(dst []byte, src, weights []float32) {
	weightedAffine(dst, src, weights, Q5_1Size, 31, func(b []byte, q *[32]uint8) {
		packHigh(b[Q5_1High:], q)
		packNibbles(b[Q5_1Quants:], q)
	})
}

func weightedAffine(dst []byte, row, weights []float32, size int, limit int32, pack func([]byte, *[32]uint8)) {
	variance := sumSquares(row) / float32(len(row))
	var q [32]uint8
	var w [32]float32
	for at := 0; at < len(row); at += 32 {
		x := row[at : at+32]
		weigh(w[:], x, weights[at:], variance)
		d, m := searchAffine(q[:], x, w[:], limit, importance)
		putHalf(dst[Q4_1Scale:], d)
		putHalf(dst[Q4_1Min:], -m)
		pack(dst, &q)
		dst = dst[size:]
	}
}
