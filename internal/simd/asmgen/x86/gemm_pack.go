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
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("rows"), rows)
	g.Load(g.Param("width"), width)
	g.Load(g.Param("k"), k)
	g.SHLQ(operand.U8(2), width)
	g.LEAQ(operand.Mem{Base: width, Index: width, Scale: 2}, width3)
	g.XORQ(p, p)
	ptrs := []reg.GPPhysical{reg.RBX, reg.R9, reg.R10, reg.R11}
	row := func(i int) operand.Mem {
		r := ptrs[i%4]
		g.MOVQ(at(rows, 8*i), r)
		return operand.Mem{Base: r, Index: p, Scale: 4}
	}

	// Lines of lanes that are a power of two apart share a set of L1, where they do not stay: they are fetched
	// early, each once.
	many, few := g.label("many"), g.label("few")
	four, tail, done := g.label("four"), g.label("tail"), g.label("done")
	store4 := func() { g.transpose4(row, dst, width, width3, p) }
	g.Label(many)
	g.CMPQ(k, operand.U8(16))
	g.JL(operand.LabelRef(few))
	for part := range 4 {
		for i := part; i < g.lanes; i += 4 {
			m := row(i)
			m.Disp = transposeAhead
			g.PREFETCHT0(m)
		}
		store4()
	}
	g.SUBQ(operand.U8(16), k)
	g.JMP(operand.LabelRef(many))
	g.Label(few)
	g.Label(four)
	g.SUBQ(operand.U8(4), k)
	g.JL(operand.LabelRef(tail))
	store4()
	g.JMP(operand.LabelRef(four))

	g.Label(tail)
	g.ADDQ(operand.U8(4), k)
	g.JEQ(operand.LabelRef(done))
	step := g.label("step")
	g.Label(step)
	for i := range g.lanes {
		r := ptrs[i%4]
		g.MOVQ(at(rows, 8*i), r)
		g.MOVL(operand.Mem{Base: r, Index: p, Scale: 4}, r.As32())
		g.MOVL(r.As32(), at(dst, 4*i))
	}
	g.ADDQ(width, dst)
	g.INCQ(p)
	g.DECQ(k)
	g.JNE(operand.LabelRef(step))
	g.Label(done)
	g.end()
}

// transpose4 packs four steps.
func (g *gemmGen) transpose4(row func(i int) operand.Mem, dst, width, width3, p reg.GPPhysical) {
	for i := range 4 {
		switch g.lanes {
		case 4:
			g.MOVUPS(row(i), g.v[i])
		case 8:
			g.VMOVUPS(row(i), xmm[i])
			g.VINSERTF128(operand.U8(1), row(i+4), g.v[i], g.v[i])
		default:
			g.VMOVUPS(row(i), xmm[i])
			for part := 1; part < 4; part++ {
				g.VINSERTF32X4(operand.U8(part), row(i+4*part), g.v[i], g.v[i])
			}
		}
	}
	if g.lanes == 4 {
		// a0 b0 a1 b1, a2 b2 a3 b3, c0 d0 c1 d1, c2 d2 c3 d3
		g.MOVAPS(g.v[0], g.v[4])
		g.UNPCKLPS(g.v[1], g.v[4])
		g.UNPCKHPS(g.v[1], g.v[0])
		g.MOVAPS(g.v[2], g.v[5])
		g.UNPCKLPS(g.v[3], g.v[5])
		g.UNPCKHPS(g.v[3], g.v[2])
		g.MOVAPS(g.v[4], g.v[6])
		g.MOVLHPS(g.v[5], g.v[6])
		g.MOVHLPS(g.v[4], g.v[5])
		g.MOVAPS(g.v[0], g.v[7])
		g.MOVLHPS(g.v[2], g.v[7])
		g.MOVHLPS(g.v[0], g.v[2])
	} else {
		g.VUNPCKLPS(g.v[1], g.v[0], g.v[4])
		g.VUNPCKHPS(g.v[1], g.v[0], g.v[5])
		g.VUNPCKLPS(g.v[3], g.v[2], g.v[6])
		g.VUNPCKHPS(g.v[3], g.v[2], g.v[7])
		g.VUNPCKLPD(g.v[6], g.v[4], g.v[0])
		g.VUNPCKHPD(g.v[6], g.v[4], g.v[1])
		g.VUNPCKLPD(g.v[7], g.v[5], g.v[2])
		g.VUNPCKHPD(g.v[7], g.v[5], g.v[3])
	}
	from := g.v[:4]
	if g.lanes == 4 {
		from = []reg.VecPhysical{g.v[6], g.v[5], g.v[7], g.v[2]}
	}
	g.store(from[0], at(dst, 0))
	g.store(from[1], operand.Mem{Base: dst, Index: width, Scale: 1})
	g.store(from[2], operand.Mem{Base: dst, Index: width, Scale: 2})
	g.store(from[3], operand.Mem{Base: dst, Index: width3, Scale: 1})
	g.LEAQ(operand.Mem{Base: dst, Index: width, Scale: 4}, dst)
	g.ADDQ(operand.U8(4), p)
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
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("x"), x)
	g.Load(g.Param("ld"), ld)
	g.Load(g.Param("panels"), panels)
	g.Load(g.Param("k"), k)
	wide := 4 * g.lanes * g.vectors
	g.SHLQ(operand.U8(2), ld)
	g.MOVQ(k, size)
	g.IMUL3Q(operand.U32(wide), size, size)
	row, panel := g.label("row"), g.label("panel")
	g.Label(row)
	g.MOVQ(x, from)
	g.LEAQ(operand.Mem{Base: x, Index: ld, Scale: copyAhead}, ahead)
	g.MOVQ(dst, to)
	g.MOVQ(panels, left)
	g.Label(panel)
	for i := 0; i < wide; i += 64 {
		g.PREFETCHT0(at(ahead, i))
	}
	for j := range g.vectors {
		g.load(at(from, 4*g.lanes*j), g.v[j])
	}
	for j := range g.vectors {
		g.store(g.v[j], at(to, 4*g.lanes*j))
	}
	g.ADDQ(operand.U32(wide), from)
	g.ADDQ(operand.U32(wide), ahead)
	g.ADDQ(size, to)
	g.DECQ(left)
	g.JNE(operand.LabelRef(panel))
	g.ADDQ(operand.U32(wide), dst)
	g.ADDQ(ld, x)
	g.DECQ(k)
	g.JNE(operand.LabelRef(row))
	g.end()
}

