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

// useFloats is use for products with floats.
func (f *unpacked) useFloats(i int, q [2]int) {
	w := -1
	for k, q := range q {
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
				f.free(x)
			}
		}
		if f.width == 16 || k == 1 {
			f.group(w)
			w = -1
		}
	}
}

// group adds products of values that share a scale.
func (f *unpacked) group(w int) {
	lane := f.groups % 4
	if f.single {
		lane = 0
	}
	f.vec("fmla.e", f.sum, w, f.scales[0], lane)
	f.free(w)
	if f.groups++; lane == 3 || f.single {
		f.free(f.scales[0])
		f.scales = f.scales[1:]
	}
}

// groupSums adds up groups of values.
func (b *blocks) groupSums(width int) {
	b.begin(fmt.Sprintf("groupSums%d%s", width, suffix), "adds up n ≥ 1 groups of values.", false, "sum *float32", "x *float32", "n int")
	const sum, x, n = 0, 1, 2
	b.scaling(n, width, func() {
		total := -1
		for i := 0; i < width; i += 8 {
			v := b.pair(x, 4*i)
			b.vec("fadd", v[0], v[0], v[1])
			b.free(v[1])
			if total < 0 {
				total = v[0]
				continue
			}
			b.vec("fadd", total, total, v[0])
			b.free(v[0])
		}
		b.forward(4*width, x)
		b.vec("faddp", total, total, total)
		b.vec("faddp.s", total, total)
		b.ins("FMOVS.P F%d, 4(R%d)", total, sum)
		b.free(total)
	})
}
