package quant

// Q2_K, Q4_K and Q5_K: 256 values in sub-blocks, x = d·sc·q − dmin·mn with a scale sc and a minimum mn of few bits for each
// sub-block.
const (
	// Q2_K: 16 sub-blocks of 16. The low nibble of scales[s] is sc of sub-block s, the high nibble mn. Each half of 128 values
	// has 32 bytes of quants: value l of sub-block s (of 8 in the half) is in byte 16·(s & 1) + l, at bit 2·⌊s/2⌋, of two bits.
	Q2_KSize   = 84
	Q2_KScales = 0  // 16 bytes
	Q2_KQuants = 16 // 64 bytes
	Q2_KScale  = 80 // d, binary16
	Q2_KMin    = 82 // dmin, binary16

	// Q4_K: 8 sub-blocks of 32, sc and mn as UnpackScalesK4 says. Pair g of sub-blocks has 32 bytes of quants: the low nibbles
	// are sub-block 2g, the high nibbles sub-block 2g + 1.
	Q4_KSize   = 144
	Q4_KScale  = 0  // d, binary16
	Q4_KMin    = 2  // dmin, binary16
	Q4_KScales = 4  // 12 bytes
	Q4_KQuants = 16 // 128 bytes

	// Q5_K: Q4_K with a fifth bit: bit s of high[l] is that of value l of sub-block s.
	Q5_KSize   = 176
	Q5_KScale  = 0  // d, binary16
	Q5_KMin    = 2  // dmin, binary16
	Q5_KScales = 4  // 12 bytes
	Q5_KHigh   = 16 // 32 bytes
	Q5_KQuants = 48 // 128 bytes
)

// UnpackScalesK4 returns the scales and minima, of 6 bits each, of the 8 sub-blocks of a block of Q4_K or Q5_K. Those of the
// sub-blocks 0 to 3 are the low 6 bits of bytes 0 to 3 and 4 to 7; of those of the sub-blocks 4 to 7, bytes 8 to 11 have the
// low 4 bits (the scale in the low nibble), and the top 2 bits of bytes 0 to 3 and 4 to 7 the rest.
func UnpackScalesK4(b *[12]byte) (scales, mins [8]uint8) {
	for j := range 4 {
		scales[j], mins[j] = b[j]&63, b[j+4]&63
		scales[j+4] = b[j+8]&15 | b[j]>>6<<4
		mins[j+4] = b[j+8]>>4 | b[j+4]>>6<<4
	}
	return scales, mins
}

// packScalesK4 is the inverse of [UnpackScalesK4]. Of scales and mins it takes the low 6 bits.
func packScalesK4(b *[12]byte, scales, mins *[8]uint8) {
	for j := range 4 {
		b[j] = scales[j]&63 | scales[j+4]>>4<<6
		b[j+4] = mins[j]&63 | mins[j+4]>>4<<6
		b[j+8] = scales[j+4]&15 | mins[j+4]<<4
	}
}

func dequantizeQ2_K(dst []float32, src []byte) {
	for ; len(src) >= Q2_KSize && len(dst) >= 256; src, dst = src[Q2_KSize:], dst[256:] {
		b := (*[Q2_KSize]byte)(src)
		d, m := half(b[Q2_KScale:]), half(b[Q2_KMin:])
		for s, scale := range b[Q2_KScales : Q2_KScales+16] {
			scale, offset := d*float32(scale&15), m*float32(scale>>4)
			q, x, shift := (*[16]byte)(b[Q2_KQuants+s/8*32+s&1*16:]), (*[16]float32)(dst[16*s:]), s%8/2*2
			for l := range x {
				x[l] = float32(scale*float32(q[l]>>shift&3)) - offset
			}
		}
	}
}

func dequantizeQ4_K(dst []float32, src []byte) {
	for ; len(src) >= Q4_KSize && len(dst) >= 256; src, dst = src[Q4_KSize:], dst[256:] {
		b := (*[Q4_KSize]byte)(src)
		d, m := half(b[Q4_KScale:]), half(b[Q4_KMin:])
		scales, mins := UnpackScalesK4((*[12]byte)(b[Q4_KScales:]))
		for g := range 4 {
			q, x := (*[32]byte)(b[Q4_KQuants+32*g:]), (*[64]float32)(dst[64*g:])
			s0, m0 := d*float32(scales[2*g]), m*float32(mins[2*g])
			s1, m1 := d*float32(scales[2*g+1]), m*float32(mins[2*g+1])
			for l, q := range q {
				x[l] = float32(s0*float32(q&15)) - m0
				x[l+32] = float32(s1*float32(q>>4)) - m1
			}
		}
	}
}

