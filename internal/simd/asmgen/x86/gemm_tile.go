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
	rCols   = reg.RCX                                             // read again at the end
	rA      = []reg.GPPhysical{reg.RSI, reg.R9, reg.R10, reg.R14} // rows 0, 5, 10 and 15 of A if its rows are apart; else the first is all
	rAStep  = reg.RDX                                             // from row to row if rows are apart, else from step to step; bytes
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
	unrolled = 4   // steps of the inner dimension in the loop of full panels
	aheadA   = 512 // how far before their use elements of A are fetched, in bytes
)

// tile writes the micro-kernel: a function that branches to the code of its number of rows and vectors, where a loop for each
// layout of A lies between what both share.
//
// Where rows of A are apart each of them is a stream of its own, five to a base register by the address modes that there are.
func (g *gemmGen) tile() {
	g.begin("tile", "func(t *byte)", "computes a tile of C; see Tile.")
	g.c.Load(g.c.Param("t"), rT)
	g.c.MOVQ(at(rT, tileBK), rBStep)
	g.c.SHLQ(operand.U8(2), rBStep)
	g.c.MOVQ(at(rT, tileAhead), rAhead)
	again, next, end := g.label("again"), g.label("next"), g.label("end")
	g.c.Label(again)
	g.c.MOVQ(at(rT, tileRows), rRows)
	g.c.MOVQ(at(rT, tileCols), rCols)
	g.c.MOVQ(at(rT, tileA), rA[0])
	g.c.MOVQ(at(rT, tileB), rB)
	g.c.MOVQ(at(rT, tileK), rK)
	g.c.MOVQ(at(rT, tileC), rC)
	g.c.CMPQ(rAhead, at(rT, tileAheadEnd))
	g.c.CMOVQCC(rA[0], rAhead)
	g.c.MOVQ(at(rT, tileAK), rAStep)
	g.c.CMPQ(at(rT, tileAI), operand.U8(1))
	g.c.CMOVQNE(at(rT, tileAI), rAStep)
	g.c.SHLQ(operand.U8(2), rAStep)
	g.c.LEAQ(operand.Mem{Base: rAStep, Index: rAStep, Scale: 2}, rAStep3)
	for vectors := 1; vectors < g.vectors; vectors++ {
		more := g.label("wider")
		g.c.CMPQ(rCols, operand.U8(vectors*g.lanes))
		g.c.JG(operand.LabelRef(more))
		g.branch(1, g.slim, func(rows int) { g.product(rows, vectors, next) })
		g.c.Label(more)
	}
	g.branch(1, g.mr, func(rows int) { g.product(rows, g.vectors, next) })
	g.c.Label(next)
	g.c.DECQ(at(rT, tilePanels))
	g.c.JEQ(operand.LabelRef(end))
	g.c.MOVQ(at(rT, tileLDC), rLDC)
	g.c.IMULQ(at(rT, tileRows), rLDC)
	g.c.SHLQ(operand.U8(2), rLDC)
	g.c.ADDQ(rLDC, at(rT, tileC))
	g.c.MOVQ(at(rT, tileNextA), rLDC)
	g.c.SHLQ(operand.U8(2), rLDC)
	g.c.ADDQ(rLDC, at(rT, tileA))
	g.c.JMP(operand.LabelRef(again))
	g.c.Label(end)
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
	g.c.CMPQ(rRows, operand.U8(mid))
	g.c.JG(operand.LabelRef(more))
	g.branch(lo, mid, leaf)
	g.c.Label(more)
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
	g.c.Comment(fmt.Sprintf("%d rows of %d vectors", rows, vectors))
	for _, v := range g.v[:rows*vectors] {
		g.zero(v)
	}
	g.fetchC(rows, vectors)
	apart, summed := g.label("apart"), g.label("summed")
	g.c.CMPQ(at(rT, tileAI), operand.U8(1))
	g.c.JNE(operand.LabelRef(apart))
	g.loop(rows, vectors, false)
	g.c.JMP(operand.LabelRef(summed))
	g.c.Label(apart)
	for i := 5; i < rows; i += 5 {
		g.c.LEAQ(operand.Mem{Base: rA[i/5-1], Index: rAStep, Scale: 4}, rA[i/5])
		g.c.ADDQ(rAStep, rA[i/5])
	}
	g.loop(rows, vectors, true)
	g.c.Label(summed)
	g.finish(rows, vectors, next)
	g.c.JMP(operand.LabelRef(next))
}

