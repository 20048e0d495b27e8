package quant

import (
	"encoding/binary"
	"math"
)

// Q3_K, Q6_K and Q8_K: 256 values around zero; the first two with 16 sub-blocks of 16 that have signed scales of their own.
const (
	// Q3_K: x = d·sc·(q − 4), sc as UnpackScalesQ3K says. The low two bits of q are where Q2_K has them; bit ⌊s/2⌋ of byte
	// 16·(s & 1) + l of high is the third bit of value l of sub-block s (0 to 15).
	Q3_KSize   = 110
	Q3_KHigh   = 0   // 32 bytes
	Q3_KQuants = 32  // 64 bytes
	Q3_KScales = 96  // 12 bytes
	Q3_KScale  = 108 // d, binary16

	// Q6_K: x = d·sc·(q − 32). Each half of 128 values has 64 bytes of low and 32 bytes of high. With l = 0 … 31, the low
	// four bits of values l, l + 32, l + 64 and l + 96 are the low nibbles of low[l] and low[l + 32] and their high nibbles;
	// the high two bits are high[l], two bits each, from the lowest.
	Q6_KSize   = 210
	Q6_KLow    = 0   // 128 bytes
	Q6_KHigh   = 128 // 64 bytes
	Q6_KScales = 192 // sc: 16 int8
	Q6_KScale  = 208 // d, binary16

	// Q8_K: x = d·q. Only activations have this format.
	Q8_KSize   = 292
	Q8_KScale  = 0   // d, float32
	Q8_KQuants = 4   // 256 int8
	Q8_KSums   = 260 // 16 int16: the sums of 16 q each
)

// UnpackScalesQ3K returns the scales of the 16 sub-blocks of a block of Q3_K, −32 to 31. They are stored with 32 added: the
// low four bits in the low nibbles of bytes 0 to 7 and then in their high nibbles, the high two bits in bytes 8 to 11: first
// the lowest two bits of each, then the next two.
func UnpackScalesQ3K(b *[12]byte) (scales [16]int8) {
	for j := range 16 {
		low, high := b[j%8]>>(j/8*4)&15, b[8+j%4]>>(j/4*2)&3
		scales[j] = int8(low|high<<4) - 32
	}
	return scales
}

// packScalesQ3K is the inverse of [UnpackScalesQ3K], for scales from −32 to 31.
func packScalesQ3K(b *[12]byte, scales *[16]int8) {
	clear(b[:])
	for j, s := range scales {
		u := uint8(s+32) & 63
		b[j%8] |= u & 15 << (j / 8 * 4)
		b[8+j%4] |= u >> 4 << (j / 4 * 2)
	}
}

func dequantizeQ3_K(dst []float32, src []byte) {
	for ; len(src) >= Q3_KSize && len(dst) >= 256; src, dst = src[Q3_KSize:], dst[256:] {
		b := (*[Q3_KSize]byte)(src)
		d := half(b[Q3_KScale:])
		for s, scale := range UnpackScalesQ3K((*[12]byte)(b[Q3_KScales:])) {
			scale := d * float32(scale)
			low, high := (*[16]byte)(b[Q3_KQuants+s/8*32+s&1*16:]), (*[16]byte)(b[Q3_KHigh+s&1*16:])
			x, shift := (*[16]float32)(dst[16*s:]), s%8/2*2
			for l := range x {
				q := low[l]>>shift&3 | high[l]>>(s/2)&1<<2
				x[l] = scale * float32(int32(q)-4)
			}
		}
	}
}

func dequantizeQ6_K(dst []float32, src []byte) {
	for ; len(src) >= Q6_KSize && len(dst) >= 256; src, dst = src[Q6_KSize:], dst[256:] {
		b := (*[Q6_KSize]byte)(src)
		d := half(b[Q6_KScale:])
		for h := range 2 {
			low, high := (*[64]byte)(b[Q6_KLow+64*h:]), (*[32]byte)(b[Q6_KHigh+32*h:])
			scales, x := (*[8]byte)(b[Q6_KScales+8*h:]), (*[128]float32)(dst[128*h:])
			var s [8]float32
			for i, v := range scales {
				s[i] = d * float32(int8(v))
			}
			for l, u := range high {
				i, a, b := l>>4, low[l], low[l+32]
				x[l] = s[i] * float32(int32(a&15|u&3<<4)-32)
				x[l+32] = s[i+2] * float32(int32(b&15|u>>2&3<<4)-32)
				x[l+64] = s[i+4] * float32(int32(a>>4|u>>4&3<<4)-32)
				x[l+96] = s[i+6] * float32(int32(b>>4|u>>6<<4)-32)
			}
		}
	}
}

func dequantizeQ8_K(dst []float32, src []byte) {
	for ; len(src) >= Q8_KSize && len(dst) >= 256; src, dst = src[Q8_KSize:], dst[256:] {
		d := math.Float32frombits(binary.LittleEndian.Uint32(src[Q8_KScale:]))
		q, x := (*[256]byte)(src[Q8_KQuants:]), (*[256]float32)(dst)
		for j := range x {
			x[j] = d * float32(int8(q[j]))
		}
	}
}

