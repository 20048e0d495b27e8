package x86

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blocksFiles are the kernels of package blocks: what unpacks GGML's block formats, and what multiplies the integers.
func blocksFiles() (map[string][]byte, error) {
	c := build.NewContext()
	b := &blocks{Context: c, tables: map[string]operand.Mem{}}
	b.nibbles(false)
	b.nibbles(true)
	b.quantPairs("quantsQ2K", 80, 16, -1)
	b.quantPairs("quantsQ3K", 96, 32, 0)
	b.quantsK4("quantsQ4K", 144, -1)
	b.quantsK4("quantsQ5K", 176, 16)
	b.quantsQ6K()
	b.pairScales()
	b.scalesK4("scalesQ4K", 144)
	b.scalesK4("scalesQ5K", 176)
	b.scalesQ2K()
	b.scalesQ3K()
	b.scalesQ6K()
	for _, lanes := range []int{8, 16} {
		b.expand(lanes)
		b.weigh(lanes)
	}
	for _, width := range []int{32, 16} {
		b.dotAVX2(width, false)
		b.dotVNNI(width, false)
	}
	b.dotAVX2(32, true)
	b.dotVNNI(32, true)
	return assembled(c, "blocks", "zz_blocks")
}

type blocks struct {
	*build.Context
	tables map[string]operand.Mem
}

// begin opens a function and returns its parameters in registers.
func (b *blocks) begin(name, signature string, doc string, params ...string) []reg.GPVirtual {
	b.Function(name)
	b.Pragma("noescape")
	b.Attributes(attr.NOSPLIT)
	b.SignatureExpr(signature)
	b.Doc(name + " " + doc)
	var r []reg.GPVirtual
	for _, p := range params {
		g := b.GP64()
		b.Load(b.Param(p), g)
		r = append(r, g)
	}
	return r
}

func (b *blocks) end() {
	b.VZEROUPPER()
	b.RET()
}

// ahead is how far before its use a row is asked for: about as much as is unpacked at a time, so that memory works while integers are
// multiplied.
const ahead = 4608

// eachBlock writes a loop over n ≥ 1 blocks, which lie at from, so many bytes apart, and are written to to.
func (b *blocks) eachBlock(n, from, to reg.Register, size, written int, do func()) {
	b.Label("block")
	for line := 0; line < size; line += 64 {
		b.PREFETCHT0(at(from, ahead+line))
	}
	do()
	b.ADDQ(operand.U32(size), from)
	b.ADDQ(operand.U32(written), to)
	b.DECQ(n)
	b.JNE(operand.LabelRef("block"))
	b.end()
}

// table is read-only data of bytes, aligned to nothing.
func (b *blocks) table(name string, data ...byte) operand.Mem {
	if m, ok := b.tables[name]; ok {
		return m
	}
	m := b.StaticGlobal(name)
	b.DataAttributes(attr.RODATA | attr.NOPTR)
	for _, v := range data {
		b.AppendDatum(operand.U8(v))
	}
	b.tables[name] = m
	return m
}

// bytes is a vector of one byte.
func (b *blocks) bytes(v byte) reg.VecVirtual {
	y := b.YMM()
	b.VPBROADCASTB(b.table("blocksBytes"+string("0123456789abcdef"[v>>4])+string("0123456789abcdef"[v&15]), v), y)
	return y
}

const quantsDoc = "writes the integers of n ≥ 1 blocks."