// loop writes the loop for one layout of A.
func (g *gemmGen) loop(rows, vectors int, apart bool) {
	n := rows * vectors
	b, spare := g.v[n:n+vectors], g.v[n+vectors:]
	// sums adds the products of step p from the one that A's registers stand at.
	sums := func(p int) {
		for j, v := range b {
			g.load(at(rB, 4*g.lanes*j), v)
		}
		g.c.ADDQ(rBStep, rB)
		for i := range rows {
			a := g.element(i, apart)
			a.Disp += 4 * p
			g.multiply(i, a, b, spare, g.embeds(i, vectors, apart))
		}
	}
	advance := func(steps int) {
		for i := range (rows + 4) / 5 {
			g.c.ADDQ(operand.U8(4*steps), rA[i])
		}
	}
	step := func() {
		sums(0)
		if apart {
			advance(1)
		} else {
			g.c.ADDQ(rAStep, rA[0])
		}
	}
	loop, done := g.label("loop"), g.label("few")
	if rows >= g.mr*6/7 && vectors == g.vectors && g.lanes > 4 {
		// Four steps at a time. Of packed panels A is fetched to L1 before its use, and a line of the next panel of B to L2.
		four := g.label("four")
		g.c.MOVQ(rK, rLeft)
		g.c.ANDQ(operand.U8(unrolled-1), rLeft)
		g.c.SHRQ(operand.U8(2), rK)
		g.c.JEQ(operand.LabelRef(loop + "rest"))
		g.c.Label(four)
		if apart {
			for p := range unrolled {
				sums(p)
			}
			advance(unrolled)
		} else {
			for i := 0; i < 4*rows*unrolled; i += 64 {
				g.c.PREFETCHT0(at(rA[0], aheadA+i))
			}
			g.c.PREFETCHT1(at(rAhead, 0))
			g.c.ADDQ(operand.U8(64), rAhead)
			for range unrolled {
				step()
			}
		}
		g.c.DECQ(rK)
		g.c.JNE(operand.LabelRef(four))
		g.c.Label(loop + "rest")
		g.c.MOVQ(rLeft, rK)
		g.c.TESTQ(rK, rK)
		g.c.JEQ(operand.LabelRef(done))
	}
	g.c.Label(loop)
	step()
	g.c.DECQ(rK)
	g.c.JNE(operand.LabelRef(loop))
	g.c.Label(done)
}

// fetchC prefetches the tile of C where the loop is long enough for it to arrive.
func (g *gemmGen) fetchC(rows, vectors int) {
	short := g.label("short")
	g.c.CMPQ(rK, operand.U8(64))
	g.c.JLE(operand.LabelRef(short))
	g.c.MOVQ(at(rT, tileLDC), rNextLD)
	g.c.MOVQ(rC, rNext)
	for i := range rows {
		for j := 0; j < 4*g.lanes*vectors; j += 64 {
			g.c.PREFETCHT0(at(rNext, j))
		}
		g.c.PREFETCHT0(at(rNext, 4*g.lanes*vectors-4)) // rows need not begin with a line
		if i < rows-1 {
			g.c.LEAQ(operand.Mem{Base: rNext, Index: rNextLD, Scale: 4}, rNext)
		}
	}
	g.c.Label(short)
}

// embeds says whether each multiply-add loads row i's element of A itself. That takes a load for each vector and saves an instruction,
// which counts while another thread of the core takes every other cycle: half of the rows of two vectors leave enough loads for both.
// Where rows are apart they are slower so.
func (g *gemmGen) embeds(i, vectors int, apart bool) bool {
	return g.lanes == 16 && (vectors == 1 || !apart && i%2 == 1)
}

