package x86

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Several rows of x meet weights that are unpacked once. Integers lie in lanes then: chunks of 16 groups of 32 are
// transposed, so that vectors of words hold four values of each group. All products of a group are added up in one lane
// before its sum is converted and multiplied with its scale.

// lanes transposes blocks of 8 groups: those are the halves of chunks. Integers that come from memory, a row of bytes, are
// asked for early, and what is to be flipped in them is.
func (b *blocks) lanes(stored bool) {
	name, params, flip := "lanesAVX2", "", b.c.YMM()
	if stored {
		name, params = "lanesStoredAVX2", ", flip byte"
	}
	p := b.begin(name, "func(to, q *int8, n int"+params+")", "puts n ≥ 1 times 256 integers into lanes.", "to", "q", "n")
	to, q, n := p[0], p[1], p[2]
	if stored {
		r := b.c.GP32()
		b.c.Load(b.c.Param("flip"), r.As8())
		b.c.VMOVD(r, flip.AsX())
		b.c.VPBROADCASTB(flip.AsX(), flip)
	}
	step, next := b.c.GP64(), b.c.GP64()
	b.c.MOVQ(operand.U32(32), step)
	b.c.MOVQ(operand.U32(512-32), next)
	b.c.Label("block")
	if stored {
		b.prefetch(q, 256)
	}
	for half := range 2 {
		rows := make([]reg.VecVirtual, 4)
		for i := range rows {
			rows[i] = b.c.YMM()
			b.c.VMOVDQU(at(q, 32*i+16*half), rows[i].AsX())
			b.c.VINSERTI128(operand.U8(1), at(q, 32*(i+4)+16*half), rows[i], rows[i])
			if stored {
				b.c.VPXOR(flip, rows[i], rows[i])
			}
		}
		for words, unpack := range []func(ops ...operand.Op){b.c.VPUNPCKLDQ, b.c.VPUNPCKHDQ} {
			first, second := b.c.YMM(), b.c.YMM()
			unpack(rows[1], rows[0], first)
			unpack(rows[3], rows[2], second)
			low, high := b.c.YMM(), b.c.YMM()
			b.c.VPUNPCKLQDQ(second, first, low)
			b.c.VPUNPCKHQDQ(second, first, high)
			b.c.VMOVDQU(low, at(to, 64*(4*half+2*words)))
			b.c.VMOVDQU(high, at(to, 64*(4*half+2*words+1)))
		}
	}
	b.c.ADDQ(operand.U32(256), q)
	b.c.ADDQ(step, to)
	b.c.XCHGQ(step, next)
	b.c.DECQ(n)
	b.c.JNE(operand.LabelRef("block"))
	b.end()
}

// nibbleLanes unpacks chunks of 512 values of four bits right into lanes. A chunk is four vectors of 16 dwords, a dword of which has values
// of so many groups: 1, whose upper nibbles are half of the group later, or 2. Permutations make vectors of dwords that lie alike in
// their groups, of eight groups each and then of all 16, with a dword in the lane of each of its groups. Of 512 values of two groups it
// takes 12 of them on one port and 16 other operations, where to store integers and transpose them takes some 120.
func (b *blocks) nibbleLanes(name string, groups, header, block int) {
	p := b.begin("lanes"+name+"AVX512", "func(to *int8, from *byte, n int)", "puts n ≥ 1 times 512 integers into lanes.", "to", "from", "n")
	to, from, n := p[0], p[1], p[2]
	eight, each := 8/groups, 2*groups // dwords of eight groups that lie alike, of which a vector has so many kinds
	index := func(name string, i func(i int) byte) reg.VecVirtual {
		v := b.c.ZMM()
		b.c.VMOVDQU32(b.words(fmt.Sprintf("blocks%s%d", name, groups), i), v)
		return v
	}
	chosen := func(index, low, high reg.VecVirtual) reg.VecVirtual {
		v := b.c.ZMM()
		b.c.VMOVDQA32(index, v)
		b.c.VPERMI2D(high, low, v)
		return v
	}
	var first, second []reg.VecVirtual
	for j := range 2 {
		first = append(first, index(fmt.Sprintf("Eights%d", j), func(i int) byte {
			q := i % eight
			return byte(q/(eight/2)*16 + q%(eight/2)*4*groups + i/eight + j*each)
		}))
	}
	for d := range each {
		second = append(second, index(fmt.Sprintf("All%d", d), func(i int) byte { return byte(i/8*16 + i%8/groups + d*eight) }))
	}
	mask, shifts := b.c.ZMM(), b.c.ZMM()
	b.c.VPBROADCASTB(b.table("blocksBytes0f", 15), mask)
	if groups == 2 {
		b.c.VMOVDQU32(b.words("blocksNibbles", func(i int) byte { return byte(i % 2 * 4) }), shifts)
	}
	b.c.Label("chunk")
	var v [4]reg.VecVirtual
	for i := range v {
		v[i] = b.c.ZMM()
		b.c.VMOVDQU32(at(from, header+block*(i/2)+64*(i%2)), v[i])
	}
	b.prefetch(from, 2*block)
	for j, f := range first {
		low, high := chosen(f, v[0], v[1]), chosen(f, v[2], v[3])
		for k, s := range second {
			w := chosen(s, low, high)
			upper := b.c.ZMM()
			if groups == 1 {
				b.c.VPSRLD(operand.U8(4), w, upper)
				b.c.VPANDD(mask, upper, upper)
				b.c.VMOVDQU32(upper, at(to, 64*(j*each+k+4)))
			} else {
				b.c.VPSRLVD(shifts, w, w)
			}
			b.c.VPANDD(mask, w, w)
			b.c.VMOVDQU32(w, at(to, 64*(j*each+k)))
		}
	}
	b.c.ADDQ(operand.U32(2*block), from)
	b.c.ADDQ(operand.U32(512), to)
	b.c.DECQ(n)
	b.c.JNE(operand.LabelRef("chunk"))
	b.end()
}

