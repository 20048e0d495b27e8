package x86

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transposeAhead is how far before their use lanes are fetched, in bytes.
const transposeAhead = 256

// transpose writes the packing of lanes whose steps are contiguous: k steps of as many lanes as a vector has, lane i from
// rows[i] on, step p to dst[p*width:]. Each step writes a whole vector.
//
// Four steps of all lanes are loaded so that each 128-bit part of a register holds four steps of one lane; transposing 4×4
// within the parts then gives the vectors.
func (g *gemmGen) transpose() {
	g.begin("transpose", "func(dst *float32, rows **float32, width int, k int)",
		"packs lanes whose steps are contiguous; see transposeGo.")
	dst, rows, width, width3, k, p := reg.RDI, reg.RSI, reg.RDX, reg.R8, reg.RCX, reg.RAX
	g.c.Load(g.c.Param("dst"), dst)
	g.c.Load(g.c.Param("rows"), rows)
	g.c.Load(g.c.Param("width"), width)
	g.c.Load(g.c.Param("k"), k)
	g.c.SHLQ(operand.U8(2), width)
	g.c.LEAQ(operand.Mem{Base: width, Index: width, Scale: 2}, width3)
	g.c.XORQ(p, p)
	ptrs := []reg.GPPhysical{reg.RBX, reg.R9, reg.R10, reg.R11}
	row := func(i int) operand.Mem {
		r := ptrs[i%4]
		g.c.MOVQ(at(rows, 8*i), r)
		return operand.Mem{Base: r, Index: p, Scale: 4}
	}

	// Lines of lanes that are a power of two apart share a set of L1, where they do not stay: they are fetched
	// early, each once.
	many, few := g.label("many"), g.label("few")
	four, tail, done := g.label("four"), g.label("tail"), g.label("done")
	store4 := func() { g.transpose4(row, dst, width, width3, p) }
	g.c.Label(many)
	g.c.CMPQ(k, operand.U8(16))
	g.c.JL(operand.LabelRef(few))
	for part := range 4 {
		for i := part; i < g.lanes; i += 4 {
			m := row(i)
			m.Disp = transposeAhead
			g.c.PREFETCHT0(m)
		}
		store4()
	}
	g.c.SUBQ(operand.U8(16), k)
	g.c.JMP(operand.LabelRef(many))
	g.c.Label(few)
	g.c.Label(four)
	g.c.SUBQ(operand.U8(4), k)
	g.c.JL(operand.LabelRef(tail))
	store4()
	g.c.JMP(operand.LabelRef(four))

	g.c.Label(tail)
	g.c.ADDQ(operand.U8(4), k)
	g.c.JEQ(operand.LabelRef(done))
	step := g.label("step")
	g.c.Label(step)
	for i := range g.lanes {
		r := ptrs[i%4]
		g.c.MOVQ(at(rows, 8*i), r)
		g.c.MOVL(operand.Mem{Base: r, Index: p, Scale: 4}, r.As32())
		g.c.MOVL(r.As32(), at(dst, 4*i))
	}
	g.c.ADDQ(width, dst)
	g.c.INCQ(p)
	g.c.DECQ(k)
	g.c.JNE(operand.LabelRef(step))
	g.c.Label(done)
	g.end()
}

// transpose4 packs four steps.
func (g *gemmGen) transpose4(row func(i int) operand.Mem, dst, width, width3, p reg.GPPhysical) {
	for i := range 4 {
		switch g.lanes {
		case 4:
			g.c.MOVUPS(row(i), g.v[i])
		case 8:
			g.c.VMOVUPS(row(i), xmm[i])
			g.c.VINSERTF128(operand.U8(1), row(i+4), g.v[i], g.v[i])
		default:
			g.c.VMOVUPS(row(i), xmm[i])
			for part := 1; part < 4; part++ {
				g.c.VINSERTF32X4(operand.U8(part), row(i+4*part), g.v[i], g.v[i])
			}
		}
	}
	if g.lanes == 4 {
		// a0 b0 a1 b1, a2 b2 a3 b3, c0 d0 c1 d1, c2 d2 c3 d3
		g.c.MOVAPS(g.v[0], g.v[4])
		g.c.UNPCKLPS(g.v[1], g.v[4])
		g.c.UNPCKHPS(g.v[1], g.v[0])
		g.c.MOVAPS(g.v[2], g.v[5])
		g.c.UNPCKLPS(g.v[3], g.v[5])
		g.c.UNPCKHPS(g.v[3], g.v[2])
		g.c.MOVAPS(g.v[4], g.v[6])
		g.c.MOVLHPS(g.v[5], g.v[6])
		g.c.MOVHLPS(g.v[4], g.v[5])
		g.c.MOVAPS(g.v[0], g.v[7])
		g.c.MOVLHPS(g.v[2], g.v[7])
		g.c.MOVHLPS(g.v[0], g.v[2])
	} else {
		g.c.VUNPCKLPS(g.v[1], g.v[0], g.v[4])
		g.c.VUNPCKHPS(g.v[1], g.v[0], g.v[5])
		g.c.VUNPCKLPS(g.v[3], g.v[2], g.v[6])
		g.c.VUNPCKHPS(g.v[3], g.v[2], g.v[7])
		g.c.VUNPCKLPD(g.v[6], g.v[4], g.v[0])
		g.c.VUNPCKHPD(g.v[6], g.v[4], g.v[1])
		g.c.VUNPCKLPD(g.v[7], g.v[5], g.v[2])
		g.c.VUNPCKHPD(g.v[7], g.v[5], g.v[3])
	}
	from := g.v[:4]
	if g.lanes == 4 {
		from = []reg.VecPhysical{g.v[6], g.v[5], g.v[7], g.v[2]}
	}
	g.store(from[0], at(dst, 0))
	g.store(from[1], operand.Mem{Base: dst, Index: width, Scale: 1})
	g.store(from[2], operand.Mem{Base: dst, Index: width, Scale: 2})
	g.store(from[3], operand.Mem{Base: dst, Index: width3, Scale: 1})
	g.c.LEAQ(operand.Mem{Base: dst, Index: width, Scale: 4}, dst)
	g.c.ADDQ(operand.U8(4), p)
}