// multiply adds an element of A times a row of B to row i of the tile.
func (g *gemmGen) multiply(i int, a operand.Mem, b, spare []reg.VecPhysical, embedded bool) {
	acc := g.v[i*len(b):]
	if embedded {
		for j, v := range b {
			g.c.VFMADD231PS_BCST(a, v, acc[j])
		}
		return
	}
	if g.lanes > 4 {
		f := spare[i%2]
		g.broadcast(a, f)
		for j, v := range b {
			g.c.VFMADD231PS(v, f, acc[j])
		}
		return
	}
	f, t := spare[i%2*2], spare[i%2*2+1]
	g.broadcast(a, f)
	for j, v := range b {
		if j+1 < len(b) {
			g.c.MOVAPS(f, t)
			g.c.MULPS(v, t)
			g.c.ADDPS(t, acc[j])
		} else {
			g.c.MULPS(v, f)
			g.c.ADDPS(f, acc[j])
		}
	}
}

// finish stores the tile, and ends where the jump to next is, or jumps there itself.
func (g *gemmGen) finish(rows, vectors int, next string) {
	n := rows * vectors
	g.c.MOVQ(at(rT, tileCols), rCols)
	alpha, beta, spare := g.v[n], g.v[n+1], g.v[n+2]
	g.c.MOVQ(at(rT, tileLDC), rLDC)
	g.c.SHLQ(operand.U8(2), rLDC)
	g.c.LEAQ(operand.Mem{Base: rLDC, Index: rLDC, Scale: 2}, rLDC3)

	one := g.label("one")
	g.c.CMPL(at(rT, tileFactors), operand.U32(0x3f800000))
	g.c.JEQ(operand.LabelRef(one))
	g.broadcast(at(rT, tileFactors), alpha)
	for _, v := range g.v[:n] {
		g.mul(alpha, v)
	}
	g.c.Label(one)

	switch g.lanes {
	case 16:
		g.c.SUBQ(operand.U8((vectors-1)*g.lanes), rCols)
		g.c.MOVL(operand.U32(0xffffffff), rMask.As32())
		g.c.BZHIL(rCols.As32(), rMask.As32(), rMask.As32())
		g.c.KMOVW(rMask.As32(), reg.K1)
		g.rows(rows, vectors, beta, spare, true)
	case 8:
		partial := g.label("partial")
		g.c.SUBQ(operand.U8((vectors-1)*g.lanes), rCols)
		g.c.CMPQ(rCols, operand.U8(g.lanes))
		g.c.JNE(operand.LabelRef(partial))
		g.rows(rows, vectors, beta, spare, false)
		g.c.JMP(operand.LabelRef(next))
		g.c.Label(partial)
		g.c.LEAQ(g.masks(), rMask)
		g.c.SHLQ(operand.U8(2), rCols)
		g.c.SUBQ(rCols, rMask)
		g.c.VMOVUPS(at(rMask, 32), g.v[n])
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
				g.c.LEAQ(operand.Mem{Base: rC, Index: rLDC, Scale: 4}, rC)
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
	g.c.MOVL(at(rT, tileFactors+4), rK.As32())
	g.c.ADDL(rK.As32(), rK.As32())
	g.c.JEQ(operand.LabelRef(plain))
	g.broadcast(at(rT, tileFactors+4), beta)
	each(func(v reg.VecPhysical, m operand.Mem, masked bool) {
		switch {
		case g.lanes == 4:
			g.load(m, spare)
			g.c.MULPS(beta, spare)
			g.c.ADDPS(spare, v)
		case !masked:
			g.c.VFMADD231PS(m, beta, v)
		case g.lanes == 16:
			g.c.VFMADD231PS(m, beta, reg.K1, v)
		default:
			g.c.VMASKMOVPS(m, mask, spare)
			g.c.VFMADD231PS(spare, beta, v)
		}
	})
	g.c.MOVQ(at(rT, tileC), rC)
	g.c.Label(plain)
	each(func(v reg.VecPhysical, m operand.Mem, masked bool) {
		switch {
		case !masked:
			g.store(v, m)
		case g.lanes == 16:
			g.c.VMOVUPS(v, reg.K1, m)
		default:
			g.c.VMASKMOVPS(v, mask, m)
		}
	})
}

// masks is a table of eight true lanes followed by eight false ones.
func (g *gemmGen) masks() operand.Mem {
	if g.table.Symbol.Name == "" {
		g.table = g.c.StaticGlobal("gemmMasks")
		g.c.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range 16 {
			lane := operand.U32(0xffffffff)
			if i >= 8 {
				lane = 0
			}
			g.c.AppendDatum(lane)
		}
	}
	return g.table
}
