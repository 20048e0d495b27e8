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
	for _, u := range []unpacking{stored, addedAVX2, addedVNNI} {
		b.nibbles(u, false)
		b.nibbles(u, true)
		b.pairs(u, "Q2K", 80, 16, -1)
		b.pairs(u, "Q3K", 96, 32, 0)
		b.fours(u, "Q4K", 144, -1)
		b.fours(u, "Q5K", 176, 16)
		b.sixes(u)
	}
	b.pairScales()
	b.scalesK4("scalesQ4K", 144)
	b.scalesK4("scalesQ5K", 176)
	b.scalesQ2K()
	b.scalesQ3K()
	b.scalesQ6K()
	for _, lanes := range []int{8, 16} {
		b.expand(lanes)
		b.weigh(lanes)
		for _, width := range []int{16, 32} {
			b.floats("Minima", width, lanes)
			b.floats("Offset", width, lanes)
		}
		b.floats("Bytes", 32, lanes)
	}
	for _, width := range []int{32, 16} {
		b.dotAVX2(width, false)
		b.dotVNNI(width, false)
	}
	b.dotAVX2(32, true)
	b.dotVNNI(32, true)
	b.lanes(false)
	b.lanes(true)
	for _, rows := range []int{1, 2, 4, 8} {
		b.products("products32", 32, rows, 16)
		b.products("products16", 16, rows, 16)
		if rows < 8 { // there are not more registers
			b.products("products32", 32, rows, 8)
			b.products("products16", 16, rows, 8)
			b.products("productsSigned", 32, rows, 8)
		}
	}
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

// prefetch asks for as many bytes as are read now.
func (b *blocks) prefetch(from reg.Register, bytes int) {
	for line := 0; line < bytes; line += 64 {
		b.PREFETCHT0(at(from, ahead+line))
	}
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
		p = b.begin("quants"+format+u.tier(), "func(q *int8, block *byte, n int"+more+")", "writes the integers of n ≥ 1 blocks."+doc,
			append(params, "q")...)
	} else {
		p = b.begin("product"+format+u.tier(), "func(x *int8, s *float32, block *byte, n int"+more+") float32",
			"is the sum over values of n ≥ 1 blocks: their integers times x times s."+doc, append(params, "x", "s")...)
		f.s = p[len(p)-1]
		p = p[:len(p)-1]
		f.prepare()
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

// each writes the loop over blocks of so many bytes and values, so many at a time while there are as many.
func (f *unpacked) each(size, values, many int, do func(from operand.Mem, group int)) {
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

// nibbles is for the formats of 32 values, with a fifth bit or without.
func (b *blocks) nibbles(u unpacking, fifth bool) {
	f := b.unpack(u, map[bool]string{false: "Nibbles", true: "Fifths"}[fifth], 32, fifth)
	low, shifts := b.bytes(15), b.YMM()
	b.VMOVDQU(b.table("blocksNibbleShifts", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0), shifts)
	var spread, bit, sixteen reg.VecVirtual
	if fifth {
		spread, bit, sixteen = b.YMM(), b.YMM(), b.bytes(16)
		var to, of []byte
		for i := range 32 {
			to, of = append(to, byte(i/8)), append(of, 1<<(i%8))
		}
		b.VMOVDQU(b.table("blocksSpread", to...), spread)
		b.VMOVDQU(b.table("blocksBits", of...), bit)
	}
	f.each(16, 32, 4, func(from operand.Mem, group int) {
		v := b.YMM()
		b.VBROADCASTI128(from, v)
		b.VPSRLVQ(shifts, v, v)
		b.VPAND(low, v, v)
		if fifth {
			h := b.YMM()
			b.VPBROADCASTD(at(f.high, 0), h)
			b.ADDQ(operand.U8(4), f.high)
			b.VPSHUFB(spread, h, h)
			b.VPAND(bit, h, h)
			b.VPCMPEQB(bit, h, h)
			b.VPAND(sixteen, h, h)
			b.VPOR(h, v, v)
		}
		f.use(group, v)
	})
}

// masked is the bits of v under a mask, shifted to the right, or to the left if by is negative. What words give their neighbours is
// masked away.
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

// pairs is for two bits, and a third if high is where it is.
func (b *blocks) pairs(u unpacking, format string, size, quants, high int) {
	f := b.unpack(u, format, 16, false)
	three, four := b.bytes(3), b.bytes(4)
	f.each(size, 256, 1, func(from operand.Mem, _ int) {
		var top reg.VecVirtual
		if high >= 0 {
			top = b.load(from.Offset(high))
		}
		for h := range 2 {
			v := b.load(from.Offset(quants + 32*h))
			for j := range 4 {
				x := b.masked(v, 2*j, three)
				if high >= 0 {
					b.VPOR(b.masked(top, 4*h+j-2, four), x, x)
				}
				f.use(4*h+j, x)
			}
		}
	})
}

// fours is for four bits, and a fifth if high is where it is.
func (b *blocks) fours(u unpacking, format string, size, high int) {
	f := b.unpack(u, format, 32, false)
	low, fifth := b.bytes(15), b.bytes(16)
	f.each(size, 256, 1, func(from operand.Mem, _ int) {
		var top reg.VecVirtual
		if high >= 0 {
			top = b.load(from.Offset(high))
		}
		for g := range 4 {
			v := b.load(from.Offset(size - 128 + 32*g))
			for half := range 2 {
				x := b.masked(v, 4*half, low)
				if high >= 0 {
					b.VPOR(b.masked(top, 2*g+half-4, fifth), x, x)
				}
				f.use(2*g+half, x)
			}
		}
	})
}

// sixes is for Q6_K.
func (b *blocks) sixes(u unpacking) {
	f := b.unpack(u, "Q6K", 16, false)
	low, two := b.bytes(15), b.bytes(0x30)
	f.each(208, 256, 1, func(from operand.Mem, _ int) {
		for h := range 2 {
			v := []reg.VecVirtual{b.load(from.Offset(64 * h)), b.load(from.Offset(64*h + 32))}
			top := b.load(from.Offset(128 + 32*h))
			for j := range 4 {
				x := b.masked(v[j%2], j/2*4, low)
				b.VPOR(b.masked(top, 2*j-4, two), x, x)
				f.use(4*h+j, x)
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
	b.Label("block")
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
	for _, r := range []reg.Register{a, m, from} {
		b.ADDQ(operand.U8(32), r)
	}
	b.DECQ(n)
	b.JNE(operand.LabelRef("block"))
	b.end()
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
