package gemm

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// mmaTile is how a block of an mma_gemm cuts up its product: m × n of the result, of which each warp has warpM × warpN.
type mmaTile struct{ m, n, warpM, warpN int }

func (t mmaTile) threads() int { return 32 * (t.m / t.warpM) * (t.n / t.warpN) }

// resident is how many blocks a multiprocessor has at a time, about: 16 warps.
func (t mmaTile) resident() int { return 512 / t.threads() }

// mmaTiles are those that there are kernels for, the largest first.
var mmaTiles = []mmaTile{{128, 128, 64, 32}, {64, 64, 32, 32}}

// mmaSet is the kernels for a kind of numbers: by tile, and by whether a and b are K-major.
type mmaSet struct {
	*tiling.MMAKind
	kernels [][2][2]*kit.Kernel
}

// Tensor-core products by kind of numbers, each a family: a program needs one kind.
var (
	mmaF16    = newMmaSet(&tiling.KindF16)
	mmaBF16   = newMmaSet(&tiling.KindBF16)
	mmaTF32   = newMmaSet(&tiling.KindTF32)
	mmaTF32x3 = newMmaSet(&tiling.KindTF32x3)
)

func newMmaSet(kind *tiling.MMAKind) *mmaSet {
	s := &mmaSet{MMAKind: kind}
	for _, t := range mmaTiles {
		s.kernels = append(s.kernels, byMajor(false, func(a, b bool, suffix string) kit.Kernel {
			return kit.Kernel{Family: "matmul_" + kind.Name, Name: fmt.Sprintf("mma_%s_%dx%d_%s", kind.Name, t.m, t.n, suffix),
				Block: [3]int{t.threads(), 1, 1},
				Doc: "c = act(a·b + bias), or parts of a·b where depths are cut up, by mma.sync on " + kind.Doc + "; in the name, k says that " +
					"an operand is K-major (a [m, k], b [n, k]), x that it is not.",
				Params:    mmaParams{},
				BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) { newMmaProduct(k, kind, t, a, b, e).Build() }}
		}))
	}
	return s
}

// mmaParams are those of an mma_gemm.
type mmaParams struct {
	M, N, K       int           `array:"sizes"`
	LDA, LDB      int           // elements from row to row of a and b, as they lie in memory
	Flags, Act    int           // as gemm's, but for kMajorA and kMajorB, and of the result
	Across, Tiles scalar.Divide // tiles in a row of them, and of one product
	tiling.ScheduleSizes
	StrideA, StrideB uint64     // from product to product
	A, B             kit.Buffer `of:"numbers"`
	Bias             kit.Buffer
	C                kit.Buffer `of:"result"` // of the type that the flags say
	Parts            kit.Buffer
}

// mmaProduct is an mma_gemm under construction.
type mmaProduct struct {
	mmaTile
	*tiling.MMAKind
	*kit.Params
	mmaParams
	k                 *ptx.Kernel
	strideA, strideB  ptx.Reg[uint64]
	ofA, ofB          ptx.Ptr[ptx.Global, uint8]
	memory            ptx.Ptr[ptx.Shared, uint32]
	a, b              *tiling.MMAOperand
	accumulators      [][]*ptx.Var[float32] // of each 16 × 8 of the warp's part, row by row
	result            tiling.RowWriter
	warpTop, warpLeft ptx.Reg[uint32] // of the warp's part, in the tile
}

// newMmaProduct reads the parameters and finds the warp's place in a tile.
func newMmaProduct(k *ptx.Kernel, kind *tiling.MMAKind, t mmaTile, kMajorA, kMajorB bool, e *kit.Epilogue) *mmaProduct {
	p := &mmaProduct{mmaTile: t, MMAKind: kind, k: k}
	p.Params = kit.NewParams(k, &p.mmaParams)
	p.strideA, p.strideB = kit.Read(p.Params, &p.StrideA), kit.Read(p.Params, &p.StrideB)
	p.ofA, p.ofB = kit.Ptr[uint8](p.Params, &p.A), kit.Ptr[uint8](p.Params, &p.B)
	bias, c := kit.Ptr[float32](p.Params, &p.Bias), kit.Ptr[uint8](p.Params, &p.C)
	parts := kit.Ptr[float32](p.Params, &p.Parts)
	after := tiling.EpilogueOf(k, e)
	flags := p.U32(&p.Flags)

	p.memory = ptx.SharedArray[uint32](k, "tiles", tiling.MmaStages*(t.m+t.n)*tiling.MMARow/4, ptx.Align(128))
	tid := k.Tid(ptx.X)
	lane := tid.And(31)
	warp := tid.Shr(5)
	p.warpTop = warp.Div(t.n / t.warpN).Mul(t.warpM)
	p.warpLeft = warp.Rem(t.n / t.warpN).Mul(t.warpN)
	p.result = tiling.RowWriter{K: k, Lane: lane, M: p.U32(&p.M), N: p.U32(&p.N), Bias: bias, C: c, Parts: parts, After: after}
	p.result.Scratch = p.memory.Bytes(warp.Mul(32 * tiling.MMAScratchRow))
	lda, vectorA := p.U32(&p.LDA), scalar.HasFlag(k, flags, tiling.VectorA)
	ldb, vectorB := p.U32(&p.LDB), scalar.HasFlag(k, flags, tiling.VectorB)
	p.a = tiling.NewMMAOperand(k, kind, kMajorA, t.threads(), lda, vectorA, p.memory, t.m, lane, p.warpTop, t.warpM, true)
	p.b = tiling.NewMMAOperand(k, kind, kMajorB, t.threads(), ldb, vectorB, p.memory.Bytes(t.m*tiling.MMARow), t.n, lane, p.warpLeft, t.warpN, false)
	return p
}

