package lower

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/quant"
)

// scaleByte is the selector of the byte that has the scale of a run, in the word that scale finds for it.
func (r *unitReader) scaleByte(run number) ptx.Reg[uint32] {
	k := r.k
	i := known(0)
	switch r.BlockFormat {
	case compute.Q2_K, compute.Q3_K:
		i = run.times(k, 2).plus(k, r.unit.field(k, 0, 1))
	case compute.Q4_K, compute.Q5_K:
		i = r.unit.field(k, 1, 1).times(k, 2).plus(k, run)
	case compute.Q6_K:
		i = r.unit.field(k, 0, 2)
	}
	if i.known {
		return ptx.Imm(byteSelector(i.n))
	}
	return ptx.Add(k, i.value(k), ptx.Imm(byteSelector(0)))
}

// loadScales reads what the scales are made of. The block begins at at(); plane is as in load.
func (r *unitReader) loadScales(x *packedUnit, at func() ptx.Ptr[ptx.Global, uint8], plane func(n, size int) ptx.Ptr[ptx.Global, uint8]) {
	k := r.k
	word := func(p ptx.Ptr[ptx.Global, uint8]) ptx.Reg[uint32] {
		return ptx.Load(k, ptx.Cast[uint32](p), ptx.ReadOnly)
	}
	pair := func(w ptx.Reg[uint32]) {
		d, m := ptx.UnpackF16(k, ptx.Bitcast[ptx.F16x2](k, w))
		x.d, x.m = toFloat32(k, d), toFloat32(k, m)
	}
	last := len(r.skip) - 1
	single := func() { x.d = toFloat32(k, ptx.Load(k, ptx.Cast[ptx.F16](plane(last, 2)), ptx.ReadOnly)) }
	switch r.BlockFormat {
	case compute.Q4_1, compute.Q5_1:
		pair(word(plane(last, 4)))
	case compute.Q2_K:
		quarter := r.unit.field(k, 1, 2).times(k, 4)
		x.scales = []ptx.Reg[uint32]{word(ptx.AtByte(k, at(), quarter.value(k)).Bytes(r.scales))}
		pair(word(plane(last, 4)))
	case compute.Q3_K:
		p := plane(1, 12)
		low := r.unit.field(k, 1, 1).times(k, 4)
		x.scales = []ptx.Reg[uint32]{word(ptx.AtByte(k, p, low.value(k))), word(p.Bytes(8))}
		single()
	case compute.Q4_K, compute.Q5_K:
		head := ptx.Load4(k, ptx.Cast[uint32](at().Bytes(quant.Q4_KScale)), ptx.ReadOnly)
		pair(head[0])
		x.scales = head[1:]
	case compute.Q6_K:
		p := ptx.AtByte(k, at(), r.unit.field(k, 2, 1).times(k, 8).value(k)).Bytes(r.scales)
		if len(r.runs) > 1 {
			two := ptx.Load2(k, ptx.Cast[uint32](p), ptx.ReadOnly)
			x.scales = two[:]
		} else {
			x.scales = []ptx.Reg[uint32]{word(ptx.AtByte(k, p, r.runs[0].times(k, 4).value(k)))}
		}
		single()
	default:
		single()
	}
}

// scale is the scale of each run, and its minimum if the format is affine: values are scale · integer − minimum.
func (r *unitReader) scale(x packedUnit) (scale, minimum []float) {
	k, c := r.k, calc{r.k}
	var scales, minima []ptx.Reg[uint32] // words with them as bytes, for both runs or for each
	zero := 0                            // is subtracted from the scales
	switch r.BlockFormat {
	case compute.Q2_K:
		nibble := ptx.Imm(uint32(0x0f0f0f0f))
		scales = append(scales, ptx.And(k, x.scales[0], nibble))
		minima = append(minima, ptx.And(k, ptx.Shr(k, x.scales[0], u32(4)), nibble))
	case compute.Q3_K:
		low := ptx.Shr(k, x.scales[0], r.unit.field(k, 2, 1).times(k, 4).value(k))
		high := ptx.Shr(k, x.scales[1], r.unit.field(k, 1, 2).times(k, 2).value(k))
		high = ptx.Shl(k, ptx.And(k, high, u32(0x03030303)), u32(4))
		scales, zero = append(scales, ptx.Or(k, ptx.And(k, low, u32(0x0f0f0f0f)), high)), 32
	case compute.Q4_K, compute.Q5_K:
		s, m := r.scalesK4(x.scales)
		scales, minima = append(scales, s), append(minima, m)
	case compute.Q6_K: // signed
		zero = 128
		for _, w := range x.scales {
			scales = append(scales, ptx.Xor(k, w, u32(0x80808080)))
		}
	case compute.Q4_1, compute.Q5_1:
		m := c.neg(x.m)
		return []float{x.d, x.d}, []float{m, m}
	default:
		return []float{x.d, x.d}, nil
	}
	for run := range r.runs {
		scale = append(scale, c.mul(x.d, byteFloat(k, scales[min(run, len(scales)-1)], r.pick[run], zero)))
		if len(minima) > 0 {
			minimum = append(minimum, c.mul(x.m, byteFloat(k, minima[0], r.pick[run], 0)))
		}
	}
	return scale, minimum
}

// scalesK4 are words with the scales and minima of four neighbouring sub-blocks, the first four or the last; see
// quant.UnpackScalesK4.
func (r *unitReader) scalesK4(w []ptx.Reg[uint32]) (scales, minima ptx.Reg[uint32]) {
	k := r.k
	later := ptx.Ne(k, r.unit.field(k, 2, 1).value(k), u32(0))
	of := func(low, high ptx.Reg[uint32]) ptx.Reg[uint32] {
		first := ptx.And(k, high, u32(0x3f3f3f3f))
		last := ptx.Or(k, ptx.And(k, low, u32(0x0f0f0f0f)), ptx.And(k, ptx.Shr(k, high, u32(2)), u32(0x30303030)))
		return ptx.Select(k, later, last, first)
	}
	return of(w[2], w[0]), of(ptx.Shr(k, w[2], u32(4)), w[1])
}
