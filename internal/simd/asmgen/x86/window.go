package x86

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// windowTier is a tier with kernels for convolutions, in package gemm.
type windowTier struct {
	c      *build.Context
	name   string
	widths []int // of registers that hold floats, the widest first
}

// windowFiles are the kernels of convolutions.
func windowFiles() (map[string][]byte, error) {
	c := build.NewContext()
	for _, t := range []windowTier{
		{c, "SSE", []int{4, 2, 1}},
		{c, "AVX2", []int{8, 4, 2, 1}},
		{c, "AVX512", []int{16, 8, 4, 2, 1}},
	} {
		t.gather()
		if t.name == "AVX512" {
			t.gatherTwo()
		}
		t.taps()
		t.spreads()
		if t.name != "SSE" {
			t.filters()
		}
	}
	return assembled(c, "gemm", "window")
}

func (t *windowTier) begin(name, signature, doc string) {
	t.c.Function(name + t.name)
	t.c.Pragma("noescape")
	t.c.SignatureExpr(signature)
	t.c.Doc(name + t.name + " " + doc)
}

func (t *windowTier) end() {
	if t.name != "SSE" {
		t.c.VZEROUPPER()
	}
	t.c.RET()
}

func (t *windowTier) argument(name string) reg.GPVirtual {
	return t.c.Load(t.c.Param(name), t.c.GP64()).(reg.GPVirtual)
}

func (t *windowTier) vector(width int) reg.VecVirtual {
	switch width {
	case 16:
		return t.c.ZMM()
	case 8:
		return t.c.YMM()
	}
	return t.c.XMM()
}

// move copies width floats between memory and a register.
func (t *windowTier) move(width int, from, to operand.Op) {
	switch sse := t.name == "SSE"; {
	case width == 1 && sse:
		t.c.MOVSS(from, to)
	case width == 1:
		t.c.VMOVSS(from, to)
	case width == 2 && sse:
		t.c.MOVSD(from, to)
	case width == 2:
		t.c.VMOVSD(from, to)
	case sse:
		t.c.MOVUPS(from, to)
	default:
		t.c.VMOVUPS(from, to)
	}
}

// gather copies with two moves that may overlap, of the widest register that n elements fill.
func (t *windowTier) gather() {
	t.begin("gather", "func(dst, x *float32, offsets *int32, k, width, n int)",
		"sets dst[p*width+j] = x[offsets[p]+j] for p < k and j < n; n is at most two vectors.")
	dst, x, offsets := t.argument("dst"), t.argument("x"), t.argument("offsets")
	k, step, n := t.argument("k"), t.argument("width"), t.argument("n")
	t.c.SHLQ(operand.U8(2), step)
	for _, width := range t.widths {
		next, loop := fmt.Sprintf("below%d", width), fmt.Sprintf("by%d", width)
		t.c.CMPQ(n, operand.U32(width))
		t.c.JL(operand.LabelRef(next))
		last := t.c.GP64()
		t.c.LEAQ(operand.Mem{Base: n, Disp: -width}, last)
		t.c.SHLQ(operand.U8(2), last)
		from := t.c.GP64()
		t.c.LEAQ(operand.Mem{Base: x, Index: last, Scale: 1}, from)
		t.c.Label(loop)
		at, low, high := t.c.GP64(), t.vector(width), t.vector(width)
		t.c.MOVLQSX(operand.Mem{Base: offsets}, at)
		t.move(width, operand.Mem{Base: x, Index: at, Scale: 4}, low)
		t.move(width, operand.Mem{Base: from, Index: at, Scale: 4}, high)
		t.move(width, low, operand.Mem{Base: dst})
		t.move(width, high, operand.Mem{Base: dst, Index: last, Scale: 1})
		t.c.ADDQ(operand.U8(4), offsets)
		t.c.ADDQ(step, dst)
		t.c.DECQ(k)
		t.c.JNZ(operand.LabelRef(loop))
		t.c.JMP(operand.LabelRef("end"))
		t.c.Label(next)
	}
	t.c.Label("end")
	t.end()
}