// several is a function that multiplies several rows of x.
type several struct {
	*blocks
	use
	width, rows, lanes int
	signed             bool // integers of any size, on AVX2
	depth              int  // vectors whose products 16 bits have room for, on AVX2

	sums, stride, q, a, least, x, scale, sum, n reg.GPVirtual
	multiples                                   map[int]reg.GPVirtual
	factor, ones                                reg.VecVirtual
	totals                                      []reg.VecVirtual
}

// products writes such a function.
func (b *blocks) products(name string, width, rows int, u use) {
	lanes := 8
	if u == bytesVNNI {
		lanes = 16
	}
	f := &several{blocks: b, use: u, width: width, rows: rows, lanes: lanes, signed: name == "productsSigned", depth: 4}
	f.multiples = map[int]reg.GPVirtual{}
	if width == 16 {
		f.depth = 2
	}
	p := b.begin(fmt.Sprintf("%sx%d%s", name, rows, tiers[u]),
		"func(sums *float32, q *int8, a, least, factor *float32, x *int8, scale, sum *float32, stride, n, weights, apart, rest int)",
		fmt.Sprintf("multiplies n chunks of 512 integers in lanes of rows of weights, and groups after them, with %d rows of x; see products.", rows),
		"sums", "stride", "factor")
	f.sums, f.stride = p[0], p[1]
	f.factor = b.vector(lanes)
	b.c.VBROADCASTSS(at(p[2], 0), f.factor)
	for i := 3; i < rows; i += 2 {
		m := operand.Mem{Base: f.stride, Index: f.stride, Scale: uint8(i - 1)}
		if i == 7 { // five and two more
			m.Base, m.Scale = f.multiples[5], 2
		}
		f.multiples[i] = b.c.GP64()
		b.c.LEAQ(m, f.multiples[i])
	}
	if u == bytesAVX2 {
		f.ones = b.c.YMM()
		b.c.VPCMPEQW(f.ones, f.ones, f.ones)
		b.c.VPSRLW(operand.U8(15), f.ones, f.ones)
	}
	b.c.Label("row")
	names := []string{"q", "a", "least", "x", "scale", "sum", "n"}
	for i, r := range []*reg.GPVirtual{&f.q, &f.a, &f.least, &f.x, &f.scale, &f.sum, &f.n} {
		*r = b.c.GP64()
		b.c.Load(b.c.Param(names[i]), *r)
	}
	for range rows {
		f.totals = append(f.totals, f.cleared())
	}
	if width == 32 {
		b.c.TESTQ(f.n, f.n)
		b.c.JE(operand.LabelRef("rest"))
	}
	b.c.Label("chunk")
	for part := range 16 / lanes {
		f.part(4 * lanes * part)
	}
	for _, r := range []reg.Register{f.q, f.x} {
		b.c.ADDQ(operand.U32(512), r)
	}
	b.c.ADDQ(operand.U8(64), f.scale)
	for _, r := range []reg.Register{f.a, f.least, f.sum} {
		b.c.ADDQ(operand.U32(4*512/width), r)
	}
	b.c.DECQ(f.n)
	b.c.JNE(operand.LabelRef("chunk"))
	if width == 32 {
		f.rest()
	}
	for i, v := range f.totals {
		x := f.total(v)
		b.c.VMOVSS(x, at(f.sums, 4*i))
	}
	b.c.ADDQ(operand.U8(4*mostRows), f.sums)
	apart := b.c.GP64()
	b.c.Load(b.c.Param("apart"), apart)
	for _, name := range []string{"q", "a", "least"} {
		b.c.ADDQ(apart, slot(b.c, name))
	}
	b.c.DECQ(slot(b.c, "weights"))
	b.c.JNE(operand.LabelRef("row"))
	b.end()
}

