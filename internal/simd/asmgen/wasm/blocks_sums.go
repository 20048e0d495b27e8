package wasm

// What follows the unpacking of blocks.

// sum pushes the sum of the lanes of vectors.
func (b *blocks) sum(v ...local) {
	b.get(v...)
	for range v[1:] {
		b.simd(f32x4Add)
	}
	b.set(v[0])
	for lane := range lanes {
		b.get(v[0])
		b.extract(lane)
		if lane&1 != 0 {
			b.op(opF32Add)
		}
	}
	b.op(opF32Add)
}

// sum4 stores the sums of the lanes of four vectors as parts.
func (b *blocks) sum4(v []local) {
	b.get(b.c)
	for i := 0; i < 4; i += 2 {
		b.get(v[i], v[i+1])
		b.shuffle(0, 4, 1, 5)
		b.get(v[i], v[i+1])
		b.shuffle(2, 6, 3, 7)
		b.simd(f32x4Add)
		b.set(v[i])
	}
	for i := 0; i < 4; i += 2 {
		b.get(v[0], v[2])
		b.shuffle(i, i+1, i+4, i+5)
	}
	b.simd(f32x4Add)
	b.vmemory(vStore, callParts)
}

// locals are new variables of vectors, which are zeros.
func (b *blocks) vectors(n int) []local {
	l := make([]local, n)
	for i := range l {
		l[i] = b.zero(v128)
	}
	return l
}

// counted repeats steps while n, which goes down, has as many as the first count, then as many as the next.
func (b *blocks) counted(n local, counts []int, steps func(count int)) {
	(&tile{assembler: b.assembler}).loop(n, counts, func(count int) { b.scope(func() { steps(count) }) })
}

// weighFunction multiplies the scales of n groups of weights with those of a row of x, as those of row j of a tile, and
// returns the sum of the least values times the sums of x: (c, row of x, j, from, n) → f32.
func weighFunction() function {
	const row, j, from, n = local(1), local(2), local(3), local(4)
	b := newBlocks(5)
	total := b.zero(v128)
	field := func(at int) local {
		of := b.let(b.c, row, 8, times, plus)
		b.get(of)
		b.memory(opI32Load, at)
		return b.let(from, 4, times, plus)
	}
	scale, sum := field(callScale), field(callSum)
	s, least := b.let(b.c, j, scalesLen, times, plus), b.let(b.c, member(callLeast), plus)
	a := b.let(b.c)
	b.counted(n, []int{4, 1}, func(count int) {
		load := map[int]int{4: vLoad, 1: vLoad32Zero}[count]
		b.get(s, a)
		b.vmemory(load, callA)
		b.get(scale)
		b.vmemory(load, 0)
		b.simd(f32x4Mul)
		if count == 1 {
			b.laneMemory(vStore32Lane, callS, 0)
		} else {
			b.vmemory(vStore, callS)
		}
		b.get(total, least)
		b.vmemory(load, 0)
		b.get(sum)
		b.vmemory(load, 0)
		b.simd(f32x4Mul, f32x4Add)
		b.set(total)
		for _, p := range []local{s, a, scale, sum, least} {
			b.add(p, 4*count)
		}
	})
	b.sum(total)
	return b.function(typeWeigh)
}

// dotsFunction multiplies n groups of unpacked integers with rows of x in 8 bits and adds them up with their scales, to
// parts: (c, an address whose callWide is the pointer to the first row, offset in the rows, n). Integers have 8 bits, or 16.
func dotsFunction(width, rows int, bytes bool) function {
	const first, offset, n = local(1), local(2), local(3)
	size := 2 * width
	if bytes {
		size = width
	}
	b := newBlocks(4)
	q, s, sums, in, part := b.let(b.c), b.let(b.c), b.vectors(rows), b.vectors(size/16), b.zero(v128)
	x := make([]local, rows)
	for i := range x {
		b.get(first)
		b.memory(opI32Load, callWide+8*i)
		x[i] = b.let(offset, plus)
	}
	b.counted(n, []int{1}, func(int) {
		for i, l := range in {
			b.get(q)
			b.vmemory(vLoad, callQ+16*i)
			b.set(l)
		}
		for r, sum := range sums {
			if !bytes {
				b.get(sum)
			}
			for i, l := range in {
				b.get(x[r])
				b.vmemory(vLoad, 16*i)
				b.get(l)
				switch {
				case !bytes:
					b.simd(i32x4Dot)
					if i > 0 {
						b.simd(i32x4Add)
					}
					continue
				case i == 0:
					b.splat(0)
				default:
					b.get(part)
				}
				b.simd(i32x4RelaxedDotAdd)
				b.set(part)
			}
			if bytes {
				b.get(part)
				b.simd(f32x4Convert)
				b.get(s)
				b.vmemory(vLoad32Splat, callS+r*scalesLen)
				b.get(sum)
				b.simd(f32x4RelaxedMadd)
				b.set(sum)
			} else {
				b.weighted(s, r*scalesLen)
				b.set(sum)
				b.settle(sum)
			}
			b.add(x[r], size)
		}
		b.add(q, size)
		b.add(s, 4)
	})
	b.parts(sums, 1)
	return b.function(typeDots)
}