// gatherTwo reads each vector of a panel from the lines that it is of, so that none is stored twice or straddles lines of L1.
func (t *windowTier) gatherTwo() {
	t.begin("gatherTwo", "func(dst, x *float32, offsets *int32, k, first, gap, n int)",
		"sets dst[32*p+j] = x[offsets[p]+j] for p < k and j < first, x[offsets[p]+gap+j] for first ≤ j < n, and 0 for n ≤ j < 32; n is more than 16.")
	dst, x, offsets := t.argument("dst"), t.argument("x"), t.argument("offsets")
	k, first, gap, n := t.argument("k"), t.argument("first"), t.argument("gap"), t.argument("n")
	y := t.c.GP64()
	t.c.LEAQ(operand.Mem{Base: x, Index: gap, Scale: 4}, y)
	ones, low, high := t.c.GP32(), t.c.GP32(), t.c.GP32()
	t.c.MOVL(operand.U32(0xffffffff), ones)
	t.c.BZHIL(first.As32(), ones, low)
	t.c.BZHIL(n.As32(), ones, high)
	t.c.XORL(low, high)
	var masks [2][2]reg.OpmaskVirtual // by line and vector
	for line, m := range []reg.GPVirtual{low, high} {
		for vector := range masks[line] {
			masks[line][vector] = t.c.K()
			t.c.KMOVW(m, masks[line][vector])
			t.c.SHRL(operand.U8(16), m)
		}
	}
	t.c.CMPQ(first, operand.U32(16))
	t.c.JG(operand.LabelRef("late"))
	for _, split := range []int{0, 1} {
		loop := fmt.Sprintf("split%d", split)
		t.c.Label(loop)
		at := t.c.GP64()
		t.c.MOVLQSX(operand.Mem{Base: offsets}, at)
		for vector := range 2 {
			v := t.c.ZMM()
			from := func(line int) operand.Mem {
				return operand.Mem{Base: []reg.Register{x, y}[line], Index: at, Scale: 4, Disp: 64 * vector}
			}
			switch {
			case vector == split:
				t.c.VMOVUPS_Z(from(0), masks[0][vector], v)
				t.c.VMOVUPS(from(1), masks[1][vector], v)
			case vector == 0:
				t.c.VMOVUPS(from(0), v)
			default:
				t.c.VMOVUPS_Z(from(1), masks[1][vector], v)
			}
			t.c.VMOVUPS(v, operand.Mem{Base: dst, Disp: 64 * vector})
		}
		t.c.ADDQ(operand.U8(4), offsets)
		t.c.SUBQ(operand.I8(-128), dst)
		t.c.DECQ(k)
		t.c.JNZ(operand.LabelRef(loop))
		t.end()
		if split == 0 {
			t.c.Label("late")
		}
	}
}

// taps keeps up to four vectors of sums in registers. Where elements do not fill them the last two overlap, and compute some twice.
func (t *windowTier) taps() {
	t.begin("taps", "func(y, x, w *float32, offsets *int32, k, n, rows, ystep, xstep int)",
		"sets y[j] to the sum of w[p]·x[offsets[p]+j] over p < k, for j < n, in every row: rows are ystep and xstep apart.")
	a := tapping{w: t.argument("w"), offsets: t.argument("offsets"), k: t.argument("k")}
	t.c.Label("row")
	a.y, a.x, a.n = t.argument("y"), t.argument("x"), t.argument("n")
	const most = 4
	for _, width := range t.widths {
		if width == 2 {
			continue
		}
		block, next := fmt.Sprintf("block%d", width), fmt.Sprintf("below%d", width)
		t.c.Label(block)
		t.c.CMPQ(a.n, operand.U32(width))
		t.c.JL(operand.LabelRef(next))
		for copies := most; copies > 0; copies-- {
			fewer := fmt.Sprintf("fewer%dx%d", copies, width)
			if copies > 1 {
				t.c.CMPQ(a.n, operand.U32((copies-1)*width))
				t.c.JLE(operand.LabelRef(fewer))
			}
			t.tapped(&a, width, copies, copies == most)
			t.c.JMP(operand.LabelRef(block))
			if copies > 1 {
				t.c.Label(fewer)
			}
		}
		t.c.Label(next)
	}
	for _, name := range []string{"y", "x"} {
		step := t.argument(name + "step")
		t.c.SHLQ(operand.U8(2), step)
		t.c.ADDQ(step, t.slot(name))
	}
	t.c.DECQ(t.slot("rows"))
	t.c.JNZ(operand.LabelRef("row"))
	t.end()
}

