package arm64

const scalesDoc = "writes the scales a and the minima b of n ≥ 1 blocks."

// pairScales is for a half that is the scale and one that is what is added, of four blocks at a time.
func (b *blocks) pairScales() {
	b.begin("pairScales"+suffix, scalesDoc+" A block is four pairs here.", false,
		"a *float32", "b *float32", "pairs *byte", "n int")
	const a, m, from, n = 0, 1, 2, 3
	x, y := b.take(), b.take()
	b.scaling(n, 128, func() {
		b.ins("FMOVQ.P 16(R%d), F%d", from, x)
		b.vec("uzp2.h", y, x, x)
		b.vec("uzp1.h", x, x, x)
		b.vec("fcvtl", y, y)
		b.vec("fcvtl", x, x)
		b.vec("fneg", y, y)
		b.ins("FMOVQ.P F%d, 16(R%d)", x, a)
		b.ins("FMOVQ.P F%d, 16(R%d)", y, m)
	})
}

// times gives vectors of four factors, bytes of v, whose register it frees: the first two times a lane of d, the others times another.
func (b *blocks) times(v int, words [4]int, d int, lanes [2]int, put func(k, w int)) {
	for k, word := range words {
		w := b.float(v, word)
		b.vec("fmul.e", w, w, d, lanes[k/2])
		put(k, w)
	}
	b.free(v)
}

// to stores vectors of which the first two go to one pointer, the others to another.
func (b *blocks) to(first, second int) func(k, w int) {
	return func(k, w int) {
		b.ins("FMOVQ.P F%d, 16(R%d)", w, [...]int{first, second}[k/2])
		b.free(w)
	}
}

// halves loads one half or two as float32.
func (b *blocks) halves(pointer int, two bool) int {
	d := b.take()
	if two {
		b.ins("FMOVS (R%d), F%d", pointer, d)
	} else {
		b.ins("MOVHU (R%d), R%d", pointer, b.inputs)
		b.ins("FMOVS R%d, F%d", b.inputs, d)
	}
	b.vec("fcvtl", d, d)
	return d
}

// scaling writes a loop over n blocks of the given number of values.
func (b *blocks) scaling(n, values int, do func()) {
	before := b.b.Len()
	b.loop("block")
	do()
	b.ins("SUBS $1, R%d, R%d", n, n)
	b.ins("BNE block")
	b.tally(before, values)
	b.ins("RET")
}

// A function of scales that are stored, and one that multiplies rows, have tables in registers before their loops; what is returned gives
// those of a block.

// scalesK4: the words s0 s1 s2 of a block become [sc0…3 sc4…7 m0…3 m4…7]; see quant.UnpackScalesK4.
func (b *blocks) scalesK4(words [4]int) func(from int, put func(k, w int)) {
	six := b.bytes(63)
	return func(from int, put func(k, w int)) {
		s, t, u := b.take(), b.take(), b.take()
		b.ins("FMOVD 4(R%d), F%d", from, s)
		b.ins("FMOVS 12(R%d), F%d", from, t)
		d := b.halves(from, true)
		b.vec("ushr.b", u, t, 4)
		b.vec("zip1", t, t, u)
		b.vec("ushr.b", u, s, 6)
		b.vec("sli.b", t, u, 4)
		b.vec("and", s, s, six)
		b.vec("zip1", s, s, t)
		b.free(t, u)
		b.times(s, words, d, [2]int{0, 1}, put)
		b.free(d)
	}
}

func (b *blocks) scalesQ2K(words [4]int) func(from, halves int, a, m func(k, w int)) {
	low := b.bytes(15)
	return func(from, halves int, a, m func(k, w int)) {
		d, v, w := b.halves(halves, true), b.take(), b.take()
		b.ins("FMOVQ (R%d), F%d", from, v)
		b.vec("ushr.b", w, v, 4)
		b.vec("and", v, v, low)
		b.times(v, words, d, [2]int{0, 0}, a)
		b.times(w, words, d, [2]int{1, 1}, m)
		b.free(d)
	}
}

func (b *blocks) scalesQ3K(words [4]int) func(from, halves int, put func(k, w int)) {
	six, bias := b.bytes(63), b.bytes(32)
	shifts := b.table("blocksPairShifts", func(i int) int { // −2j in word j
		return -2 * (i / 4) >> (i % 4 * 8)
	})
	return func(from, halves int, put func(k, w int)) {
		d, v, w := b.halves(halves, false), b.take(), b.take()
		b.ins("FMOVS 8(R%d), F%d", from, w)
		b.vec("dup", w, w)
		b.vec("ushl", w, w, shifts)
		u := b.take()
		b.ins("FMOVD (R%d), F%d", from, v)
		b.vec("ushr.b", u, v, 4)
		b.vec("zip1.d", v, v, u)
		b.vec("sli.b", v, w, 4)
		b.vec("and", v, v, six)
		b.vec("sub.b", v, v, bias)
		b.free(u, w)
		b.times(v, words, d, [2]int{0, 0}, put)
		b.free(d)
	}
}

func (b *blocks) scalesQ6K(words [4]int) func(from, halves int, put func(k, w int)) {
	return func(from, halves int, put func(k, w int)) {
		d, v := b.halves(halves, false), b.take()
		b.ins("FMOVQ 192(R%d), F%d", from, v)
		b.times(v, words, d, [2]int{0, 0}, put)
		b.free(d)
	}
}

// storing are the functions that write scales.
func (b *blocks) storing() {
	b.pairScales()
	k4 := func(format string, size int) {
		b.begin("scales"+format+suffix, scalesDoc, false, "a *float32", "b *float32", "block *byte", "n int")
		const a, m, from, n = 0, 1, 2, 3
		scales := b.scalesK4(b.spread())
		b.scaling(n, 256, func() {
			scales(from, b.to(a, m))
			b.forward(size, from)
		})
	}
	k4("Q4K", 144)
	k4("Q5K", 176)
	b.begin("scalesQ2K"+suffix, scalesDoc, false, "a *float32", "b *float32", "block *byte", "n int", "halves *byte")
	const a, m, from, n, halves = 0, 1, 2, 3, 4
	scales := b.scalesQ2K(b.spread())
	b.scaling(n, 256, func() {
		scales(from, halves, b.to(a, a), b.to(m, m))
		b.forward(80, from)
		b.forward(4, halves)
	})
	one := func(size int, scales func(from, halves int, put func(k, w int))) {
		const a, from, n, halves = 0, 1, 2, 3
		b.scaling(n, 256, func() {
			scales(from, halves, b.to(a, a))
			b.forward(size, from)
			b.forward(2, halves)
		})
	}
	begin := func(format string) {
		b.begin("scales"+format+suffix, scalesDoc+" There are no minima.", false, "a *float32", "block *byte", "n int", "halves *byte")
	}
	begin("Q3K")
	one(12, b.scalesQ3K(b.spread()))
	begin("Q6K")
	one(208, b.scalesQ6K(b.spread()))
}
