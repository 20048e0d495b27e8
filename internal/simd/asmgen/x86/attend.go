package x86

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// attendFiles are the products of attention with few rows of queries, which use keys and values as they lie: nothing is packed, and halves
// are widened in registers, once for all rows.
func attendFiles() (map[string][]byte, error) {
	c := build.NewContext()
	for rows := 1; rows <= 4; rows++ {
		for _, half := range []bool{false, true} {
			a := &attend{blocks: &blocks{c: c, tables: map[string]operand.Mem{}}, rows: rows, half: half}
			a.scores()
			a.values()
		}
	}
	return assembled(c, "kernels", "attend")
}

type attend struct {
	*blocks
	rows int
	half bool // keys and values are halves
}

// begin opens a function and returns its parameters: pointers to s and x, then the others.
func (a *attend) begin(name, s, x, doc string) (p []reg.GPVirtual) {
	typ, of := "float32", "Floats"
	if a.half {
		typ, of = "uint16", "Halves"
	}
	name = fmt.Sprintf("%s%d%sAVX2", name, a.rows, of)
	a.c.Function(name)
	a.c.Pragma("noescape")
	a.c.Attributes(attr.NOSPLIT)
	a.c.SignatureExpr(fmt.Sprintf("func(%s, %s *float32, kv *%s, n, keys, stride, lds int)", s, x, typ))
	a.c.Doc(fmt.Sprintf("%s %s, for %d rows; strides are in bytes.", name, doc, a.rows))
	for _, param := range []string{s, x, "kv", "n", "keys", "stride", "lds"} {
		p = append(p, a.c.Load(a.c.Param(param), a.c.GP64()).(reg.GPVirtual))
	}
	return p
}

// size is the bytes of a vector of keys or values.
func (a *attend) size() int {
	if a.half {
		return 16
	}
	return 32
}

func (a *attend) widened(m operand.Mem) reg.VecVirtual {
	v := a.c.YMM()
	if a.half {
		a.c.VCVTPH2PS(m, v)
	} else {
		a.c.VMOVUPS(m, v)
	}
	return v
}

// rowAt is the address of an element of a row of scores, at a multiple of a stride.
func rowAt(r int, base, stride, three reg.Register) operand.Mem {
	switch r {
	case 0:
		return operand.Mem{Base: base}
	case 3:
		return operand.Mem{Base: base, Index: three, Scale: 1}
	}
	return operand.Mem{Base: base, Index: stride, Scale: uint8(r)}
}

// rowsAhead is how many rows before its use one is asked for: those of a head lie apart, and the processor does not see which comes next.
const rowsAhead = 12