// rim writes the packing of a panel whose lanes are contiguous and fewer than a panel has: k rows of cols elements, at most
// two vectors, to rows of width. Each row is written in whole vectors, the rest of the last one 0.
func (g *gemmGen) rim() {
	g.begin("copyRim", "func(dst *float32, x *float32, ld int, cols int, width int, k int)",
		"packs a narrow panel; see copyRimGo.")
	dst, x, ld, cols, width, k, table := reg.RDI, reg.RSI, reg.RDX, reg.RCX, reg.R8, reg.R9, reg.RBX
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("x"), x)
	g.Load(g.Param("ld"), ld)
	g.Load(g.Param("cols"), cols)
	g.Load(g.Param("width"), width)
	g.Load(g.Param("k"), k)
	g.SHLQ(operand.U8(2), ld)
	g.SHLQ(operand.U8(2), width)
	v, mask := g.v[:2], g.v[2]
	rows := func(vectors int) {
		if vectors > 1 {
			g.SUBQ(operand.U8(g.lanes), cols)
		}
		if g.lanes == 16 {
			g.MOVL(operand.U32(0xffffffff), table.As32())
			g.BZHIL(cols.As32(), table.As32(), table.As32())
			g.KMOVW(table.As32(), reg.K1)
		} else {
			g.LEAQ(g.masks(), table)
			g.SHLQ(operand.U8(2), cols)
			g.SUBQ(cols, table)
			g.VMOVUPS(at(table, 32), mask)
		}
		row := g.label("row")
		g.Label(row)
		last := at(x, 0)
		if vectors > 1 {
			g.load(at(x, 0), v[0])
			last.Disp = 4 * g.lanes
		}
		if g.lanes == 16 {
			g.VMOVUPS_Z(last, reg.K1, v[1])
		} else {
			g.VMASKMOVPS(last, mask, v[1])
		}
		if vectors > 1 {
			g.store(v[0], at(dst, 0))
		}
		g.store(v[1], at(dst, last.Disp))
		g.ADDQ(ld, x)
		g.ADDQ(width, dst)
		g.DECQ(k)
		g.JNE(operand.LabelRef(row))
		g.end()
	}
	wide := g.label("wide")
	g.CMPQ(cols, operand.U8(g.lanes))
	g.JG(operand.LabelRef(wide))
	rows(1)
	g.Label(wide)
	rows(2)
}
