package wasm

import "fmt"

// field says where 16 integers have some of their bits: those of a mask in the bytes of a vector, from a bit on, which become
// those from another bit on.
type field struct {
	at, bit, mask, to int
}

// layout is where the integers of a block are: the fields of all 16 values after each other.
type layout struct {
	values int // of a block
	width  int // values that share a scale
	size   int // of the first plane
	groups [][]field
	fifths bool // a word of plane 1 has a fifth bit of each value
	signed bool // bytes
	many   int  // blocks at a time
	affine bool // scales come with minima
	scales func() function
}

// layouts of the formats, as package quant has them.
func layouts() map[int]*layout {
	four := layout{values: 32, width: 32, size: 16, groups: [][]field{{{mask: 15}}, {{mask: 15, bit: 4}}}, many: 4, scales: halves}
	eight := four
	eight.size, eight.groups, eight.signed = 32, [][]field{{{mask: 255}}, {{at: 16, mask: 255}}}, true
	two := layout{values: 256, width: 16, size: 80, many: 1, affine: true, scales: scalesQ2K}
	three := layout{values: 256, width: 16, size: 96, many: 1, scales: scalesQ3K}
	nibbles := layout{values: 256, width: 32, size: 144, many: 1, affine: true, scales: func() function { return scalesK4(144) }}
	fifths := layout{values: 256, width: 32, size: 176, many: 1, affine: true, scales: func() function { return scalesK4(176) }}
	six := layout{values: 256, width: 16, size: 208, many: 1, scales: scalesQ6K}
	for i := range 16 {
		half, odd := i/8, i%2
		pair := field{at: i/8*32 + odd*16, bit: i % 8 / 2 * 2, mask: 3}
		two.groups = append(two.groups, []field{pair.after(16)})
		three.groups = append(three.groups, []field{pair.after(32), {at: odd * 16, bit: i / 2, mask: 1, to: 2}})
		nibble := field{at: i/4*32 + odd*16, bit: i / 2 % 2 * 4, mask: 15}
		nibbles.groups = append(nibbles.groups, []field{nibble.after(16)})
		fifths.groups = append(fifths.groups, []field{nibble.after(48), {at: 16 + odd*16, bit: i / 2, mask: 1, to: 4}})
		six.groups = append(six.groups, []field{
			{at: 64*half + i%4*16, bit: i % 8 / 4 * 4, mask: 15}, {at: 128 + 32*half + odd*16, bit: i % 8 / 2 * 2, mask: 3, to: 4}})
	}
	withMinima := func(l layout) layout {
		l.affine, l.scales = true, pairs
		return l
	}
	five := four
	five.fifths, five.many = true, 2
	l := map[int]*layout{q8_0: &eight, q2K: &two, q3K: &three, q4K: &nibbles, q5K: &fifths, q6K: &six}
	for format, symmetric := range map[int]layout{q4_0: four, q5_0: five} {
		affine := withMinima(symmetric)
		l[format], l[format+1] = &symmetric, &affine
	}
	return l
}

// after is the same field, a number of bytes further on.
func (f field) after(bytes int) field {
	f.at += bytes
	return f
}

// unpacker writes the function of a layout that unpacks n blocks, or multiplies them with x.
type unpacker struct {
	*blocks
	*layout
	loaded map[int]local // vectors of a block, by their places
	spread []local       // which bits of a word belong to the lanes: those of even places and of odd ones
}

const (
	blocksFirst  = local(0) // planes
	blocksSecond = local(1)
	blocksThird  = local(2)
	blocksN      = local(3)
	blocksCall   = local(4)
	blocksX      = local(5)
)

