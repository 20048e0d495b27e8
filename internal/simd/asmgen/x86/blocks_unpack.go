package x86

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// use says what becomes of the integers of blocks: they are written, or multiplied at once with those of a row of x, or with a row
// of floats.
type use uint8

const (
	stored use = iota
	bytesAVX2
	bytesAVXVNNI
	bytesVNNI
	floatsAVX2
	floatsAVX512
)

func (u use) floats() bool { return u >= floatsAVX2 }

// dots says whether there are products of bytes, whose sums have 32 bits.
func (u use) dots() bool { return u == bytesAVXVNNI || u == bytesVNNI }

// unpacked is a function that unpacks blocks.
type unpacked struct {
	*blocks
	use
	width          int // values that share a scale
	n, from, to    reg.GPVirtual
	plane1, plane2 reg.GPVirtual
	row
}

// unpack opens a function of a format that writes integers, or multiplies rows.
func (b *blocks) unpack(u use, format string, width int, fifth bool) *unpacked {
	f := &unpacked{blocks: b, use: u, width: width}
	if u != stored {
		f.begin(format)
		return f
	}
	more, params, doc := "", []string{"n", "q", "block"}, ""
	if fifth {
		more, doc = ", high *byte", " The fifth bits of each are in a word of high."
		params = append(params, "high")
	}
	p := b.begin("quants"+format+"AVX2", "func(q *int8, block *byte, n int"+more+")", "writes the integers of n ≥ 1 blocks."+doc, params...)
	f.n, f.to, f.from = p[0], p[1], p[2]
	if fifth {
		f.plane1 = p[3]
	}
	return f
}

// take does with a vector what is to be done: it has the integers of group of 32 values i.
func (f *unpacked) take(i int, v reg.VecVirtual) {
	if f.use == stored {
		f.c.VMOVDQU(v, at(f.to, 32*i))
		return
	}
	f.multiply(i, v)
}

// planes are how many bytes a block has in each plane.
type planes [3]int

// each writes the loop over blocks, in functions that multiply that over rows too, where scales are those of a block of 256
// values, or else of eight blocks of 32.
func (f *unpacked) each(p planes, values int, scales func(at [3]operand.Mem, put put), do func(from operand.Mem, group int)) {
	if f.use != stored {
		f.eachRow(p, values, scales, do)
		return
	}
	advance := func(blocks int) {
		f.c.ADDQ(operand.U32(p[0]*blocks), f.from)
		f.c.ADDQ(operand.U32(values*blocks), f.to)
		if f.plane1 != nil {
			f.c.ADDQ(operand.U32(p[1]*blocks), f.plane1)
		}
	}
	if values == 32 {
		f.some(4, func() {
			f.prefetch(f.from, 4*p[0])
			for i := range 4 {
				do(at(f.from, p[0]*i), i)
			}
			advance(4)
		})
	}
	f.c.Label("block")
	if values > 32 {
		f.prefetch(f.from, p[0])
	}
	do(at(f.from, 0), 0)
	advance(1)
	f.c.DECQ(f.n)
	f.c.JNE(operand.LabelRef("block"))
	f.c.Label("done")
	f.end()
}

// some writes a loop that takes several blocks at a time while there are as many, and goes to done if none are left.
func (f *unpacked) some(many int, do func()) {
	f.c.SUBQ(operand.U8(many), f.n)
	f.c.JL(operand.LabelRef("rest"))
	f.c.Label("many")
	do()
	f.c.SUBQ(operand.U8(many), f.n)
	f.c.JGE(operand.LabelRef("many"))
	f.c.Label("rest")
	f.c.ADDQ(operand.U8(many), f.n)
	f.c.JEQ(operand.LabelRef("done"))
}

// masked is the bits of v under a mask, shifted to the right, or to the left if by is negative. What words give their
// neighbours is masked away.
func (b *blocks) masked(v reg.VecVirtual, by int, mask operand.Op) reg.VecVirtual {
	r := b.c.YMM()
	switch {
	case by > 0:
		b.c.VPSRLW(operand.U8(by), v, r)
		b.c.VPAND(mask, r, r)
	case by < 0:
		b.c.VPSLLW(operand.U8(-by), v, r)
		b.c.VPAND(mask, r, r)
	default:
		b.c.VPAND(mask, v, r)
	}
	return r
}

// load loads 32 bytes.
func (b *blocks) load(m operand.Mem) reg.VecVirtual {
	v := b.c.YMM()
	b.c.VMOVDQU(m, v)
	return v
}
