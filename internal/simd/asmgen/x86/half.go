package x86

import (
	"math"

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
				h.c.VMOVUPS(v, to)
			}
		})
		h.function("widenBF16", "float32", "uint16", func() func(from, to operand.Mem) {
			return func(from, to operand.Mem) {
				v := h.vector()
				h.c.VPMOVZXWD(from, v)
				h.c.VPSLLD(operand.U8(16), v, v)
				h.c.VMOVUPS(v, to)
			}
		})
		h.function("narrowF16", "uint16", "float32", func() func(from, to operand.Mem) {
			return func(from, to operand.Mem) {
				v := h.vector()
				h.c.VMOVUPS(from, v)
				h.c.VCVTPS2PH(operand.U8(0), v, to) // to the nearest, halves to even
			}
		})
		h.function("narrowBF16", "uint16", "float32", h.narrowBF16)
		h.function("widenU8", "float32", "uint8", func() func(from, to operand.Mem) {
			return func(from, to operand.Mem) {
				v := h.vector()
				h.c.VPMOVZXBD(from, v)
				h.c.VCVTDQ2PS(v, v)
				h.c.VMOVUPS(v, to)
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
	c *build.Context
}

func (h *half) vector() reg.VecVirtual {
	if h.lanes == 16 {
		return h.c.ZMM()
	}
	return h.c.YMM()
}

// function emits a loop over n vectors, four at a time while there are as many; prepare returns what converts one.
func (h *half) function(name, to, from string, prepare func() func(from, to operand.Mem)) {
	h.c.Function(name + h.name)
	h.c.Pragma("noescape")
	h.c.SignatureExpr("func(y *" + to + ", x *" + from + ", n int)")
	h.c.Doc(name + h.name + " converts n vectors.")
	y, x, n := h.c.Load(h.c.Param("y"), h.c.GP64()), h.c.Load(h.c.Param("x"), h.c.GP64()), h.c.Load(h.c.Param("n"), h.c.GP64())
	convert := prepare()
	bytes := func(t string) int {
		return map[string]int{"uint8": 1, "uint16": 2, "float32": 4}[t] * h.lanes
	}
	step := func(vectors int) {
		for i := range vectors {
			convert(operand.Mem{Base: x, Disp: i * bytes(from)}, operand.Mem{Base: y, Disp: i * bytes(to)})
		}
		h.c.ADDQ(operand.U32(vectors*bytes(from)), x)
		h.c.ADDQ(operand.U32(vectors*bytes(to)), y)
	}
	h.c.SUBQ(operand.U8(4), n)
	h.c.JL(operand.LabelRef("rest"))
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

// narrowBF16 rounds the bits as an integer: adding half of the last place, less one bit if the number is even, carries
// into the upper half, and from the largest numbers into Inf.
func (h *half) narrowBF16() func(from, to operand.Mem) {
	all := func(bits uint32) reg.VecVirtual {
		r, x, v := h.c.GP32(), h.c.XMM(), h.vector()
		h.c.MOVL(operand.U32(bits), r)
		h.c.VMOVD(r, x)
		h.c.VPBROADCASTD(x, v)
		return v
	}
	below, odd, quiet := all(0x7fff), all(1), all(0x400000)
	const unordered = 3
	return func(from, to operand.Mem) {
		v, r := h.vector(), h.vector()
		h.c.VMOVUPS(from, v)
		h.c.VPSRLD(operand.U8(16), v, r)
		if h.lanes == 16 {
			nan := h.c.K()
			h.c.VPANDD(odd, r, r)
			h.c.VPADDD(below, r, r)
			h.c.VPADDD(v, r, r)
			h.c.VCMPPS(operand.U8(unordered), v, v, nan)
			h.c.VPORD(quiet, v, nan, r)
			h.c.VPSRLD(operand.U8(16), r, r)
			h.c.VPMOVDW(r, to)
			return
		}
		h.c.VPAND(odd, r, r)
		h.c.VPADDD(below, r, r)
		h.c.VPADDD(v, r, r)
		nan := h.c.YMM()
		h.c.VCMPPS(operand.U8(unordered), v, v, nan)
		h.c.VPOR(quiet, v, v)
		h.c.VBLENDVPS(nan, v, r, r)
		h.c.VPSRLD(operand.U8(16), r, r)
		h.c.VPACKUSDW(r, r, r)
		h.c.VPERMQ(operand.U8(0b1000), r, r) // the lower halves of both parts
		h.c.VMOVUPS(r.AsX(), to)
	}
}
