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
		h := &half{halfTier: t, Context: c}
		h.function("widenF16", "float32", "uint16", func() func(from, to operand.Mem) {
			return func(from, to operand.Mem) {
				v := h.vector()
				h.VCVTPH2PS(from, v)
				h.VMOVUPS(v, to)
			}
		})
		h.function("widenBF16", "float32", "uint16", func() func(from, to operand.Mem) {
			return func(from, to operand.Mem) {
				v := h.vector()
				h.VPMOVZXWD(from, v)
				h.VPSLLD(operand.U8(16), v, v)
				h.VMOVUPS(v, to)
			}
		})
		h.function("narrowF16", "uint16", "float32", func() func(from, to operand.Mem) {
			return func(from, to operand.Mem) {
				v := h.vector()
				h.VMOVUPS(from, v)
				h.VCVTPS2PH(operand.U8(0), v, to) // to the nearest, halves to even
			}
		})
		h.function("narrowBF16", "uint16", "float32", h.narrowBF16)
		h.function("widenU8", "float32", "uint8", func() func(from, to operand.Mem) {
			return func(from, to operand.Mem) {
				v := h.vector()
				h.VPMOVZXBD(from, v)
				h.VCVTDQ2PS(v, v)
				h.VMOVUPS(v, to)
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
	*build.Context
}

func (h *half) vector() reg.VecVirtual {
	if h.lanes == 16 {
		return h.ZMM()
	}
	return h.YMM()
}

// function emits a loop over n vectors, four at a time while there are as many; prepare returns what converts one.
func (h *half) function(name, to, from string, prepare func() func(from, to operand.Mem)) {
	h.Function(name + h.name)
	h.Pragma("noescape")
	h.SignatureExpr("func(y *" + to + ", x *" + from + ", n int)")
	h.Doc(name + h.name + " converts n vectors.")
	y, x, n := h.Load(h.Param("y"), h.GP64()), h.Load(h.Param("x"), h.GP64()), h.Load(h.Param("n"), h.GP64())
	convert := prepare()
	bytes := func(t string) int {
		return map[string]int{"uint8": 1, "uint16": 2, "float32": 4}[t] * h.lanes
	}
	step := func(vectors int) {
		for i := range vectors {
			convert(operand.Mem{Base: x, Disp: i * bytes(from)}, operand.Mem{Base: y, Disp: i * bytes(to)})
		}
		h.ADDQ(operand.U32(vectors*bytes(from)), x)
		h.ADDQ(operand.U32(vectors*bytes(to)), y)
	}
	h.SUBQ(operand.U8(4), n)
	h.JL(operand.LabelRef("rest"))
	h.Label("four")
	step(4)
	h.SUBQ(operand.U8(4), n)
	h.JGE(operand.LabelRef("four"))
	h.Label("rest")
	h.ADDQ(operand.U8(4), n)
	h.JEQ(operand.LabelRef("done"))
	h.Label("one")
	step(1)
	h.DECQ(n)
	h.JNE(operand.LabelRef("one"))
	h.Label("done")
	h.VZEROUPPER()
	h.RET()
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
	r, x, zero, most := h.GP32(), h.XMM(), h.vector(), h.vector()
	h.VXORPS(zero.AsX(), zero.AsX(), zero.AsX())
	h.MOVL(operand.U32(math.Float32bits(255)), r)
	h.VMOVD(r, x)
	h.VPBROADCASTD(x, most)
	return func(from, to operand.Mem) {
		v := h.vector()
		h.VMOVUPS(from, v)
		h.VMAXPS(zero, v, v)
		h.VMINPS(most, v, v)
		h.VCVTPS2DQ(v, v) // to the nearest, halves to even
		if h.lanes == 16 {
			h.VPMOVDB(v, to)
			return
		}
		h.VPACKUSDW(v, v, v)
		h.VPERMQ(operand.U8(0b1000), v, v) // the lower halves of both parts
		h.VPACKUSWB(v.AsX(), v.AsX(), v.AsX())
		h.VMOVQ(v.AsX(), to)
	}
}

// narrowBF16 rounds the bits as an integer: adding half of the last place, less one bit if the number is even, carries
// into the upper half, and from the largest numbers into Inf.
func (h *half) narrowBF16() func(from, to operand.Mem) {
	all := func(bits uint32) reg.VecVirtual {
		r, x, v := h.GP32(), h.XMM(), h.vector()
		h.MOVL(operand.U32(bits), r)
		h.VMOVD(r, x)
		h.VPBROADCASTD(x, v)
		return v
	}
	below, odd, quiet := all(0x7fff), all(1), all(0x400000)
	const unordered = 3
	return func(from, to operand.Mem) {
		v, r := h.vector(), h.vector()
		h.VMOVUPS(from, v)
		h.VPSRLD(operand.U8(16), v, r)
		if h.lanes == 16 {
			nan := h.K()
			h.VPANDD(odd, r, r)
			h.VPADDD(below, r, r)
			h.VPADDD(v, r, r)
			h.VCMPPS(operand.U8(unordered), v, v, nan)
			h.VPORD(quiet, v, nan, r)
			h.VPSRLD(operand.U8(16), r, r)
			h.VPMOVDW(r, to)
			return
		}
		h.VPAND(odd, r, r)
		h.VPADDD(below, r, r)
		h.VPADDD(v, r, r)
		nan := h.YMM()
		h.VCMPPS(operand.U8(unordered), v, v, nan)
		h.VPOR(quiet, v, v)
		h.VBLENDVPS(nan, v, r, r)
		h.VPSRLD(operand.U8(16), r, r)
		h.VPACKUSDW(r, r, r)
		h.VPERMQ(operand.U8(0b1000), r, r) // the lower halves of both parts
		h.VMOVUPS(r.AsX(), to)
	}
}
