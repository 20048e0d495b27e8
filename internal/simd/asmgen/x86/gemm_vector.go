package x86

import (
	"math/bits"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Kernels of products with a vector take several rows of the matrix at a time: they share what is loaded of the vector, and
// memory delivers several streams faster than one. Asking for the next rows meanwhile makes both slower where L2 has them.
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

// dots writes the function that multiplies rows with a vector, four at a time.
func (g *gemmGen) dots(e elements) {
	g.begin("dotRows"+e.suffix(), "func(y *float32, a *"+e.goType()+", ld int, x *float32, n, fours int)",
		"computes dot products of four rows at a time; see dotRowsGo.")
	y, ld, x, n, p, fours, whole := reg.RDI, reg.RDX, reg.RCX, reg.R8, reg.RAX, reg.R13, reg.R15
	rows := []reg.GPPhysical{reg.RSI, reg.R9, reg.R10, reg.R11}
	g.Load(g.Param("y"), y)
	g.Load(g.Param("a"), rows[0])
	g.Load(g.Param("ld"), ld)
	g.Load(g.Param("x"), x)
	g.Load(g.Param("n"), whole)
	g.Load(g.Param("fours"), fours)
	g.rowPointers(rows, ld, e)
	acc := func(i, j int) reg.VecPhysical { return g.v[i*2+j] }
	v, t := g.v[8:10], g.v[10]
	group := g.label("four")
	g.Label(group)
	g.XORQ(p, p)
	g.MOVQ(whole, n)
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
	g.ADDQ(operand.U8(4*dotRowCount), y)
	for _, r := range rows {
		g.LEAQ(operand.Mem{Base: r, Index: ld, Scale: dotRowCount}, r)
	}
	g.DECQ(fours)
	g.JNE(operand.LabelRef(group))
	g.end()
}

// sumRows adds up the accumulators of four rows and stores the sums.
func (g *gemmGen) sumRows(y reg.Register) {
	if g.lanes > 4 {
		s := []reg.VecPhysical{reg.Y0, reg.Y2, reg.Y4, reg.Y6}
		for i := range s {
			g.VADDPS(g.v[2*i+1], g.v[2*i], g.v[2*i])
			if g.lanes == 16 {
				g.VEXTRACTF64X4(operand.U8(1), g.v[2*i], reg.Y8)
				g.VADDPS(reg.Y8, s[i], s[i])
			}
		}
		g.VHADDPS(s[1], s[0], s[0])
		g.VHADDPS(s[3], s[2], s[2])
		g.VHADDPS(s[2], s[0], s[0])
		g.VEXTRACTF128(operand.U8(1), s[0], reg.X8)
		g.VADDPS(reg.X8, reg.X0, reg.X0)
		g.VMOVUPS(reg.X0, at(y, 0))
		return
	}
	x := []reg.VecPhysical{reg.X0, reg.X2, reg.X4, reg.X6}
	for i := range 4 {
		g.ADDPS(g.v[2*i+1], g.v[2*i])
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

// columns writes the function that multiplies a vector with a matrix near the processor: columns stay in registers from the first row to
// the last, in as many sums as FMAs are in flight.
func (g *gemmGen) columns() {
	g.begin("columns", "func(y, a *float32, ld int, f *float32, rows, n int)", "adds up multiples of rows; see columns.")
	y, a, ld, f, count, n := reg.RDI, reg.RSI, reg.RDX, reg.RCX, reg.R9, reg.R8
	row, row4, three, factor, left := reg.R10, reg.R11, reg.R12, reg.RBX, reg.RAX
	g.Load(g.Param("y"), y)
	g.Load(g.Param("a"), a)
	g.Load(g.Param("ld"), ld)
	g.Load(g.Param("f"), f)
	g.Load(g.Param("rows"), count)
	g.Load(g.Param("n"), n)
	g.SHLQ(operand.U8(2), ld)
	g.LEAQ(operand.Mem{Base: ld, Index: ld, Scale: 2}, three)
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
					g.VFMADD231PS(spare[1], spare[0], sum(u, j))
				} else {
					g.VFMADD231PS(m, spare[0], sum(u, j))
				}
			}
		}
		many, rest, single, store := g.label("many"), g.label("rest"), g.label("single"), g.label("store")
		for i := range unroll * vectors {
			g.zero(g.v[i])
		}
		g.MOVQ(a, row)
		g.MOVQ(f, factor)
		g.MOVQ(count, left)
		g.SUBQ(operand.U8(unroll), left)
		g.JL(operand.LabelRef(rest))
		g.Label(many)
		if unroll > 4 {
			g.LEAQ(operand.Mem{Base: row, Index: ld, Scale: 4}, row4)
		}
		for u := range unroll {
			add(u, rowAt(u))
		}
		g.LEAQ(operand.Mem{Base: row, Index: ld, Scale: uint8(unroll)}, row)
		g.ADDQ(operand.U8(4*unroll), factor)
		g.SUBQ(operand.U8(unroll), left)
		g.JGE(operand.LabelRef(many))
		g.Label(rest)
		g.ADDQ(operand.U8(unroll), left)
		g.JEQ(operand.LabelRef(store))
		g.Label(single)
		add(0, operand.Mem{Base: row})
		g.ADDQ(ld, row)
		g.ADDQ(operand.U8(4), factor)
		g.DECQ(left)
		g.JNE(operand.LabelRef(single))
		g.Label(store)
		for half := unroll / 2; half > 0; half /= 2 {
			for u := range half {
				for j := range vectors {
					g.VADDPS(sum(u+half, j), sum(u, j), sum(u, j))
				}
			}
		}
		for j := range vectors {
			to := at(y, size*j)
			switch {
			case !tail:
				g.store(sum(0, j), to)
			case g.lanes == 16:
				g.VMOVUPS(sum(0, j), reg.K1, to)
			default:
				g.VMASKMOVPS(sum(0, j), mask, to)
			}
		}
		if !tail {
			g.ADDQ(operand.U32(size*vectors), y)
			g.ADDQ(operand.U32(size*vectors), a)
			g.SUBQ(operand.U8(g.lanes*vectors), n)
		}
	}
	for _, vectors := range []int{4, 2, 1} {
		again, next := g.label("wide"), g.label("next")
		g.Label(again)
		g.CMPQ(n, operand.U8(g.lanes*vectors))
		g.JL(operand.LabelRef(next))
		block(vectors, false)
		g.JMP(operand.LabelRef(again))
		g.Label(next)
	}
	g.TESTQ(n, n)
	g.JEQ(operand.LabelRef(done))
	g.MOVQ(n, left)
	g.tailMask(left, row, mask)
	block(1, true)
	g.Label(done)
	g.end()
}

