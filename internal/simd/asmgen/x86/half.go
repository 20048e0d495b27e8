package x86

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// halfTier is a tier with kernels between float32 and bytes or the floats of 16 bits. AVX-512 has none that needs another feature: its
// own conversion to bfloat16 flushes subnormal numbers.
type halfTier struct {
	name  string
	lanes int
}

// halfFiles are the kernels that convert.
func halfFiles() (map[string][]byte, error) {
	c := build.NewContext()
	for _, t := range []halfTier{{"AVX2", 8}, {"AVX512", 16}} {
		h := &half{halfTier: t, c: c}
		h.function("widenF16", "float32", "uint16", func() func(from, to operand.Mem) {
			return func(from, to operand.Mem) {
				v := h.vector()
				h.c.VCVTPH2PS(from, v)
				h.put(v, to)
			}
		})
		h.function("widenBF16", "float32", "uint16", func() func(from, to operand.Mem) {
			return func(from, to operand.Mem) {
				v := h.vector()
				h.c.VPMOVZXWD(from, v)
				h.c.VPSLLD(operand.U8(16), v, v)
				h.put(v, to)
			}
		})
		h.function("narrowF16", "uint16", "float32", func() func(from, to operand.Mem) {
			return func(from, to operand.Mem) {
				v := h.vector()
				h.c.VMOVUPS(from, v)
				r := reg.VecVirtual(h.c.XMM())
				if h.lanes == 16 {
					r = h.c.YMM()
				}
				h.c.VCVTPS2PH(operand.U8(0), v, r) // to the nearest, halves to even
				h.put(r, to)
			}
		})
		h.pairs("narrowBF16", "uint16", "float32", h.narrowBF16)
		h.function("widenU8", "float32", "uint8", func() func(from, to operand.Mem) {
			return func(from, to operand.Mem) {
				v := h.vector()
				h.c.VPMOVZXBD(from, v)
				h.c.VCVTDQ2PS(v, v)
				h.put(v, to)
			}
		})
		h.function("narrowU8", "uint8", "float32", h.narrowU8)
	}
	widenRows(c)
	return assembled(c, "kernels", "half")
}

// half emits the functions of a tier.
type half struct {
	halfTier
	c         *build.Context
	streaming bool // to memory, rather than to caches
}

func (h *half) vector() reg.VecVirtual {
	if h.lanes == 16 {
		return h.c.ZMM()
	}
	return h.c.YMM()
}

// put stores vectors, around caches where they do not hold what is converted: memory is not read before it is overwritten then.
func (h *half) put(v reg.VecVirtual, to operand.Mem) {
	if h.streaming {
		h.c.VMOVNTPS(v, to)
	} else {
		h.c.VMOVUPS(v, to)
	}
}

// function emits a loop over n vectors; prepare returns what converts one.
func (h *half) function(name, to, from string, prepare func() func(from, to operand.Mem)) {
	h.pairs(name, to, from, func() (one, two func(from, to operand.Mem)) { return prepare(), nil })
}

