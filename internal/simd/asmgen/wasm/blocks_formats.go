package wasm

import (
	"fmt"
	"slices"
)

// field says where 16 integers have some of their bits: those of a mask in the bytes of a vector, from a bit on, which become
// those from another bit on.
type field struct {
	at, bit, mask, to int
}

// layout is where the integers of a block are: the fields of all 16 values after each other.
type layout struct {
	values int    // of a block
	width  int    // values that share a scale
	sizes  [3]int // of a block in each plane
	groups [][]field
	fifths bool // a word of plane 1 has a fifth bit of each value
	signed bool // bytes
	affine bool // scales come with minima
	offset int  // what integers stand above zero
	scales func(s *scaler, count int)
}

// layouts of the formats, as package quant has them.
func layouts() map[int]*layout {
	four := layout{values: 32, width: 32, sizes: [3]int{16, 0, 2}, offset: 8, groups: [][]field{{{mask: 15}}, {{mask: 15, bit: 4}}}, scales: halves}
	eight := four
	eight.sizes[0], eight.groups, eight.signed, eight.offset = 32, [][]field{{{mask: 255}}, {{at: 16, mask: 255}}}, true, 0
	two := layout{values: 256, width: 16, sizes: [3]int{80, 0, 4}, affine: true, scales: scalesQ2K}
	three := layout{values: 256, width: 16, sizes: [3]int{96, 12, 2}, offset: 4, scales: scalesQ3K}
	nibbles := layout{values: 256, width: 32, sizes: [3]int{144}, affine: true, scales: scalesK4}
	fifths := layout{values: 256, width: 32, sizes: [3]int{176}, affine: true, scales: scalesK4}
	six := layout{values: 256, width: 16, sizes: [3]int{208, 0, 2}, offset: 32, scales: scalesQ6K}
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
		l.affine, l.scales, l.sizes[2], l.offset = true, pairs, 4, 0
		return l
	}
	five := four
	five.fifths, five.sizes[1], five.offset = true, 4, 16
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
	first, second local         // planes of the row
	places        map[int]local // vectors of a block, by their places
	loaded        []int         // places of those that are there
	raised        bool          // integers that are signed are times 256, which takes an instruction less
}

const (
	blocksFirst  = local(0) // planes
	blocksSecond = local(1)
	blocksThird  = local(2)
	blocksN      = local(3)
	blocksCall   = local(4)
	blocksX      = local(5)
)

func newUnpacker(l *layout) *unpacker {
	return &unpacker{&blocks{&assembler{params: 6}, blocksCall}, l, blocksFirst, blocksSecond, map[int]local{}, nil, false}
}

// unpackFunction writes the integers: typeBlocks.
func unpackFunction(l *layout, bytes bool) function {
	p := &product{unpacker: newUnpacker(l), bytes: bytes}
	to, group := p.let(p.c), 16*p.perGroup()
	p.counted(blocksN, []int{1}, func(int) {
		p.loaded = nil
		p.fifthBits()
		for g := range l.groups {
			p.scope(func() {
				if bytes {
					p.get(to)
					p.integers8(g)
					p.vmemory(vStore, callQ+group*g)
					return
				}
				for k, v := range p.integers(g) {
					p.get(to, v)
					p.vmemory(vStore, callQ+group*g+16*k)
				}
			})
		}
		p.add(blocksFirst, l.sizes[0])
		if l.fifths {
			p.add(blocksSecond, 4)
		}
		p.add(to, group*l.values/16)
	})
	return p.function(typeBlocks)
}

// integers are those of a group of 16 values: of even places and of odd ones.
func (u *unpacker) integers(group int) (v []local) {
	for odd := range 2 {
		for i, f := range u.groups[group] {
			u.field(f, odd)
			if i > 0 {
				u.simd(vOr)
			}
		}
		if u.fifths {
			spread := func() { // the bits of a word that belong to the lanes
				u.vector([4]uint32{0x40001 << odd, 0x400010 << odd, 0x4000100 << odd, 0x40001000 << odd})
			}
			u.get(u.second)
			u.loadBytes(vLoad16Splat, 2*group)
			spread()
			u.simd(vAnd)
			spread()
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

// load pushes the vector that a field is in.
func (u *unpacker) load(f field) {
	l, ok := u.places[f.at]
	if !ok {
		l = u.zero(v128)
		u.places[f.at] = l
	}
	if !slices.Contains(u.loaded, f.at) {
		u.loaded = append(u.loaded, f.at)
		u.get(u.first)
		u.loadBytes(vLoad, f.at)
		u.set(l)
	}
	u.get(l)
}

// field pushes the bits of a field.
func (u *unpacker) field(f field, odd int) {
	u.load(f)
	if u.signed {
		switch {
		case odd == 0:
			u.shift(i16x8Shl, 8)
		case u.raised:
			u.splat16(0xff00)
			u.simd(vAnd)
		}
		if !u.raised {
			u.shift(i16x8ShrS, 8)
		}
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

// blocks appends the functions of a kind to the table. Formats share them.
func (m *module) blocks(kind int) {
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
	for format := range formats {
		l, ok := all[format]
		switch {
		case !ok, kind >= kindBytes && l.signed:
			m.table = append(m.table, 0) // never called
		case kind == kindScales:
			entry(scalesFunction(l))
		case kind == kindUnpack, kind == kindBytesUnpack:
			entry(unpackFunction(l, kind == kindBytesUnpack))
		case kind == kindProduct, kind == kindBytes:
			entry(productFunction(l, kind == kindBytes))
		case kind == kindExpand:
			entry(expandFunction(l.width, l.affine))
		case kind >= kindBytesDots:
			entry(dotsFunction(l.width, kind-kindBytesDots+1, true))
		default:
			entry(dotsFunction(l.width, kind-kindDots+1, false))
		}
	}
}
