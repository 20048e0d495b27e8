package x86

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/wavelane/wavelane/internal/simd/asmgen/kernels"
)

// softmaxFiles are softmax of rows, several of them in a call.
func softmaxFiles() (map[string][]byte, error) {
	c := build.NewContext()
	for _, t := range []windowTier{{c, "AVX2", []int{8}}, {c, "AVX512", []int{16}}} {
		s := &softmax{windowTier: &t, width: t.widths[0]}
		s.write()
	}
	return assembled(c, "kernels", "softmax")
}

// softmax takes three passes over a row, of which all but the first of a long one find it in L1: the maximum; exponentials and their sum;
// the scale.
//
// Exponentials are those of ExpSub. NaN and infinities need no care: the difference of the one that is NaN or +Inf is NaN, so is the sum,
// and with it the row, whatever the maximum was.
//
// Arithmetic limits it: nine multiplications and two maxima a vector, which share ports on Zen 4, so 11 cycles for 16 elements where one
// instruction of 64 bytes or two of 32 begin in a cycle. With a tenth multiplication rows of 512 took 16 cycles there and rows of 128 took
// 18: each waits for two folds of lanes and a division, part of which the next row fills.
type softmax struct {
	*windowTier
	width int
	bytes int // of a vector

	table                  operand.Mem // constants, one vector each, and for AVX2 the masks of tails
	negative               reg.VecVirtual
	floor, log2e, magic    reg.VecVirtual
	ln2, infinity          reg.VecVirtual
	coefficients           []reg.VecVirtual // in registers with AVX-512
	y, x, index, tail, end reg.GPVirtual    // the last two in bytes
	pair, four             reg.GPVirtual    // where steps of two and four vectors end, in bytes
}

// Offsets of constants in the table, in vectors; coefficients follow.
const (
	softmaxFloor = iota
	softmaxLog2e
	softmaxMagic
	softmaxLn2
	softmaxInfinity
	softmaxSign
	softmaxPolyAt
)

func (s *softmax) write() {
	s.bytes = 4 * s.width
	s.constants()
	s.begin("softmaxRows", "func(y, x *float32, rows, n int)", "sets rows of y, of n elements each, to softmax of those of x; neither is 0.")
	s.c.Attributes(attr.NOSPLIT)
	s.y, s.x = s.argument("y"), s.argument("x")
	rows, n := s.argument("rows"), s.argument("n")
	s.index, s.tail, s.end, s.pair, s.four = s.c.GP64(), s.c.GP64(), s.c.GP64(), s.c.GP64(), s.c.GP64()
	s.c.SHLQ(operand.U8(2), n)
	for _, p := range []struct {
		to    reg.GPVirtual
		bytes int
	}{{s.end, s.bytes}, {s.pair, 2 * s.bytes}, {s.four, 4 * s.bytes}} {
		s.c.MOVQ(n, p.to)
		s.c.ANDQ(operand.I32(-p.bytes), p.to)
	}
	s.c.MOVQ(n, s.tail)
	s.c.SUBQ(s.end, s.tail)
	constant := func(i int) reg.VecVirtual {
		v := s.vector(s.width)
		s.move(s.width, s.constant(i), v)
		return v
	}
	s.floor, s.log2e, s.magic, s.ln2 = constant(softmaxFloor), constant(softmaxLog2e), constant(softmaxMagic), constant(softmaxLn2)
	if s.width == 16 {
		s.infinity = constant(softmaxInfinity)
		for i := range kernels.ShiftedPoly {
			s.coefficients = append(s.coefficients, constant(softmaxPolyAt+i))
		}
		bits, count := s.c.GP32(), s.c.GP64()
		s.c.MOVQ(s.tail, count)
		s.c.SHRQ(operand.U8(2), count)
		s.c.MOVL(operand.U32(0xffff), bits)
		s.c.BZHIL(count.As32(), bits, bits)
		s.c.KMOVW(bits, reg.K1)
	}
	s.negative = s.vector(s.width)
	s.c.Label("row")
	s.maximum()
	s.exponentials()
	s.c.ADDQ(n, s.x)
	s.c.ADDQ(n, s.y)
	s.c.DECQ(rows)
	s.c.JNZ(operand.LabelRef("row"))
	s.windowTier.end()
}

