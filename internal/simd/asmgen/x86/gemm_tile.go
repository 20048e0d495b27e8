package x86

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Registers of a micro-kernel.
var (
	rT      = reg.RAX // the tile, at the beginning and at the end
	rRows   = reg.RBX
	rCols   = reg.RCX                                    // read again at the end
	rA      = []reg.GPPhysical{reg.RSI, reg.R9, reg.R10} // rows 0, 5 and 10 of A if its rows are apart; else the first is all
	rAStep  = reg.RDX                                    // from row to row if rows are apart, else from step to step; bytes
	rAStep3 = reg.R11
	rB      = reg.RDI
	rBStep  = reg.R8
	rK      = reg.R12
	rC      = reg.R13 // from here on at the end only; the same as others that are free by then
	rLDC    = reg.RDX
	rLDC3   = reg.R11
	rNext   = reg.RBX // for prefetching C
	rNextLD = reg.RCX
	rMask   = reg.RBX
	rLeft   = reg.RBX
	rAhead  = reg.R15
)

const (
	unrolled = 4   // steps of the inner dimension in the loop of large products
	aheadA   = 512 // how far before their use elements of A are fetched, in bytes
)

// tile writes the micro-kernel: a function that branches to the code of its number of rows and vectors, where a loop for each
// layout of A lies between what both share.
//
// Where rows of A are apart each of them is a stream of its own, five to a base register by the address modes that there are.
func (g *gemmGen) tile() {
	g.begin("tile", "func(t *byte)", "computes a tile of C; see Tile.")
	g.Load(g.Param("t"), rT)
	g.MOVQ(at(rT, tileBK), rBStep)
	g.SHLQ(operand.U8(2), rBStep)
	g.MOVQ(at(rT, tileAhead), rAhead)
	again, next, end := g.label("again"), g.label("next"), g.label("end")
	g.Label(again)
	g.MOVQ(at(rT, tileRows), rRows)
	g.MOVQ(at(rT, tileCols), rCols)
	g.MOVQ(at(rT, tileA), rA[0])
	g.MOVQ(at(rT, tileB), rB)
	g.MOVQ(at(rT, tileK), rK)
	g.MOVQ(at(rT, tileC), rC)
	g.CMPQ(rAhead, at(rT, tileAheadEnd))
	g.CMOVQCC(rA[0], rAhead)
	g.MOVQ(at(rT, tileAK), rAStep)
	g.CMPQ(at(rT, tileAI), operand.U8(1))
	g.CMOVQNE(at(rT, tileAI), rAStep)
	g.SHLQ(operand.U8(2), rAStep)
	g.LEAQ(operand.Mem{Base: rAStep, Index: rAStep, Scale: 2}, rAStep3)
	for vectors := 1; vectors < g.vectors; vectors++ {
		more := g.label("wider")
		g.CMPQ(rCols, operand.U8(vectors*g.lanes))
		g.JG(operand.LabelRef(more))
		g.branch(1, g.mr, func(rows int) { g.product(rows, vectors, next) })
		g.Label(more)
	}
	g.branch(1, g.mr, func(rows int) { g.product(rows, g.vectors, next) })
	g.Label(next)
	g.DECQ(at(rT, tilePanels))
	g.JEQ(operand.LabelRef(end))
	g.MOVQ(at(rT, tileLDC), rLDC)
	g.IMULQ(at(rT, tileRows), rLDC)
	g.SHLQ(operand.U8(2), rLDC)
	g.ADDQ(rLDC, at(rT, tileC))
	g.MOVQ(at(rT, tileNextA), rLDC)
	g.SHLQ(operand.U8(2), rLDC)
	g.ADDQ(rLDC, at(rT, tileA))
	g.JMP(operand.LabelRef(again))
	g.Label(end)
	g.end()
}

// branch searches the number of rows between lo and hi.
func (g *gemmGen) branch(lo, hi int, leaf func(rows int)) {
	if lo == hi {
		leaf(lo)
		return
	}
	mid := (lo + hi) / 2
	more := g.label("rows")
	g.CMPQ(rRows, operand.U8(mid))
	g.JG(operand.LabelRef(more))
	g.branch(lo, mid, leaf)
	g.Label(more)
	g.branch(mid+1, hi, leaf)
}

// element is the address of row i of A in this step.
func (g *gemmGen) element(i int, apart bool) operand.Mem {
	if !apart {
		return at(rA[0], 4*i)
	}
	m := operand.Mem{Base: rA[i/5]}
	switch i % 5 {
	case 1, 2, 4:
		m.Index, m.Scale = rAStep, uint8(i%5)
	case 3:
		m.Index, m.Scale = rAStep3, 1
	}
	return m
}