// scores takes two vectors of a key at a time.
func (a *attend) scores() {
	p := a.begin("scores", "s", "q", "sets s to the products of rows of n pairs of vectors with keys")
	s, q, kv, n, keys, stride, lds := p[0], p[1], p[2], p[3], p[4], p[5], p[6]
	three, next, size, from, left, to := a.c.GP64(), a.c.GP64(), a.c.GP64(), a.c.GP64(), a.c.GP64(), a.c.GP64()
	a.c.LEAQ(operand.Mem{Base: lds, Index: lds, Scale: 2}, three)
	a.c.IMUL3Q(operand.U8(rowsAhead), stride, next)
	a.c.MOVQ(n, size)
	a.c.SHLQ(operand.U8(6), size) // bytes of a row of q
	size3 := a.c.GP64()
	a.c.LEAQ(operand.Mem{Base: size, Index: size, Scale: 2}, size3)
	a.c.Label("key")
	a.c.MOVQ(kv, from)
	a.c.MOVQ(q, to)
	a.c.MOVQ(n, left)
	sums := make([]reg.VecVirtual, a.rows)
	for r := range sums {
		sums[r] = a.c.YMM()
		a.zero(sums[r])
	}
	a.c.Label("vectors")
	a.c.PREFETCHT0(operand.Mem{Base: from, Index: next, Scale: 1})
	for i := range 2 {
		v := a.widened(at(from, i*a.size()))
		for r, sum := range sums {
			m := rowAt(r, to, size, size3)
			m.Disp = 32 * i
			a.c.VFMADD231PS(m, v, sum)
		}
	}
	a.c.ADDQ(operand.U8(2*a.size()), from)
	a.c.ADDQ(operand.U8(64), to)
	a.c.DECQ(left)
	a.c.JNE(operand.LabelRef("vectors"))
	sum := sums[0]
	if a.rows > 1 {
		a.c.VHADDPS(sums[1], sum, sum)
		other := sum
		if a.rows > 2 {
			other = sums[2]
			a.c.VHADDPS(sums[a.rows-1], other, other)
		}
		a.c.VHADDPS(other, sum, sum)
		upper := a.c.XMM()
		a.c.VEXTRACTF128(operand.U8(1), sum, upper)
		a.c.VADDPS(upper, sum.AsX(), sum.AsX())
		a.c.VMOVSS(sum.AsX(), at(s, 0))
		for r := 1; r < a.rows; r++ {
			a.c.VEXTRACTPS(operand.U8(r), sum.AsX(), rowAt(r, s, lds, three))
		}
	} else {
		a.c.VMOVSS(a.total(sum), at(s, 0))
	}
	a.c.ADDQ(operand.U8(4), s)
	a.c.ADDQ(stride, kv)
	a.c.DECQ(keys)
	a.c.JNE(operand.LabelRef("key"))
	a.end()
}

// values takes as many vectors of all values at a time as registers have sums of.
func (a *attend) values() {
	each := 2
	if a.rows <= 2 {
		each = 4
	}
	p := a.begin("values", "o", "s", fmt.Sprintf("adds to rows o, of n times %d vectors, the sum of values times s", each))
	o, s, kv, n, keys, stride, lds := p[0], p[1], p[2], p[3], p[4], p[5], p[6]
	three, next, size, size3 := a.c.GP64(), a.c.GP64(), a.c.GP64(), a.c.GP64()
	a.c.LEAQ(operand.Mem{Base: lds, Index: lds, Scale: 2}, three)
	a.c.IMUL3Q(operand.U8(rowsAhead), stride, next)
	a.c.IMUL3Q(operand.U8(32*each), n, size) // bytes of a row of o
	a.c.LEAQ(operand.Mem{Base: size, Index: size, Scale: 2}, size3)
	a.c.Label("vectors")
	from, factor, left := a.c.GP64(), a.c.GP64(), a.c.GP64()
	a.c.MOVQ(kv, from)
	a.c.MOVQ(s, factor)
	a.c.MOVQ(keys, left)
	place := func(r, i int) operand.Mem {
		m := rowAt(r, o, size, size3)
		m.Disp = 32 * i
		return m
	}
	sums := make([][]reg.VecVirtual, a.rows)
	for r := range sums {
		for i := range each {
			sums[r] = append(sums[r], a.c.YMM())
			a.c.VMOVUPS(place(r, i), sums[r][i])
		}
	}
	a.c.Label("key")
	a.c.PREFETCHT0(operand.Mem{Base: from, Index: next, Scale: 1})
	var v []reg.VecVirtual
	for i := range each {
		v = append(v, a.widened(at(from, i*a.size())))
	}
	for r := range sums {
		f := a.c.YMM()
		a.c.VBROADCASTSS(rowAt(r, factor, lds, three), f)
		for i := range each {
			a.c.VFMADD231PS(f, v[i], sums[r][i])
		}
	}
	a.c.ADDQ(operand.U8(4), factor)
	a.c.ADDQ(stride, from)
	a.c.DECQ(left)
	a.c.JNE(operand.LabelRef("key"))
	for r := range sums {
		for i := range each {
			a.c.VMOVUPS(sums[r][i], place(r, i))
		}
	}
	a.c.ADDQ(operand.U32(each*a.size()), kv)
	a.c.ADDQ(operand.U32(32*each), o)
	a.c.DECQ(n)
	a.c.JNE(operand.LabelRef("vectors"))
	a.end()
}