func (b *blocks) nibbles(fifth bool) {
	name, signature, params := "nibblesAVX2", "func(q *int8, block *byte, n int)", []string{"q", "block", "n"}
	if fifth {
		name, signature, params = "fifthsAVX2", "func(q *int8, block *byte, n int, high *byte)", append(params, "high")
	}
	p := b.begin(name, signature, quantsDoc+map[bool]string{true: " The fifth bits of each are in a word of high."}[fifth], params...)
	q, from, n := p[0], p[1], p[2]
	low, shifts, v := b.bytes(15), b.YMM(), b.YMM()
	b.VMOVDQU(b.table("blocksNibbleShifts", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0), shifts)
	var spread, bit, sixteen, h reg.VecVirtual
	if fifth {
		spread, bit, sixteen, h = b.YMM(), b.YMM(), b.bytes(16), b.YMM()
		var to, of []byte
		for i := range 32 {
			to, of = append(to, byte(i/8)), append(of, 1<<(i%8))
		}
		b.VMOVDQU(b.table("blocksSpread", to...), spread)
		b.VMOVDQU(b.table("blocksBits", of...), bit)
	}
	b.eachBlock(n, from, q, 16, 32, func() {
		b.VBROADCASTI128(at(from, 0), v)
		b.VPSRLVQ(shifts, v, v)
		b.VPAND(low, v, v)
		if fifth {
			b.VPBROADCASTD(at(p[3], 0), h)
			b.ADDQ(operand.U8(4), p[3])
			b.VPSHUFB(spread, h, h)
			b.VPAND(bit, h, h)
			b.VPCMPEQB(bit, h, h)
			b.VPAND(sixteen, h, h)
			b.VPOR(h, v, v)
		}
		b.VMOVDQU(v, at(q, 0))
	})
}

// shifted is v shifted by words to the right, or to the left if by is negative; bits that come from the neighbour are to be masked.
func (b *blocks) shifted(v reg.VecVirtual, by int) reg.VecVirtual {
	r := b.YMM()
	switch {
	case by > 0:
		b.VPSRLW(operand.U8(by), v, r)
	case by < 0:
		b.VPSLLW(operand.U8(-by), v, r)
	default:
		return v
	}
	return r
}

// masked is the bits of v under a mask, shifted to the right.
func (b *blocks) masked(v reg.VecVirtual, by int, mask reg.VecVirtual) reg.VecVirtual {
	r := b.YMM()
	b.VPAND(mask, b.shifted(v, by), r)
	return r
}

// quantPairs is for two bits, and a third if high is where it is.
func (b *blocks) quantPairs(name string, size, quants, high int) {
	p := b.begin(name+"AVX2", "func(q *int8, block *byte, n int)", quantsDoc, "q", "block", "n")
	q, from, n := p[0], p[1], p[2]
	three, four := b.bytes(3), b.bytes(4)
	b.eachBlock(n, from, q, size, 256, func() {
		var top reg.VecVirtual
		if high >= 0 {
			top = b.YMM()
			b.VMOVDQU(at(from, high), top)
		}
		for h := range 2 {
			v := b.YMM()
			b.VMOVDQU(at(from, quants+32*h), v)
			for j := range 4 {
				x := b.masked(v, 2*j, three)
				if high >= 0 {
					b.VPOR(b.masked(top, 4*h+j-2, four), x, x)
				}
				b.VMOVDQU(x, at(q, 128*h+32*j))
			}
		}
	})
}

// quantsK4 is for four bits, and a fifth if high is where it is.
func (b *blocks) quantsK4(name string, size, high int) {
	p := b.begin(name+"AVX2", "func(q *int8, block *byte, n int)", quantsDoc, "q", "block", "n")
	q, from, n := p[0], p[1], p[2]
	low, fifth := b.bytes(15), b.bytes(16)
	b.eachBlock(n, from, q, size, 256, func() {
		var top reg.VecVirtual
		if high >= 0 {
			top = b.YMM()
			b.VMOVDQU(at(from, high), top)
		}
		for g := range 4 {
			v := b.YMM()
			b.VMOVDQU(at(from, size-128+32*g), v)
			for half := range 2 {
				x := b.masked(v, 4*half, low)
				if high >= 0 {
					b.VPOR(b.masked(top, 2*g+half-4, fifth), x, x)
				}
				b.VMOVDQU(x, at(q, 64*g+32*half))
			}
		}
	})
}

