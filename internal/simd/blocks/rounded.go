package blocks

import (
	"math"
	"unsafe"
)

// Rounded is a row of activations in 8 bits. In each 32 values, a value is about scale·q with the scale max|x|/127. Blocks of
// 256, which GGML has beside formats of 256 values, would lose what is small near an outlier, and save nothing here.
//
// For a product of several rows, where the tier wants it, integers are in lanes: each chunk of 512 is transposed, 16 groups
// of 32 as rows of 8 words, and sum16 has the sums of the groups' first halves and then those of the second. A few groups after
// the last chunk lie as they are, without sum16, which formats that need it have no such groups for; of more, zeros make a chunk.
type Rounded struct {
	Q          []int8
	scale, sum []float32 // of 32 values: the scale, and the scale times the sum of q
	scale16    []float32 // the same of 16 values each; no scales in lanes
	sum16      []float32
	lanes      bool
	whole      int     // chunks in lanes
	wide       []int16 // Q once more, where the side module multiplies it; see widen
}

const chunk = 512

// split returns how many chunks of n values are in lanes, and how many groups of 32 after them are not.
func split(n int) (whole, rest int) {
	if whole, rest = n/chunk, n%chunk/32; rest > mostRest {
		return whole + 1, 0
	}
	return whole, rest
}

// RoundedWords is how many words the memory of a rounded row has.
func RoundedWords(k int) int {
	k = (k + chunk - 1) / chunk * chunk
	return k/4 + 2*(k/32) + 2*(k/16) + wideWords*k/2
}

// RoundedRows are rows of k values in memory, of RoundedWords(k) words each, that are multiplied together.
type RoundedRows struct {
	Memory  []float32
	Rows, K int
}

// Row is row i.
func (x RoundedRows) Row(i int) Rounded {
	words := RoundedWords(x.K)
	return roundedIn(x.Memory[i*words:][:words], x.K, x.Rows)
}

// roundedIn is one of several rows of k values in memory.
func roundedIn(memory []float32, k, rows int) (r Rounded) {
	r.lanes = rows > 1 && inLanes()
	n := k
	if r.lanes {
		n = (k + chunk - 1) / chunk * chunk
		r.whole, _ = split(k)
	}
	part := func(n int) (p []float32) {
		p, memory = memory[:n:n], memory[n:]
		return p
	}
	q := part(n / 4)
	r.Q = unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(q))), n)
	r.scale, r.sum, r.sum16 = part(n/32), part(n/32), part(n/16)
	if !r.lanes {
		r.scale16 = part(n / 16)
	}
	wide := part(wideWords * k / 2)
	r.wide = unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(wide))), 2*len(wide))
	return r
}

// groups are the scales and sums of groups of 16 or 32 values.
func (r *Rounded) groups(width, lo, n int) (scale, sum []float32) {
	if width == 16 {
		return r.scale16[lo:][:n], r.sum16[lo:][:n]
	}
	return r.scale[lo:][:n], r.sum[lo:][:n]
}

// put stores what a block of 32 has become.
func (r *Rounded) put(b int, q *[32]int8, scale float32, sums [2]float32) {
	r.scale[b], r.sum[b] = scale, scale*(sums[0]+sums[1])
	if !r.lanes {
		copy(r.Q[32*b:][:32], q[:])
		for i, s := range sums {
			r.scale16[2*b+i], r.sum16[2*b+i] = scale, scale*s
		}
		r.widen(b)
		return
	}
	c, g := b/16, b%16
	if c >= r.whole {
		copy(r.Q[32*b:][:32], q[:])
		return
	}
	to := r.Q[chunk*c+4*g:]
	for word := range 8 {
		copy(to[64*word:][:4], q[4*word:])
	}
	r.sum16[32*c+g], r.sum16[32*c+16+g] = scale*sums[0], scale*sums[1]
}

// Round rounds values of x in blocks lo ≤ b < hi of 32. A block with Inf or NaN has NaN as its scale, so that what it is
// multiplied with becomes NaN.
func (r *Rounded) Round(x []float32, lo, hi int) {
	for b := r.roundVectors(x, lo, hi); b < hi; b++ {
		x, q := (*[32]float32)(x[32*b:]), [32]int8{}
		bits := uint32(0)
		for _, v := range x {
			bits = max(bits, math.Float32bits(v)&0x7fffffff)
		}
		most := math.Float32frombits(bits)
		scale, inverse := most/127, 0.0
		switch {
		case bits >= 0x7f800000:
			scale = float32(math.NaN())
		case bits > 0:
			inverse = 127 / float64(most) // finite even if scale is subnormal
		}
		var sums [2]int32
		if bits < 0x7f800000 {
			const shift = 1.5 * (1 << 52) // the last one is for ones
			for i, v := range x {
				n := int8(math.Float64bits(float64(float64(v)*inverse) + shift))
				q[i] = n
				sums[i/16] += int32(n)
			}
		}
		r.put(b, &q, scale, [2]float32{float32(sums[0]), float32(sums[1])})
	}
	if r.lanes && hi == len(x)/32 {
		for b := hi; b < len(r.scale); b++ {
			r.put(b, new([32]int8), 0, [2]float32{})
		}
	}
}

// Values writes what the rounded values stand for, from block lo on.
func (r *Rounded) Values(y []float32, lo, hi int) {
	for b := lo; b < hi; b++ {
		for i, q := range (*[32]int8)(r.Q[32*b:]) {
			y[32*b+i] = r.scale[b] * float32(q)
		}
	}
}