var xmm = []reg.VecPhysical{reg.X0, reg.X1, reg.X2, reg.X3}

// copyAhead is how many rows before their use rows of B are fetched.
const copyAhead = 4

// copies writes the packing of whole panels whose columns are contiguous, row after row: rows are read along their length, as
// prefetchers and address translation like it.
func (g *gemmGen) copies() {
	g.begin("copyPanels", "func(dst *float32, x *float32, ld int, panels int, k int)", "packs panels of B; see copyPanelsGo.")
	dst, x, ld, panels, k := reg.RDI, reg.RSI, reg.RDX, reg.RCX, reg.R8
	from, to, left, size, ahead := reg.R9, reg.R10, reg.R11, reg.R12, reg.RBX
	g.c.Load(g.c.Param("dst"), dst)
	g.c.Load(g.c.Param("x"), x)
	g.c.Load(g.c.Param("ld"), ld)
	g.c.Load(g.c.Param("panels"), panels)
	g.c.Load(g.c.Param("k"), k)
	wide := 4 * g.lanes * g.vectors
	g.c.SHLQ(operand.U8(2), ld)
	g.c.MOVQ(k, size)
	g.c.IMUL3Q(operand.U32(wide), size, size)
	row, panel := g.label("row"), g.label("panel")
	g.c.Label(row)
	g.c.MOVQ(x, from)
	g.c.LEAQ(operand.Mem{Base: x, Index: ld, Scale: copyAhead}, ahead)
	g.c.MOVQ(dst, to)
	g.c.MOVQ(panels, left)
	g.c.Label(panel)
	for i := 0; i < wide; i += 64 {
		g.c.PREFETCHT0(at(ahead, i))
	}
	for j := range g.vectors {
		g.load(at(from, 4*g.lanes*j), g.v[j])
	}
	for j := range g.vectors {
		g.store(g.v[j], at(to, 4*g.lanes*j))
	}
	g.c.ADDQ(operand.U32(wide), from)
	g.c.ADDQ(operand.U32(wide), ahead)
	g.c.ADDQ(size, to)
	g.c.DECQ(left)
	g.c.JNE(operand.LabelRef(panel))
	g.c.ADDQ(operand.U32(wide), dst)
	g.c.ADDQ(ld, x)
	g.c.DECQ(k)
	g.c.JNE(operand.LabelRef(row))
	g.end()
}

// rim writes the packing of a panel whose lanes are contiguous and fewer than a panel has: k rows of cols elements, at most
// two vectors, to rows of width. Each row is written in whole vectors, the rest of the last one 0.
func (g *gemmGen) rim() {
	g.begin("copyRim", "func(dst *float32, x *float32, ld int, cols int, width int, k int)",
		"packs a narrow panel; see copyRimGo.")
	dst, x, ld, cols, width, k, table := reg.RDI, reg.RSI, reg.RDX, reg.RCX, reg.R8, reg.R9, reg.RBX
	g.c.Load(g.c.Param("dst"), dst)
	g.c.Load(g.c.Param("x"), x)
	g.c.Load(g.c.Param("ld"), ld)
	g.c.Load(g.c.Param("cols"), cols)
	g.c.Load(g.c.Param("width"), width)
	g.c.Load(g.c.Param("k"), k)
	g.c.SHLQ(operand.U8(2), ld)
	g.c.SHLQ(operand.U8(2), width)
	v, mask := g.v[:2], g.v[2]
	rows := func(vectors int) {
		if vectors > 1 {
			g.c.SUBQ(operand.U8(g.lanes), cols)
		}
		if g.lanes == 16 {
			g.c.MOVL(operand.U32(0xffffffff), table.As32())
			g.c.BZHIL(cols.As32(), table.As32(), table.As32())
			g.c.KMOVW(table.As32(), reg.K1)
		} else {
			g.c.LEAQ(g.masks(), table)
			g.c.SHLQ(operand.U8(2), cols)
			g.c.SUBQ(cols, table)
			g.c.VMOVUPS(at(table, 32), mask)
		}
		row := g.label("row")
		g.c.Label(row)
		last := at(x, 0)
		if vectors > 1 {
			g.load(at(x, 0), v[0])
			last.Disp = 4 * g.lanes
		}
		if g.lanes == 16 {
			g.c.VMOVUPS_Z(last, reg.K1, v[1])
		} else {
			g.c.VMASKMOVPS(last, mask, v[1])
		}
		if vectors > 1 {
			g.store(v[0], at(dst, 0))
		}
		g.store(v[1], at(dst, last.Disp))
		g.c.ADDQ(ld, x)
		g.c.ADDQ(width, dst)
		g.c.DECQ(k)
		g.c.JNE(operand.LabelRef(row))
		g.end()
	}
	wide := g.label("wide")
	g.c.CMPQ(cols, operand.U8(g.lanes))
	g.c.JG(operand.LabelRef(wide))
	rows(1)
	g.c.Label(wide)
	rows(2)
}
