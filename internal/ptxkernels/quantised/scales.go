package quantised

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
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
	return i.reg.Add(byteSelector(i.n))
}

// scalesAt tells units apart whose scales are in different words.
func (r *unitReader) scalesAt() number {
	switch r.BlockFormat {
	case compute.Q2_K:
		return r.unit.field(r.k, 1, 2)
	case compute.Q3_K:
		return r.unit.field(r.k, 1, 1)
	case compute.Q6_K:
		return r.unit.field(r.k, 2, 1)
	}
	return known(0)
}

// loadScales reads what the scales are made of; within and plane are as in loadNext.
func (r *unitReader) loadScales(x *packedUnit, within func(i number) ptx.Ptr[ptx.Global, uint8],
	plane func(n, size int) ptx.Ptr[ptx.Global, uint8]) {
	k := r.k
	word := func(p ptx.Ptr[ptx.Global, uint8]) ptx.Reg[uint32] {
		return ptx.Cast[uint32](p).Load(ptx.ReadOnly)
	}
	hasD := x.hasD
	x.hasD = true
	pair := func(w ptx.Reg[uint32]) {
		d, m := ptx.UnpackF16(ptx.Bitcast[ptx.F16x2](w))
		x.d, x.m = scalar.ToFloat32(k, d), scalar.ToFloat32(k, m)
	}
	last := len(r.skip) - 1
	single := func() {
		if !hasD {
			x.d = scalar.ToFloat32(k, ptx.Cast[ptx.F16](plane(last, 2)).Load(ptx.ReadOnly))
		}
	}
	switch r.BlockFormat {
	case compute.Q4_1, compute.Q5_1:
		pair(word(plane(last, 4)))
	case compute.Q2_K:
		quarter := r.scalesAt().times(k, 4)
		x.scales = []ptx.Reg[uint32]{word(within(quarter.plus(k, known(r.scales))))}
		if !hasD {
			pair(word(plane(last, 4)))
		}
	case compute.Q3_K:
		p := plane(1, 12)
		low := r.scalesAt().times(k, 4)
		x.scales = []ptx.Reg[uint32]{word(low.bytes(k, p)), word(p.Bytes(8))}
		single()
	case compute.Q4_K, compute.Q5_K:
		head := ptx.Cast[uint32](within(known(quant.Q4_KScale))).Load4(ptx.ReadOnly)
		pair(head[0])
		x.scales = head[1:]
	case compute.Q6_K:
		p := within(r.scalesAt().times(k, 8).plus(k, known(r.scales)))
		if len(r.runs) > 1 {
			two := ptx.Cast[uint32](p).Load2(ptx.ReadOnly)
			x.scales = two[:]
		} else {
			x.scales = []ptx.Reg[uint32]{word(r.runs[0].times(k, 4).bytes(k, p))}
		}
		single()
	default:
		single()
	}
}

// scale is the scale of each run, and its minimum if the format is affine: values are scale · integer − minimum.
func (r *unitReader) scale(x packedUnit) (scale, minimum []scalar.Float) {
	k := r.k
	switch {
	case !r.runsHaveScales():
		if r.affine {
			m := x.m.Neg()
			minimum = []scalar.Float{m, m}
		}
		return []scalar.Float{x.d, x.d}, minimum
	case r.affine:
		word := r.minimumWord(x)
		for run := range r.runs {
			minimum = append(minimum, x.m.Mul(byteFloat(k, word, r.pick[run], 0)))
		}
	}
	return r.scaleOnly(x), minimum
}

// scaleOnly is the scale of each run of a block of 256.
func (r *unitReader) scaleOnly(x packedUnit) (scale []scalar.Float) {
	k := r.k
	words, zero := r.scaleWords(x)
	for run := range r.runs {
		scale = append(scale, x.d.Mul(byteFloat(k, words[min(run, len(words)-1)], r.pick[run], zero)))
	}
	return scale
}

// runsHaveScales tells whether runs have scales as integers.
func (f *blockFormat) runsHaveScales() bool { return !f.grouped() }

// scaleWords are words with the scales as bytes, for both runs or for each, and what is to be subtracted from these.
func (r *unitReader) scaleWords(x packedUnit) (words []ptx.Reg[uint32], zero int) {
	k := r.k
	switch r.BlockFormat {
	case compute.Q2_K:
		return []ptx.Reg[uint32]{x.scales[0].And(0x0f0f0f0f)}, 0
	case compute.Q3_K:
		low := x.scales[0].Shr(r.unit.field(k, 2, 1).times(k, 4).value(k))
		high := x.scales[1].Shr(r.unit.field(k, 1, 2).times(k, 2).value(k))
		high = high.And(0x03030303).Shl(4)
		return []ptx.Reg[uint32]{low.And(0x0f0f0f0f).Or(high)}, 32
	case compute.Q6_K: // signed
		for _, w := range x.scales {
			words = append(words, w.Xor(0x80808080))
		}
		return words, 128
	}
	return []ptx.Reg[uint32]{r.byteK4(x.scales[2], 0, x.scales[0])}, 0
}

// minimumWord has the minima of affine formats as bytes, for both runs.
func (r *unitReader) minimumWord(x packedUnit) ptx.Reg[uint32] {
	if r.BlockFormat == compute.Q2_K {
		return x.scales[0].Shr(4).And(0x0f0f0f0f)
	}
	return r.byteK4(x.scales[2], 4, x.scales[1])
}

// byteK4 has the scales or the minima of four neighbouring sub-blocks, the first four or the last; see quant.UnpackScalesK4. The low
// bits of the last are in low, from bit shift on.
func (r *unitReader) byteK4(low ptx.Reg[uint32], shift int, high ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := r.k
	later := r.unit.field(k, 2, 1)
	if later.known && later.n == 0 {
		return high.And(0x3f3f3f3f)
	}
	lowest := shiftRight(k, low, known(shift)).And(0x0f0f0f0f)
	last := lowest.Or(high.Shr(2).And(0x30303030))
	if later.known {
		return last
	}
	return ptx.Select(later.reg.Ne(0), last, high.And(0x3f3f3f3f))
}