func (b *blocks) quantsQ6K() {
	p := b.begin("quantsQ6KAVX2", "func(q *int8, block *byte, n int)", quantsDoc, "q", "block", "n")
	q, from, n := p[0], p[1], p[2]
	low, two := b.bytes(15), b.bytes(0x30)
	b.eachBlock(n, from, q, 208, 256, func() {
		for h := range 2 {
			v, u := []reg.VecVirtual{b.YMM(), b.YMM()}, b.YMM()
			b.VMOVDQU(at(from, 64*h), v[0])
			b.VMOVDQU(at(from, 64*h+32), v[1])
			b.VMOVDQU(at(from, 128+32*h), u)
			for j := range 4 {
				x := b.masked(v[j%2], j/2*4, low)
				b.VPOR(b.masked(u, 2*j-4, two), x, x)
				b.VMOVDQU(x, at(q, 128*h+32*j))
			}
		}
	})
}

const scalesDoc = "writes the scales a and the minima b of n ≥ 1 blocks. "

// pairScales is for a half that is the scale and one that is what is added, of eight blocks at a time.
func (b *blocks) pairScales() {
	p := b.begin("pairScalesAVX2", "func(a, b *float32, pairs *byte, n int)", scalesDoc+"A block is eight pairs here.", "a", "b", "pairs", "n")
	a, m, from, n := p[0], p[1], p[2], p[3]
	sort, sign, v := b.YMM(), b.YMM(), b.YMM()
	half := []byte{0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15}
	b.VMOVDQU(b.table("blocksPairs", append(half, half...)...), sort)
	b.VPCMPEQD(sign, sign, sign)
	b.VPSLLD(operand.U8(31), sign, sign)
	b.eachBlock(n, from, a, 32, 32, func() {
		b.VMOVDQU(at(from, 0), v)
		b.VPSHUFB(sort, v, v)
		b.VPERMQ(operand.U8(0b11011000), v, v)
		d, upper, h := b.YMM(), b.XMM(), b.YMM()
		b.VCVTPH2PS(v.AsX(), d)
		b.VMOVUPS(d, at(a, 0))
		b.VEXTRACTI128(operand.U8(1), v, upper)
		b.VCVTPH2PS(upper, h)
		b.VXORPS(sign, h, h)
		b.VMOVUPS(h, at(m, 0))
		b.ADDQ(operand.U8(32), m)
	})
}

// half loads a half into all lanes.
func (b *blocks) half(m operand.Mem) reg.VecVirtual {
	r, x, y := b.GP32(), b.XMM(), b.YMM()
	b.MOVWLZX(m, r)
	b.VMOVD(r, x)
	b.VCVTPH2PS(x, x)
	b.VBROADCASTSS(x, y)
	return y
}

// times stores factors of eight bytes each, times d.
func (b *blocks) times(d reg.VecVirtual, from operand.Op, signed bool, to operand.Mem) {
	v := b.YMM()
	if signed {
		b.VPMOVSXBD(from, v)
	} else {
		b.VPMOVZXBD(from, v)
	}
	b.VCVTDQ2PS(v, v)
	b.VMULPS(d, v, v)
	b.VMOVUPS(v, to)
}

// upper is the upper eight bytes of x.
func (b *blocks) upper(x reg.Register) reg.VecVirtual {
	y := b.XMM()
	b.VPSRLDQ(operand.U8(8), x, y)
	return y
}

// scalesK4: the dwords s0 s1 s2 of a block become [sc0…3 m0…3] and [sc4…7 m4…7]; see quant.UnpackScalesK4.
func (b *blocks) scalesK4(name string, size int) {
	p := b.begin(name+"AVX2", "func(a, b *float32, block *byte, n int)", scalesDoc, "a", "b", "block", "n")
	a, m, from, n := p[0], p[1], p[2], p[3]
	six, four, two := b.bytes(63).AsX(), b.bytes(15).AsX(), b.bytes(0x30).AsX()
	b.Label("block")
	dm, dy, my := b.XMM(), b.YMM(), b.YMM()
	b.VMOVD(at(from, 0), dm)
	b.VCVTPH2PS(dm, dm)
	b.VBROADCASTSS(dm, dy)
	b.VMOVSHDUP(dm, dm)
	b.VBROADCASTSS(dm, my)
	s, t, u, v := b.XMM(), b.XMM(), b.XMM(), b.XMM()
	b.VMOVQ(at(from, 4), s)
	b.VMOVD(at(from, 12), t)
	b.VPSRLD(operand.U8(4), t, u)
	b.VPUNPCKLDQ(u, t, t) // s2, s2 >> 4
	b.VPAND(four, t, t)
	b.VPSRLD(operand.U8(2), s, v)
	b.VPAND(two, v, v)
	b.VPOR(v, t, t)
	b.VPAND(six, s, s)
	b.VPUNPCKLDQ(t, s, s)
	b.times(dy, s, false, at(a, 0))
	b.times(my, b.upper(s), false, at(m, 0))
	b.ADDQ(operand.U32(size), from)
	b.ADDQ(operand.U8(32), a)
	b.ADDQ(operand.U8(32), m)
	b.DECQ(n)
	b.JNE(operand.LabelRef("block"))
	b.end()
}