// pairs is function where two vectors are better converted together. Four are at a time while there are as many.
func (h *half) pairs(name, to, from string, prepare func() (one, two func(from, to operand.Mem))) {
	h.c.Function(name + h.name)
	h.c.Pragma("noescape")
	h.c.SignatureExpr("func(y *" + to + ", x *" + from + ", n int)")
	h.c.Doc(name + h.name + " converts n vectors.")
	y, x, n := h.c.Load(h.c.Param("y"), h.c.GP64()), h.c.Load(h.c.Param("x"), h.c.GP64()), h.c.Load(h.c.Param("n"), h.c.GP64())
	one, two := prepare()
	bytes := func(t string) int {
		return map[string]int{"uint8": 1, "uint16": 2, "float32": 4}[t] * h.lanes
	}
	step := func(vectors int) {
		for line := 0; h.streaming && line < vectors*bytes(from); line += 64 {
			h.c.PREFETCHT1(at(x, 2048+line))
		}
		for i := 0; i < vectors; i++ {
			convert, m := one, operand.Mem{Base: x, Disp: i * bytes(from)}
			result := operand.Mem{Base: y, Disp: i * bytes(to)}
			if two != nil && vectors > 1 {
				convert = two
				i++
			}
			convert(m, result)
		}
		h.c.ADDQ(operand.U32(vectors*bytes(from)), x)
		h.c.ADDQ(operand.U32(vectors*bytes(to)), y)
	}
	h.c.SUBQ(operand.U8(4), n)
	h.c.JL(operand.LabelRef("rest"))
	if to != "uint8" { // which few make many of
		h.c.CMPQ(n, operand.U32(streamMinimum/h.lanes))
		h.c.JL(operand.LabelRef("four"))
		h.c.TESTQ(operand.U32(63), y)
		h.c.JNE(operand.LabelRef("four"))
		h.streaming = true
		h.c.Label("stream")
		step(4)
		h.c.SUBQ(operand.U8(4), n)
		h.c.JGE(operand.LabelRef("stream"))
		h.streaming = false
		h.c.SFENCE()
		h.c.JMP(operand.LabelRef("rest"))
	}
	h.c.Label("four")
	step(4)
	h.c.SUBQ(operand.U8(4), n)
	h.c.JGE(operand.LabelRef("four"))
	h.c.Label("rest")
	h.c.ADDQ(operand.U8(4), n)
	h.c.JEQ(operand.LabelRef("done"))
	h.c.Label("one")
	step(1)
	h.c.DECQ(n)
	h.c.JNE(operand.LabelRef("one"))
	h.c.Label("done")
	h.c.VZEROUPPER()
	h.c.RET()
}

// widenRows emits a loop over rows that lie apart, as those of one head of keys do. The processor does not see by itself which comes
// next, so each is asked for some rows before.
func widenRows(c *build.Context) {
	const ahead = 12
	c.Function("widenF16RowsAVX2")
	c.Pragma("noescape")
	c.SignatureExpr("func(y *float32, x *uint16, rows, n, stride int)")
	c.Doc("widenF16RowsAVX2 converts rows of n ≥ 1 vectors, stride bytes apart.")
	param := func(name string) reg.Register { return c.Load(c.Param(name), c.GP64()) }
	y, x, rows, n, stride := param("y"), param("x"), param("rows"), param("n"), param("stride")
	from, left, next := c.GP64(), c.GP64(), c.GP64()
	c.IMUL3Q(operand.U8(ahead), stride, next)
	c.Label("row")
	c.MOVQ(x, from)
	c.MOVQ(n, left)
	c.Label("vector")
	v := c.YMM()
	c.PREFETCHT0(operand.Mem{Base: from, Index: next, Scale: 1})
	c.VCVTPH2PS(operand.Mem{Base: from}, v)
	c.VMOVUPS(v, operand.Mem{Base: y})
	c.ADDQ(operand.U8(16), from)
	c.ADDQ(operand.U8(32), y)
	c.DECQ(left)
	c.JNE(operand.LabelRef("vector"))
	c.ADDQ(stride, x)
	c.DECQ(rows)
	c.JNE(operand.LabelRef("row"))
	c.VZEROUPPER()
	c.RET()
}

// narrowU8 limits numbers to those of a byte before it rounds them. Of NaN and 0 the maximum is its last operand.
func (h *half) narrowU8() func(from, to operand.Mem) {
	r, x, zero, most := h.c.GP32(), h.c.XMM(), h.vector(), h.vector()
	h.c.VXORPS(zero.AsX(), zero.AsX(), zero.AsX())
	h.c.MOVL(operand.U32(math.Float32bits(255)), r)
	h.c.VMOVD(r, x)
	h.c.VPBROADCASTD(x, most)
	return func(from, to operand.Mem) {
		v := h.vector()
		h.c.VMOVUPS(from, v)
		h.c.VMAXPS(zero, v, v)
		h.c.VMINPS(most, v, v)
		h.c.VCVTPS2DQ(v, v) // to the nearest, halves to even
		if h.lanes == 16 {
			h.c.VPMOVDB(v, to)
			return
		}
		h.c.VPACKUSDW(v, v, v)
		h.c.VPERMQ(operand.U8(0b1000), v, v) // the lower halves of both parts
		h.c.VPACKUSWB(v.AsX(), v.AsX(), v.AsX())
		h.c.VMOVQ(v.AsX(), to)
	}
}

