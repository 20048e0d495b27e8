// Package lanes computes what the 32 lanes of a warp compute at once, by vector instructions where the processor has them (AVX2 and FMA),
// else in Go. Results are the same bits. Registers are arrays of 32 lanes, and may be the same.
package lanes

import (
	"encoding/binary"
	"math"

	"github.com/wavelane/wavelane/ptx/eval"
)

// Size is the number of lanes.
const Size = 32

// nan is PTX's one NaN.
const nan = 0x7fffffff

// toBits is the bits of a result, with PTX's one NaN.
func toBits(v float32) uint32 {
	if v != v {
		return nan
	}
	return math.Float32bits(v)
}

func fromBits(v uint32) float32 { return math.Float32frombits(v) }

// FMAOf is x·y + z of one lane, rounded once. The product is exact in float64; the sum is rounded there and again to float32, which is
// right unless the first rounding ended halfway between two float32: then the low 28 bits are 0 (whatever the exponent), and if the sum
// was not exact, the slow way decides.
func FMAOf(x, y, z uint32) uint32 {
	p := float64(fromBits(x)) * float64(fromBits(y))
	c := float64(fromBits(z))
	s := p + c
	if math.Float64bits(s)<<36 != 0 || s-p == c && s-c == p {
		return math.Float32bits(float32(s))
	}
	return toBits(eval.FMA32(fromBits(x), fromBits(y), fromBits(z)))
}

func fmaGo(r, x, y, z *[Size]uint32) {
	for l := range r {
		r[l] = FMAOf(x[l], y[l], z[l])
	}
}

func addGo(r, x, y *[Size]uint32) {
	for l := range r {
		r[l] = toBits(fromBits(x[l]) + fromBits(y[l]))
	}
}

func subGo(r, x, y *[Size]uint32) {
	for l := range r {
		r[l] = toBits(fromBits(x[l]) - fromBits(y[l]))
	}
}

func mulGo(r, x, y *[Size]uint32) {
	for l := range r {
		r[l] = toBits(fromBits(x[l]) * fromBits(y[l]))
	}
}

func offsetsGo(to, x *[Size]uint64, add, limit uint64) (all, bad uint64) {
	for l, v := range x {
		v += add
		to[l] = v
		all |= v
		bad |= limit - v
	}
	return all, bad
}

func offsets32Go(to *[Size]uint64, x *[Size]uint32, add, limit uint64) (all, bad uint64) {
	for l, v := range x {
		v := uint64(v) + add
		to[l] = v
		all |= v
		bad |= limit - v
	}
	return all, bad
}

func load4Go(r0, r1, r2, r3 *[Size]uint32, data []byte, off *[Size]uint64) {
	for l, a := range off {
		d := data[a:][:16]
		r0[l], r1[l] = binary.LittleEndian.Uint32(d), binary.LittleEndian.Uint32(d[4:])
		r2[l], r3[l] = binary.LittleEndian.Uint32(d[8:]), binary.LittleEndian.Uint32(d[12:])
	}
}
