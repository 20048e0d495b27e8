package lower

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// mmaTile is how a block of an mma_gemm cuts up its product: m × n of the result, of which each warp has warpM × warpN.
type mmaTile struct{ m, n, warpM, warpN int }

func (t mmaTile) threads() int { return 32 * (t.m / t.warpM) * (t.n / t.warpN) }

// resident is how many blocks a multiprocessor has at a time, about: 16 warps.
func (t mmaTile) resident() int { return 512 / t.threads() }

// mmaTiles are those that there are kernels for, the largest first.
var mmaTiles = []mmaTile{{128, 128, 64, 32}, {64, 64, 32, 32}}

// mmaSet is the kernels for a kind of numbers: by tile, and by whether a and b lie along the depth.
type mmaSet struct {
	*mmaKind
	kernels [][2][2]*Kernel
}

// Tensor-core products by kind of numbers, each a family: a program needs one kind.
var (
	mmaF16    = newMmaSet(&kindF16)
	mmaBF16   = newMmaSet(&kindBF16)
	mmaTF32   = newMmaSet(&kindTF32)
	mmaTF32x3 = newMmaSet(&kindTF32x3)
)

func newMmaSet(kind *mmaKind) *mmaSet {
	s := &mmaSet{mmaKind: kind}
	for _, t := range mmaTiles {
		var of [2][2]*Kernel
		for a := range of {
			for b := range of[a] {
				of[a][b] = register(mmaGemm(kind, t, a == 1, b == 1))
			}
		}
		s.kernels = append(s.kernels, of)
	}
	return s
}

func mmaGemm(kind *mmaKind, t mmaTile, alongA, alongB bool) Kernel {
	lie := func(along bool) string {
		if along {
			return "k"
		}
		return "x"
	}
	return Kernel{Family: "matmul_" + kind.name,
		Name:  fmt.Sprintf("mma_%s_%dx%d_%s%s", kind.name, t.m, t.n, lie(alongA), lie(alongB)),
		Block: [3]int{t.threads(), 1, 1},
		Doc: "c = act(a·b + bias), or parts of a·b where depths are cut up, by mma.sync on " + kind.doc + "; in the name, k says that " +
			"an operand lies along the depth (a [m, k], b [n, k]), x that it lies across. Parameters: " + mmaParams + ".",
		tailed: func(k *ptx.Kernel, e *tail) { newMmaProduct(k, kind, t, alongA, alongB, e).build() }}
}

// Arguments in the array sizes of an mma_gemm.
const (
	mmaM = iota
	mmaN
	mmaK
	mmaLDA // elements from row to row of a, as it lies in memory
	mmaLDB
	mmaFlags                              // as gemm's, but for alongA and alongB, and of the result
	mmaAct                                //
	mmaAcross                             // tiles in a row of them: a divisor
	mmaTilesOf = mmaAcross + divisorWords // of one product: a divisor
	mmaCut     = mmaTilesOf + divisorWords
	mmaWords   = mmaCut + cutWords
	mmaParams  = "u32 sizes[] (m, n, k, row lengths of a and b in memory, flags, activation; as divisors tiles across and tiles of a " +
		"product; " + cutInDoc + "), u64 strides of a and b from product to product, a, b, f32* bias, c of the type that the flags " +
		"say, f32* parts"
)

// mmaProduct is an mma_gemm under construction.
type mmaProduct struct {
	mmaTile
	*mmaKind
	k                 *ptx.Kernel
	sizes             ptx.Array[uint32]
	strideA, strideB  ptx.Reg[uint64]
	ofA, ofB          ptx.Ptr[ptx.Global, uint8]
	memory            ptx.Ptr[ptx.Shared, uint32]
	a, b              mmaSide
	sums              [][]*ptx.Var[float32] // of each 16 × 8 of the warp's part, row by row
	result            rowResult
	warpTop, warpLeft ptx.Reg[uint32] // of the warp's part, in the tile
}

