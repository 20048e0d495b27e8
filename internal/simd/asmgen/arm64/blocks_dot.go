package arm64

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
	switch {
	case f.single:
		f.vec("scvtf", w, w)
		f.vec("fmla.e", f.sum, w, f.scales[0], 0)
	case f.merge(w):
		f.vec("scvtf", w, w)
		f.vec("fmla", f.sum, w, f.scales[0])
	default:
		return
	}
	f.free(w, f.scales[0])
	f.scales = f.scales[1:]
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

// multiplied are products of integers that have been unpacked, with several rows of x.
func (b *blocks) multiplied() {
	b.lanes()
	for _, u := range []unpacking{addedDot, addedNEON} {
		most := map[unpacking]int{addedDot: 4, addedNEON: 2}[u]
		each := func(width int, signed bool) {
			for rows := 1; rows <= most; rows *= 2 {
				b.several(u, width, signed, rows)
			}
		}
		each(16, false)
		each(32, false)
		if u == addedNEON {
			each(32, true)
		}
	}
}