// unpackFunction writes the integers, or returns their products with x and the scales in callS: typeBlocks.
func unpackFunction(l *layout, product bool) function {
	u := &unpacker{blocks: &blocks{&assembler{params: 6}, blocksCall}, layout: l}
	to, s := u.let(u.c), u.let(u.c)
	sums := u.vectors(2)
	if l.fifths {
		u.spread = u.vectors(2)
		for odd, v := range u.spread {
			u.vector([4]uint32{0x40001 << odd, 0x400010 << odd, 0x4000100 << odd, 0x40001000 << odd})
			u.set(v)
		}
	}
	counts := []int{l.many, 1}
	if l.many == 1 {
		counts = counts[1:]
	}
	u.counted(blocksN, counts, func(count int) {
		for block := range count {
			u.loaded = map[int]local{}
			first := block * l.values / 16
			var in []local
			for g, fields := range l.groups {
				in = append(in, u.integers(block, g, fields)...)
				if !product {
					for k, v := range in {
						u.get(to, v)
						u.vmemory(vStore, callQ+32*(first+g)+16*k)
					}
					in = nil
				} else if (g+1)*16%l.width == 0 {
					sum := sums[g*16/l.width%2]
					u.get(sum)
					u.group(in, blocksX, 32*(first+g+1)-2*l.width)
					u.weighted(s, 4*((first+g)*16/l.width))
					u.set(sum)
					in = nil
					u.settle(sum)
				}
			}
		}
		u.add(blocksFirst, l.size*count)
		if l.fifths {
			u.add(blocksSecond, 4*count)
		}
		if product {
			u.add(blocksX, 2*l.values*count)
			u.add(s, 4*l.values/l.width*count)
		} else {
			u.add(to, 2*l.values*count)
		}
	})
	if product {
		u.sum(sums...)
	} else {
		u.f32(0)
	}
	return u.function(typeBlocks)
}

// integers are those of a group of 16 values: of even places and of odd ones.
func (u *unpacker) integers(block, group int, fields []field) (v []local) {
	for odd := range 2 {
		for i, f := range fields {
			u.field(block, f, odd)
			if i > 0 {
				u.simd(vOr)
			}
		}
		if u.fifths {
			u.get(blocksSecond)
			u.loadBytes(vLoad16Splat, 4*block+2*group)
			u.get(u.spread[odd])
			u.simd(vAnd)
			u.get(u.spread[odd])
			u.simd(i16x8Eq)
			u.splat16(16)
			u.simd(vAnd, vOr)
		}
		l := u.local(v128)
		u.set(l)
		v = append(v, l)
	}
	return v
}

// field pushes the bits of a field.
func (u *unpacker) field(block int, f field, odd int) {
	at := block*u.size + f.at
	l, ok := u.loaded[at]
	if !ok {
		l = u.local(v128)
		u.loaded[at] = l
		u.get(blocksFirst)
		u.loadBytes(vLoad, at)
		u.set(l)
	}
	u.get(l)
	if u.signed {
		if odd == 0 {
			u.shift(i16x8Shl, 8)
		}
		u.shift(i16x8ShrS, 8)
		return
	}
	switch by := f.bit + 8*odd - f.to; {
	case by > 0:
		u.shift(i16x8ShrU, by)
		if f.to == 0 && f.mask == 0xffff>>by {
			return
		}
	case by < 0:
		u.shift(i16x8Shl, -by)
	}
	u.splat16(f.mask << f.to)
	u.simd(vAnd)
}

func (b *blocks) shift(op, by int) {
	b.constant(by)
	b.simd(op)
}

// splat16 pushes lanes of 16 bits.
func (b *blocks) splat16(v int) {
	l := uint32(v)<<16 | uint32(v)
	b.vector([4]uint32{l, l, l, l})
}

// blocks appends the functions of formats to the table. Formats share them.
func (m *module) blocks() {
	all := layouts()
	functions := map[string]int{} // by their code
	entry := func(f function) {
		code := fmt.Sprint(f)
		if _, ok := functions[code]; !ok {
			functions[code] = len(m.functions)
			m.functions = append(m.functions, f)
		}
		m.table = append(m.table, functions[code])
	}
	for kind := range kinds {
		for format := range formats {
			l, ok := all[format]
			switch {
			case !ok:
				m.table = append(m.table, funcLoad) // of another type, so that a call would trap
			case kind == kindScales:
				entry(l.scales())
			case kind == kindUnpack, kind == kindProduct:
				entry(unpackFunction(l, kind == kindProduct))
			case kind == kindExpand:
				entry(expandFunction(l.width, l.affine))
			default:
				entry(dotsFunction(l.width, kind-kindDots+1))
			}
		}
	}
	for rows := 1; rows <= tileRows; rows++ {
		entry(floatsFunction(rows))
	}
}