// rest multiplies the groups after the chunks, which lie as they are, so that a lane has a part of a group.
func (f *several) rest() {
	f.c.Label("rest")
	left := f.c.GP64()
	f.c.Load(f.c.Param("rest"), left)
	f.c.TESTQ(left, left)
	f.c.JE(operand.LabelRef("done"))
	least := f.vector(f.lanes)
	f.c.VMULPS(at(f.least, 0), f.factor, least)
	for i, t := range f.totals {
		f.c.VFNMADD231PS(f.row(f.sum, i, 0), least, t)
	}
	groups := f.lanes / 8
	a, index, step := f.vector(f.lanes), f.vector(f.lanes), f.vector(f.lanes)
	if groups == 2 {
		f.c.VMOVUPS(at(f.a, 0), a)
		f.c.VMOVDQU32(f.words("blocksGroups", func(i int) byte { return byte(i / 8) }), index)
		f.c.VMOVDQU32(f.words("blocksTwo", func(int) byte { return 2 }), step)
	}
	f.c.Label("group")
	q := f.integers(0)
	size := f.vector(f.lanes)
	if groups == 1 {
		f.c.VBROADCASTSS(at(f.a, 0), a)
	}
	if f.signed {
		f.c.VPABSB(q, size)
	}
	for i, t := range f.totals {
		p, s := f.vector(f.lanes), f.vector(f.lanes)
		switch {
		case f.dots():
			f.zero(p)
			f.dotBytes(f.row(f.x, i, 0), q, p)
		case f.signed:
			f.c.VMOVDQU(f.row(f.x, i, 0), p)
			f.c.VPSIGNB(q, p, p)
			f.c.VPMADDUBSW(p, size, p)
		default:
			f.c.VPMADDUBSW(f.row(f.x, i, 0), q, p)
		}
		if !f.dots() {
			f.c.VPMADDWD(f.ones, p, p)
		}
		if groups == 2 {
			f.c.VMULPS(f.row(f.scale, i, 0), a, s)
			f.c.VPERMPS(s, index, s)
		} else {
			f.c.VBROADCASTSS(f.row(f.scale, i, 0), s)
			f.c.VMULPS(a, s, s)
		}
		f.c.VCVTDQ2PS(p, p)
		f.c.VFMADD231PS(s, p, t)
	}
	for _, r := range []reg.Register{f.q, f.x} {
		f.c.ADDQ(operand.U8(32*groups), r)
	}
	if groups == 2 {
		f.c.VPADDD(step, index, index)
	} else {
		f.c.ADDQ(operand.U8(4), f.a)
		f.c.ADDQ(operand.U8(4), f.scale)
	}
	f.c.SUBQ(operand.U8(groups), left)
	f.c.JG(operand.LabelRef("group"))
	f.c.Label("done")
}

// words is a table of 16 words.
func (b *blocks) words(name string, word func(i int) byte) operand.Mem {
	var t []byte
	for i := range 16 {
		t = append(t, word(i), 0, 0, 0)
	}
	return b.table(name, t...)
}

// mostRows is how many rows of x there are at most, as the package has it.
const mostRows = 8

func (f *several) cleared() reg.VecVirtual {
	v := f.vector(f.lanes)
	f.zero(v)
	return v
}

// row is memory of row i, at an offset from a pointer into row 0.
func (f *several) row(p reg.Register, i, offset int) operand.Mem {
	m := operand.Mem{Base: p, Disp: offset}
	switch {
	case i == 0:
	case i&(i-1) == 0:
		m.Index, m.Scale = f.stride, uint8(i)
	case i == 6:
		m.Index, m.Scale = f.multiples[3], 2
	default:
		m.Index, m.Scale = f.multiples[i], 1
	}
	return m
}

// part is for as many groups as there are lanes, from an offset in bytes on.
func (f *several) part(offset int) {
	products, odd := make([]reg.VecVirtual, f.rows), make([]reg.VecVirtual, f.rows)
	for d := range 8 {
		if f.dots() && f.rows < 8 && d%2 == 1 {
			f.bytewise(odd, d, offset)
		} else if f.dots() {
			f.bytewise(products, d, offset)
		} else {
			f.pairwise(products, d, offset)
		}
		if last := d == 7 || f.width == 16 && d == 3; last && odd[0] != nil {
			for i := range odd {
				f.c.VPADDD(odd[i], products[i], products[i])
			}
		}
		switch {
		case f.width == 16 && d == 3:
			f.weigh(products, 0, offset)
		case f.width == 16 && d == 7:
			f.weigh(products, 1, offset)
		case d == 7:
			f.weigh(products, -1, offset)
		}
	}
}