// newMmaProduct reads the parameters and finds the warp's place in a tile.
func newMmaProduct(k *ptx.Kernel, kind *mmaKind, t mmaTile, alongA, alongB bool, e *tail) *mmaProduct {
	p := &mmaProduct{mmaTile: t, mmaKind: kind, k: k, sizes: ptx.ParamArray[uint32](k, "sizes", mmaWords)}
	p.strideA, p.strideB = ptx.Param[uint64](k, "stride_a"), ptx.Param[uint64](k, "stride_b")
	p.ofA, p.ofB = ptx.PointerParam[uint8](k, "a"), ptx.PointerParam[uint8](k, "b")
	bias, c := ptx.PointerParam[float32](k, "bias"), ptx.PointerParam[uint8](k, "c")
	parts := ptx.PointerParam[float32](k, "parts")
	after := epilogueOf(k, e)
	flags := p.arg(mmaFlags)

	p.memory = ptx.SharedArray[uint32](k, "tiles", mmaStages*(t.m+t.n)*mmaRow/4, ptx.Align(128))
	tid := k.Tid(ptx.X)
	lane := ptx.And(k, tid, u32(31))
	warp := ptx.Shr(k, tid, u32(5))
	p.warpTop = ptx.Mul(k, ptx.Div(k, warp, u32(t.n/t.warpN)), u32(t.warpM))
	p.warpLeft = ptx.Mul(k, ptx.Rem(k, warp, u32(t.n/t.warpN)), u32(t.warpN))
	p.result = rowResult{k: k, lane: lane, m: p.arg(mmaM), n: p.arg(mmaN), bias: bias, c: c, parts: parts, after: after}
	p.result.scratch = ptx.AtByte(k, p.memory, ptx.Mul(k, warp, u32(32*mmaScratchRow)))
	side := func(ld int, along bool, vector uint32) mmaSide {
		return mmaSide{k: k, mmaKind: kind, along: along, threads: t.threads(), ld: p.arg(ld), vector: hasFlag(k, flags, vector)}
	}
	p.a, p.b = side(mmaLDA, alongA, vectorA), side(mmaLDB, alongB, vectorB)
	p.a.lanes(p.memory, t.m, lane, p.warpTop, t.warpM, true)
	p.b.lanes(p.memory.Bytes(t.m*mmaRow), t.n, lane, p.warpLeft, t.warpN, false)
	return p
}

func (p *mmaProduct) arg(i int) ptx.Reg[uint32] { return p.sizes.At(p.k, i) }

// place is the product that a tile belongs to, and the tile's first row and column.
func (p *mmaProduct) place(tile ptx.Reg[uint32]) (z, top, left ptx.Reg[uint32]) {
	k := p.k
	z, in := divisorAt(k, p.sizes, mmaTilesOf).split(k, tile)
	row, col := divisorAt(k, p.sizes, mmaAcross).split(k, in)
	return z, ptx.Mul(k, row, u32(p.mmaTile.m)), ptx.Mul(k, col, u32(p.mmaTile.n))
}

func (p *mmaProduct) build() {
	k, t := p.k, p.mmaTile
	eachSegment(k, p.sizes, mmaCut, k.Ctaid(ptx.X), p.arg(mmaK), func(s segment) {
		z, top, left := p.place(s.tile)
		begin := func(side *mmaSide, x ptx.Ptr[ptx.Global, uint8], stride ptx.Reg[uint64], size int,
			first, bound ptx.Reg[uint32]) {
			product := ptx.Mul(k, ptx.Mul(k, ptx.Convert[uint64](k, z), stride), u64(p.mmaKind.size))
			side.begin(ptx.AtByte(k, x, product), size, first, bound, s.first)
		}
		begin(&p.a, p.ofA, p.strideA, t.m, top, p.arg(mmaM))
		begin(&p.b, p.ofB, p.strideB, t.n, left, p.arg(mmaN))
		p.sums = nil
		for range t.warpM / 16 * (t.warpN / 8) {
			p.sums = append(p.sums, variablesOf(k, constants(make([]float32, 4))))
		}
		p.addUp(s.depth)
		z, top, left = p.place(s.tile) // found anew, rather than kept
		p.result.begin(s, z, p.arg(mmaFlags), p.arg(mmaAct))
		top, left = ptx.Add(k, top, p.warpTop), ptx.Add(k, left, p.warpLeft)
		p.result.chunks(t.warpM/32, 32, top, left, true, func(i, row, col int) *ptx.Var[float32] {
			return p.sums[(32*i+row)/16*(t.warpN/8)+col/8][row%16/8*2+col%8]
		})
		k.Barrier() // before the next segment's tiles come to where results were turned
	})
}