func quantizeQ3_K(dst []byte, src []float32) {
	var q [256]uint8
	var scale [16]float32
	for ; len(src) > 0; src, dst = src[256:], dst[Q3_KSize:] {
		for s := range scale {
			scale[s] = searchByCoordinate(q[16*s:], src[16*s:][:16], 4)
		}
		var scales [16]int8
		for s := range scales {
			scales[s] = -32
		}
		var d float32
		if most := extreme(scale[:]); most != 0 {
			inverse := -32 / most
			for s, v := range scale {
				scales[s] = int8(clamp(int32(int8(nearest(inverse*v))), -32, 31))
			}
			d = 1 / inverse
		}
		finishQ3_K(dst, src, &q, &scales, d)
	}
}

func weightedQ3_K(dst []byte, src, weights []float32) {
	var q [256]uint8
	var scale, importances, w [16]float32
	var shared [16]uint8
	for ; len(src) > 0; src, weights, dst = src[256:], weights[256:], dst[Q3_KSize:] {
		variance := 2 * sumSquares(src[:256]) / 256
		for s := range scale {
			x := src[16*s:][:16]
			weigh(w[:], x, weights[16*s:], variance)
			importances[s] = sum(w[:])
			scale[s] = searchSymmetric(q[16*s:], x, w[:], 4)
		}
		d := searchSymmetric(shared[:], scale[:], importances[:], 32)
		var scales [16]int8
		for s, v := range shared {
			scales[s] = int8(v) - 32
		}
		finishQ3_K(dst, src, &q, &scales, d)
	}
}

// finishQ3_K rounds all values once more, with the scales as they are stored. Where a scale is zero, the integers of the search
// stay.
func finishQ3_K(block []byte, src []float32, q *[256]uint8, scales *[16]int8, d float32) {
	d = putHalf(block[Q3_KScale:], d)
	packScalesQ3K((*[12]byte)(block[Q3_KScales:]), scales)
	requantize(q, src, scales, d, 4)
	high := (*[32]byte)(block[Q3_KHigh:])
	clear(high[:])
	for i, v := range q {
		high[i%32] |= v >> 2 << (i / 32)
		q[i] = v & 3
	}
	packPairs(block[Q3_KQuants:], q)
}

// requantize writes q = round(x/(d·scale)) + limit, at least 0 and less than 2·limit, for 16 sub-blocks.
func requantize(q *[256]uint8, x []float32, scales *[16]int8, d float32, limit int32) {
	for s, scale := range scales {
		scale := d * float32(scale)
		if scale == 0 {
			continue
		}
		for i := 16 * s; i < 16*s+16; i++ {
			q[i] = uint8(clamp(nearest(x[i]/scale), -limit, limit-1) + limit)
		}
	}
}

func quantizeQ6_K(dst []byte, src []float32) { weightedQ6_K(dst, src, nil) }

// weightedQ6_K takes squares as weights where there are none.
func weightedQ6_K(dst []byte, src, weights []float32) {
	var q [256]uint8
	var scale, squares [16]float32
	for ; len(src) > 0; src, dst = src[256:], dst[Q6_KSize:] {
		for s := range scale {
			x := src[16*s:][:16]
			w := squares[:]
			if weights != nil {
				w = weights[16*s:][:16]
			} else {
				for i, v := range x {
					w[i] = v * v
				}
			}
			scale[s] = searchSymmetric(q[16*s:], x, w, 32)
		}
		if weights != nil {
			weights = weights[256:]
		}
		b := (*[Q6_KSize]byte)(dst)
		most := extreme(scale[:])
		if abs(most) < tinyGroup {
			clear(b[:])
			continue
		}
		inverse := -128 / most
		d := putHalf(b[Q6_KScale:], 1/inverse)
		var scales [16]int8
		for s, v := range scale {
			scales[s] = int8(min(127, nearest(inverse*v)))
			b[Q6_KScales+s] = byte(scales[s])
		}
		requantize(&q, src, &scales, d, 32)
		for h := range 2 {
			low, high := (*[64]byte)(b[Q6_KLow+64*h:]), (*[32]byte)(b[Q6_KHigh+32*h:])
			q := (*[128]uint8)(q[128*h:])
			for l := range high {
				low[l] = q[l]&15 | q[l+64]<<4
				low[l+32] = q[l+32]&15 | q[l+96]<<4
				high[l] = q[l]>>4 | q[l+32]>>4<<2 | q[l+64]>>4<<4 | q[l+96]>>4<<6
			}
		}
	}
}

func quantizeQ8_K(dst []byte, src []float32) {
	for ; len(src) > 0; src, dst = src[256:], dst[Q8_KSize:] {
		b, x := (*[Q8_KSize]byte)(dst), (*[256]float32)(src)
		most := extreme(x[:])
		if most == 0 {
			clear(b[:])
			continue
		}
		inverse := -127 / most
		for s := range 16 {
			sum := int16(0)
			for i := 16 * s; i < 16*s+16; i++ {
				q := int8(min(127, nearest(inverse*x[i])))
				b[Q8_KQuants+i] = byte(q)
				sum += int16(q)
			}
			binary.LittleEndian.PutUint16(b[Q8_KSums+2*s:], uint16(sum))
		}
		binary.LittleEndian.PutUint32(b[Q8_KScale:], math.Float32bits(1/inverse))
	}
}
