package arm64

import "fmt"

// Products with several rows of x are of integers in lanes, those of weights and those of x: a chunk of 512 is a matrix of 8 rows, word
// w of each of 16 groups of 32. So a lane sums up a group, and nothing is added up across lanes but at the end.
const (
	laneRow  = 64 // bytes of a row
	laneRows = 8
)

// lanes is what transposes weights.
func (b *blocks) lanes() {
	b.begin("lanes"+suffix, "writes n ≥ 1, at most 4, times 128 integers as lanes of a chunk.", false,
		"to *int8", "from *int8", "n int")
	const to, from, n = 0, 1, 2
	b.scaling(n, 128, func() {
		for half := range 2 {
			for g := range lanes {
				b.ins("FMOVQ %d(R%d), F%d", 32*g+16*half, from, g)
			}
			exchange(b.text)
			for w := range lanes {
				b.ins("FMOVQ F%d, %d(R%d)", w, laneRow*(lanes*half+w), to)
			}
		}
		b.ins("ADD $128, R%d, R%d", from, from)
		b.ins("ADD $16, R%d, R%d", to, to)
	})
}

// Registers of products with rows of x. Pointers to integers, scales and sums of each row follow.
const (
	manySums = iota
	manyQ
	manyA
	manyLeast
	manyFactor
	manyX
	manyScale
	manySum
	manyStride
	manyN
	manyWeights
	manyApart
	manyPointers
)

// Where the integers, scales and minima of a row of weights begin.
const (
	manyRowQ = 23 + iota
	manyRowA
	manyRowLeast
)

// mostRows is how many rows of x there are at most, as the package has it.
const mostRows = 8

// pointerTo is the register of a pointer to a row: to integers (0), their scales (1) or sums (2).
func pointerTo(kind, row int) int {
	first := [...]int{manyX, manyScale, manySum}[kind]
	if row == 0 {
		return first
	}
	r := manyPointers + 3*kind + row - 1
	if r >= 18 { // the platform's
		r++
	}
	return r
}

// several multiplies lanes with some rows of x. Scales and minima are applied on the way.
func (b *blocks) several(u unpacking, width int, signed bool, rows int) {
	name := fmt.Sprintf("products%d", width)
	if signed {
		name = "productsSigned"
	}
	doc := fmt.Sprintf("sets sums to the products of n ≥ 1 chunks of lanes with %d rows of x, stride bytes apart: the integers' "+
		"times a·scale, less factor·least·sum; for rows of weights that are apart bytes apart, whose sums are %d words apart. No groups come after the chunks: rest is 0.", rows, mostRows)
	b.begin(fmt.Sprintf("%sx%d%s", name, rows, u.tier()), doc, false,
		"sums *float32", "q *int8", "a *float32", "least *float32", "factor *float32",
		"x *int8", "scale *float32", "sum *float32", "stride int", "n int", "weights int", "apart int", "rest int")
	f := &severalRows{blocks: b, unpacking: u, width: width, signed: signed, factor: b.take()}
	b.ins("FMOVS (R%d), F%d", manyFactor, f.factor)
	starts := [][2]int{{manyQ, manyRowQ}, {manyA, manyRowA}, {manyLeast, manyRowLeast}}
	for _, s := range starts {
		b.ins("MOVD R%d, R%d", s[0], s[1])
	}
	b.loop("row")
	for _, s := range starts {
		b.ins("MOVD R%d, R%d", s[1], s[0])
	}
	for i, name := range []string{"x", "scale", "sum"} {
		b.ins("MOVD %s+%d(FP), R%d", name, 8*(manyX+i), manyX+i)
	}
	b.ins("MOVD n+%d(FP), R%d", 8*manyN, manyN)
	for r := range rows {
		for kind := range 3 {
			if r > 0 {
				b.ins("ADD R%d, R%d, R%d", manyStride, pointerTo(kind, r-1), pointerTo(kind, r))
			}
		}
		f.sums = append(f.sums, b.take())
		b.vec("zero", f.sums[r])
	}
	before := b.b.Len()
	b.loop("chunk")
	each := 4 // vectors of groups at a time, as many as registers have sums of
	if u == addedNEON {
		each = 2
	}
	for first := 0; first < 4; first += each {
		for half := 0; half < 32/width; half++ {
			f.groups(first, each, half)
		}
	}
	add := func(bytes, r int) { b.ins("ADD $%d, R%d, R%d", bytes, r, r) }
	add(512, manyQ)
	add(4*512/width, manyA)
	add(4*512/width, manyLeast)
	for r := range rows {
		add(512, pointerTo(0, r))
		add(4*512/32, pointerTo(1, r))
		add(4*512/width, pointerTo(2, r))
	}
	b.ins("SUBS $1, R%d, R%d", manyN, manyN)
	b.ins("BNE chunk")
	b.tally(before, 512*rows)
	for i, s := range f.sums {
		b.vec("faddp", s, s, s)
		b.vec("faddp.s", s, s)
		b.ins("FMOVS F%d, %d(R%d)", s, 4*i, manySums)
	}
	add(4*mostRows, manySums)
	for _, s := range starts {
		b.ins("ADD R%d, R%d, R%d", manyApart, s[1], s[1])
	}
	b.ins("SUBS $1, R%d, R%d", manyWeights, manyWeights)
	b.ins("BNE row")
	b.ins("RET")
}

