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

// times stores factors of 16 bytes, whose register it frees: eight times a lane of d and eight times another, each at a pointer that
// moves on.
func (b *blocks) times(v int, words [4]int, d int, lanes, to [2]int) {
	for i := range 2 {
		var w [2]int
		for k := range w {
			w[k] = b.float(v, words[2*i+k])
			b.vec("fmul.e", w[k], w[k], d, lanes[i])
		}
		moveVectors(b.text, false, ".P", to[i], 32, w[:]...)
		b.free(w[:]...)
	}
	b.free(v)
}

// halves loads one half or two as float32.
func (b *blocks) halves(pointer int, two bool) int {
	d := b.take()
	if two {
		b.ins("FMOVS.P 4(R%d), F%d", pointer, d)
	} else {
		b.ins("MOVHU.P 2(R%d), R%d", pointer, b.inputs)
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

// scalesK4: the words s0 s1 s2 of a block become [sc0…3 sc4…7 m0…3 m4…7]; see quant.UnpackScalesK4.
func (b *blocks) scalesK4(format string, size int) {
	b.begin("scales"+format+suffix, scalesDoc, false, "a *float32", "b *float32", "block *byte", "n int")
	const a, m, from, n = 0, 1, 2, 3
	six, words := b.bytes(63), b.spread()
	b.scaling(n, 256, func() {
		s, t, u := b.take(), b.take(), b.take()
		b.ins("FMOVD 4(R%d), F%d", from, s)
		b.ins("FMOVS 12(R%d), F%d", from, t)
		d := b.take()
		b.ins("FMOVS.P %d(R%d), F%d", size, from, d)
		b.vec("fcvtl", d, d)
		b.vec("ushr.b", u, t, 4)
		b.vec("zip1", t, t, u)
		b.vec("ushr.b", u, s, 6)
		b.vec("sli.b", t, u, 4)
		b.vec("and", s, s, six)
		b.vec("zip1", s, s, t)
		b.free(t, u)
		b.times(s, words, d, [2]int{0, 1}, [2]int{a, m})
		b.free(d)
	})
}

func (b *blocks) scalesQ2K() {
	b.begin("scalesQ2K"+suffix, scalesDoc, false, "a *float32", "b *float32", "block *byte", "n int", "halves *byte")
	const a, m, from, n, halves = 0, 1, 2, 3, 4
	low, words := b.bytes(15), b.spread()
	b.scaling(n, 256, func() {
		d, v, w := b.halves(halves, true), b.take(), b.take()
		b.ins("FMOVQ.P 80(R%d), F%d", from, v)
		b.vec("ushr.b", w, v, 4)
		b.vec("and", v, v, low)
		b.times(v, words, d, [2]int{0, 0}, [2]int{a, a})
		b.times(w, words, d, [2]int{1, 1}, [2]int{m, m})
		b.free(d)
	})
}

func (b *blocks) scalesQ3K() {
	b.begin("scalesQ3K"+suffix, scalesDoc+" There are no minima.", false, "a *float32", "block *byte", "n int", "halves *byte")
	const a, from, n, halves = 0, 1, 2, 3
	six, bias, words := b.bytes(63), b.bytes(32), b.spread()
	shifts := b.table("blocksPairShifts", func(i int) int { // −2j in word j
		return -2 * (i / 4) >> (i % 4 * 8)
	})
	b.scaling(n, 256, func() {
		d, v, w := b.halves(halves, false), b.take(), b.take()
		b.ins("FMOVS 8(R%d), F%d", from, w)
		b.vec("dup", w, w)
		b.vec("ushl", w, w, shifts)
		u := b.take()
		b.ins("FMOVD.P 12(R%d), F%d", from, v)
		b.vec("ushr.b", u, v, 4)
		b.vec("zip1.d", v, v, u)
		b.vec("sli.b", v, w, 4)
		b.vec("and", v, v, six)
		b.vec("sub.b", v, v, bias)
		b.free(u, w)
		b.times(v, words, d, [2]int{0, 0}, [2]int{a, a})
		b.free(d)
	})
}

func (b *blocks) scalesQ6K() {
	b.begin("scalesQ6K"+suffix, scalesDoc+" There are no minima.", false, "a *float32", "block *byte", "n int", "halves *byte")
	const a, from, n, halves = 0, 1, 2, 3
	words := b.spread()
	b.ins("ADD $192, R%d, R%d", from, from)
	b.scaling(n, 256, func() {
		d, v := b.halves(halves, false), b.take()
		b.ins("FMOVQ.P 208(R%d), F%d", from, v)
		b.times(v, words, d, [2]int{0, 0}, [2]int{a, a})
		b.free(d)
	})
}