// narrowBF16 rounds the bits as an integer: adding half of the last place, less one bit if the number is even, carries into the upper
// half, and from the largest numbers into Inf. To NaN nothing is added. Two vectors share what packs them. Per 16 numbers it takes six
// operations on two ports with AVX-512, and nine of each eight on three with AVX2.
func (h *half) narrowBF16() (one, two func(from, to operand.Mem)) {
	all := func(bits uint32) reg.VecVirtual {
		r, x, v := h.c.GP32(), h.c.XMM(), h.vector()
		h.c.MOVL(operand.U32(bits), r)
		h.c.VMOVD(r, x)
		h.c.VPBROADCASTD(x, v)
		return v
	}
	below := all(0x7fff)
	var rounded func(from operand.Mem) reg.VecVirtual
	var order reg.VecVirtual
	if h.lanes == 16 {
		odd, more, quiet := all(0x10000), all(0x8000), all(0x22) // of both kinds of NaN the quiet one
		order = h.vector()
		h.c.VMOVDQU64(qwords(h.c), order)
		rounded = func(from operand.Mem) reg.VecVirtual {
			v, r, k := h.vector(), h.vector(), h.c.K()
			h.c.VMOVUPS(from, v)
			h.c.VPTESTMD(odd, v, k)
			h.c.VPBLENDMD(more, below, k, r)
			h.c.VPADDD(v, r, r)
			h.c.VFIXUPIMMPS(operand.U8(0), quiet, v, r)
			h.c.VPSRLD(operand.U8(16), r, r)
			return r
		}
	} else {
		odd, zero := all(1), all(0x80000000) // −0, which added changes nothing but NaN, to a quiet one
		rounded = func(from operand.Mem) reg.VecVirtual {
			v, r, nan := h.vector(), h.vector(), h.vector()
			h.c.VMOVUPS(from, v)
			h.c.VCMPPS(operand.U8(unordered), v, v, nan)
			h.c.VPSRLD(operand.U8(16), v, r)
			h.c.VPAND(odd, r, r)
			h.c.VPADDD(below, r, r)
			h.c.VPANDN(r, nan, r)
			h.c.VADDPS(zero, v, v)
			h.c.VPADDD(v, r, r)
			h.c.VPSRLD(operand.U8(16), r, r)
			return r
		}
	}
	one = func(from, to operand.Mem) {
		r := rounded(from)
		if h.lanes == 16 {
			h.c.VPMOVDW(r, to)
			return
		}
		h.c.VPACKUSDW(r, r, r)
		h.c.VPERMQ(operand.U8(0b1000), r, r) // the lower halves of both parts
		h.c.VMOVUPS(r.AsX(), to)
	}
	two = func(from, to operand.Mem) {
		r, s := rounded(from), rounded(from.Offset(4*h.lanes))
		h.c.VPACKUSDW(s, r, r)
		if h.lanes == 16 {
			h.c.VPERMQ(r, order, r)
		} else {
			h.c.VPERMQ(operand.U8(0b11011000), r, r)
		}
		h.put(r, to)
	}
	return one, two
}

// unordered is the comparison that finds NaN.
const unordered = 3

// qwords is the order that brings what VPACKUSDW makes of two vectors of 512 bits side by side.
func qwords(c *build.Context) operand.Mem {
	m := c.StaticGlobal("halfOrder")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for _, i := range []uint64{0, 2, 4, 6, 1, 3, 5, 7} {
		c.AppendDatum(operand.U64(i))
	}
	return m
}