type severalRows struct {
	*blocks
	unpacking
	width  int
	signed bool
	factor int
	sums   []int // for each row
}

// groups is for some vectors of groups: for both halves of 16 values, or one of them if those have scales of their own.
func (f *severalRows) groups(first, count, half int) {
	words := laneRows * f.width / 32
	products := f.products(first, count, half*words, words)
	for j := 0; j < count; j += 2 {
		at := 16 * (first + j)
		a, least := f.ofGroups(manyA, at, half), f.ofGroups(manyLeast, at, half)
		for _, v := range least {
			f.vec("fmul.e", v, v, f.factor, 0)
		}
		for r, acc := range f.sums {
			scale, sum := f.pair(pointerTo(1, r), at), f.pair(pointerTo(2, r), at+64*half)
			for k := range 2 {
				w := products[r][j+k]
				f.vec("scvtf", w, w)
				f.vec("fmul", scale[k], scale[k], a[k])
				f.vec("fmls", acc, least[k], sum[k])
				f.vec("fmla", acc, w, scale[k])
				f.free(w, scale[k], sum[k])
			}
		}
		f.free(a[:]...)
		f.free(least[:]...)
	}
}

// ofGroups loads what two vectors of groups have, of two halves the half.
func (f *severalRows) ofGroups(pointer, at, half int) [2]int {
	if f.width == 32 {
		return f.pair(pointer, at)
	}
	var r [2]int
	for k := range r {
		v := f.pair(pointer, 2*at+32*k)
		f.vec([]string{"uzp1", "uzp2"}[half], v[0], v[0], v[1])
		f.free(v[1])
		r[k] = v[0]
	}
	return r
}

// products are vectors of sums for each row, whose lanes are groups.
func (f *severalRows) products(first, count, from, words int) [][]int {
	var parts [][]int // with less than SDOT two of 16 bits, for each lower and upper half of a vector
	for range f.sums {
		var p []int
		for range count * map[unpacking]int{addedDot: 1, addedNEON: 2}[f.unpacking] {
			p = append(p, f.take())
			if f.unpacking == addedDot {
				f.vec("zero", p[len(p)-1])
			}
		}
		parts = append(parts, p)
	}
	most := 4 // words whose products have 16 bits together
	if f.signed {
		most = 2
	}
	wide := make([][]int, len(f.sums)) // sums of those
	for i := range words {
		for j := 0; j < count; j += 2 {
			at := laneRow*(from+i) + 16*(first+j)
			q := f.pair(manyQ, at)
			for r := range f.sums {
				x := f.pair(pointerTo(0, r), at)
				for k := range 2 {
					if f.unpacking == addedDot {
						f.vec("sdot", parts[r][j+k], q[k], x[k])
						continue
					}
					op := "smlal"
					if i%most == 0 {
						op = "smull"
					}
					f.vec(op, parts[r][2*(j+k)], q[k], x[k])
					f.vec(op+"2", parts[r][2*(j+k)+1], q[k], x[k])
				}
				f.free(x[:]...)
			}
			f.free(q[:]...)
		}
		if f.unpacking == addedNEON && (i+1)%most == 0 {
			for r, p := range parts {
				for k, h := range p {
					if i < most {
						wide[r] = append(wide[r], f.take())
						f.vec("saddlp.h", wide[r][k], h)
					} else {
						f.vec("sadalp.h", wide[r][k], h)
					}
				}
			}
		}
	}
	if f.unpacking == addedDot {
		return parts
	}
	for r, w := range wide {
		f.free(parts[r]...)
		parts[r] = nil
		for k := 0; k < len(w); k += 2 {
			f.vec("addp", w[k], w[k], w[k+1])
			f.free(w[k+1])
			parts[r] = append(parts[r], w[k])
		}
	}
	return parts
}
