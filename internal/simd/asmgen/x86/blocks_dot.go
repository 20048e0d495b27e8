package x86

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vector is a register of n float32.
func (b *blocks) vector(lanes int) reg.VecVirtual {
	if lanes == 16 {
		return b.ZMM()
	}
	return b.YMM()
}

func tierOf(lanes int) string { return map[int]string{8: "AVX2", 16: "AVX512"}[lanes] }

// zero clears a register.
func (b *blocks) zero(v reg.VecVirtual) {
	if v.Size() == 64 { // it may be one of those that only AVX-512 has
		b.VPXORD(v, v, v)
		return
	}
	b.VPXOR(v, v, v)
}

// sum stores the sum of vectors as the function's result.
func (b *blocks) sum(v []reg.VecVirtual) {
	for _, w := range v[1:] {
		b.VADDPS(w, v[0], v[0])
	}
	b.Store(b.total(v[0]), b.ReturnIndex(0))
	b.end()
}

// total is the sum of a vector's lanes.
func (b *blocks) total(v reg.VecVirtual) reg.Register {
	if v.Size() == 64 {
		h := b.YMM()
		b.VEXTRACTF64X4(operand.U8(1), v, h)
		b.VADDPS(h, v.AsY(), v.AsY())
	}
	x, h := v.AsX(), b.XMM()
	b.VEXTRACTF128(operand.U8(1), v.AsY(), h)
	b.VADDPS(h, x, x)
	b.VMOVHLPS(x, x, h)
	b.VADDPS(h, x, x)
	b.VMOVSHDUP(x, h)
	b.VADDSS(h, x, x)
	return x
}

// expand writes a·(q − offset) − b for n vectors, of which neighbouring ones share a and b.
func (b *blocks) expand(lanes int) {
	p := b.begin("expand"+tierOf(lanes), "func(y *float32, q *int8, a, b, offset *float32, width, n int)",
		fmt.Sprintf("computes n ≥ 1 groups of width values, a multiple of %d; see expandGo.", lanes),
		"y", "q", "a", "b", "offset", "width", "n")
	y, q, a, m, offset, width, n := p[0], p[1], p[2], p[3], p[4], p[5], p[6]
	off, scale, least, v, left := b.vector(lanes), b.vector(lanes), b.vector(lanes), b.vector(lanes), b.GP64()
	b.VBROADCASTSS(at(offset, 0), off)
	b.Label("group")
	b.VBROADCASTSS(at(a, 0), scale)
	b.VBROADCASTSS(at(m, 0), least)
	b.MOVQ(width, left)
	b.Label("vector")
	b.VPMOVSXBD(at(q, 0), v)
	b.VCVTDQ2PS(v, v)
	b.VSUBPS(off, v, v)
	b.VMULPS(scale, v, v)
	b.VSUBPS(least, v, v)
	b.VMOVUPS(v, at(y, 0))
	b.ADDQ(operand.U8(lanes), q)
	b.ADDQ(operand.U8(4*lanes), y)
	b.SUBQ(operand.U8(lanes), left)
	b.JNE(operand.LabelRef("vector"))
	b.ADDQ(operand.U8(4), a)
	b.ADDQ(operand.U8(4), m)
	b.DECQ(n)
	b.JNE(operand.LabelRef("group"))
	b.end()
}

// weigh multiplies scales, and sums up products. Vectors may reach beyond what is requested.
func (b *blocks) weigh(lanes int) {
	p := b.begin("weigh"+tierOf(lanes), "func(s, a, scale, b, sum *float32, n int) float32",
		"computes n ≥ 1 vectors: s = a·scale, and the sum of b·sum.", "s", "a", "scale", "b", "sum", "n")
	s, a, scale, m, sum, n := p[0], p[1], p[2], p[3], p[4], p[5]
	acc, v := b.vector(lanes), b.vector(lanes)
	b.zero(acc)
	b.Label("vector")
	b.VMOVUPS(at(a, 0), v)
	b.VMULPS(at(scale, 0), v, v)
	b.VMOVUPS(v, at(s, 0))
	b.VMOVUPS(at(m, 0), v)
	b.VFMADD231PS(at(sum, 0), v, acc)
	for _, r := range []reg.Register{s, a, scale, m, sum} {
		b.ADDQ(operand.U8(4*lanes), r)
	}
	b.DECQ(n)
	b.JNE(operand.LabelRef("vector"))
	b.sum([]reg.VecVirtual{acc})
}

func dotName(width int, signed bool) string {
	if signed {
		return fmt.Sprintf("dot%dSigned", width)
	}
	return fmt.Sprintf("dot%d", width)
}

const dotDoc = "computes dotGo for n ≥ 1 times 32 integers q, "

func dotRange(signed bool) string {
	if signed {
		return "of any size."
	}
	return "not negative and less than 64."
}

