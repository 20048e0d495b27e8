package wasm

import "math"

// Products of some rows of weights with one row of x. Rows are read side by side: a processor reads several streams of memory
// ahead of their use, and one stream no further than to the end of a page.

// product writes a function that multiplies.
type product struct {
	*unpacker
	bytes        bool    // relaxed SIMD multiplies bytes; else x and weights have 16 bits
	x            []local // of a block, if rows have it in common
	word         local   // fifth bits of a block, in all lanes
	xScale, xSum local   // scales of x, and sums
	s            local   // where scales of weights times those of x are
}

// productFunction multiplies n blocks of callTile rows of weights with those of x from a block on: typeBlocks. In bytes, the second
// operand of products has seven bits, since engines read an eighth as they like: weights fit but for those of Q8_0, whose products have
// 16 bits always. Scales are computed just before the products that they belong to, so that a processor reads the next weights meanwhile.
func productFunction(l *layout, bytes bool) function {
	p := &product{unpacker: newUnpacker(l), bytes: bytes}
	p.raised = l.signed
	groups := p.let(blocksX, 4*l.values/l.width, times)
	p.xScale, p.xSum = p.let(member(callScale), groups, plus), p.let(member(callSum), groups, plus)
	p.assign(blocksX, blocksX, 16*p.perGroup()*l.values/16, times, member(callX), plus)
	p.s = p.let(p.c)
	if l.values == 32 {
		p.together()
	} else {
		p.inTurns()
	}
	return p.function(typeBlocks)
}

// perGroup is how many vectors of x 16 values have.
func (p *product) perGroup() int {
	if p.bytes {
		return 1
	}
	return 2
}

// together multiplies a block of all rows, which have four blocks or more.
func (p *product) together() {
	rows := []local{p.let(0)} // offsets: those that there are not are the last one
	for j := range tileRows - 1 {
		row := p.let(rows[j], member(callStep), plus)
		p.eval(row, rows[j], j+1, member(callTile), below)
		p.op(opSelect)
		p.set(row)
		rows = append(rows, row)
	}
	sums, most, left := p.vectors(tileRows), p.zero(v128), p.local(i32)
	of := func(j int, plane local) local {
		if j == 0 {
			return plane
		}
		return p.let(plane, rows[j], plus)
	}
	// Scales are computed four at a time; at the end some of those were there already.
	outer := p.open(opLoop)
	p.assign(left, p.lesser(4, blocksN))
	before := p.let(4, left, minus)
	p.scope(func() {
		back := func(pointer local, size int) local { return p.let(pointer, before, size, times, minus) }
		x, sum, third := p.local(v128), p.local(v128), back(blocksThird, p.sizes[2])
		p.get(back(p.xScale, 4))
		p.vmemory(vLoad, 0)
		p.set(x)
		if p.affine || p.offset > 0 {
			p.get(back(p.xSum, 4))
			p.vmemory(vLoad, 0)
			if p.offset > 0 {
				p.splat(math.Float32bits(float32(p.offset)))
				p.simd(f32x4Mul)
			}
			p.vector([4]uint32{0, 1, 2, 3})
			p.get(before)
			p.simd(i32x4Splat, i32x4GeS, vAnd)
			p.set(sum)
		}
		for j := range tileRows {
			p.scope(func() {
				p.scales(&scaler{blocks: p.blocks, third: of(j, third), most: most, take: func(v local, at, _ int) {
					if at < callB {
						p.get(p.c, v, x)
						p.simd(f32x4Mul)
						p.vmemory(vStore, callS+16*j)
					}
					if p.affine && at >= callB || p.offset > 0 {
						p.subtract(v, sum, sums[j])
					}
				}}, 4)
			})
		}
	})
	p.assign(blocksN, blocksN, left, minus)
	p.assign(blocksThird, blocksThird, left, p.sizes[2], times, plus)
	p.assign(p.xScale, p.xScale, left, 4, times, plus)
	p.assign(p.xSum, p.xSum, left, 4, times, plus)
	p.assign(p.s, p.c, before, 4, times, plus)
	inner := p.open(opLoop)
	p.scope(func() {
		p.x = nil
		for i := range 2 * p.perGroup() {
			x := p.local(v128)
			p.get(blocksX)
			p.loadBytes(vLoad, 16*i)
			p.set(x)
			p.x = append(p.x, x)
		}
		for j, sum := range sums {
			p.scope(func() {
				p.first, p.loaded = of(j, blocksFirst), nil
				if p.fifths {
					p.second = of(j, blocksSecond)
				}
				p.fifthBits()
				p.group(0, 16*j, sum)
			})
		}
	})
	p.add(blocksFirst, p.sizes[0])
	if p.fifths {
		p.add(blocksSecond, p.sizes[1])
	}
	p.add(blocksX, 32*p.perGroup())
	p.add(p.s, 4)
	p.add(left, -1)
	p.get(left)
	p.branch(opBrIf, inner)
	p.end()
	p.get(blocksN)
	p.branch(opBrIf, outer)
	p.end()
	p.get(most)
	p.splat(infinite - 1)
	p.simd(i32x4GtS, vAnyTrue)
	p.open(opIf)
	p.eval(p.c, 1)
	p.memory(opI32Store, callInfinite)
	p.end()
	if p.raised {
		for _, sum := range sums {
			p.get(sum)
			p.splat(math.Float32bits(1.0 / 256))
			p.simd(f32x4Mul)
			p.set(sum)
		}
	}
	p.sum4(sums)
}