// product writes the loops over the inner dimension, what precedes and what follows them, and jumps to next.
func (g *gemmGen) product(rows, vectors int, next string) {
	g.Comment(fmt.Sprintf("%d rows of %d vectors", rows, vectors))
	for _, v := range g.v[:rows*vectors] {
		g.zero(v)
	}
	g.fetchC(rows, vectors)
	apart, summed := g.label("apart"), g.label("summed")
	g.CMPQ(at(rT, tileAI), operand.U8(1))
	g.JNE(operand.LabelRef(apart))
	g.loop(rows, vectors, false)
	g.JMP(operand.LabelRef(summed))
	g.Label(apart)
	for i := 5; i < rows; i += 5 {
		g.LEAQ(operand.Mem{Base: rA[i/5-1], Index: rAStep, Scale: 4}, rA[i/5])
		g.ADDQ(rAStep, rA[i/5])
	}
	g.loop(rows, vectors, true)
	g.Label(summed)
	g.finish(rows, vectors, next)
	g.JMP(operand.LabelRef(next))
}

// loop writes the loop for one layout of A.
func (g *gemmGen) loop(rows, vectors int, apart bool) {
	n := rows * vectors
	b, spare := g.v[n:n+vectors], g.v[n+vectors:]
	step := func() {
		for j, v := range b {
			g.load(at(rB, 4*g.lanes*j), v)
		}
		g.ADDQ(rBStep, rB)
		for i := range rows {
			g.multiply(i, vectors, g.element(i, apart), b, spare)
		}
		if apart {
			for i := range (rows + 4) / 5 {
				g.ADDQ(operand.U8(4), rA[i])
			}
		} else {
			g.ADDQ(rAStep, rA[0])
		}
	}
	loop, done := g.label("loop"), g.label("few")
	if !apart && rows >= g.mr-1 && vectors == g.vectors && g.lanes > 4 {
		// The panels of large products: four steps at a time, A fetched to L1 before its use, and a line of the next panel of B to L2.
		four := g.label("four")
		g.MOVQ(rK, rLeft)
		g.ANDQ(operand.U8(unrolled-1), rLeft)
		g.SHRQ(operand.U8(2), rK)
		g.JEQ(operand.LabelRef(loop + "rest"))
		g.Label(four)
		for i := 0; i < 4*rows*unrolled; i += 64 {
			g.PREFETCHT0(at(rA[0], aheadA+i))
		}
		g.PREFETCHT1(at(rAhead, 0))
		g.ADDQ(operand.U8(64), rAhead)
		for range unrolled {
			step()
		}
		g.DECQ(rK)
		g.JNE(operand.LabelRef(four))
		g.Label(loop + "rest")
		g.MOVQ(rLeft, rK)
		g.TESTQ(rK, rK)
		g.JEQ(operand.LabelRef(done))
	}
	g.Label(loop)
	step()
	g.DECQ(rK)
	g.JNE(operand.LabelRef(loop))
	g.Label(done)
}

// fetchC prefetches the tile of C where the loop is long enough for it to arrive.
func (g *gemmGen) fetchC(rows, vectors int) {
	short := g.label("short")
	g.CMPQ(rK, operand.U8(64))
	g.JL(operand.LabelRef(short))
	g.MOVQ(at(rT, tileLDC), rNextLD)
	g.MOVQ(rC, rNext)
	for i := range rows {
		for j := 0; j < 4*g.lanes*vectors; j += 64 {
			g.PREFETCHT0(at(rNext, j))
		}
		g.PREFETCHT0(at(rNext, 4*g.lanes*vectors-4)) // rows need not begin with a line
		if i < rows-1 {
			g.LEAQ(operand.Mem{Base: rNext, Index: rNextLD, Scale: 4}, rNext)
		}
	}
	g.Label(short)
}

// multiply adds an element of A times a row of B to row i of the tile.
func (g *gemmGen) multiply(i, vectors int, a operand.Mem, b, spare []reg.VecPhysical) {
	acc := g.v[i*vectors:]
	if g.lanes > 4 {
		f := spare[i%2]
		g.broadcast(a, f)
		for j, v := range b {
			g.VFMADD231PS(v, f, acc[j])
		}
		return
	}
	f, t := spare[i%2*2], spare[i%2*2+1]
	g.broadcast(a, f)
	for j, v := range b {
		if j+1 < len(b) {
			g.MOVAPS(f, t)
			g.MULPS(v, t)
			g.ADDPS(t, acc[j])
		} else {
			g.MULPS(v, f)
			g.ADDPS(f, acc[j])
		}
	}
}

