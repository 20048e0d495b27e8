package arm64

import "fmt"

// Registers of products with several rows of x, whose pointers follow.
const (
	manySums = iota
	manyQ
	manyA
	manyLeast
	manyX
	manyScale
	manySum
	manyN
	manyRows
	manyPointers
)

// pointerTo is the register of a pointer to a row: to integers (0), their scales (1) or sums (2).
func pointerTo(kind, row int) int {
	r := manyPointers + 4*kind + row
	if r >= 18 { // the platform's
		r++
	}
	return r
}

// products are those of integers that have been unpacked with 4, 2 or 1 rows of x. Scales and minima are applied on the way.
func (b *blocks) rows(u unpacking, width int, signed bool) {
	f := &unpacked{blocks: b, unpacking: u, width: width, partial: [2]int{-1, -1}, signed: signed}
	name := fmt.Sprintf("products%d", width)
	if signed {
		name += "Signed"
	}
	f.begin(name+u.tier(), fmt.Sprintf("sets sums to the products of n ≥ 1 times %d integers q with rows (4, 2 or 1) of x: "+
		"the integers' times a·scale, less least·sum.", f.shortest()), false, "sums *float32", "q *int8", "a *float32", "least *float32",
		"x **int8", "scale **float32", "sum **float32", "n int", "rows int")
	vacant := f.vacant
	label := func(rows int) string { return fmt.Sprintf("rows%d", rows) }
	for _, rows := range []int{4, 2} {
		f.ins("CMP $%d, R%d", rows, manyRows)
		f.ins("BEQ %s", label(rows))
	}
	for _, rows := range []int{1, 2, 4} {
		f.vacant = append([]int{}, vacant...)
		f.label(label(rows))
		f.rowsOf(rows, label(rows))
	}
}

// shortest is how many integers are multiplied at a time at least: those of 16 that share a scale come in blocks of 256.
func (f *unpacked) shortest() int { return map[int]int{16: 128, 32: 32}[f.width] }

// rowsOf is for so many rows.
func (f *unpacked) rowsOf(rows int, label string) {
	var sums []int
	for r := range rows {
		for kind, pointers := range []int{manyX, manyScale, manySum} {
			f.ins("MOVD %d(R%d), R%d", 8*r, pointers, pointerTo(kind, r))
		}
		sums = append(sums, f.take())
		f.vec("zero", sums[r])
	}
	many := 128 / f.shortest()
	if many > 1 {
		f.ins("SUBS $%d, R%d, R%d", many, manyN, manyN)
		f.ins("BLT %sRest", label)
	}
	before := f.b.Len()
	f.loop(label + "Many")
	f.rowsOfMany(sums)
	f.ins("SUBS $%d, R%d, R%d", many, manyN, manyN)
	if many > 1 {
		f.ins("BGE %sMany", label)
	} else {
		f.ins("BNE %sMany", label)
	}
	f.tally(before, 128*rows)
	if many > 1 {
		f.label(label + "Rest")
		f.ins("ADDS $%d, R%d, R%d", many, manyN, manyN)
		f.ins("BEQ %sDone", label)
		f.label(label + "One")
		f.rowsOfOne(sums)
		f.ins("SUBS $1, R%d, R%d", manyN, manyN)
		f.ins("BNE %sOne", label)
		f.label(label + "Done")
	}
	for _, s := range sums {
		f.vec("faddp", s, s, s)
		f.vec("faddp.s", s, s)
		f.ins("FMOVS.P F%d, 4(R%d)", s, manySums)
	}
	f.ins("RET")
}

// next loads vectors of so many bytes at most at a pointer, which moves on behind them.
func (f *unpacked) load(pointer, count int) (v []int) {
	for range count {
		v = append(v, f.take())
	}
	for i := 0; i < count; i += 2 {
		suffix, offset := "", 16*(i-count)
		if i == 0 {
			suffix, offset = ".P", 16*count
		}
		moveVectors(f.text, true, suffix, pointer, offset, v[i:min(i+2, count)]...)
	}
	return v
}

// rowsOfMany is for 128 values.
func (f *unpacked) rowsOfMany(sums []int) {
	scales, share := 128/f.width/4, f.width/16 // vectors of scales, and of integers that share one
	q, a, least := f.load(manyQ, 8), f.load(manyA, scales), f.load(manyLeast, scales)
	for r, acc := range sums {
		next := 0
		x := f.load(pointerTo(0, r), 8)
		for i := 0; i < len(q); i += share {
			w := f.products(q[i:i+share], x[i:i+share])
			f.free(x[i : i+share]...)
			if f.merge(w) {
				f.weighted(acc, w, a[next], least[next], f.load(pointerTo(1, r), 1)[0], f.load(pointerTo(2, r), 1)[0])
				next++
			}
		}
	}
	f.free(q...)
	f.free(a...)
	f.free(least...)
}

// weighted adds w·a·scale − least·sum, and frees what is not shared by rows.
func (f *unpacked) weighted(acc, w, a, least, scale, sum int) {
	f.vec("scvtf", w, w)
	f.vec("fmul", scale, scale, a)
	f.vec("fmls", acc, least, sum)
	f.vec("fmla", acc, w, scale)
	f.free(w, scale, sum)
}

// rowsOfOne is for 32 values, which share a scale.
func (f *unpacked) rowsOfOne(sums []int) {
	single := func(pointer int) int {
		v := f.take()
		f.ins("FMOVS.P 4(R%d), F%d", pointer, v) // other lanes are zero
		return v
	}
	q, a, least := f.load(manyQ, 2), single(manyA), single(manyLeast)
	for r, acc := range sums {
		x := f.load(pointerTo(0, r), 2)
		w := f.products(q, x)
		f.free(x...)
		f.vec("addp", w, w, w)
		f.vec("addp", w, w, w) // each lane has the sum; one counts
		f.weighted(acc, w, a, least, single(pointerTo(1, r)), single(pointerTo(2, r)))
	}
	f.free(q...)
	f.free(a, least)
}