// addUp adds up the products of a segment: while the tiles of a stage are multiplied, those of the next ones are on their way. The first tile is what the depth has
// beyond a multiple of a tile's, so that all others are whole. Each turn of the inner loop brings tiles to the stage that the turn
// before has read, which the barrier in between makes safe; if operands are not aligned, the outer loop does that instead, and the
// inner one has a single turn.
func (p *mmaProduct) addUp(depth ptx.Reg[uint32]) {
	k := p.k
	stage, deep := (p.mmaTile.m+p.mmaTile.n)*mmaRow, uint32(mmaRow/p.size)
	whole := ptx.And(k, ptx.Add(k, depth, ptx.Imm(deep-1)), ptx.Imm(-deep)) // rounded up
	part := ptx.VarOf(k, ptx.Sub(k, ptx.Imm(deep), ptx.Sub(k, whole, depth)))
	total := ptx.Bitcast[int32](k, whole)
	left, coming := ptx.VarOf(k, total), ptx.VarOf(k, total) // coming: not yet asked for by the outer loop
	next := func(v *ptx.Var[uint32], by ptx.Reg[uint32]) {
		n := ptx.Add(k, v.Get(), by)
		v.Set(ptx.Select(k, ptx.Eq(k, n, u32(mmaStages*stage)), u32(0), n))
	}
	to, from := ptx.VarOf(k, u32(0)), ptx.VarOf(k, u32(0))
	aligned := ptx.And(k, p.a.vector, p.b.vector)
	// What an inner turn goes on by.
	inner := ptx.Select(k, aligned, u32(stage), u32(0))
	stepA, stepB := ptx.Select(k, aligned, p.a.step, u64(0)), ptx.Select(k, aligned, p.b.step, u64(0))
	stop := ptx.Select(k, aligned, ptx.Imm(int32(0)), ptx.Imm(int32(math.MaxInt32)))
	enough := ptx.Select(k, aligned, ptx.Imm(int32(deep*(mmaStages-1))), ptx.Imm(int32(math.MaxInt32)))
	k.While(func() ptx.Reg[bool] { return ptx.Gt(k, left.Get(), ptx.Imm(int32(0))) }, func() {
		k.If(ptx.Gt(k, coming.Get(), ptx.Imm(int32(0))), func() {
			p.a.load(to.Get(), part.Get())
			p.b.load(to.Get(), part.Get())
		})
		k.CpAsyncCommit()
		next(to, u32(stage))
		part.Set(ptx.Imm(deep))
		coming.Set(ptx.Sub(k, coming.Get(), ptx.Imm(int32(deep))))
		// All stages but one are filled first.
		k.If(ptx.Le(k, coming.Get(), ptx.Sub(k, left.Get(), ptx.Imm(int32(deep*(mmaStages-1))))), func() {
			k.CpAsyncWait(mmaStages - 2)
			k.Barrier()
			k.Loop(func() {
				more := ptx.Gt(k, left.Get(), enough)
				p.a.bring(to.Get(), more, stepA)
				p.b.bring(to.Get(), more, stepB)
				k.CpAsyncCommit()
				next(to, inner)
				p.multiply(from.Get())
				next(from, u32(stage))
				left.Set(ptx.Sub(k, left.Get(), ptx.Imm(int32(deep))))
				k.CpAsyncWait(mmaStages - 2)
				k.Barrier()
				k.BreakIf(ptx.Le(k, left.Get(), stop))
			})
		})
	})
	k.CpAsyncWaitAll()
	k.Barrier()
}

// multiply adds the products of a stage.
func (p *mmaProduct) multiply(stage ptx.Reg[uint32]) {
	readA, readB := p.a.fragments(stage), p.b.fragments(stage)
	across := p.warpN / 8
	for step := range mmaRow / 32 {
		var a, b [][]ptx.Reg[uint32]
		for i := 0; i < p.warpM; i += 16 {
			a = append(a, readA(i, step))
		}
		for j := 0; j < p.warpN; j += 16 {
			pair := readB(j, step)
			b = append(b, pair[:2], pair[2:])
		}
		p.products(p.k, a, b, func(i, j int) []*ptx.Var[float32] { return p.sums[i*across+j] })
	}
}