// tapping are the registers of taps.
type tapping struct{ y, x, w, offsets, k, n reg.GPVirtual }

// tapped computes as many vectors as n elements are, or the first of more.
func (t *windowTier) tapped(a *tapping, width, copies int, more bool) {
	loop := fmt.Sprintf("by%dx%d", copies, width)
	many, last := t.c.GP64(), t.c.GP64()
	if more {
		t.c.MOVQ(operand.I32(copies*width), many)
		t.c.CMPQ(a.n, many)
		t.c.CMOVQLT(a.n, many)
	} else {
		t.c.MOVQ(a.n, many)
	}
	t.c.LEAQ(operand.Mem{Base: many, Disp: -width}, last)
	var from []reg.GPVirtual
	var sums []reg.VecVirtual
	for i := range copies {
		sums, from = append(sums, t.vector(width)), append(from, t.c.GP64())
		t.zero(sums[i])
		if i == 0 {
			t.c.MOVQ(a.x, from[0])
			continue
		}
		start := t.c.GP64() // in elements
		t.c.MOVQ(operand.I32(i*width), start)
		t.c.CMPQ(last, start)
		t.c.CMOVQLT(last, start)
		t.c.LEAQ(operand.Mem{Base: a.x, Index: start, Scale: 4}, from[i])
	}
	p := t.c.GP64()
	t.c.XORQ(p, p)
	t.c.Label(loop)
	at, f := t.c.GP64(), t.vector(width)
	t.c.MOVLQSX(operand.Mem{Base: a.offsets, Index: p, Scale: 4}, at)
	t.broadcast(width, operand.Mem{Base: a.w, Index: p, Scale: 4}, f)
	for i := range copies {
		t.accumulate(width, operand.Mem{Base: from[i], Index: at, Scale: 4}, f, sums[i])
	}
	t.c.INCQ(p)
	t.c.CMPQ(p, a.k)
	t.c.JL(operand.LabelRef(loop))
	t.move(width, sums[0], operand.Mem{Base: a.y})
	for i := 1; i < copies; i++ {
		t.c.SUBQ(a.x, from[i])
		t.move(width, sums[i], operand.Mem{Base: a.y, Index: from[i], Scale: 1})
	}
	t.c.LEAQ(operand.Mem{Base: a.x, Index: many, Scale: 4}, a.x)
	t.c.LEAQ(operand.Mem{Base: a.y, Index: many, Scale: 4}, a.y)
	t.c.SUBQ(many, a.n)
}

func (t *windowTier) slot(name string) operand.Mem { return slot(t.c, name) }

// slot is where an argument lies.
func slot(c *build.Context, name string) operand.Mem {
	b, err := c.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

func (t *windowTier) zero(v reg.VecVirtual) {
	switch {
	case t.name == "SSE":
		t.c.XORPS(v, v)
	case v.Size() == 64:
		t.c.VPXORD(v, v, v)
	default:
		t.c.VXORPS(v, v, v)
	}
}

func (t *windowTier) broadcast(width int, m operand.Mem, v reg.VecVirtual) {
	switch {
	case width == 1:
		t.move(1, m, v)
	case t.name == "SSE":
		t.move(1, m, v)
		t.c.SHUFPS(operand.U8(0), v, v)
	default:
		t.c.VBROADCASTSS(m, v)
	}
}

// accumulate adds f times what lies at m.
func (t *windowTier) accumulate(width int, m operand.Mem, f, sum reg.VecVirtual) {
	switch {
	case t.name != "SSE" && width == 1:
		t.c.VFMADD231SS(m, f, sum)
	case t.name != "SSE":
		t.c.VFMADD231PS(m, f, sum)
	default:
		v := t.c.XMM()
		t.move(width, m, v)
		if width == 1 {
			t.c.MULSS(f, v)
			t.c.ADDSS(v, sum)
		} else {
			t.c.MULPS(f, v)
			t.c.ADDPS(v, sum)
		}
	}
}
