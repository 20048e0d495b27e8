package gemm

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// A block of a wgmma_gemm computes 128 × n of the result at a time, 128 bytes of the depth at a time: one warpgroup brings the
// tiles by tensor copies (TMA), two multiply them, each its 64 rows. Blocks stay, one for each multiprocessor, and go from tile to
// tile, so that the tiles of the next ones are on their way while results are written. (NVIDIA CUTLASS,
// sm90_mma_tma_gmma_ss_warpspecialized; the persistent, cooperative schedule.)
const (
	wgmmaM       = 128
	wgmmaRow     = 128           // bytes of the depth: what the swizzle spans
	WgmmaSteps   = wgmmaRow / 32 // an instruction takes 32 bytes of the depth
	wgmmaThreads = 384           // three warpgroups
	// A block has the registers of a multiprocessor, 168 for each thread, and shares them out again.
	wgmmaProducerRegs, wgmmaConsumerRegs = 40, 232
	// wgmmaGroup is how many rows of tiles are gone through column by column: what blocks read at a time is then nearly square, and
	// stays in the L2 cache.
	wgmmaGroup = 8
	// wgmmaScratch is shared memory in which a warp turns 16 × 32 results from fragments to rows.
	wgmmaScratch = 16 * tiling.MMAScratchRow
)

// wgmmaTile is a kernel's part of the result along n, and stages of tiles. An operand may be the sum of two parts, which have tiles each.
type wgmmaTile struct{ n, stages, parts int }

var (
	wgmmaTiles      = []wgmmaTile{{256, 4, 1}, {128, 6, 1}, {64, 8, 1}}
	wgmmaPartsTiles = []wgmmaTile{{128, 3, 2}}
)

func (t wgmmaTile) size() int { return t.parts * (wgmmaM + t.n) * wgmmaRow }

// sizeA is the bytes of a's tiles in a stage, before those of b.
func (t wgmmaTile) sizeA() int { return t.parts * wgmmaM * wgmmaRow }

// shared is the bytes of dynamic shared memory: tiles, scratch memory of eight warps, two barriers for each stage.
func (t wgmmaTile) shared() int { return t.stages*t.size() + 8*wgmmaScratch + 16*t.stages }

// wgmmaSet is the kernels for a kind of numbers: by tile, which are families, since a driver takes long to compile them, and by whether a and
// b are K-major.
type wgmmaSet struct {
	typ     tensormap.DataType
	tiles   []wgmmaTile
	kernels [][2][2]*kit.Kernel
}

// As TF32, copies round numbers on their way (CUTLASS does the same for operands of float32), and both operands have to be K-major.
// As sums of two TF32, they are nearly exact: see [tiling.KindTF32x3].
var (
	wgmmaF16    = newWgmmaSet("f16", tensormap.F16, wgmmaTiles, wgmmaBody[ptx.F16x2])
	wgmmaBF16   = newWgmmaSet("bf16", tensormap.BF16, wgmmaTiles, wgmmaBody[ptx.BF16x2])
	wgmmaTF32   = newWgmmaSet("tf32", tensormap.TF32, wgmmaTiles, wgmmaBody[ptx.TF32])
	wgmmaTF32x3 = newWgmmaSet("tf32x3", tensormap.TF32, wgmmaPartsTiles, wgmmaBody[ptx.TF32])
)

func newWgmmaSet(name string, typ tensormap.DataType, tiles []wgmmaTile, body func(k *ptx.Kernel, t wgmmaTile, kMajorA, kMajorB bool, e *kit.Epilogue)) *wgmmaSet {
	s := &wgmmaSet{typ: typ, tiles: tiles}
	for _, t := range tiles {
		s.kernels = append(s.kernels, byMajor(typ.Bytes() == 4, func(a, b bool, suffix string) kit.Kernel {
			return kit.Kernel{Family: fmt.Sprintf("matmul_wgmma_%s_%d", name, t.n), Name: fmt.Sprintf("wgmma_%s_%dx%d_%s", name, wgmmaM, t.n, suffix),
				Block: [3]int{wgmmaThreads, 1, 1}, Shared: t.shared(),
				Doc: "c = act(a·b + bias), or parts of a·b where depths are cut up, by wgmma on tiles that TMA brings; in the name, k " +
					"says that an operand is K-major (a [m, k], b [n, k]), x that it is not.",
				Params:    wgmmaParams{},
				BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) { body(k, t, a, b, e) }}
		}))
	}
	return s
}