func (b *blocks) scalesQ2K() {
	p := b.begin("scalesQ2KAVX2", "func(a, b *float32, block *byte, n int, halves *byte)", scalesDoc, "a", "b", "block", "n", "halves")
	a, m, from, n, halves := p[0], p[1], p[2], p[3], p[4]
	low := b.bytes(15).AsX()
	b.Label("block")
	v, w := b.XMM(), b.XMM()
	b.VMOVDQU(at(from, 0), v)
	b.VPSRLW(operand.U8(4), v, w)
	b.VPAND(low, v, v)
	b.VPAND(low, w, w)
	d, dmin := b.half(at(halves, 0)), b.half(at(halves, 2))
	b.times(d, v, false, at(a, 0))
	b.times(d, b.upper(v), false, at(a, 32))
	b.times(dmin, w, false, at(m, 0))
	b.times(dmin, b.upper(w), false, at(m, 32))
	b.ADDQ(operand.U32(80), from)
	b.ADDQ(operand.U8(4), halves)
	b.ADDQ(operand.U8(64), a)
	b.ADDQ(operand.U8(64), m)
	b.DECQ(n)
	b.JNE(operand.LabelRef("block"))
	b.end()
}

func (b *blocks) scalesQ3K() {
	p := b.begin("scalesQ3KAVX2", "func(a *float32, block *byte, n int, halves *byte)", scalesDoc, "a", "block", "n", "halves")
	a, from, n, halves := p[0], p[1], p[2], p[3]
	low, two, bias := b.bytes(15).AsX(), b.bytes(3).AsX(), b.bytes(32).AsX()
	shifts := b.XMM()
	b.VMOVDQU(b.table("blocksPairShifts", 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 6, 0, 0, 0), shifts)
	b.Label("block")
	v, w, h := b.XMM(), b.XMM(), b.XMM()
	b.VMOVQ(at(from, 0), v)
	b.VPSRLW(operand.U8(4), v, w)
	b.VPUNPCKLQDQ(w, v, v)
	b.VPAND(low, v, v)
	b.VPBROADCASTD(at(from, 8), h)
	b.VPSRLVD(shifts, h, h)
	b.VPAND(two, h, h)
	b.VPSLLW(operand.U8(4), h, h)
	b.VPOR(h, v, v)
	b.VPSUBB(bias, v, v)
	d := b.half(at(halves, 0))
	b.times(d, v, true, at(a, 0))
	b.times(d, b.upper(v), true, at(a, 32))
	b.ADDQ(operand.U8(12), from)
	b.ADDQ(operand.U8(2), halves)
	b.ADDQ(operand.U8(64), a)
	b.DECQ(n)
	b.JNE(operand.LabelRef("block"))
	b.end()
}

func (b *blocks) scalesQ6K() {
	p := b.begin("scalesQ6KAVX2", "func(a *float32, block *byte, n int, halves *byte)", scalesDoc, "a", "block", "n", "halves")
	a, from, n, halves := p[0], p[1], p[2], p[3]
	b.Label("block")
	d := b.half(at(halves, 0))
	b.times(d, at(from, 192), true, at(a, 0))
	b.times(d, at(from, 200), true, at(a, 32))
	b.ADDQ(operand.U32(208), from)
	b.ADDQ(operand.U8(2), halves)
	b.ADDQ(operand.U8(64), a)
	b.DECQ(n)
	b.JNE(operand.LabelRef("block"))
	b.end()
}