// constants writes the table.
func (s *softmax) constants() {
	values := []float32{
		softmaxFloor: kernels.ShiftedFloor, softmaxLog2e: math.Log2E, softmaxMagic: kernels.ShiftedMagic, softmaxLn2: math.Ln2,
		softmaxInfinity: float32(math.Inf(-1)), softmaxSign: float32(math.Copysign(0, -1)),
	}
	for _, c := range kernels.ShiftedPoly {
		values = append(values, float32(c))
	}
	s.table = s.c.StaticGlobal("softmaxTable" + s.name)
	s.c.DataAttributes(attr.RODATA | attr.NOPTR)
	for _, v := range values {
		for range s.width {
			s.c.AppendDatum(operand.U32(math.Float32bits(v)))
		}
	}
	if s.width == 8 {
		for i := range 16 {
			lane := operand.U32(0xffffffff)
			if i >= 8 {
				lane = 0
			}
			s.c.AppendDatum(lane)
		}
	}
}

// constant is one of the table.
func (s *softmax) constant(i int) operand.Mem {
	return s.table.Offset(i * s.bytes)
}

// mask puts the lanes of a tail into a register, for AVX2.
func (s *softmax) mask() reg.VecVirtual {
	v, at := s.vector(s.width), s.c.GP64()
	s.c.LEAQ(s.table.Offset((softmaxPolyAt+len(kernels.ShiftedPoly))*s.bytes+32), at)
	s.c.SUBQ(s.tail, at)
	s.c.VMOVUPS(operand.Mem{Base: at}, v)
	return v
}

// last reads the tail of a row of x, with −Inf after it.
func (s *softmax) last(v reg.VecVirtual) {
	m := operand.Mem{Base: s.x, Index: s.end, Scale: 1}
	if s.width == 16 {
		s.c.VMOVAPS(s.infinity, v)
		s.c.VMOVUPS(m, reg.K1, v)
		return
	}
	mask := s.mask()
	s.c.VMASKMOVPS(m, mask, v)
	infinity := s.vector(s.width)
	s.c.VMOVUPS(s.constant(softmaxInfinity), infinity)
	s.c.VBLENDVPS(mask, v, infinity, v)
}

// steps writes loops over a row of several vectors and of one at a time, then what follows them if there is a tail.
func (s *softmax) steps(name string, many int, limit reg.GPVirtual, vectors func(n int), tail func()) {
	s.c.XORQ(s.index, s.index)
	s.loop(name+"Many", many, limit, vectors)
	if many > 2 {
		s.loop(name+"Pair", 2, s.pair, vectors)
	}
	s.loop(name+"One", 1, s.end, vectors)
	s.c.TESTQ(s.tail, s.tail)
	s.c.JZ(operand.LabelRef(name + "Whole"))
	tail()
	s.c.Label(name + "Whole")
}

func (s *softmax) loop(name string, n int, limit reg.GPVirtual, vectors func(n int)) {
	s.c.CMPQ(s.index, limit)
	s.c.JGE(operand.LabelRef(name + "Done"))
	s.c.Label(name)
	vectors(n)
	s.c.ADDQ(operand.U32(n*s.bytes), s.index)
	s.c.CMPQ(s.index, limit)
	s.c.JL(operand.LabelRef(name))
	s.c.Label(name + "Done")
}

// maximum sets all lanes of negative to minus the largest element.
func (s *softmax) maximum() {
	most := make([]reg.VecVirtual, 4)
	for i := range most {
		most[i] = s.vector(s.width)
		s.move(s.width, s.constant(softmaxInfinity), most[i])
	}
	s.steps("max", 4, s.four, func(n int) {
		for i := range n {
			s.c.VMAXPS(operand.Mem{Base: s.x, Index: s.index, Scale: 1, Disp: i * s.bytes}, most[i], most[i])
		}
	}, func() {
		v := s.vector(s.width)
		s.last(v)
		s.c.VMAXPS(v, most[3], most[3])
	})
	s.c.VMAXPS(most[1], most[0], most[0])
	s.c.VMAXPS(most[3], most[2], most[2])
	s.c.VMAXPS(most[2], most[0], most[0])
	x := s.lanes(most[0], func(a, b, to reg.VecVirtual) { s.c.VMAXPS(a, b, to) })
	s.c.VXORPS(s.constant(softmaxSign), x, x)
	s.c.VBROADCASTSS(x, s.negative)
}

// lanes folds the lanes of a vector.
func (s *softmax) lanes(v reg.VecVirtual, fold func(a, b, to reg.VecVirtual)) reg.VecVirtual {
	if s.width == 16 {
		half := s.vector(8)
		s.c.VEXTRACTF64X4(operand.U8(1), v, half)
		low := v.AsY().(reg.VecVirtual)
		fold(low, half, half)
		v = half
	}
	x := s.vector(4)
	s.c.VEXTRACTF128(operand.U8(1), v, x)
	fold(v.AsX().(reg.VecVirtual), x, x)
	for _, shuffle := range []uint8{0b01001110, 0b10110001} { // halves, then neighbours
		other := s.vector(4)
		s.c.VPERMILPS(operand.U8(shuffle), x, other)
		fold(other, x, x)
	}
	return x
}