// parts are those of an operand.
func (s *wgmmaSet) parts() int { return s.tiles[0].parts }

// depth is the elements of a row.
func (s *wgmmaSet) depth() int { return wgmmaRow / s.typ.Bytes() }

// wgmmaParams are those of a wgmma_gemm.
type wgmmaParams struct {
	M, N, K        int           `array:"sizes"`
	Items          int           // see [tiling.Schedule.Items]
	BatchA, BatchB int           // 0 if all products share a, or b
	Flags, Act     int           // as gemm's, of bias and result
	Down           int           // tiles below each other
	InGroup, Tiles scalar.Divide // tiles of wgmmaGroup rows of them, and of one product
	tiling.ScheduleSizes
	Bias       kit.Buffer
	C          kit.Buffer `of:"result"` // of the type that the flags say
	Parts      kit.Buffer
	MapA, MapB kit.TensorMap
}

// wgmmaProduct is a wgmma_gemm under construction.
type wgmmaProduct struct {
	wgmmaTile
	*kit.Params
	wgmmaParams
	k                *ptx.Kernel
	kMajorA, kMajorB bool
	depth            int // elements of a row
	memory           ptx.Ptr[ptx.Shared, uint32]
	scratch          ptx.Ptr[ptx.Shared, uint32]
	full, empty      ptx.Mbarrier
	mulAdd           func(k *ptx.Kernel, add any, sums []*ptx.Var[float32], a, b ptx.Descriptor)
}

func wgmmaBody[T ptx.F16x2 | ptx.BF16x2 | ptx.TF32](k *ptx.Kernel, t wgmmaTile, kMajorA, kMajorB bool, e *kit.Epilogue) {
	p := &wgmmaProduct{wgmmaTile: t, k: k, kMajorA: kMajorA, kMajorB: kMajorB, depth: wgmmaRow / 2}
	if _, whole := any(*new(T)).(ptx.TF32); whole {
		p.depth = wgmmaRow / 4
	}
	p.Params = kit.NewParams(k, &p.wgmmaParams)
	p.mulAdd = ptx.Wgmma[T, T, float32]{N: t.n, TransA: !kMajorA, TransB: !kMajorB}.MulAddIf
	p.Build(e)
}

// Build writes the kernel.
func (p *wgmmaProduct) Build(e *kit.Epilogue) {
	k := p.k
	bias, c, parts := kit.Ptr[float32](p.Params, &p.Bias), kit.Ptr[uint8](p.Params, &p.C), kit.Ptr[float32](p.Params, &p.Parts)
	a, b := kit.Map[uint32](p.Params, &p.MapA), kit.Map[uint32](p.Params, &p.MapB)
	after := tiling.EpilogueOf(k, e)
	k.MinBlocks(1)
	p.memory = ptx.DynamicShared[uint32](k, ptx.Align(1024))
	p.scratch = p.memory.Bytes(p.stages * p.size())
	p.full = ptx.MbarrierAt(ptx.Cast[uint64](p.scratch.Bytes(8 * wgmmaScratch)))
	p.empty = p.full.At(p.stages)
	tid := k.Tid(ptx.X)
	first := tid.Eq(0)
	k.If(first, func() {
		for s := range p.stages {
			p.full.At(s).Init(1)
			p.empty.At(s).Init(8) // warps
		}
		k.FenceMbarrierInit()
	})
	k.Barrier()
	k.If(tid.Lt(128), func() {
		k.SetMaxRegsDec(wgmmaProducerRegs)
		k.If(first, func() { p.produce(a, b) })
	}, func() {
		k.SetMaxRegsInc(wgmmaConsumerRegs)
		p.consume(&tiling.RowWriter{K: k, Bias: bias, C: c, Parts: parts, After: after})
	})
}

// ring goes over the stages, again and again: stage is the present one, phase the parity that its barriers have.
type ring struct {
	p            *wgmmaProduct
	stage, phase *ptx.Var[uint32]
}

func (p *wgmmaProduct) ring() *ring {
	return &ring{p: p, stage: ptx.VarOf(p.k, ptx.U32(0)), phase: ptx.VarOf(p.k, ptx.U32(0))}
}

func (r *ring) at(b ptx.Mbarrier) ptx.Mbarrier { return b.At(r.stage.Get()) }