func dequantizeQ5_K(dst []float32, src []byte) {
	for ; len(src) >= Q5_KSize && len(dst) >= 256; src, dst = src[Q5_KSize:], dst[256:] {
		b := (*[Q5_KSize]byte)(src)
		d, m := half(b[Q5_KScale:]), half(b[Q5_KMin:])
		scales, mins := UnpackScalesK4((*[12]byte)(b[Q5_KScales:]))
		high := (*[32]byte)(b[Q5_KHigh:])
		for g := range 4 {
			q, x := (*[32]byte)(b[Q5_KQuants+32*g:]), (*[64]float32)(dst[64*g:])
			s0, m0 := d*float32(scales[2*g]), m*float32(mins[2*g])
			s1, m1 := d*float32(scales[2*g+1]), m*float32(mins[2*g+1])
			for l, q := range q {
				h := high[l] >> (2 * g)
				x[l] = float32(s0*float32(q&15|h&1<<4)) - m0
				x[l+32] = float32(s1*float32(q>>4|h&2<<3)) - m1
			}
		}
	}
}

// affine is what the quantisers of the three differ in.
type affine struct {
	format               Type
	size, scaleAt, minAt int
	width                int     // values of a sub-block
	limit, scaleLimit    int32   // the largest q; the largest sc and mn
	rms                  bool    // without importance, weights are |x| plus the root mean square of the sub-block
	trials               *trials // without importance
	spread               float32 // with importance, the variance in the weights is this times the mean square of the block
}

var (
	affineQ2_K = affine{format: Q2_K, size: Q2_KSize, scaleAt: Q2_KScale, minAt: Q2_KMin, width: 16, limit: 3, scaleLimit: 15,
		trials: &trials{first: -0.5, step: 0.1, count: 15, absolute: true}, spread: 1}
	affineQ4_K = affine{format: Q4_K, size: Q4_KSize, scaleAt: Q4_KScale, minAt: Q4_KMin, width: 32, limit: 15, scaleLimit: 63,
		rms: true, trials: &trials{first: -1, step: 0.1, count: 20}, spread: 2}
	affineQ5_K = affine{format: Q5_K, size: Q5_KSize, scaleAt: Q5_KScale, minAt: Q5_KMin, width: 32, limit: 31, scaleLimit: 63,
		rms: true, trials: &trials{first: -0.5, step: 0.1, count: 15}, spread: 2}
)

// pack writes all but the scale and the minimum of the block.
func (a *affine) pack(b []byte, s *subBlocks) {
	switch a.format {
	case Q2_K:
		for j := range s.scales {
			b[Q2_KScales+j] = s.scales[j] | s.mins[j]<<4
		}
		packPairs(b[Q2_KQuants:], &s.q)
	case Q4_K:
		packScalesK4((*[12]byte)(b[Q4_KScales:]), (*[8]uint8)(s.scales[:]), (*[8]uint8)(s.mins[:]))
		packNibblePairs(b[Q4_KQuants:], &s.q)
	case Q5_K:
		packScalesK4((*[12]byte)(b[Q5_KScales:]), (*[8]uint8)(s.scales[:]), (*[8]uint8)(s.mins[:]))
		high := (*[32]byte)(b[Q5_KHigh:])
		clear(high[:])
		for i, v := range s.q {
			high[i%32] |= v >> 4 << (i / 32)
		}
		packNibblePairs(b[Q5_KQuants:], &s.q)
	}
}

// packPairs writes integers of two bits as Q2_K and Q3_K have them.
func packPairs(dst []byte, q *[256]uint8) {
	for h := range 2 {
		b, q := (*[32]byte)(dst[32*h:]), (*[128]uint8)(q[128*h:])
		for l := range b {
			b[l] = q[l] | q[l+32]<<2 | q[l+64]<<4 | q[l+96]<<6
		}
	}
}