// axpys writes the function that adds rows, eight at a time, each times a factor.
func (g *gemmGen) axpys(e elements) {
	g.begin("axpyRows"+e.suffix(), "func(y *float32, a *"+e.goType()+", ld int, f *float32, n, eights int)",
		"adds eight multiples of rows at a time; see axpyRowsGo.")
	y, ld, f, n, p := reg.RDI, reg.RDX, reg.RCX, reg.R8, reg.RAX
	rows := []reg.GPPhysical{reg.RSI, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.RBX, reg.R15}
	g.Load(g.Param("y"), y)
	g.Load(g.Param("a"), rows[0])
	g.Load(g.Param("ld"), ld)
	g.rowPointers(rows, ld, e)
	factor, v, t, mask := g.v[:8], g.v[8], g.v[9], g.v[10]
	again := g.label("again")
	g.Label(again)
	g.Load(g.Param("f"), f)
	g.Load(g.Param("n"), n)
	for i, r := range factor {
		g.broadcast(at(f, 4*i), r)
	}
	g.XORQ(p, p)
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
	g.Load(g.Param("ld"), ld)
	g.SHLQ(operand.U8(bits.TrailingZeros(uint(e.size()))), ld)
	for _, r := range rows {
		g.LEAQ(operand.Mem{Base: r, Index: ld, Scale: axpyRowCount}, r)
	}
	g.ADDQ(operand.U8(4*axpyRowCount), slot(g.Context, "f"))
	g.DECQ(slot(g.Context, "eights"))
	g.JNE(operand.LabelRef(again))
	g.end()
}