// bytewise adds the products of vector d.
func (f *several) bytewise(products []reg.VecVirtual, d, offset int) {
	q := f.integers(64*d + offset)
	for i := range products {
		switch {
		case products[i] == nil:
			products[i] = f.cleared()
		case f.width == 16 && d == 4 || f.width == 16 && d == 5 && f.rows < 8:
			f.zero(products[i])
		}
		f.dotBytes(f.row(f.x, i, 64*d+offset), q, products[i])
	}
}

// integers loads a vector of the weights'.
func (f *several) integers(offset int) reg.VecVirtual {
	if f.lanes == 8 {
		return f.load(at(f.q, offset))
	}
	q := f.c.ZMM()
	f.c.VMOVDQU32(at(f.q, offset), q)
	return q
}

// pairwise is the same with sums of 16 bits first.
func (f *several) pairwise(products []reg.VecVirtual, d, offset int) {
	first := d == 0 || f.width == 16 && d == 4
	if f.signed {
		q, size := f.load(at(f.q, 64*d+offset)), f.c.YMM()
		f.c.VPABSB(q, size)
		for i := range products {
			x := f.load(f.row(f.x, i, 64*d+offset))
			f.c.VPSIGNB(q, x, x)
			f.c.VPMADDUBSW(x, size, x)
			f.c.VPMADDWD(f.ones, x, x)
			f.plus(products, i, x, first)
		}
		return
	}
	if d%f.depth != 0 {
		return
	}
	// All vectors whose sums fit are taken for one row after the other.
	var q []reg.VecVirtual
	for j := range f.depth {
		q = append(q, f.load(at(f.q, 64*(d+j)+offset)))
	}
	for i := range products {
		sum := f.c.YMM()
		f.c.VPMADDUBSW(f.row(f.x, i, 64*d+offset), q[0], sum)
		for j := 1; j < f.depth; j++ {
			more := f.c.YMM()
			f.c.VPMADDUBSW(f.row(f.x, i, 64*(d+j)+offset), q[j], more)
			f.c.VPADDW(more, sum, sum)
		}
		f.c.VPMADDWD(f.ones, sum, sum)
		f.plus(products, i, sum, first)
	}
}

func (f *several) plus(products []reg.VecVirtual, i int, v reg.VecVirtual, first bool) {
	if first {
		products[i] = v
		return
	}
	f.c.VPADDD(v, products[i], products[i])
}

// weigh adds the products times scales to the totals and subtracts minima: those of all groups, or of first or second halves
// of groups.
func (f *several) weigh(products []reg.VecVirtual, half, offset int) {
	a, least := f.scales(f.a, half, offset), f.scales(f.least, half, offset)
	f.c.VMULPS(f.factor, least, least)
	sums := offset
	if half >= 0 {
		sums += 64 * half
	}
	for i, v := range products {
		s := f.vector(f.lanes)
		f.c.VCVTDQ2PS(v, v)
		f.c.VMULPS(f.row(f.scale, i, offset), a, s)
		f.c.VFMADD231PS(s, v, f.totals[i])
		f.c.VFNMADD231PS(f.row(f.sum, i, sums), least, f.totals[i])
	}
}

// scales are those of a vector of groups, or of one half of each.
func (f *several) scales(p reg.Register, half, offset int) reg.VecVirtual {
	v := f.vector(f.lanes)
	if half < 0 {
		f.c.VMOVUPS(at(p, offset), v)
		return v
	}
	if f.lanes == 16 {
		f.c.VMOVDQU32(f.alternate(half), v)
		low := f.c.ZMM()
		f.c.VMOVUPS(at(p, 0), low)
		f.c.VPERMI2PS(at(p, 64), low, v)
		return v
	}
	f.c.VMOVUPS(at(p, 2*offset), v)
	f.c.VSHUFPS(operand.U8(0b10001000+half*0b01010101), at(p, 2*offset+32), v, v)
	f.c.VPERMPD(operand.U8(0b11011000), v, v)
	return v
}

// alternate is the table for every second of 32 words.
func (b *blocks) alternate(half int) operand.Mem {
	return b.words(fmt.Sprintf("blocksAlternate%d", half), func(i int) byte { return byte(2*i + half) })
}
