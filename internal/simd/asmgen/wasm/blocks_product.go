package wasm

import "math"

// Products of some rows of weights with one row of x. Rows are read side by side: a processor reads several streams of memory
// ahead of their use, and one stream no further than to the end of a page.

// product writes a function that multiplies.
type product struct {
	*unpacker
	bytes bool    // relaxed SIMD multiplies bytes; else x and weights have 16 bits
	x     []local // of a block, if rows have it in common
	word  local   // fifth bits of a block, in all lanes
}

// productFunction multiplies n blocks of callTile rows of weights with x: typeBlocks. In bytes, the second operand of products has
// seven bits, since engines read an eighth as they like: weights fit but for those of Q8_0, whose products have 16 bits always.
func productFunction(l *layout, bytes bool) function {
	p := &product{unpacker: newUnpacker(l), bytes: bytes}
	p.raised = l.signed
	if l.values == 32 {
		p.together()
	} else {
		p.inTurns()
	}
	p.f32(0)
	return p.function(typeBlocks)
}

// perGroup is how many vectors of x 16 values have.
func (p *product) perGroup() int {
	if p.bytes {
		return 1
	}
	return 2
}

// together multiplies a block of all rows. Those that there are not are the last one.
func (p *product) together() {
	row, s := p.let(0), p.let(p.c)
	var planes [tileRows][2]local
	for j := range planes {
		for k, plane := range []local{blocksFirst, blocksSecond} {
			planes[j][k] = p.let(plane, row, plus)
		}
		p.eval(row, member(callRow), plus, row, j+1, member(callTile), below)
		p.op(opSelect)
		p.set(row)
	}
	sums := p.vectors(tileRows)
	p.counted(blocksN, []int{1}, func(int) {
		p.x = nil
		for i := range 2 * p.perGroup() {
			x := p.local(v128)
			p.get(blocksX)
			p.loadBytes(vLoad, 16*i)
			p.set(x)
			p.x = append(p.x, x)
		}
		for j, sum := range sums {
			p.first, p.second, p.loaded = planes[j][0], planes[j][1], nil
			if p.bytes && p.fifths {
				if p.word == 0 {
					p.word = p.zero(v128)
				}
				p.get(p.second)
				p.loadBytes(vLoad32Splat, 0)
				p.set(p.word)
			}
			p.scope(func() { p.group(0, s, j*scalesLen, sum) })
			p.add(p.first, p.size)
			if p.fifths {
				p.add(p.second, 4)
			}
		}
		p.add(blocksX, 32*p.perGroup())
		p.add(s, 4)
	})
	if p.raised {
		for _, sum := range sums {
			p.get(sum)
			p.splat(math.Float32bits(1.0 / 256))
			p.simd(f32x4Mul)
			p.set(sum)
		}
	}
	p.parts(sums, 1)
}

// inTurns multiplies a block of one row after another; their sums are in memory meanwhile.
func (p *product) inTurns() {
	first, s, of, lanes, rest := p.local(i32), p.let(p.c), p.local(i32), p.local(i32), p.local(i32)
	sums := p.vectors(2)
	for j := range tileRows {
		p.get(p.c)
		p.splat(0)
		p.vmemory(vStore, callLanes+16*j)
	}
	p.counted(blocksN, []int{1}, func(int) {
		p.assign(first, blocksFirst)
		p.assign(of, s)
		p.assign(lanes, p.c)
		p.assign(rest, member(callTile))
		loop := p.open(opLoop)
		p.get(lanes)
		p.vmemory(vLoad, callLanes)
		p.set(sums[0])
		p.splat(0)
		p.set(sums[1])
		p.first, p.loaded = first, nil
		for g := 0; g < len(p.groups); g += p.width / 16 {
			p.scope(func() { p.group(g, of, 64*g/p.width, sums[g*16/p.width%2]) })
		}
		p.get(lanes, sums[0], sums[1])
		p.simd(f32x4Add)
		p.vmemory(vStore, callLanes)
		p.assign(first, first, member(callRow), plus)
		p.add(of, scalesLen)
		p.add(lanes, 16)
		p.add(rest, -1)
		p.get(rest)
		p.branch(opBrIf, loop)
		p.end()
		p.add(blocksFirst, p.size)
		p.add(blocksX, 16*p.perGroup()*len(p.groups))
		p.add(s, 4*p.layout.values/p.width)
	})
	for j := range tileRows {
		p.get(p.c, p.c)
		p.vmemory(vLoad, callLanes+16*j)
		p.set(sums[0])
		p.sum(sums[0])
		p.memory(opF32Store, callParts+4*j)
	}
}

// group adds the products of the values that share a scale, from a group of 16 on, to a sum.
func (p *product) group(g int, s local, at int, sum local) {
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
		p.get(s)
		p.vmemory(vLoad32Splat, callS+at)
		p.get(sum)
		p.simd(f32x4RelaxedMadd)
	} else {
		p.weighted(s, at)
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
	if p.fifths {
		bits := func() { p.vector([4]uint32{0x08040201, 0x80402010, 0x08040201, 0x80402010}) }
		first, second := uint32(0x02020202*group), uint32(0x02020202*group+0x01010101)
		p.get(p.word)
		p.vector([4]uint32{first, first, second, second})
		p.simd(i8x16RelaxedSwizzle)
		bits()
		p.simd(vAnd)
		bits()
		p.simd(i8x16Eq)
		p.splat(0x10101010)
		p.simd(vAnd, vOr)
	}
}
