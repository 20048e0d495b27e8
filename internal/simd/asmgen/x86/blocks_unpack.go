package x86

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unpacking says what becomes of the integers of 32 values: they are written, or multiplied at once with those of x.
type unpacking uint8

const (
	stored unpacking = iota
	addedAVX2
	addedVNNI
)

func (u unpacking) tier() string { return [...]string{"AVX2", "AVX2", "VNNI"}[u] }

// unpacked is a function that unpacks blocks.
type unpacked struct {
	*blocks
	unpacking
	n, from, to, s reg.GPVirtual
	high           reg.GPVirtual // of formats with a plane of its own
	width          int           // values that share a scale
	ones, pick     reg.VecVirtual
	sums           []reg.VecVirtual
}

// unpack opens a function of a format.
func (b *blocks) unpack(u unpacking, format string, width int, high bool) *unpacked {
	f := &unpacked{blocks: b, unpacking: u, width: width}
	more, params, doc := "", []string{"n", "block"}, ""
	if high {
		more, doc = ", high *byte", " The fifth bits of each are in a word of high."
		params = append(params, "high")
	}
	var p []reg.GPVirtual
	if u == stored {
		p = b.begin("quants"+format+u.tier(), "func(q *int8, block *byte, n int"+more+")",
			"writes the integers of n ≥ 1 blocks."+doc,
			append(params, "q")...)
	} else {
		p = b.begin("product"+format+u.tier(), "func(x *int8, s *float32, block *byte, n int"+more+") float32",
			"is the sum over values of n ≥ 1 blocks: their integers times x times s."+doc, append(params, "x", "s")...)
		f.s = p[len(p)-1]
		p = p[:len(p)-1]
	}
	f.n, f.from, f.to = p[0], p[1], p[len(p)-1]
	if high {
		f.high = p[2]
	}
	return f
}

// prepare loads what products need.
func (f *unpacked) prepare() {
	if f.unpacking == addedAVX2 {
		f.ones = f.YMM()
		f.VPCMPEQW(f.ones, f.ones, f.ones)
		f.VPSRLW(operand.U8(15), f.ones, f.ones)
	}
	if f.width == 16 {
		f.pick = f.YMM()
		f.VMOVDQU(f.halves(), f.pick)
	}
	for range 4 {
		f.sums = append(f.sums, f.YMM())
		f.zero(f.sums[len(f.sums)-1])
	}
}

// use does with a vector what is to be done: it has the integers of group of 32 values i.
func (f *unpacked) use(i int, v reg.VecVirtual) {
	if f.unpacking == stored {
		f.VMOVDQU(v, at(f.to, 32*i))
		return
	}
	w := f.YMM()
	if f.unpacking == addedVNNI {
		f.zero(w)
		f.VPDPBUSD(at(f.to, 32*i), v, w)
	} else {
		f.VPMADDUBSW(at(f.to, 32*i), v, w)
		f.VPMADDWD(f.ones, w, w)
	}
	f.weighted(w, f.s, i, f.width, f.pick, f.sums[i%len(f.sums)])
}

// weighted adds integers times the scale of group i, or times the two of its halves.
func (b *blocks) weighted(w reg.VecVirtual, s reg.Register, i, width int, pick, sum reg.VecVirtual) {
	scale := b.YMM()
	b.VCVTDQ2PS(w, w)
	if width == 16 {
		b.VBROADCASTSD(at(s, 8*i), scale)
		b.VPERMILPS(pick, scale, scale)
	} else {
		b.VBROADCASTSS(at(s, 4*i), scale)
	}
	b.VFMADD231PS(scale, w, sum)
}

// halves is the table for two scales.
func (b *blocks) halves() operand.Mem {
	var t []byte
	for i := range 8 {
		t = append(t, byte(i/4), 0, 0, 0)
	}
	return b.table("blocksHalves", t...)
}

// each writes the loop over blocks of the given bytes and values, several at a time while possible.
func (f *unpacked) each(size, values, many int, do func(from operand.Mem, group int)) {
	if f.unpacking != stored && f.sums == nil {
		f.prepare()
	}
	advance := func(blocks int) {
		f.ADDQ(operand.U32(size*blocks), f.from)
		f.ADDQ(operand.U32(values*blocks), f.to)
		if f.unpacking != stored {
			f.ADDQ(operand.U32(4*values/f.width*blocks), f.s)
		}
	}
	if many > 1 {
		f.SUBQ(operand.U8(many), f.n)
		f.JL(operand.LabelRef("rest"))
		f.Label("many")
		f.prefetch(f.from, size*many)
		for i := range many {
			do(at(f.from, size*i), values/32*i)
		}
		advance(many)
		f.SUBQ(operand.U8(many), f.n)
		f.JGE(operand.LabelRef("many"))
		f.Label("rest")
		f.ADDQ(operand.U8(many), f.n)
		f.JEQ(operand.LabelRef("done"))
	}
	f.Label("block")
	if many == 1 {
		f.prefetch(f.from, size)
	}
	do(at(f.from, 0), 0)
	advance(1)
	f.DECQ(f.n)
	f.JNE(operand.LabelRef("block"))
	f.Label("done")
	if f.unpacking == stored {
		f.end()
	} else {
		f.sum(f.sums)
	}
}

// masked is the bits of v under a mask, shifted to the right, or to the left if by is negative. What words give their
// neighbours is masked away.
func (b *blocks) masked(v reg.VecVirtual, by int, mask reg.VecVirtual) reg.VecVirtual {
	r := b.YMM()
	switch {
	case by > 0:
		b.VPSRLW(operand.U8(by), v, r)
		b.VPAND(mask, r, r)
	case by < 0:
		b.VPSLLW(operand.U8(-by), v, r)
		b.VPAND(mask, r, r)
	default:
		b.VPAND(mask, v, r)
	}
	return r
}

// load loads 32 bytes.
func (b *blocks) load(m operand.Mem) reg.VecVirtual {
	v := b.YMM()
	b.VMOVDQU(m, v)
	return v
}