// exponentials does the rest of a row.
func (s *softmax) exponentials() {
	sums := []reg.VecVirtual{s.vector(s.width), s.vector(s.width)}
	for _, v := range sums {
		s.zero(v)
	}
	to := func(i int) operand.Mem { return operand.Mem{Base: s.y, Index: s.index, Scale: 1, Disp: i * s.bytes} }
	s.steps("exp", 2, s.pair, func(n int) {
		v := make([]reg.VecVirtual, n)
		for i := range v {
			v[i] = s.vector(s.width)
			s.c.VADDPS(operand.Mem{Base: s.x, Index: s.index, Scale: 1, Disp: i * s.bytes}, s.negative, v[i])
		}
		for i, y := range s.exp(v) {
			s.move(s.width, y, to(i))
			s.c.VADDPS(y, sums[i], sums[i])
		}
	}, func() {
		v := s.vector(s.width)
		s.last(v)
		s.c.VADDPS(v, s.negative, v)
		y := s.exp([]reg.VecVirtual{v})[0]
		s.store(y)
		s.c.VADDPS(y, sums[1], sums[1])
	})
	s.c.VADDPS(sums[1], sums[0], sums[0])
	x := s.lanes(sums[0], func(a, b, to reg.VecVirtual) { s.c.VADDPS(a, b, to) })
	one := s.vector(4)
	s.c.VMOVSS(s.constant(softmaxPolyAt), one)
	s.c.VDIVSS(x, one, x)
	f := s.vector(s.width)
	s.c.VBROADCASTSS(x, f)
	s.steps("scale", 4, s.four, func(n int) {
		v := make([]reg.VecVirtual, n)
		for i := range v {
			v[i] = s.vector(s.width)
			s.c.VMULPS(to(i), f, v[i])
		}
		for i := range v {
			s.move(s.width, v[i], to(i))
		}
	}, func() {
		v, m := s.vector(s.width), operand.Mem{Base: s.y, Index: s.end, Scale: 1}
		if s.width == 16 {
			s.c.VMULPS_Z(m, f, reg.K1, v)
			s.c.VMOVUPS(v, reg.K1, m)
			return
		}
		mask := s.mask()
		s.c.VMASKMOVPS(m, mask, v)
		s.c.VMULPS(v, f, v)
		s.c.VMASKMOVPS(v, mask, m)
	})
}

// store writes the tail of a row of y.
func (s *softmax) store(v reg.VecVirtual) {
	m := operand.Mem{Base: s.y, Index: s.end, Scale: 1}
	if s.width == 16 {
		s.c.VMOVUPS(v, reg.K1, m)
		return
	}
	s.c.VMASKMOVPS(v, s.mask(), m)
}

// exp returns exponentials of some vectors, which it overwrites.
func (s *softmax) exp(d []reg.VecVirtual) (y []reg.VecVirtual) {
	coefficient := func(i int) operand.Op {
		if s.width == 16 {
			return s.coefficients[i]
		}
		return s.constant(softmaxPolyAt + i)
	}
	t, n, p := make([]reg.VecVirtual, len(d)), make([]reg.VecVirtual, len(d)), make([]reg.VecVirtual, len(d))
	for i, d := range d {
		t[i], n[i], p[i] = s.vector(s.width), s.vector(s.width), s.vector(s.width)
		s.c.VMAXPS(d, s.floor, d) // NaN stays, as the second of the processor's operands
		s.c.VMOVAPS(s.magic, t[i])
		s.c.VFMADD231PS(s.log2e, d, t[i])
		s.c.VSUBPS(s.magic, t[i], n[i])
		s.c.VFNMADD231PS(s.ln2, n[i], d)
	}
	top := len(kernels.ShiftedPoly) - 1
	for i := range p {
		s.c.VMOVAPS(coefficient(top), p[i])
	}
	for k := top - 1; k >= 0; k-- {
		for i := range p {
			s.c.VFMADD213PS(coefficient(k), d[i], p[i])
		}
	}
	for i := range p {
		s.c.VPSLLD(operand.U8(23), t[i], t[i])
		s.c.VMULPS(t[i], p[i], p[i])
	}
	return p
}
