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
			a := &attend{blocks: &blocks{Context: c, tables: map[string]operand.Mem{}}, rows: rows, half: half}
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
	a.Function(name)
	a.Pragma("noescape")
	a.Attributes(attr.NOSPLIT)
	a.SignatureExpr(fmt.Sprintf("func(%s, %s *float32, kv *%s, n, keys, stride, lds int)", s, x, typ))
	a.Doc(fmt.Sprintf("%s %s, for %d rows; strides are in bytes.", name, doc, a.rows))
	for _, param := range []string{s, x, "kv", "n", "keys", "stride", "lds"} {
		p = append(p, a.Load(a.Param(param), a.GP64()).(reg.GPVirtual))
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
	v := a.YMM()
	if a.half {
		a.VCVTPH2PS(m, v)
	} else {
		a.VMOVUPS(m, v)
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
	three, next, size, from, left, to := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.LEAQ(operand.Mem{Base: lds, Index: lds, Scale: 2}, three)
	a.IMUL3Q(operand.U8(rowsAhead), stride, next)
	a.MOVQ(n, size)
	a.SHLQ(operand.U8(6), size) // bytes of a row of q
	size3 := a.GP64()
	a.LEAQ(operand.Mem{Base: size, Index: size, Scale: 2}, size3)
	a.Label("key")
	a.MOVQ(kv, from)
	a.MOVQ(q, to)
	a.MOVQ(n, left)
	sums := make([]reg.VecVirtual, a.rows)
	for r := range sums {
		sums[r] = a.YMM()
		a.zero(sums[r])
	}
	a.Label("vectors")
	a.PREFETCHT0(operand.Mem{Base: from, Index: next, Scale: 1})
	for i := range 2 {
		v := a.widened(at(from, i*a.size()))
		for r, sum := range sums {
			m := rowAt(r, to, size, size3)
			m.Disp = 32 * i
			a.VFMADD231PS(m, v, sum)
		}
	}
	a.ADDQ(operand.U8(2*a.size()), from)
	a.ADDQ(operand.U8(64), to)
	a.DECQ(left)
	a.JNE(operand.LabelRef("vectors"))
	sum := sums[0]
	if a.rows > 1 {
		a.VHADDPS(sums[1], sum, sum)
		other := sum
		if a.rows > 2 {
			other = sums[2]
			a.VHADDPS(sums[a.rows-1], other, other)
		}
		a.VHADDPS(other, sum, sum)
		upper := a.XMM()
		a.VEXTRACTF128(operand.U8(1), sum, upper)
		a.VADDPS(upper, sum.AsX(), sum.AsX())
		a.VMOVSS(sum.AsX(), at(s, 0))
		for r := 1; r < a.rows; r++ {
			a.VEXTRACTPS(operand.U8(r), sum.AsX(), rowAt(r, s, lds, three))
		}
	} else {
		a.VMOVSS(a.total(sum), at(s, 0))
	}
	a.ADDQ(operand.U8(4), s)
	a.ADDQ(stride, kv)
	a.DECQ(keys)
	a.JNE(operand.LabelRef("key"))
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
	three, next, size, size3 := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.LEAQ(operand.Mem{Base: lds, Index: lds, Scale: 2}, three)
	a.IMUL3Q(operand.U8(rowsAhead), stride, next)
	a.IMUL3Q(operand.U8(32*each), n, size) // bytes of a row of o
	a.LEAQ(operand.Mem{Base: size, Index: size, Scale: 2}, size3)
	a.Label("vectors")
	from, factor, left := a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(kv, from)
	a.MOVQ(s, factor)
	a.MOVQ(keys, left)
	place := func(r, i int) operand.Mem {
		m := rowAt(r, o, size, size3)
		m.Disp = 32 * i
		return m
	}
	sums := make([][]reg.VecVirtual, a.rows)
	for r := range sums {
		for i := range each {
			sums[r] = append(sums[r], a.YMM())
			a.VMOVUPS(place(r, i), sums[r][i])
		}
	}
	a.Label("key")
	a.PREFETCHT0(operand.Mem{Base: from, Index: next, Scale: 1})
	var v []reg.VecVirtual
	for i := range each {
		v = append(v, a.widened(at(from, i*a.size())))
	}
	for r := range sums {
		f := a.YMM()
		a.VBROADCASTSS(rowAt(r, factor, lds, three), f)
		for i := range each {
			a.VFMADD231PS(f, v[i], sums[r][i])
		}
	}
	a.ADDQ(operand.U8(4), factor)
	a.ADDQ(stride, from)
	a.DECQ(left)
	a.JNE(operand.LabelRef("key"))
	for r := range sums {
		for i := range each {
			a.VMOVUPS(sums[r][i], place(r, i))
		}
	}
	a.ADDQ(operand.U32(each*a.size()), kv)
	a.ADDQ(operand.U32(32*each), o)
	a.DECQ(n)
	a.JNE(operand.LabelRef("vectors"))
	a.end()
}