// Place is the product that a tile belongs to, and the tile's first row and column.
func (p *mmaProduct) Place(tile ptx.Reg[uint32]) (z, top, left ptx.Reg[uint32]) {
	k := p.k
	z, in := p.Divisor(&p.Tiles).Split(k, tile)
	row, col := p.Divisor(&p.Across).Split(k, in)
	return z, row.Mul(p.mmaTile.m), col.Mul(p.mmaTile.n)
}

// Build writes the kernel.
func (p *mmaProduct) Build() {
	k, t := p.k, p.mmaTile
	tiling.EachSegment(p.Params, &p.ScheduleSizes, k.Ctaid(ptx.X), p.U32(&p.K), func(s tiling.Segment) {
		z, top, left := p.Place(s.Tile)
		begin := func(operand *tiling.MMAOperand, x ptx.Ptr[ptx.Global, uint8], stride ptx.Reg[uint64], first, bound ptx.Reg[uint32]) {
			product := ptx.Convert[uint64](z).Mul(stride).Mul(p.MMAKind.Size)
			operand.Begin(x.Bytes(product), first, bound, s.First)
		}
		begin(p.a, p.ofA, p.strideA, top, p.U32(&p.M))
		begin(p.b, p.ofB, p.strideB, left, p.U32(&p.N))
		p.accumulators = nil
		for range t.warpM / 16 * (t.warpN / 8) {
			p.accumulators = append(p.accumulators, scalar.Zeros(k, 4))
		}
		p.mainloop(s.Depth)
		z, top, left = p.Place(s.Tile) // found anew, rather than kept
		p.result.Begin(s, z, p.U32(&p.Flags), p.U32(&p.Act))
		top, left = top.Add(p.warpTop), left.Add(p.warpLeft)
		p.result.Chunks(t.warpM/32, 32, top, left, true, func(i, row, col int) *ptx.Var[float32] {
			return p.accumulators[(32*i+row)/16*(t.warpN/8)+col/8][row%16/8*2+col%8]
		})
		k.Barrier() // before the next segment's tiles come to where results were turned
	})
}

// mainloop adds up the products of a segment: while the tiles of a stage are multiplied, those of the next ones are on their way. The
// first tile is what the depth has beyond a multiple of a tile's, so that all others are whole. If operands are aligned, the inner loop
// copies further tiles; else the outer loop does, and the inner one has a single iteration.
func (p *mmaProduct) mainloop(depth ptx.Reg[uint32]) {
	k := p.k
	stage, deep := (p.mmaTile.m+p.mmaTile.n)*tiling.MMARow, uint32(tiling.MMARow/p.Size)
	whole := depth.Add(deep - 1).And(-deep) // rounded up
	part := ptx.VarOf(k, ptx.Imm(deep).Sub(whole.Sub(depth)))
	total := ptx.Bitcast[int32](whole)
	left, coming := ptx.VarOf(k, total), ptx.VarOf(k, total) // coming: not yet asked for by the outer loop
	ring := tiling.NewPipeline(k, tiling.MmaStages, stage)
	aligned := p.a.Vector.And(p.b.Vector)
	// What an inner iteration goes on by.
	inner := ptx.Select(aligned, ptx.U32(stage), 0)
	stepA, stepB := ptx.Select(aligned, p.a.Step, 0), ptx.Select(aligned, p.b.Step, 0)
	stop := ptx.Select(aligned, ptx.Imm(int32(0)), math.MaxInt32)
	enough := ptx.Select(aligned, ptx.Imm(int32(deep*(tiling.MmaStages-1))), math.MaxInt32)
	k.While(func() ptx.Reg[bool] { return left.Get().Gt(0) }, func() {
		k.If(coming.Get().Gt(0), func() {
			p.a.CopyPart(ring.Write.Get(), part.Get())
			p.b.CopyPart(ring.Write.Get(), part.Get())
		})
		ring.Commit()
		part.Set(deep)
		coming.Set(coming.Get().Sub(int32(deep)))
		// All stages but one are filled first.
		k.If(coming.Get().Le(left.Get().Sub(int32(deep*(tiling.MmaStages-1)))), func() {
			ring.Wait()
			k.Loop(func() {
				more := left.Get().Gt(enough)
				p.a.Copy(ring.Write.Get(), more, stepA)
				p.b.Copy(ring.Write.Get(), more, stepB)
				ring.CommitBy(inner)
				p.multiply(ring.Read.Get())
				ring.Release()
				left.Set(left.Get().Sub(int32(deep)))
				ring.Wait()
				k.BreakIf(left.Get().Le(stop))
			})
		})
	})
	k.CpAsyncWaitAll()
	k.Barrier()
}

// multiply adds the products of a stage.
func (p *mmaProduct) multiply(stage ptx.Reg[uint32]) {
	readA, readB := p.a.Fragments(stage), p.b.Fragments(stage)
	across := p.warpN / 8
	for step := range tiling.MMARow / 32 {
		var a, b [][]ptx.Reg[uint32]
		for i := 0; i < p.warpM; i += 16 {
			a = append(a, readA(i, step))
		}
		for j := 0; j < p.warpN; j += 16 {
			pair := readB(j, step)
			b = append(b, pair[:2], pair[2:])
		}
		p.Products(p.k, a, b, func(i, j int) []*ptx.Var[float32] { return p.accumulators[i*across+j] })
	}
}