// weighted adds the integers pushed, times a scale, to the vector that is pushed below.
func (b *blocks) weighted(s local, at int) {
	b.simd(f32x4Convert)
	b.get(s)
	b.vmemory(vLoad32Splat, callS+at)
	b.simd(f32x4Mul, f32x4Add)
}

// settle stores a sum where nobody reads it. V8 computes what has no effect as late as it can, but loads in order with
// stores: of code without any it would load everything first, and spill it.
func (b *blocks) settle(sum local) {
	b.get(b.c, sum)
	b.vmemory(vStore, callSettled)
}

// parts stores sums, a number of them for each row.
func (b *blocks) parts(sums []local, each int) {
	for i := 0; i < len(sums); i += each {
		b.get(b.c)
		b.sum(sums[i : i+each]...)
		b.memory(opF32Store, callParts+4*i/each)
	}
}

// floatsFunction multiplies n values with rows of x, to parts: (c, x, bytes from row to row, n).
func floatsFunction(rows int) function {
	const stride, n = local(2), local(3)
	b := newBlocks(4)
	x := []local{1}
	for i := 1; i < rows; i++ {
		x = append(x, b.let(x[i-1], stride, plus))
	}
	each := max(2, 4/rows) // sums of a row, so that additions need not wait for each other
	values, v, sums := b.let(b.c), b.local(v128), b.vectors(rows*each)
	b.counted(n, []int{4 * each}, func(int) {
		for k := range each {
			b.get(values)
			b.vmemory(vLoad, callValues+16*k)
			b.set(v)
			for r := range rows {
				b.get(sums[r*each+k], v, x[r])
				b.vmemory(vLoad, 16*k)
				b.simd(f32x4Mul, f32x4Add)
				b.set(sums[r*each+k])
			}
			b.settle(sums[k])
		}
		for _, p := range append(x, values) {
			b.add(p, 16*each)
		}
	})
	b.parts(sums, each)
	return b.function(typeDots)
}

// expandFunction writes the values of n groups of unpacked integers: a·(q − offset) − b; (c, y, n). Formats without minima
// have zeros as least values here.
func expandFunction(width int, affine bool) function {
	const y, n = local(1), local(2)
	b := newBlocks(3)
	q, s, v := b.let(b.c), b.let(b.c), b.vectors(6)
	even, odd, part, scale, least, offset := v[0], v[1], v[2], v[3], v[4], v[5]
	b.eval(member(callOffset))
	b.simd(i16x8Splat)
	b.set(offset)
	b.counted(n, []int{1}, func(int) {
		b.get(s)
		b.vmemory(vLoad32Splat, callA)
		b.set(scale)
		if affine {
			b.get(s)
			b.vmemory(vLoad32Splat, callB)
			b.set(least)
		}
		for i := range width / 16 {
			for k, l := range []local{even, odd} {
				b.get(q)
				b.vmemory(vLoad, callQ+32*i+16*k)
				if !affine {
					b.get(offset)
					b.simd(i16x8Sub)
				}
				b.set(l)
			}
			for half := range 2 {
				b.get(even, odd)
				b.shuffle16(0+4*half, 8+4*half, 1+4*half, 9+4*half, 2+4*half, 10+4*half, 3+4*half, 11+4*half)
				b.set(part)
				for k, extend := range []int{i32x4ExtendLow, i32x4ExtendHigh} {
					b.get(y, part)
					b.simd(extend, f32x4Convert)
					b.get(scale)
					b.simd(f32x4Mul)
					if affine {
						b.get(least)
						b.simd(f32x4Sub)
					}
					b.vmemory(vStore, 64*i+32*half+16*k)
				}
			}
		}
		b.add(q, 2*width)
		b.add(y, 4*width)
		b.add(s, 4)
	})
	return b.function(typeExpand)
}
