package arm64

// Each function of a format unpacks 32 values into two registers at a time.

// nibbles is for the formats of 32 values, with a fifth bit or without, and with a half that is added or an offset.
func (b *blocks) nibbles(u unpacking, format string, fifth, pairs bool) {
	l := blockFormat{name: format, width: 32, planes: [3]int{16, 2}, fifths: fifth, affine: pairs}
	scales := 1
	if fifth {
		l.planes, scales = [3]int{16, 4, 2}, 2
	}
	switch {
	case pairs:
		l.planes[scales] = 4
	case fifth:
		l.offset = 16
	default:
		l.offset = 8
	}
	f := b.unpack(u, l)
	f.scaling32(scales)
	low := b.bytes(15)
	var sixteen, bit int
	var spread [2]int
	if fifth {
		sixteen = b.bytes(16)
		bit = b.table("blocksBits", func(i int) int { return 1 << (i % 8) })
		spread[0] = b.table("blocksSpread", func(i int) int { return i / 8 })
		spread[1] = b.table("blocksSpreadUpper", func(i int) int { return 2 + i/8 })
	}
	f.each(32, func(i int) {
		q := [2]int{b.take(), b.take()}
		b.ins("FMOVQ %d(R%d), F%d", 16*i, f.from, q[0])
		b.vec("ushr.b", q[1], q[0], 4)
		b.vec("and", q[0], q[0], low)
		if fifth {
			h, m := b.take(), b.take()
			b.ins("FMOVS %d(R%d), F%d", 4*i, f.high, h)
			for k := range q {
				b.vec("tbl", m, h, spread[k])
				b.vec("cmtst.b", m, m, bit)
				b.vec("bit", q[k], m, sixteen)
			}
			b.free(h, m)
		}
		f.use(i, q)
	})
}

// eights is for Q8_0, whose integers are bytes.
func (b *blocks) eights(u unpacking) {
	f := b.unpack(u, blockFormat{name: "Q8_0", width: 32, planes: [3]int{32, 2}, signed: true})
	f.scaling32(1)
	f.each(32, func(i int) { f.use(i, b.pair(f.from, 32*i)) })
}

// shifted is v shifted to the right, or to the left if by is negative, in a register of its own.
func (b *blocks) shifted(v, by int) int {
	r := b.take()
	if by > 0 {
		b.vec("ushr.b", r, v, by)
	} else {
		b.vec("shl.b", r, v, -by)
	}
	return r
}

// masked is v shifted to the right, under a mask where others than the upper bits are left.
func (b *blocks) masked(v, by, mask, bits int) int {
	if by == 0 {
		r := b.take()
		b.vec("and", r, v, mask)
		return r
	}
	r := b.shifted(v, by)
	if by+bits < 8 {
		b.vec("and", r, r, mask)
	}
	return r
}

// insert sets the bits of a mask in x to those of v, shifted.
func (b *blocks) insert(x, v, by, mask int) {
	if by == 0 {
		b.vec("bit", x, v, mask)
		return
	}
	r := b.shifted(v, by)
	b.vec("bit", x, r, mask)
	b.free(r)
}

// pairs is for two bits, and a third if high is where it is.
func (b *blocks) pairs(u unpacking, format string, size, quants, high int) {
	l := blockFormat{name: format, width: 16, planes: [3]int{size, 4}, affine: true}
	if high >= 0 {
		l.offset, l.affine, l.planes = 4, false, [3]int{size, 12, 2}
	}
	f := b.unpack(u, l)
	if high >= 0 {
		f.scalingQ3K()
	} else {
		f.scalingQ2K()
	}
	three, four := b.bytes(3), b.bytes(4)
	f.each(256, func(int) {
		var top [2]int
		if high >= 0 {
			top = b.pair(f.from, high)
		}
		for h := range 2 {
			v := b.pair(f.from, quants+32*h)
			for j := range 4 {
				var q [2]int
				for k := range q {
					q[k] = b.masked(v[k], 2*j, three, 2)
					if high >= 0 {
						b.insert(q[k], top[k], 4*h+j-2, four)
					}
				}
				f.use(4*h+j, q)
			}
			b.free(v[:]...)
		}
		if high >= 0 {
			b.free(top[:]...)
		}
	})
}

// fours is for four bits, and a fifth if high is where it is.
func (b *blocks) fours(u unpacking, format string, size, high int) {
	f := b.unpack(u, blockFormat{name: format, width: 32, planes: [3]int{size}, affine: true})
	f.scalingK4()
	low, fifth := b.bytes(15), b.bytes(16)
	f.each(256, func(int) {
		var top [2]int
		if high >= 0 {
			top = b.pair(f.from, high)
		}
		for g := range 4 {
			v := b.pair(f.from, size-128+32*g)
			for half := range 2 {
				var q [2]int
				for k := range q {
					q[k] = b.masked(v[k], 4*half, low, 4)
					if high >= 0 {
						b.insert(q[k], top[k], 2*g+half-4, fifth)
					}
				}
				f.use(2*g+half, q)
			}
			b.free(v[:]...)
		}
		if high >= 0 {
			b.free(top[:]...)
		}
	})
}

// sixes is for Q6_K. In each half, values of the high nibbles come after all of the low ones.
func (b *blocks) sixes(u unpacking) {
	f := b.unpack(u, blockFormat{name: "Q6K", width: 16, planes: [3]int{208, 2}, offset: 32})
	f.scalingQ6K()
	low, two := b.bytes(15), b.bytes(0x30)
	f.each(256, func(int) {
		for h := range 2 {
			v := [2][2]int{b.pair(f.from, 64*h), b.pair(f.from, 64*h+32)}
			top := b.pair(f.from, 128+32*h)
			for j := range 4 {
				var q [2]int
				for k := range q {
					q[k] = b.masked(v[j%2][k], j/2*4, low, 4)
					b.insert(q[k], top[k], 2*j-4, two)
				}
				f.use(4*h+j, q)
			}
			b.free(top[:]...)
			b.free(v[0][0], v[0][1], v[1][0], v[1][1])
		}
	})
}