// packNibblePairs writes the low four bits of integers as Q4_K and Q5_K have them.
func packNibblePairs(dst []byte, q *[256]uint8) {
	for g := range 4 {
		b, q := (*[32]byte)(dst[32*g:]), (*[64]uint8)(q[64*g:])
		for l := range b {
			b[l] = q[l]&15 | q[l+32]<<4
		}
	}
}

func quantizeQ2_K(dst []byte, src []float32) { affineQ2_K.quantize(dst, src) }
func quantizeQ4_K(dst []byte, src []float32) { affineQ4_K.quantize(dst, src) }
func quantizeQ5_K(dst []byte, src []float32) { affineQ5_K.quantize(dst, src) }

func weightedQ2_K(dst []byte, src, weights []float32) { affineQ2_K.weighted(dst, src, weights) }
func weightedQ4_K(dst []byte, src, weights []float32) { affineQ4_K.weighted(dst, src, weights) }
func weightedQ5_K(dst []byte, src, weights []float32) { affineQ5_K.weighted(dst, src, weights) }

func (a *affine) quantize(dst []byte, src []float32) {
	var s subBlocks
	var buffer [32]float32
	w := buffer[:a.width]
	for ; len(src) > 0; src, dst = src[256:], dst[a.size:] {
		n := 256 / a.width
		for j := range n {
			x := src[a.width*j:][:a.width]
			var rms float32
			if a.rms {
				rms = sqrt(sumSquares(x) / float32(a.width))
			}
			for l, v := range x {
				w[l] = rms + abs(v)
			}
			s.scale[j], s.offset[j] = searchAffine(s.q[a.width*j:], x, w, a.limit, a.trials)
		}
		d := shareLargest(s.scales[:n], s.scale[:n], a.scaleLimit)
		m := shareLargest(s.mins[:n], s.offset[:n], a.scaleLimit)
		a.finish(dst, src, &s, d, m)
	}
}

func (a *affine) weighted(dst []byte, src, weights []float32) {
	var s subBlocks
	var buffer [32]float32
	var importances [16]float32
	w := buffer[:a.width]
	for ; len(src) > 0; src, weights, dst = src[256:], weights[256:], dst[a.size:] {
		variance := a.spread * sumSquares(src[:256]) / 256
		n := 256 / a.width
		for j := range n {
			x := src[a.width*j:][:a.width]
			weigh(w, x, weights[a.width*j:], variance)
			importances[j] = sum(w)
			s.scale[j], s.offset[j] = searchAffine(s.q[a.width*j:], x, w, a.limit, importance)
		}
		d := searchPositive(s.scales[:n], s.scale[:n], importances[:n], a.scaleLimit)
		m := searchPositive(s.mins[:n], s.offset[:n], importances[:n], a.scaleLimit)
		a.finish(dst, src, &s, d, m)
	}
}

// subBlocks are the sub-blocks of a block while it is made.
type subBlocks struct {
	scale, offset [16]float32 // as they were found
	scales, mins  [16]uint8   // as they will be stored
	q             [256]uint8
}

// shareLargest makes integers of scales so that the largest one becomes limit, and returns what to multiply the integers by.
func shareLargest(q []uint8, scales []float32, limit int32) float32 {
	var largest float32
	for _, s := range scales {
		if s > largest {
			largest = s
		}
	}
	var inverse float32
	if largest > 0 {
		inverse = float32(limit) / largest
	}
	for j, s := range scales {
		q[j] = min(uint8(limit), uint8(nearest(inverse*s)))
	}
	return largest / float32(limit)
}

// finish rounds scale and minimum to binary16 and all values once more, with the scales as they are stored. Where a scale has
// become zero, the integers of the search stay.
func (a *affine) finish(block []byte, src []float32, s *subBlocks, d, m float32) {
	d, m = putHalf(block[a.scaleAt:], d), putHalf(block[a.minAt:], m)
	for j := range 256 / a.width {
		scale, offset := d*float32(s.scales[j]), m*float32(s.mins[j])
		if scale == 0 {
			continue
		}
		for i := a.width * j; i < a.width*(j+1); i++ {
			s.q[i] = uint8(clamp(nearest((src[i]+float32(offset))/scale), 0, a.limit))
		}
	}
	a.pack(block, s)
}
