package x86

import (
	"math/bits"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Kernels of products with a vector take several rows of the matrix at a time: they share what is loaded of the vector, and
// memory delivers several streams faster than one.
const (
	dotRowCount  = 4
	axpyRowCount = 8
)

// rowPointers sets registers to the beginnings of rows.
func (g *gemmGen) rowPointers(rows []reg.GPPhysical, ld reg.Register, e elements) {
	g.SHLQ(operand.U8(bits.TrailingZeros(uint(e.size()))), ld)
	for i := 1; i < len(rows); i++ {
		g.LEAQ(operand.Mem{Base: rows[i-1], Index: ld, Scale: 1}, rows[i])
	}
}

// tailMask prepares K1 or a vector for the elements that are left in a register: fewer than a vector, at least one.
func (g *gemmGen) tailMask(left, spare reg.GPPhysical, mask reg.VecPhysical) {
	if g.lanes == 16 {
		g.MOVL(operand.U32(0xffffffff), spare.As32())
		g.BZHIL(left.As32(), spare.As32(), spare.As32())
		g.KMOVW(spare.As32(), reg.K1)
		return
	}
	g.LEAQ(g.masks(), spare)
	g.SHLQ(operand.U8(2), left)
	g.SUBQ(left, spare)
	g.VMOVUPS(at(spare, 32), mask)
}

// loadTail loads the elements under the mask, zeros elsewhere.
func (g *gemmGen) loadTail(m operand.Mem, mask, v reg.VecPhysical) {
	if g.lanes == 16 {
		g.VMOVUPS_Z(m, reg.K1, v)
	} else {
		g.VMASKMOVPS(m, mask, v)
	}
}

// dots writes the function that multiplies four rows with a vector.
func (g *gemmGen) dots(e elements) {
	g.begin("dotRows"+e.suffix(), "func(y *float32, a *"+e.goType()+", ld int, x *float32, n int)",
		"computes four dot products; see dotRowsGo.")
	y, ld, x, n, p := reg.RDI, reg.RDX, reg.RCX, reg.R8, reg.RAX
	rows := []reg.GPPhysical{reg.RSI, reg.R9, reg.R10, reg.R11}
	g.Load(g.Param("y"), y)
	g.Load(g.Param("a"), rows[0])
	g.Load(g.Param("ld"), ld)
	g.Load(g.Param("x"), x)
	g.Load(g.Param("n"), n)
	g.rowPointers(rows, ld, e)
	g.XORQ(p, p)
	acc := func(i, j int) reg.VecPhysical { return g.v[i*2+j] }
	v, t := g.v[8:10], g.v[10]
	for _, a := range g.v[:8] {
		g.zero(a)
	}
	element := func(base reg.Register, j int) operand.Mem {
		return operand.Mem{Base: base, Index: p, Scale: 4, Disp: 4 * g.lanes * j}
	}
	step := func(vectors int) {
		for j := range vectors {
			g.load(element(x, j), v[j])
		}
		for i, r := range rows {
			for j := range vectors {
				switch m := e.at(r, p, j*g.lanes); {
				case g.lanes == 4:
					g.load(m, t)
					g.MULPS(v[j], t)
					g.ADDPS(t, acc(i, j))
				case e == full:
					g.VFMADD231PS(m, v[j], acc(i, j))
				default:
					g.widen(e, m, t)
					g.VFMADD231PS(t, v[j], acc(i, j))
				}
			}
		}
		g.ADDQ(operand.U8(vectors*g.lanes), p)
	}
	two, one, rest, done := g.label("two"), g.label("one"), g.label("rest"), g.label("sum")
	g.SUBQ(operand.U8(2*g.lanes), n)
	g.JL(operand.LabelRef(one))
	g.Label(two)
	step(2)
	g.SUBQ(operand.U8(2*g.lanes), n)
	g.JGE(operand.LabelRef(two))
	g.Label(one)
	g.ADDQ(operand.U8(g.lanes), n)
	g.JL(operand.LabelRef(rest))
	step(1)
	g.SUBQ(operand.U8(g.lanes), n)
	g.Label(rest)
	g.ADDQ(operand.U8(g.lanes), n)
	g.JEQ(operand.LabelRef(done))
	if g.lanes == 4 {
		single := g.label("single")
		g.Label(single)
		g.MOVSS(element(x, 0), v[0])
		for i, r := range rows {
			g.MOVSS(element(r, 0), t)
			g.MULSS(v[0], t)
			g.ADDSS(t, acc(i, 0))
		}
		g.INCQ(p)
		g.DECQ(n)
		g.JNE(operand.LabelRef(single))
	} else {
		mask, end := g.v[11], reg.R12
		g.tailShift(e, n, p, end, reg.RBX)
		g.tailMask(n, reg.RBX, mask)
		g.loadTail(element(x, 0), mask, v[0])
		for i, r := range rows {
			g.widenTail(e, r, p, end, mask, t)
			g.VFMADD231PS(t, v[0], acc(i, 0))
		}
	}
	g.Label(done)
	g.sumRows(y)
	g.end()
}

// sumRows adds up the accumulators of four rows and stores the sums.
func (g *gemmGen) sumRows(y reg.Register) {
	x := []reg.VecPhysical{reg.X0, reg.X2, reg.X4, reg.X6}
	for i := range 4 {
		a, b := g.v[2*i], g.v[2*i+1]
		if g.lanes == 4 {
			g.ADDPS(b, a)
			continue
		}
		g.VADDPS(b, a, a)
		low := []reg.VecPhysical{reg.Y0, reg.Y2, reg.Y4, reg.Y6}[i]
		if g.lanes == 16 {
			g.VEXTRACTF64X4(operand.U8(1), a, reg.Y8)
			g.VADDPS(reg.Y8, low, low)
		}
		g.VEXTRACTF128(operand.U8(1), low, reg.X8)
		g.VADDPS(reg.X8, x[i], x[i])
	}
	if g.lanes > 4 {
		g.VZEROUPPER()
	}
	// The four vectors of four are transposed and added.
	g.MOVAPS(x[0], reg.X8)
	g.UNPCKLPS(x[1], x[0])
	g.UNPCKHPS(x[1], reg.X8)
	g.ADDPS(reg.X8, x[0])
	g.MOVAPS(x[2], reg.X8)
	g.UNPCKLPS(x[3], x[2])
	g.UNPCKHPS(x[3], reg.X8)
	g.ADDPS(reg.X8, x[2])
	g.MOVAPS(x[0], reg.X8)
	g.MOVLHPS(x[2], x[0])
	g.MOVHLPS(reg.X8, x[2])
	g.ADDPS(x[2], x[0])
	g.MOVUPS(x[0], at(y, 0))
}

// axpys writes the function that adds eight rows, each times a factor.
func (g *gemmGen) axpys(e elements) {
	g.begin("axpyRows"+e.suffix(), "func(y *float32, a *"+e.goType()+", ld int, f *float32, n int)",
		"adds eight multiples of rows; see axpyRowsGo.")
	y, ld, f, n, p := reg.RDI, reg.RDX, reg.RCX, reg.R8, reg.RAX
	rows := []reg.GPPhysical{reg.RSI, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.RBX, reg.R15}
	g.Load(g.Param("y"), y)
	g.Load(g.Param("a"), rows[0])
	g.Load(g.Param("ld"), ld)
	g.Load(g.Param("f"), f)
	g.Load(g.Param("n"), n)
	g.rowPointers(rows, ld, e)
	g.XORQ(p, p)
	factor, v, t, mask := g.v[:8], g.v[8], g.v[9], g.v[10]
	for i, r := range factor {
		g.broadcast(at(f, 4*i), r)
	}
	element := func(base reg.Register) operand.Mem { return operand.Mem{Base: base, Index: p, Scale: 4} }
	whole, rest, done := g.label("whole"), g.label("rest"), g.label("done")
	g.SUBQ(operand.U8(g.lanes), n)
	g.JL(operand.LabelRef(rest))
	g.Label(whole)
	g.load(element(y), v)
	for i, r := range rows {
		switch m := e.at(r, p, 0); {
		case g.lanes == 4:
			g.load(m, t)
			g.MULPS(factor[i], t)
			g.ADDPS(t, v)
		case e == full:
			g.VFMADD231PS(m, factor[i], v)
		default:
			g.widen(e, m, t)
			g.VFMADD231PS(t, factor[i], v)
		}
	}
	g.store(v, element(y))
	g.ADDQ(operand.U8(g.lanes), p)
	g.SUBQ(operand.U8(g.lanes), n)
	g.JGE(operand.LabelRef(whole))
	g.Label(rest)
	g.ADDQ(operand.U8(g.lanes), n)
	g.JEQ(operand.LabelRef(done))
	if g.lanes == 4 {
		single := g.label("single")
		g.Label(single)
		g.MOVSS(element(y), v)
		for i, r := range rows {
			g.MOVSS(element(r), t)
			g.MULSS(factor[i], t)
			g.ADDSS(t, v)
		}
		g.MOVSS(v, element(y))
		g.INCQ(p)
		g.DECQ(n)
		g.JNE(operand.LabelRef(single))
	} else {
		end := f
		g.tailShift(e, n, p, end, ld)
		g.tailMask(n, ld, mask)
		g.loadTail(element(y), mask, v)
		for i, r := range rows {
			g.widenTail(e, r, p, end, mask, t)
			g.VFMADD231PS(t, factor[i], v)
		}
		if g.lanes == 16 {
			g.VMOVUPS(v, reg.K1, element(y))
		} else {
			g.VMASKMOVPS(v, mask, element(y))
		}
	}
	g.Label(done)
	g.end()
}