// finish stores the tile, and ends where the jump to next is, or jumps there itself.
func (g *gemmGen) finish(rows, vectors int, next string) {
	n := rows * vectors
	g.MOVQ(at(rT, tileCols), rCols)
	alpha, beta, spare := g.v[n], g.v[n+1], g.v[n+2]
	g.MOVQ(at(rT, tileLDC), rLDC)
	g.SHLQ(operand.U8(2), rLDC)
	g.LEAQ(operand.Mem{Base: rLDC, Index: rLDC, Scale: 2}, rLDC3)

	one := g.label("one")
	g.CMPL(at(rT, tileFactors), operand.U32(0x3f800000))
	g.JEQ(operand.LabelRef(one))
	g.broadcast(at(rT, tileFactors), alpha)
	for _, v := range g.v[:n] {
		g.mul(alpha, v)
	}
	g.Label(one)

	switch g.lanes {
	case 16:
		g.SUBQ(operand.U8((vectors-1)*g.lanes), rCols)
		g.MOVL(operand.U32(0xffffffff), rMask.As32())
		g.BZHIL(rCols.As32(), rMask.As32(), rMask.As32())
		g.KMOVW(rMask.As32(), reg.K1)
		g.rows(rows, vectors, beta, spare, true)
	case 8:
		partial := g.label("partial")
		g.SUBQ(operand.U8((vectors-1)*g.lanes), rCols)
		g.CMPQ(rCols, operand.U8(g.lanes))
		g.JNE(operand.LabelRef(partial))
		g.rows(rows, vectors, beta, spare, false)
		g.JMP(operand.LabelRef(next))
		g.Label(partial)
		g.LEAQ(g.masks(), rMask)
		g.SHLQ(operand.U8(2), rCols)
		g.SUBQ(rCols, rMask)
		g.VMOVUPS(at(rMask, 32), g.v[n])
		g.rows(rows, vectors, beta, spare, true)
	default:
		g.rows(rows, vectors, beta, spare, false)
	}
}

// rows stores the tile's rows, the last vector of each masked if so asked.
func (g *gemmGen) rows(rows, vectors int, beta, spare reg.VecPhysical, masked bool) {
	plain := g.label("plain")
	each := func(f func(v reg.VecPhysical, m operand.Mem, masked bool)) {
		for i := range rows {
			if i > 0 && i%4 == 0 {
				g.LEAQ(operand.Mem{Base: rC, Index: rLDC, Scale: 4}, rC)
			}
			m := operand.Mem{Base: rC}
			switch i % 4 {
			case 1, 2:
				m.Index, m.Scale = rLDC, uint8(i%4)
			case 3:
				m.Index, m.Scale = rLDC3, 1
			}
			for j := range vectors {
				m.Disp = 4 * g.lanes * j
				f(g.v[i*vectors+j], m, masked && j == vectors-1)
			}
		}
	}
	mask := g.v[rows*vectors] // of AVX2
	// Beta = ±0: the bits but for the sign.
	g.MOVL(at(rT, tileFactors+4), rK.As32())
	g.ADDL(rK.As32(), rK.As32())
	g.JEQ(operand.LabelRef(plain))
	g.broadcast(at(rT, tileFactors+4), beta)
	each(func(v reg.VecPhysical, m operand.Mem, masked bool) {
		switch {
		case g.lanes == 4:
			g.load(m, spare)
			g.MULPS(beta, spare)
			g.ADDPS(spare, v)
		case !masked:
			g.VFMADD231PS(m, beta, v)
		case g.lanes == 16:
			g.VFMADD231PS(m, beta, reg.K1, v)
		default:
			g.VMASKMOVPS(m, mask, spare)
			g.VFMADD231PS(spare, beta, v)
		}
	})
	g.MOVQ(at(rT, tileC), rC)
	g.Label(plain)
	each(func(v reg.VecPhysical, m operand.Mem, masked bool) {
		switch {
		case !masked:
			g.store(v, m)
		case g.lanes == 16:
			g.VMOVUPS(v, reg.K1, m)
		default:
			g.VMASKMOVPS(v, mask, m)
		}
	})
}

// masks is a table of eight true lanes followed by eight false ones.
func (g *gemmGen) masks() operand.Mem {
	if g.table.Symbol.Name == "" {
		g.table = g.StaticGlobal("gemmMasks")
		g.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range 16 {
			lane := operand.U32(0xffffffff)
			if i >= 8 {
				lane = 0
			}
			g.AppendDatum(lane)
		}
	}
	return g.table
}
