package gemm

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// AsyncTile is the tile of a gemm_async: 8 × 16 of the result for each thread, so that 128 of 134 instructions at a depth multiply.
var AsyncTile = tiling.Shape{M: 128, N: 256, K: 8}

// asyncStages of tiles, of which all but one are on their way: 37 KiB.
const asyncStages = 3

// gemmsAsync are the kernels by whether a and b are K-major. Operands go from memory to shared memory without passing registers
// (cp.async, from sm_80 on): elements one by one where they are K-major, which transposes the tile, else fours, which therefore have to
// be aligned.
var gemmsAsync = byMajor(false, func(a, b bool, suffix string) kit.Kernel {
	t := AsyncTile
	return kit.Kernel{Family: "matmul_async", Name: fmt.Sprintf("gemm_async_%dx%dx%d_%s", t.M, t.N, t.K, suffix),
		Block: [3]int{tiling.GemmThreads, 1, 1},
		Doc: "As gemm, with operands that arrive in the background; in the name, k says that an operand is K-major (a [m, k], b [n, k]), x " +
			"that it is not, with rows at multiples of 16 bytes.",
		Params:    gemmParams{},
		BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) { newAsyncProduct(k, a, b, e).Build() }}
})

// byMajor has the kernel for operands that are K-major or not; in the suffix of its name that is k or x for each.
func byMajor(both bool, f func(a, b bool, suffix string) kit.Kernel) (all [2][2]*kit.Kernel) {
	for a := range all {
		for b := range all[a] {
			if both && (a == 0 || b == 0) {
				continue
			}
			all[a][b] = kit.Register(f(a == 1, b == 1, "xk"[a:a+1]+"xk"[b:b+1]))
		}
	}
	return all
}

// asyncProduct is a gemm_async under construction.
type asyncProduct struct {
	*tiling.Product
	a, b asyncSide
}

func newAsyncProduct(k *ptx.Kernel, kMajorA, kMajorB bool, e *kit.Epilogue) *asyncProduct {
	var at gemmParams
	t := AsyncTile
	product, params, a, b := at.product(k, t, 1, e)
	p := &asyncProduct{Product: product}
	p.a = asyncSide{k: k, size: t.M, along: kMajorA, ld: params.U32(&at.LDA)}
	p.b = asyncSide{k: k, size: t.N, along: kMajorB, ld: params.U32(&at.LDB)}
	memory := ptx.SharedArray[float32](k, "tiles", asyncStages*(p.a.words()+p.b.words()), ptx.Align(16))
	p.a.Begin(memory, a, p.Top, p.M, p.First, p.FirstRow())
	p.b.Begin(memory.At(p.a.words()), b, p.Left, p.N, p.First, p.FirstColumn())
	return p
}

// build: the first tile is what the depth has beyond a multiple of a tile's, so that all others are whole and the loop need not
// ask. Each iteration brings a tile to the stage that the iteration before has read, which the barrier in between makes safe.
func (p *asyncProduct) Build() {
	k, deep := p.K, uint32(p.Shape.K)
	stage := 4 * (p.a.words() + p.b.words())
	depth := ptx.Bitcast[uint32](p.Depth)
	whole := depth.Add(deep - 1).Div(deep).Mul(deep) // rounded up
	rest := depth.Min(depth.Sub(whole.Sub(deep)))    // of the first tile
	p.a.Load(ptx.U32(0), rest)
	p.b.Load(ptx.U32(0), rest)
	k.CpAsyncCommit()
	total := ptx.Bitcast[int32](whole)
	p.Bring(ptx.U32(stage), total.Gt(int32(deep)))

	left := ptx.VarOf(k, total)
	from, to := ptx.VarOf(k, ptx.U32(0)), ptx.VarOf(k, ptx.U32(2*stage))
	next := func(v *ptx.Var[uint32]) {
		n := v.Get().Add(stage)
		v.Set(ptx.Select(n.Eq(asyncStages*stage), ptx.U32(0), n))
	}
	k.CpAsyncWait(asyncStages - 2)
	k.Barrier()
	p.Mainloop(left, total, func() {
		p.Bring(to.Get(), left.Get().Gt(int32(deep*(asyncStages-1))))
		left.Set(left.Get().Sub(int32(deep)))
		p.MultiplyAdd(p.a.Fragments(from.Get()), p.b.Fragments(from.Get()))
		next(from)
		next(to)
		k.CpAsyncWait(asyncStages - 2)
		k.Barrier()
	})
}

// Bring starts to bring the next tiles if there are more.
func (p *asyncProduct) Bring(stage ptx.Reg[uint32], more ptx.Reg[bool]) {
	p.a.Bring(stage, more)
	p.b.Bring(stage, more)
	p.K.CpAsyncCommit()
}

