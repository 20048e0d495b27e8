package x86

import (
	"math/bits"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Kernels of products with a vector take several rows of the matrix at a time: they share what is loaded of the vector, and
// memory delivers several streams faster than one. Asking for the next rows meanwhile makes both slower where L2 has them.
const axpyRowCount = 8

// rowPointers sets registers to the beginnings of rows.
func (g *gemmGen) rowPointers(rows []reg.GPPhysical, ld reg.Register, e elements) {
	g.c.SHLQ(operand.U8(bits.TrailingZeros(uint(e.size()))), ld)
	for i := 1; i < len(rows); i++ {
		g.c.LEAQ(operand.Mem{Base: rows[i-1], Index: ld, Scale: 1}, rows[i])
	}
}

// tailMask prepares K1 or a vector for the elements that are left in a register: fewer than a vector, at least one.
func (g *gemmGen) tailMask(left, spare reg.GPPhysical, mask reg.VecPhysical) {
	if g.lanes == 16 {
		g.c.MOVL(operand.U32(0xffffffff), spare.As32())
		g.c.BZHIL(left.As32(), spare.As32(), spare.As32())
		g.c.KMOVW(spare.As32(), reg.K1)
		return
	}
	g.c.LEAQ(g.masks(), spare)
	g.c.SHLQ(operand.U8(2), left)
	g.c.SUBQ(left, spare)
	g.c.VMOVUPS(at(spare, 32), mask)
}

// loadTail loads the elements under the mask, zeros elsewhere.
func (g *gemmGen) loadTail(m operand.Mem, mask, v reg.VecPhysical) {
	if g.lanes == 16 {
		g.c.VMOVUPS_Z(m, reg.K1, v)
	} else {
		g.c.VMASKMOVPS(m, mask, v)
	}
}

// dots writes the function that multiplies rows with a vector: four at a time, then single ones.
func (g *gemmGen) dots(e elements) {
	g.begin("dotRows"+e.suffix(), "func(y *float32, a *"+e.goType()+", ld int, x *float32, n, rows int)", "computes dot products of rows; see dotRowsGo.")
	g.c.Load(g.c.Param("y"), reg.RDI)
	g.c.Load(g.c.Param("a"), reg.RSI)
	g.c.Load(g.c.Param("ld"), reg.RDX)
	g.c.Load(g.c.Param("x"), reg.RCX)
	g.c.Load(g.c.Param("n"), reg.R15)
	g.c.Load(g.c.Param("rows"), reg.R13)
	g.rowPointers([]reg.GPPhysical{reg.RSI, reg.R9, reg.R10, reg.R11}, reg.RDX, e)
	g.dotsTogether(e, 4)
	g.dotsTogether(e, 1)
	g.end()
}

// dotsTogether takes rows while there are as many. Of one row four accumulators are as many as multiplications in flight beside its loads.
func (g *gemmGen) dotsTogether(e elements, together int) {
	steps := 2
	if together == 1 {
		steps = 4
	}
	y, ld, x, n, p, left, whole := reg.RDI, reg.RDX, reg.RCX, reg.R8, reg.RAX, reg.R13, reg.R15
	rows := []reg.GPPhysical{reg.RSI, reg.R9, reg.R10, reg.R11}[:together]
	acc := func(i, j int) reg.VecPhysical { return g.v[i*steps+j] }
	v, t := g.v[8:10], g.v[10]
	group, none := g.label("group"), g.label("none")
	g.c.SUBQ(operand.U8(together), left)
	g.c.JL(operand.LabelRef(none))
	g.c.Label(group)
	g.c.XORQ(p, p)
	g.c.MOVQ(whole, n)
	for _, a := range g.v[:together*steps] {
		g.zero(a)
	}
	element := func(base reg.Register, j int) operand.Mem {
		return operand.Mem{Base: base, Index: p, Scale: 4, Disp: 4 * g.lanes * j}
	}
	step := func(vectors int) {
		for j := range vectors {
			factor := operand.Op(element(x, j))
			if together > 1 || g.lanes == 4 {
				g.load(element(x, j), v[j%2])
				factor = v[j%2]
			}
			for i, r := range rows {
				switch m := e.at(r, p, j*g.lanes); {
				case g.lanes == 4:
					g.load(m, t)
					g.c.MULPS(factor, t)
					g.c.ADDPS(t, acc(i, j))
				case e == full && together > 1:
					g.c.VFMADD231PS(m, v[j%2], acc(i, j))
				default:
					g.widen(e, m, t)
					g.c.VFMADD231PS(factor, t, acc(i, j))
				}
			}
		}
		g.c.ADDQ(operand.U8(vectors*g.lanes), p)
	}
	several, few, one, rest, done := g.label("several"), g.label("few"), g.label("one"), g.label("rest"), g.label("sum")
	g.c.SUBQ(operand.U8(steps*g.lanes), n)
	g.c.JL(operand.LabelRef(few))
	g.c.Label(several)
	step(steps)
	g.c.SUBQ(operand.U8(steps*g.lanes), n)
	g.c.JGE(operand.LabelRef(several))
	g.c.Label(few)
	g.c.ADDQ(operand.U8((steps-1)*g.lanes), n)
	g.c.JL(operand.LabelRef(rest))
	g.c.Label(one)
	step(1)
	g.c.SUBQ(operand.U8(g.lanes), n)
	if steps > 2 {
		g.c.JGE(operand.LabelRef(one))
	}
	g.c.Label(rest)
	g.c.ADDQ(operand.U8(g.lanes), n)
	g.c.JEQ(operand.LabelRef(done))
	if g.lanes == 4 {
		single := g.label("single")
		g.c.Label(single)
		g.c.MOVSS(element(x, 0), v[0])
		for i, r := range rows {
			g.c.MOVSS(element(r, 0), t)
			g.c.MULSS(v[0], t)
			g.c.ADDSS(t, acc(i, 0))
		}
		g.c.INCQ(p)
		g.c.DECQ(n)
		g.c.JNE(operand.LabelRef(single))
	} else {
		mask, end := g.v[11], reg.R12
		g.tailShift(e, n, p, end, reg.RBX)
		g.tailMask(n, reg.RBX, mask)
		g.loadTail(element(x, 0), mask, v[0])
		for i, r := range rows {
			g.widenTail(e, r, p, end, mask, t)
			g.c.VFMADD231PS(t, v[0], acc(i, 0))
		}
	}
	g.c.Label(done)
	if together == 1 {
		g.sumRow(y)
	} else {
		g.sumRows(y)
	}
	g.c.ADDQ(operand.U8(4*together), y)
	for _, r := range rows {
		g.c.LEAQ(operand.Mem{Base: r, Index: ld, Scale: uint8(together)}, r)
	}
	g.c.SUBQ(operand.U8(together), left)
	g.c.JGE(operand.LabelRef(group))
	g.c.Label(none)
	g.c.ADDQ(operand.U8(together), left)
}

// sumRow adds up the accumulators of one row and stores the sum.
func (g *gemmGen) sumRow(y reg.Register) {
	if g.lanes == 4 {
		g.c.ADDPS(reg.X1, reg.X0)
		g.c.ADDPS(reg.X3, reg.X2)
		g.c.ADDPS(reg.X2, reg.X0)
		g.c.MOVHLPS(reg.X0, reg.X1)
		g.c.ADDPS(reg.X1, reg.X0)
		g.c.MOVAPS(reg.X0, reg.X1)
		g.c.SHUFPS(operand.U8(1), reg.X1, reg.X1)
		g.c.ADDSS(reg.X1, reg.X0)
		g.c.MOVSS(reg.X0, at(y, 0))
		return
	}
	g.c.VADDPS(g.v[1], g.v[0], g.v[0])
	g.c.VADDPS(g.v[3], g.v[2], g.v[2])
	g.c.VADDPS(g.v[2], g.v[0], g.v[0])
	if g.lanes == 16 {
		g.c.VEXTRACTF64X4(operand.U8(1), g.v[0], reg.Y1)
		g.c.VADDPS(reg.Y1, reg.Y0, reg.Y0)
	}
	g.c.VEXTRACTF128(operand.U8(1), reg.Y0, reg.X1)
	g.c.VADDPS(reg.X1, reg.X0, reg.X0)
	g.c.VHADDPS(reg.X0, reg.X0, reg.X0)
	g.c.VHADDPS(reg.X0, reg.X0, reg.X0)
	g.c.VMOVSS(reg.X0, at(y, 0))
}

// sumRows adds up the accumulators of four rows and stores the sums.
func (g *gemmGen) sumRows(y reg.Register) {
	if g.lanes > 4 {
		s := []reg.VecPhysical{reg.Y0, reg.Y2, reg.Y4, reg.Y6}
		for i := range s {
			g.c.VADDPS(g.v[2*i+1], g.v[2*i], g.v[2*i])
			if g.lanes == 16 {
				g.c.VEXTRACTF64X4(operand.U8(1), g.v[2*i], reg.Y8)
				g.c.VADDPS(reg.Y8, s[i], s[i])
			}
		}
		g.c.VHADDPS(s[1], s[0], s[0])
		g.c.VHADDPS(s[3], s[2], s[2])
		g.c.VHADDPS(s[2], s[0], s[0])
		g.c.VEXTRACTF128(operand.U8(1), s[0], reg.X8)
		g.c.VADDPS(reg.X8, reg.X0, reg.X0)
		g.c.VMOVUPS(reg.X0, at(y, 0))
		return
	}
	x := []reg.VecPhysical{reg.X0, reg.X2, reg.X4, reg.X6}
	for i := range 4 {
		g.c.ADDPS(g.v[2*i+1], g.v[2*i])
	}
	// The four vectors of four are transposed and added.
	g.c.MOVAPS(x[0], reg.X8)
	g.c.UNPCKLPS(x[1], x[0])
	g.c.UNPCKHPS(x[1], reg.X8)
	g.c.ADDPS(reg.X8, x[0])
	g.c.MOVAPS(x[2], reg.X8)
	g.c.UNPCKLPS(x[3], x[2])
	g.c.UNPCKHPS(x[3], reg.X8)
	g.c.ADDPS(reg.X8, x[2])
	g.c.MOVAPS(x[0], reg.X8)
	g.c.MOVLHPS(x[2], x[0])
	g.c.MOVHLPS(reg.X8, x[2])
	g.c.ADDPS(x[2], x[0])
	g.c.MOVUPS(x[0], at(y, 0))
}

// columns writes the function that multiplies a vector with a matrix near the processor: columns stay in registers from the first row to
// the last, in as many sums as FMAs are in flight.
func (g *gemmGen) columns() {
	g.begin("columns", "func(y, a *float32, ld int, f *float32, rows, n int)", "adds up multiples of rows; see columns.")
	y, a, ld, f, count, n := reg.RDI, reg.RSI, reg.RDX, reg.RCX, reg.R9, reg.R8
	row, row4, three, factor, left := reg.R10, reg.R11, reg.R12, reg.RBX, reg.RAX
	g.c.Load(g.c.Param("y"), y)
	g.c.Load(g.c.Param("a"), a)
	g.c.Load(g.c.Param("ld"), ld)
	g.c.Load(g.c.Param("f"), f)
	g.c.Load(g.c.Param("rows"), count)
	g.c.Load(g.c.Param("n"), n)
	g.c.SHLQ(operand.U8(2), ld)
	g.c.LEAQ(operand.Mem{Base: ld, Index: ld, Scale: 2}, three)
	done := g.label("done")
	rowAt := func(u int) operand.Mem {
		base := row
		if u >= 4 {
			base = row4
		}
		switch u % 4 {
		case 0:
			return operand.Mem{Base: base}
		case 3:
			return operand.Mem{Base: base, Index: three, Scale: 1}
		}
		return operand.Mem{Base: base, Index: ld, Scale: uint8(u % 4)}
	}
	mask, spare := g.v[10], g.v[8:10]
	// block adds up so many vectors of columns; the last are fewer than a vector.
	block := func(vectors int, tail bool) {
		unroll := 8 / vectors
		if tail {
			unroll = 4
		}
		size := 4 * g.lanes
		sum := func(u, j int) reg.VecPhysical { return g.v[u*vectors+j] }
		add := func(u int, m operand.Mem) {
			g.broadcast(at(factor, 4*u), spare[0])
			for j := range vectors {
				m.Disp = size * j
				if tail {
					g.loadTail(m, mask, spare[1])
					g.c.VFMADD231PS(spare[1], spare[0], sum(u, j))
				} else {
					g.c.VFMADD231PS(m, spare[0], sum(u, j))
				}
			}
		}
		many, rest, single, store := g.label("many"), g.label("rest"), g.label("single"), g.label("store")
		for i := range unroll * vectors {
			g.zero(g.v[i])
		}
		g.c.MOVQ(a, row)
		g.c.MOVQ(f, factor)
		g.c.MOVQ(count, left)
		g.c.SUBQ(operand.U8(unroll), left)
		g.c.JL(operand.LabelRef(rest))
		g.c.Label(many)
		if unroll > 4 {
			g.c.LEAQ(operand.Mem{Base: row, Index: ld, Scale: 4}, row4)
		}
		for u := range unroll {
			add(u, rowAt(u))
		}
		g.c.LEAQ(operand.Mem{Base: row, Index: ld, Scale: uint8(unroll)}, row)
		g.c.ADDQ(operand.U8(4*unroll), factor)
		g.c.SUBQ(operand.U8(unroll), left)
		g.c.JGE(operand.LabelRef(many))
		g.c.Label(rest)
		g.c.ADDQ(operand.U8(unroll), left)
		g.c.JEQ(operand.LabelRef(store))
		g.c.Label(single)
		add(0, operand.Mem{Base: row})
		g.c.ADDQ(ld, row)
		g.c.ADDQ(operand.U8(4), factor)
		g.c.DECQ(left)
		g.c.JNE(operand.LabelRef(single))
		g.c.Label(store)
		for half := unroll / 2; half > 0; half /= 2 {
			for u := range half {
				for j := range vectors {
					g.c.VADDPS(sum(u+half, j), sum(u, j), sum(u, j))
				}
			}
		}
		for j := range vectors {
			to := at(y, size*j)
			switch {
			case !tail:
				g.store(sum(0, j), to)
			case g.lanes == 16:
				g.c.VMOVUPS(sum(0, j), reg.K1, to)
			default:
				g.c.VMASKMOVPS(sum(0, j), mask, to)
			}
		}
		if !tail {
			g.c.ADDQ(operand.U32(size*vectors), y)
			g.c.ADDQ(operand.U32(size*vectors), a)
			g.c.SUBQ(operand.U8(g.lanes*vectors), n)
		}
	}
	for _, vectors := range []int{4, 2, 1} {
		again, next := g.label("wide"), g.label("next")
		g.c.Label(again)
		g.c.CMPQ(n, operand.U8(g.lanes*vectors))
		g.c.JL(operand.LabelRef(next))
		block(vectors, false)
		g.c.JMP(operand.LabelRef(again))
		g.c.Label(next)
	}
	g.c.TESTQ(n, n)
	g.c.JEQ(operand.LabelRef(done))
	g.c.MOVQ(n, left)
	g.tailMask(left, row, mask)
	block(1, true)
	g.c.Label(done)
	g.end()
}

// axpys writes the function that adds rows, eight at a time, each times a factor.
func (g *gemmGen) axpys(e elements) {
	g.begin("axpyRows"+e.suffix(), "func(y *float32, a *"+e.goType()+", ld int, f *float32, n, eights int)",
		"adds eight multiples of rows at a time; see axpyRowsGo.")
	y, ld, f, n, p := reg.RDI, reg.RDX, reg.RCX, reg.R8, reg.RAX
	rows := []reg.GPPhysical{reg.RSI, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.RBX, reg.R15}
	g.c.Load(g.c.Param("y"), y)
	g.c.Load(g.c.Param("a"), rows[0])
	g.c.Load(g.c.Param("ld"), ld)
	g.rowPointers(rows, ld, e)
	factor, v, t, mask := g.v[:8], g.v[8], g.v[9], g.v[10]
	again := g.label("again")
	g.c.Label(again)
	g.c.Load(g.c.Param("f"), f)
	g.c.Load(g.c.Param("n"), n)
	for i, r := range factor {
		g.broadcast(at(f, 4*i), r)
	}
	g.c.XORQ(p, p)
	element := func(base reg.Register) operand.Mem { return operand.Mem{Base: base, Index: p, Scale: 4} }
	whole, rest, done := g.label("whole"), g.label("rest"), g.label("done")
	g.c.SUBQ(operand.U8(g.lanes), n)
	g.c.JL(operand.LabelRef(rest))
	g.c.Label(whole)
	g.load(element(y), v)
	for i, r := range rows {
		switch m := e.at(r, p, 0); {
		case g.lanes == 4:
			g.load(m, t)
			g.c.MULPS(factor[i], t)
			g.c.ADDPS(t, v)
		case e == full:
			g.c.VFMADD231PS(m, factor[i], v)
		default:
			g.widen(e, m, t)
			g.c.VFMADD231PS(t, factor[i], v)
		}
	}
	g.store(v, element(y))
	g.c.ADDQ(operand.U8(g.lanes), p)
	g.c.SUBQ(operand.U8(g.lanes), n)
	g.c.JGE(operand.LabelRef(whole))
	g.c.Label(rest)
	g.c.ADDQ(operand.U8(g.lanes), n)
	g.c.JEQ(operand.LabelRef(done))
	if g.lanes == 4 {
		single := g.label("single")
		g.c.Label(single)
		g.c.MOVSS(element(y), v)
		for i, r := range rows {
			g.c.MOVSS(element(r), t)
			g.c.MULSS(factor[i], t)
			g.c.ADDSS(t, v)
		}
		g.c.MOVSS(v, element(y))
		g.c.INCQ(p)
		g.c.DECQ(n)
		g.c.JNE(operand.LabelRef(single))
	} else {
		end := f
		g.tailShift(e, n, p, end, ld)
		g.tailMask(n, ld, mask)
		g.loadTail(element(y), mask, v)
		for i, r := range rows {
			g.widenTail(e, r, p, end, mask, t)
			g.c.VFMADD231PS(t, factor[i], v)
		}
		if g.lanes == 16 {
			g.c.VMOVUPS(v, reg.K1, element(y))
		} else {
			g.c.VMASKMOVPS(v, mask, element(y))
		}
	}
	g.c.Label(done)
	g.c.Load(g.c.Param("ld"), ld)
	g.c.SHLQ(operand.U8(bits.TrailingZeros(uint(e.size()))), ld)
	for _, r := range rows {
		g.c.LEAQ(operand.Mem{Base: r, Index: ld, Scale: axpyRowCount}, r)
	}
	g.c.ADDQ(operand.U8(4*axpyRowCount), slot(g.c, "f"))
	g.c.DECQ(slot(g.c, "eights"))
	g.c.JNE(operand.LabelRef(again))
	g.end()
}