func (r *ring) memory() ptx.Ptr[ptx.Shared, uint32] {
	return r.p.memory.Bytes(r.stage.Get().Mul(r.p.size()))
}

func (r *ring) next() {
	n := r.stage.Get().Add(1)
	around := n.Eq(r.p.stages)
	r.phase.Set(r.phase.Get().Xor(ptx.Select(around, ptx.U32(1), 0)))
	r.stage.Set(ptx.Select(around, ptx.U32(0), n))
}

// outputTile is a tile of the result, of which the block computes a segment.
type outputTile struct {
	tiling.Segment
	z, top, left ptx.Reg[uint32] // number of the product, first row and column
}

// each goes over what the block computes.
func (p *wgmmaProduct) each(f func(w outputTile)) {
	k := p.k
	ptx.For(k, k.Ctaid(ptx.X), p.U32(&p.Items), k.Nctaid(ptx.X), func(i ptx.Reg[uint32]) {
		tiling.EachSegment(p.Params, &p.ScheduleSizes, i, p.U32(&p.K), func(s tiling.Segment) {
			z, in := p.Divisor(&p.Tiles).Split(k, s.Tile)
			group, in := p.Divisor(&p.InGroup).Split(k, in)
			row := group.Mul(wgmmaGroup)
			rows := p.U32(&p.Down).Sub(row).Min(wgmmaGroup)
			col := in.Div(rows)
			row = row.Add(in.Sub(col.Mul(rows)))
			f(outputTile{s, z, row.Mul(wgmmaM), col.Mul(p.n)})
		})
	}, ptx.NoUnroll())
}

// produce is what one thread does: it brings tiles as stages become empty.
func (p *wgmmaProduct) produce(a, b ptx.TensorMap[uint32]) {
	k := p.k
	a.PrefetchDescriptor()
	b.PrefetchDescriptor()
	r := p.ring()
	p.each(func(w outputTile) {
		za, zb := w.z.Mul(p.U32(&p.BatchA)), w.z.Mul(p.U32(&p.BatchB))
		ptx.For(k, 0, w.Depth, p.depth, func(d ptx.Reg[uint32]) {
			at := w.First.Add(d)
			r.at(p.empty).WaitParity(r.phase.Get().Xor(1))
			full, memory := r.at(p.full), r.memory()
			full.ArriveExpectTx(p.size())
			bring := func(to ptx.Ptr[ptx.Shared, uint32], m ptx.TensorMap[uint32], x, z ptx.Reg[uint32], size int, kMajor bool) {
				signed := ptx.Bitcast[int32, uint32]
				if kMajor {
					m.Load(to, []ptx.Reg[int32]{signed(at), signed(x), signed(z)}, full)
					return
				}
				for i := 0; i < size; i += p.depth {
					x := x.Add(i)
					m.Load(to.Bytes(i*wgmmaRow), []ptx.Reg[int32]{signed(x), signed(at), signed(z)}, full)
				}
			}
			for i := range p.parts {
				bring(memory.Bytes(i*wgmmaM*wgmmaRow), a, w.top, za.Mul(p.parts).Add(i), wgmmaM, p.kMajorA)
				bring(memory.Bytes(p.sizeA()+i*p.n*wgmmaRow), b, w.left, zb.Mul(p.parts).Add(i), p.n, p.kMajorB)
			}
			r.next()
		}, ptx.NoUnroll(), ptx.AtLeastOnce())
	})
}

// consume is what the two warpgroups do that multiply. A stage is given back when the products of the next one have been asked
// for, so that there is always work waiting.
func (p *wgmmaProduct) consume(x *tiling.RowWriter) {
	k := p.k
	tid := k.Tid(ptx.X).Sub(128)
	lane, warp, half := tid.And(31), tid.Shr(5), tid.Shr(7)
	x.Lane, x.Scratch = lane, p.scratch.Bytes(warp.Mul(wgmmaScratch))
	x.M, x.N = p.U32(&p.M), p.U32(&p.N)
	leader := lane.Eq(0)
	r := p.ring()
	sums := make([]*ptx.Var[float32], p.n/2)
	for i := range sums {
		sums[i] = ptx.NewVar[float32](k)
	}
	p.each(func(w outputTile) {
		for _, s := range sums {
			s.Set(0)
		}
		if p.parts == 1 {
			p.multiply(w, r, half, leader, sums)
		} else {
			p.multiplyParts(w, r, half, leader, sums)
		}
		x.Begin(w.Segment, w.z, p.U32(&p.Flags), p.U32(&p.Act))
		x.Chunks(p.n/32, 16, warp.Mad(16, w.top), w.left, false, func(i, row, col int) *ptx.Var[float32] {
			return sums[(32*i+col)/8*4+row/8*2+col%8]
		})
	})
}