// asyncSide is an operand of a gemm_async. A tile is rows of elements at one depth, padded by eight so that elements of eight rows
// at four depths come to different banks. Beyond the matrix it repeats the last elements, whose results are not written.
type asyncSide struct {
	k      *ptx.Kernel
	size   int
	along  bool
	ld     ptx.Reg[uint32]
	memory ptx.Ptr[ptx.Shared, float32]
	to     ptx.Ptr[ptx.Shared, float32] // where the thread's first piece comes to in the first stage,
	apart  int                          // and how many bytes from there to that of the next piece
	from   ptx.Ptr[ptx.Shared, float32] // the first that the thread multiplies
	pieces []asyncPiece
	step   ptx.Reg[uint64] // bytes from tile to tile
}

// asyncPiece is what a thread brings of each tile: four elements across, or two along the depth that are four apart.
type asyncPiece struct {
	at *ptx.PtrVar[ptx.Global, float32]
	d  ptx.Reg[uint32] // its depth in the tile, that of the first
}

func (s *asyncSide) row() int   { return s.size + 8 }
func (s *asyncSide) words() int { return AsyncTile.K * s.row() }

// copies calls f for each copy of a piece: what lies so many bytes after its first element, and in shared memory.
func (s *asyncSide) copies(f func(from, to int)) {
	f(0, 0)
	if s.along {
		f(16, 16*s.row())
	}
}

// each is the elements of a copy.
func (s *asyncSide) each() int {
	if s.along {
		return 1
	}
	return 4
}

// Begin is about tiles from first on and at depth d0, of which the thread multiplies what begins at own.
func (s *asyncSide) Begin(memory ptx.Ptr[ptx.Shared, float32], x ptx.Ptr[ptx.Global, float32], first, bound, d0, own ptx.Reg[uint32]) {
	k := s.k
	s.memory, s.from = memory, memory.At(own)
	tid := k.Tid(ptx.X)
	var r, d ptx.Reg[uint32]     // of the first piece, in the tile
	var down, deeper, pieces int // to the next one, and how many there are
	if s.along {
		r, d = tid.Div(AsyncTile.K/2), tid.Rem(AsyncTile.K/2)
		down, s.step = tiling.GemmThreads/(AsyncTile.K/2), scalar.U64(4*AsyncTile.K)
		pieces = s.size / down
	} else {
		r, d = tid.Rem(s.size/4).Mul(4), tid.Div(s.size/4)
		deeper, s.step = tiling.GemmThreads/(s.size/4), s.ld.MulWide(4*AsyncTile.K)
		pieces = AsyncTile.K / deeper
	}
	s.to, s.apart = memory.At(d.Mad(s.row(), r)), 4*(down+deeper*s.row())
	last := bound.Sub(s.each())
	for i := range pieces {
		g, d := first.Add(r.Add(i*down)), d.Add(i*deeper)
		major, minor := g.Min(last), d0.Add(d)
		if !s.along {
			major, minor = minor, major
		}
		at := x.At(major.MulWide(s.ld)).At(minor)
		s.pieces = append(s.pieces, asyncPiece{at: ptx.PtrVarOf(at), d: d})
	}
}

// Load starts to bring a tile of only so much depth, with zeros for the rest.
func (s *asyncSide) Load(stage, depth ptx.Reg[uint32]) {
	skipped := depth.MulWide(4)
	if !s.along {
		skipped = skipped.Mul(ptx.Convert[uint64](s.ld))
	}
	skipped = skipped.Sub(s.step) // bring goes on first
	to := s.to.Bytes(stage)
	for i, p := range s.pieces {
		s.copies(func(from, at int) {
			inside := p.d.Add(from / 4).Lt(depth)
			ptx.CpAsyncZfill(to.Bytes(i*s.apart+at), p.at.Get().Bytes(from), 4*s.each(), ptx.Select(inside, ptx.U32(4*s.each()), 0))
		})
		p.at.Set(p.at.Get().Bytes(skipped))
	}
}

// Bring starts to bring a whole tile if there are more. Only the copies ask: addresses that nobody needs do not hurt.
func (s *asyncSide) Bring(stage ptx.Reg[uint32], more ptx.Reg[bool]) {
	k := s.k
	to := s.to.Bytes(stage)
	for _, p := range s.pieces {
		p.at.Set(p.at.Get().Bytes(s.step))
	}
	k.When(more, func() {
		for i, p := range s.pieces {
			s.copies(func(from, at int) { ptx.CpAsync(to.Bytes(i*s.apart+at), p.at.Get().Bytes(from), 4*s.each()) })
		}
	})
}

// Fragments returns what reads the thread's elements at a depth: its first four, and four more 64 further each.
func (s *asyncSide) Fragments(stage ptx.Reg[uint32]) func(d int) []ptx.Reg[float32] {
	at := s.from.Bytes(stage)
	return func(d int) (v []ptx.Reg[float32]) {
		for i := 0; i < s.size; i += 64 {
			four := at.At(d*s.row() + i).Load4()
			v = append(v, four[:]...)
		}
		return v
	}
}