// inTurns multiplies a block of one row after another; their sums are in memory meanwhile.
func (p *product) inTurns() {
	row, lanes, rest := p.local(i32), p.local(i32), p.local(i32)
	first, second, third := p.local(i32), p.local(i32), p.local(i32)
	sums := p.vectors(2)
	for j := range tileRows {
		p.get(p.c)
		p.splat(0)
		p.vmemory(vStore, callLanes+16*j)
	}
	if p.sizes[2] > 0 {
		p.ahead(row, rest)
	}
	p.counted(blocksN, []int{1}, func(int) {
		p.assign(first, blocksFirst)
		p.assign(second, blocksSecond)
		p.assign(third, blocksThird)
		p.assign(lanes, p.c)
		p.assign(rest, member(callTile))
		loop := p.open(opLoop)
		p.splat(0)
		p.set(sums[1])
		p.scope(func() {
			p.scales(&scaler{blocks: p.blocks, first: first, second: second, third: third, take: func(v local, at, _ int) {
				if at < callB {
					p.get(p.c, v, p.xScale)
					p.vmemory(vLoad, at-callA)
					p.simd(f32x4Mul)
					p.vmemory(vStore, callS+at-callA)
				}
				if p.affine == (at >= callB) {
					if at >= callB {
						at -= callB - callA
					}
					x := p.local(v128)
					p.get(p.xSum)
					p.vmemory(vLoad, at-callA)
					p.set(x)
					p.subtract(v, x, sums[1])
				}
			}}, 1)
		})
		p.get(lanes)
		p.vmemory(vLoad, callLanes)
		if p.offset > 0 {
			p.get(sums[1])
			p.splat(math.Float32bits(float32(p.offset)))
			p.simd(f32x4Mul, f32x4Add)
			p.set(sums[0])
			p.splat(0)
			p.set(sums[1])
		} else {
			p.set(sums[0])
		}
		p.first, p.loaded = first, nil
		for g := 0; g < len(p.groups); g += p.width / 16 {
			p.scope(func() { p.group(g, 64*g/p.width, sums[g*16/p.width%2]) })
		}
		p.get(lanes, sums[0], sums[1])
		p.simd(f32x4Add)
		p.vmemory(vStore, callLanes)
		p.assign(row, member(callStep))
		p.assign(first, first, row, plus)
		p.assign(second, second, row, plus)
		p.assign(third, third, row, plus)
		p.add(lanes, 16)
		p.add(rest, -1)
		p.get(rest)
		p.branch(opBrIf, loop)
		p.end()
		for i, size := range p.sizes {
			if size > 0 {
				p.add(blocksFirst+local(i), size)
			}
		}
		p.add(blocksX, 16*p.perGroup()*len(p.groups))
		p.add(p.xScale, 4*p.layout.values/p.width)
		p.add(p.xSum, 4*p.layout.values/p.width)
	})
	all := p.vectors(tileRows)
	for j, sum := range all {
		p.get(p.c)
		p.vmemory(vLoad, callLanes+16*j)
		p.set(sum)
	}
	p.sum4(all)
}