// dotAVX2 adds products in pairs, which does not overflow 16 bits for integers up to 128 and x up to 127.
func (b *blocks) dotAVX2(width int, signed bool) {
	p := b.begin(dotName(width, signed)+"AVX2", "func(q, x *int8, s *float32, n int) float32",
		dotDoc+dotRange(signed), "q", "x", "s", "n")
	q, x, s, n := p[0], p[1], p[2], p[3]
	ones, pick := b.YMM(), b.YMM()
	b.VPCMPEQW(ones, ones, ones)
	b.VPSRLW(operand.U8(15), ones, ones)
	if width == 16 {
		b.VMOVDQU(b.halves(), pick)
	}
	acc := make([]reg.VecVirtual, 4)
	for i := range acc {
		acc[i] = b.YMM()
		b.zero(acc[i])
	}
	step := func(i int) {
		v, w := b.YMM(), b.YMM()
		b.VMOVDQU(at(q, 32*i), v)
		if signed {
			if i%2 == 0 {
				b.PREFETCHT0(at(q, ahead+32*i))
			}
			b.VMOVDQU(at(x, 32*i), w)
			b.VPSIGNB(v, w, w)
			b.VPABSB(v, v)
			b.VPMADDUBSW(w, v, v)
		} else {
			b.VPMADDUBSW(at(x, 32*i), v, v)
		}
		b.VPMADDWD(ones, v, v)
		b.weighted(v, s, i, width, pick, acc[i])
	}
	b.loop32(q, x, s, n, width, 4, 1, step)
	b.sum(acc)
}

// loop32 writes a loop over n times 32 integers, several at a time while possible, then one by one.
func (b *blocks) loop32(q, x, s, n reg.Register, width, most, each int, step func(i int)) {
	advance := func(steps int) {
		b.ADDQ(operand.U32(32*each*steps), q)
		b.ADDQ(operand.U32(32*each*steps), x)
		b.ADDQ(operand.U32(4*32/width*each*steps), s)
	}
	b.SUBQ(operand.U8(most*each), n)
	b.JL(operand.LabelRef("rest"))
	b.Label("many")
	for i := range most {
		step(i)
	}
	advance(most)
	b.SUBQ(operand.U8(most*each), n)
	b.JGE(operand.LabelRef("many"))
	b.Label("rest")
	b.ADDQ(operand.U8(most*each), n)
	if each > 1 {
		b.CMPQ(n, operand.U8(each))
		b.JL(operand.LabelRef("odd"))
	} else {
		b.JEQ(operand.LabelRef("sum"))
	}
	b.Label("one")
	step(0)
	advance(1)
	b.SUBQ(operand.U8(each), n)
	if each > 1 {
		b.CMPQ(n, operand.U8(each))
		b.JGE(operand.LabelRef("one"))
		b.Label("odd")
		return
	}
	b.JNE(operand.LabelRef("one"))
	b.Label("sum")
}

// picks is the table that gives each of 16 lanes, of four values, the scale of its group.
func (b *blocks) picks(width int) operand.Mem {
	var t []byte
	for lane := range 16 {
		t = append(t, byte(lane*4/width), 0, 0, 0)
	}
	return b.table(fmt.Sprintf("blocksPick%d", width), t...)
}

// dotVNNI is for AVX-512 with its instructions for products of bytes: those of q are not negative. What is signed is raised
// by 128, which is for the caller to subtract.
func (b *blocks) dotVNNI(width int, signed bool) {
	doc := dotDoc + dotRange(signed)
	if signed {
		doc += " They count 128 more."
	}
	p := b.begin(dotName(width, signed)+"VNNI", "func(q, x *int8, s *float32, n int) float32", doc, "q", "x", "s", "n")
	q, x, s, n := p[0], p[1], p[2], p[3]
	pick, raise := b.ZMM(), b.ZMM()
	b.VMOVDQU32(b.picks(width), pick)
	if signed {
		b.VPBROADCASTB(b.table("blocksBytes80", 0x80), raise)
	}
	acc := make([]reg.VecVirtual, 4)
	for i := range acc {
		acc[i] = b.ZMM()
		b.zero(acc[i])
	}
	advance := 4 * 64 / width
	step := func(i int) {
		v, w := b.ZMM(), b.ZMM()
		b.zero(w)
		b.VMOVDQU32(at(q, 64*i), v)
		if signed {
			b.PREFETCHT0(at(q, ahead+64*i))
			b.VPXORD(raise, v, v)
		}
		b.VPDPBUSD(at(x, 64*i), v, w)
		b.VCVTDQ2PS(w, w)
		f := b.ZMM()
		b.VPERMPS(at(s, advance*i), pick, f)
		b.VFMADD231PS(f, w, acc[i])
	}
	b.loop32(q, x, s, n, width, 4, 2, step)
	b.TESTQ(n, n)
	b.JEQ(operand.LabelRef("sum"))
	v, w, f := b.YMM(), b.YMM(), b.YMM()
	b.zero(w)
	b.VMOVDQU(at(q, 0), v)
	if signed {
		b.VPXOR(raise.AsY(), v, v)
	}
	b.VPDPBUSD(at(x, 0), v, w)
	b.VCVTDQ2PS(w, w)
	b.VPERMPS(at(s, 0), pick.AsY(), f)
	b.VMULPS(f, w, w)
	b.VADDPS(w.AsZ(), acc[0], acc[0])
	b.Label("sum")
	b.sum(acc)
}
