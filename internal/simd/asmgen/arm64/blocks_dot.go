package arm64

import "fmt"

// products is a vector whose lanes add up to the products of one or two vectors. Sums of four products have 16 bits for integers
// from 0 to 64 and x up to 127, sums of two for all integers.
func (f *unpacked) products(q, x []int) int {
	w := f.take()
	if f.unpacking == addedDot {
		f.vec("zero", w)
		for i := range q {
			f.vec("sdot", w, q[i], x[i])
		}
		return w
	}
	h, op := f.take(), "smull"
	for i := range q {
		f.vec(op, h, q[i], x[i])
		f.vec("smlal2", h, q[i], x[i])
		op = "smlal"
		if f.signed && i == 0 && len(q) > 1 {
			f.vec("saddlp.h", w, h)
			op = "smull"
		}
	}
	if f.signed && len(q) > 1 {
		f.vec("sadalp.h", w, h)
	} else {
		f.vec("saddlp.h", w, h)
	}
	f.free(h)
	return w
}

// add takes the vector of products of values that share a scale.
func (f *unpacked) add(w int) {
	if f.single {
		f.addSingle(w)
		return
	}
	if !f.merge(w) {
		return
	}
	if f.next%2 == 0 {
		if f.vectors > 1 {
			x := f.pair(f.s, 16*f.next)
			f.scales = x[:]
		} else {
			f.scales = []int{f.take()}
			f.ins("FMOVQ %d(R%d), F%d", 16*f.next, f.s, f.scales[0])
		}
	}
	f.vec("scvtf", w, w)
	f.vec("fmla", f.sum, w, f.scales[0])
	f.free(w, f.scales[0])
	f.scales = f.scales[1:]
	f.next++
}

// merge makes one vector of four, whose lanes are the sums of each: in the register of the last, when it returns true.
func (f *unpacked) merge(w int) bool {
	for level, v := range f.partial {
		if v < 0 {
			f.partial[level] = w
			return false
		}
		f.vec("addp", w, v, w)
		f.free(v)
		f.partial[level] = -1
	}
	return true
}

// addSingle is add where there are 32 values.
func (f *unpacked) addSingle(w int) {
	s := f.take()
	defer f.free(s)
	switch {
	case f.width == 32:
		f.ins("FMOVS (R%d), F%d", f.s, s)
		f.vec("scvtf", w, w)
		f.vec("fmla.e", f.sum, w, s, 0)
		f.free(w)
	case f.partial[0] < 0:
		f.partial[0] = w
	default:
		f.ins("FMOVD (R%d), F%d", f.s, s)
		f.vec("zip1", s, s, s)
		f.vec("addp", w, f.partial[0], w)
		f.vec("scvtf", w, w)
		f.vec("fmla", f.sum, w, s)
		f.free(w, f.partial[0])
		f.partial[0] = -1
	}
}

// multiplied are products of integers that have been unpacked, or are bytes in the blocks.
func (b *blocks) multiplied() {
	b.lanes()
	for _, u := range []unpacking{addedDot, addedNEON} {
		most := map[unpacking]int{addedDot: 4, addedNEON: 2}[u]
		each := func(width int, signed bool) {
			b.dot(u, width, signed)
			for rows := 1; rows <= most; rows *= 2 {
				b.rows(u, width, signed, rows)
			}
		}
		each(16, false)
		each(32, false)
		if u == addedNEON {
			each(32, true)
		}
	}
}

func (b *blocks) dot(u unpacking, width int, signed bool) {
	name, doc := fmt.Sprintf("dot%d", width), "computes dotGo for n ≥ 1 times 32 integers q"
	switch {
	case signed:
		name += "Signed"
	case u == addedNEON:
		doc += " from 0 to 64"
	}
	f := b.over(u, width)
	f.signed = signed
	f.open(name, doc+".", false, "x *int8", "s *float32", "q *int8", "n int")
	f.each(32, 32, func(i int) { f.use(i, b.pair(f.from, 32*i)) })
}

// weigh multiplies scales, and sums up products.
func (b *blocks) weigh() {
	b.begin("weigh"+suffix, "computes n ≥ 1 vectors: s = a·scale, and the sum of b·sum.", true,
		"s *float32", "a *float32", "scale *float32", "b *float32", "sum *float32", "n int")
	const s, n = 0, 5
	acc := b.take()
	b.vec("zero", acc)
	before := b.b.Len()
	b.loop("vector")
	var v [5]int
	for i := 1; i < n; i++ {
		v[i] = b.take()
		b.ins("FMOVQ.P 16(R%d), F%d", i, v[i])
	}
	b.vec("fmul", v[1], v[1], v[2])
	b.vec("fmla", acc, v[3], v[4])
	b.ins("FMOVQ.P F%d, 16(R%d)", v[1], s)
	b.ins("SUBS $1, R%d, R%d", n, n)
	b.ins("BNE vector")
	b.tally(before, 128) // of formats whose groups are of 32
	b.result(acc)
}
