package arm64

import "fmt"

// spread is a table for each four of 16 bytes, by which TBL makes them the upper bytes of words.
func (b *blocks) spread() (t [4]int) {
	t[0] = b.table("blocksWords", func(i int) int {
		if i%4 == 3 {
			return i / 4
		}
		return 0x80 // becomes zero
	})
	four := b.bytes(4)
	for i := range 3 {
		t[i+1] = b.take()
		b.vec("add.b", t[i+1], t[i], four)
	}
	b.free(four)
	return t
}

// float makes a register of float32 out of the bytes of v that a table picks, which are signed.
func (b *blocks) float(v, table int) int {
	w := b.take()
	b.vec("tbl", w, v, table)
	b.vec("scvtf.f", w, w, 24)
	return w
}

// expand writes a·(q − offset) − b for groups of 16 values of which each, or each two, share a and b.
func (b *blocks) expand(affine bool) {
	params := []string{"y *float32", "q *int8", "a *float32"}
	name, doc := "expand", "computes n ≥ 1 groups of width values, a multiple of 16, without minima; see expandGo."
	last := "offset int"
	if affine {
		name, doc = "expandAffine", "computes n ≥ 1 groups of width values, a multiple of 16, without an offset; see expandGo."
		last = "b *float32"
	}
	b.begin(name+suffix, doc, false, append(params, last, "width int", "n int")...)
	const y, q, a, other, width, n, left = 0, 1, 2, 3, 4, 5, 6
	words, scale, least := b.spread(), b.take(), b.take()
	if !affine {
		b.ins("FMOVS R%d, F%d", other, least)
		b.vec("dup.b", least, least)
	}
	b.loop("group")
	b.ins("FMOVS.P 4(R%d), F%d", a, scale)
	if affine {
		b.ins("FMOVS.P 4(R%d), F%d", other, least)
		b.vec("dup", least, least)
	}
	b.ins("MOVD R%d, R%d", width, left)
	before := b.b.Len()
	b.label("vector")
	v := b.take()
	b.ins("FMOVQ.P 16(R%d), F%d", q, v)
	if !affine {
		b.vec("sub.b", v, v, least)
	}
	var w [4]int
	for i := range w {
		w[i] = b.float(v, words[i])
		b.vec("fmul.e", w[i], w[i], scale, 0)
		if affine {
			b.vec("fsub", w[i], w[i], least)
		}
	}
	moveVectors(b.text, false, ".P", y, 64, w[:2]...)
	moveVectors(b.text, false, "", y, -32, w[2:]...)
	b.ins("SUBS $16, R%d, R%d", left, left)
	b.ins("BNE vector")
	b.tally(before, 16)
	b.ins("SUBS $1, R%d, R%d", n, n)
	b.ins("BNE group")
	b.ins("RET")
}

// widened is what products with floats need beside.
type widened struct {
	words  [4]int
	raised int    // a vector of what integers stand above zero
	minima int    // sum of products with minima
	shared [2]int // vectors of the next scales and minima
	groups int
}

// widen opens a function of products with floats.
func (f *unpacked) widen(l blockFormat) {
	doc, params := "the integers", []string{"x *float32", "a *float32", "block *byte", "n int"}
	switch {
	case l.minima:
		doc, f.least = doc+" times a, less b", len(params)
		params = append(params, "b *float32")
	case l.offset > 0:
		doc = fmt.Sprintf("%s, less %d, times a", doc, l.offset)
	default:
		doc += " times a"
	}
	f.open("floats"+l.name, "is the sum over values of n ≥ 1 blocks: "+doc+", times x.", l.high, params...)
	f.widened = &widened{words: f.spread()}
	if l.minima {
		f.minima = f.take()
		f.vec("zero", f.minima)
	}
	if l.offset > 0 {
		f.raised = f.bytes(l.offset)
	}
}

// useFloats is use for products with floats.
func (f *unpacked) useFloats(i int, q [2]int) {
	w, total, first := -1, -1, -1
	for k, q := range q {
		if f.raised > 0 {
			f.vec("sub.b", q, q, f.raised)
		}
		for j := 0; j < 4; j += 2 {
			x := f.pair(f.to, 128*i+64*k+16*j)
			for half, x := range x {
				v := f.float(q, f.words[j+half])
				if w < 0 {
					w = v
					f.vec("fmul", w, w, x)
				} else {
					f.vec("fmla", w, v, x)
					f.free(v)
				}
				switch { // sums of x
				case f.least == 0:
					f.free(x)
				case first < 0 && total < 0:
					first = x
				case total < 0:
					total = x
					f.vec("fadd", total, first, x)
					f.free(first)
				default:
					f.vec("fadd", total, total, x)
					f.free(x)
				}
			}
		}
		if f.width == 16 || k == 1 {
			f.group(w, total)
			w, total, first = -1, -1, -1
		}
	}
}

// group adds products of values that share a scale, and subtracts the sum of x times the minimum.
func (f *unpacked) group(w, total int) {
	lane := f.groups % 4
	if f.single {
		lane = 0
	}
	for i, pointer := range []int{f.s, f.least} {
		switch {
		case lane > 0 || pointer == 0:
		case f.single:
			f.shared[i] = f.take()
			f.ins("FMOVS (R%d), F%d", pointer, f.shared[i])
		default:
			f.shared[i] = f.take()
			f.ins("FMOVQ %d(R%d), F%d", 4*f.groups, pointer, f.shared[i])
		}
	}
	f.vec("fmla.e", f.sum, w, f.shared[0], lane)
	f.free(w)
	if f.least > 0 {
		f.vec("fmla.e", f.minima, total, f.shared[1], lane)
		f.free(total)
	}
	if f.groups++; lane == 3 || f.single {
		f.free(f.shared[0])
		if f.least > 0 {
			f.free(f.shared[1])
		}
	}
}

// resultOfFloats returns the sums' difference.
func (f *unpacked) resultOfFloats() {
	if f.least > 0 {
		f.vec("fsub", f.sum, f.sum, f.minima)
	}
	f.result(f.sum)
}

// floatsQ8 is for integers that are bytes in the blocks.
func (b *blocks) floatsQ8() {
	f := b.unpack(floats, blockFormat{name: "Q8", width: 32})
	f.each(32, 32, func(i int) { f.use(i, b.pair(f.from, 32*i)) })
}