// multiply adds up the products of a segment in tensor cores.
func (p *wgmmaProduct) multiply(w outputTile, r *ring, half ptx.Reg[uint32], leader ptx.Reg[bool], sums []*ptx.Var[float32]) {
	k := p.k
	before := ptx.VarOf(k, p.empty.Address()) // barrier of the stage whose products may still be under way
	ptx.For(k, 0, w.Depth, p.depth, func(d ptx.Reg[uint32]) {
		r.at(p.full).WaitParity(r.phase.Get())
		k.WgmmaFence()
		p.products(r.memory(), half, 0, 0, true, sums)
		k.WgmmaCommit()
		k.WgmmaWait(1)
		k.When(leader.And(d.Gt(0)), func() { p.barrierAt(before.Get()).ArriveN(1) })
		before.Set(r.at(p.empty).Address())
		r.next()
	}, ptx.NoUnroll(), ptx.AtLeastOnce())
	k.WgmmaWait(0)
	k.When(leader, func() { p.barrierAt(before.Get()).ArriveN(1) })
}

// multiplyParts does so for operands in two parts. What tensor cores add up they do not round to nearest, so that sums of many products
// drift: those of a stage begin at zero, and are added by ordinary instructions, while the other warpgroup multiplies.
func (p *wgmmaProduct) multiplyParts(w outputTile, r *ring, half ptx.Reg[uint32], leader ptx.Reg[bool], sums []*ptx.Var[float32]) {
	k := p.k
	stage := make([]*ptx.Var[float32], len(sums))
	for i := range stage {
		stage[i] = ptx.NewVar[float32](k)
		stage[i].Set(0)
	}
	ptx.For(k, 0, w.Depth, p.depth, func(d ptx.Reg[uint32]) {
		r.at(p.full).WaitParity(r.phase.Get())
		memory := r.memory()
		k.WgmmaFence()
		p.products(memory, half, 1, 0, false, stage)
		p.products(memory, half, 0, 1, true, stage)
		p.products(memory, half, 0, 0, true, stage)
		k.WgmmaCommit()
		k.WgmmaWait(0)
		k.When(leader, func() { r.at(p.empty).ArriveN(1) })
		r.next()
		for i, s := range sums {
			s.Set(s.Get().Add(stage[i].Get()))
		}
	}, ptx.NoUnroll(), ptx.AtLeastOnce())
}

// products asks for those of a stage, of a part of a and one of b. Unless add is set, sums begin with them.
func (p *wgmmaProduct) products(memory ptx.Ptr[ptx.Shared, uint32], half ptx.Reg[uint32], partA, partB int, add bool, sums []*ptx.Var[float32]) {
	ofA, stepA := p.descriptor(memory.Bytes(half.Mul(64*wgmmaRow)).Bytes(partA*wgmmaM*wgmmaRow), p.kMajorA)
	ofB, stepB := p.descriptor(memory.Bytes(p.sizeA()+partB*p.n*wgmmaRow), p.kMajorB)
	for i := range WgmmaSteps {
		p.mulAdd(p.k, add || i > 0, sums, ofA.Bytes(i*stepA), ofB.Bytes(i*stepB))
	}
}

func (p *wgmmaProduct) barrierAt(address ptx.Reg[uint32]) ptx.Mbarrier {
	return ptx.MbarrierAt(ptx.SharedPtrAt[ptx.Shared, uint64](p.k, address))
}

// descriptor is that of the operand's tile at x, and what to advance it by for the next instruction. K-major, 8 rows
// of 128 bytes are an atom. M-major, which only 16 bits are, an atom is 64 elements at each of 8 depths, and the next 64 elements lie after all depths.
func (p *wgmmaProduct) descriptor(x ptx.Ptr[ptx.Shared, uint32], kMajor bool) (d ptx.Descriptor, step int) {
	if kMajor {
		return ptx.NewDescriptor(x, 16, 8*wgmmaRow, ptx.Swizzle128), 32
	}
	return ptx.NewDescriptor(x, p.depth*wgmmaRow, 8*wgmmaRow, ptx.Swizzle128), 16 * wgmmaRow
}