// ahead reads a byte of each line of planes that have few bytes of a block, whose memory is not read ahead of their use: products of a
// block would wait for them. Variables are those that it uses.
func (p *product) ahead(row, rest local) {
	p.assign(rest, member(callTile))
	p.assign(row, 0)
	loop := p.open(opLoop)
	for i, size := range p.sizes {
		if i == 0 || size == 0 {
			continue
		}
		at := p.let(blocksFirst+local(i), row, plus)
		p.upTo(at, p.let(at, blocksN, size, times, plus), func() {
			p.get(at)
			p.op(opI32Load8, 0, 0)
			p.op(opDrop)
			p.add(at, 64)
		})
	}
	p.assign(row, row, member(callStep), plus)
	p.add(rest, -1)
	p.get(rest)
	p.branch(opBrIf, loop)
	p.end()
}

// subtract takes a product of two vectors from a sum.
func (p *product) subtract(a, b, sum local) {
	if p.bytes {
		p.get(a, b, sum)
		p.simd(f32x4RelaxedNmadd)
	} else {
		p.get(sum, a, b)
		p.simd(f32x4Mul, f32x4Sub)
	}
	p.set(sum)
}

// group adds the products of the values that share a scale, from a group of 16 on, to a sum.
func (p *product) group(g, at int, sum local) {
	if !p.bytes {
		p.get(sum)
	}
	var part local
	for i := range p.width / 16 {
		if p.bytes {
			p.vectorX(g, i)
			p.integers8(g + i)
			p.partial(&part, i)
			continue
		}
		for k, q := range p.integers(g + i) {
			p.get(q)
			p.vectorX(g, 2*i+k)
			p.simd(i32x4Dot)
			if i+k > 0 {
				p.simd(i32x4Add)
			}
		}
	}
	if p.bytes {
		p.get(part)
		p.simd(f32x4Convert)
		p.get(p.s)
		p.vmemory(vLoad32Splat, callS+at)
		p.get(sum)
		p.simd(f32x4RelaxedMadd)
	} else {
		p.weighted(p.s, at)
	}
	p.set(sum)
	if !p.bytes {
		p.settle(sum)
	}
}

// vectorX pushes vector i of x from group g on.
func (p *product) vectorX(g, i int) {
	if p.x != nil {
		p.get(p.x[i])
		return
	}
	p.get(blocksX)
	p.loadBytes(vLoad, 16*(p.perGroup()*g+i))
}

// partial adds products of bytes that are pushed to a sum, of which they are number i.
func (p *product) partial(sum *local, i int) {
	if i == 0 {
		*sum = p.local(v128)
		p.splat(0)
	} else {
		p.get(*sum)
	}
	p.simd(i32x4RelaxedDotAdd)
	p.set(*sum)
}

// fifthBits loads the word of a block.
func (p *product) fifthBits() {
	if !p.bytes || !p.fifths {
		return
	}
	if p.word == 0 {
		p.word = p.zero(v128)
	}
	p.get(p.second)
	p.loadBytes(vLoad32Splat, 0)
	p.vector([4]uint32{0x10001, 0x100010, 0x10001, 0x100010})
	p.simd(i16x8Mul)
	p.set(p.word)
}

// integers8 pushes those of a group of 16 values.
func (p *product) integers8(group int) {
	for i, f := range p.groups[group] {
		p.load(f)
		switch by := f.bit - f.to; {
		case by > 0:
			p.shift(i16x8ShrU, by)
		case by < 0:
			p.shift(i16x8Shl, -by)
		}
		p.splat(uint32(f.mask<<f.to) * 0x01010101)
		p.simd(vAnd)
		if i > 0 {
			p.simd(vOr)
		}
	}
	if p.fifths { // bytes of the word with the bits of the lanes, which are 16 or greater
		var from [4]uint32
		for i := range 16 {
			byte := 2*group + i/8
			if i%8 < 4 {
				byte += 4 // times 16
			}
			from[i/4] |= uint32(byte) << (i % 4 * 8)
		}
		p.get(p.word)
		p.vector(from)
		p.simd(i8x16RelaxedSwizzle)
		p.vector([4]uint32{0x80402010, 0x80402010, 0x80402010, 0x80402010})
		p.simd(vAnd)
		p.splat(0x10101010)
		p.simd(i8x16MinU, vOr)
	}
}
