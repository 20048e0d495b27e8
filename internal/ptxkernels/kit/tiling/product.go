package tiling

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Product is a gemm under construction.
type Product struct {
	Shape
	K            *ptx.Kernel
	M, N         ptx.Reg[uint32]
	flags        ptx.Reg[uint32]
	act          ptx.Reg[uint32]
	Top, Left    ptx.Reg[uint32] // of the block's tile
	ty, tx       ptx.Reg[uint32] // of the thread
	place        ptx.Reg[uint32] // of the block's result among those of all splits and products
	Split, Z     ptx.Reg[uint32] // number of the split and of the product
	First        ptx.Reg[uint32] // where the depth of this split begins
	Depth        ptx.Reg[int32]  // of this split
	Bias         ptx.Ptr[ptx.Global, float32]
	accumulators scalar.Variables[float32]
	// places is where the element of row and column lies, and the i-th after it in the row.
	Places func(row, col ptx.Reg[uint32]) func(i int) ptx.Ptr[ptx.Global, float32]
	// mend, if there is one, corrects results that are NaN.
	Mend func(row, col ptx.Reg[uint32]) ptx.Reg[float32]
	// after is what stands after the product, if anything; at is where a result is for it, if not in row and column of product z.
	After *Epilogue
	At    func(row, col ptx.Reg[uint32]) Site
}

// ProductOf finds the block's place.
func ProductOf(params *kit.Params, t Shape, at *GemmSizes) *Product {
	k := params.Kernel
	p := &Product{Shape: t, K: k}
	p.M, p.N, p.flags, p.act = params.U32(&at.M), params.U32(&at.N), params.U32(&at.Flags), params.U32(&at.Act)

	place, in := params.Divisor(&at.Tiles).Split(k, k.Ctaid(ptx.X))
	split, z := params.Divisor(&at.Batch).Split(k, place)
	row, col := params.Divisor(&at.Across).Split(k, in)
	p.place, p.Split, p.Z = place, split, z
	p.Top, p.Left = row.Mul(t.M), col.Mul(t.N)
	p.First = split.Mul(params.U32(&at.Depth))
	p.Depth = ptx.Bitcast[int32](params.U32(&at.K).Sub(p.First).Min(params.U32(&at.Depth)))

	p.At = func(row, col ptx.Reg[uint32]) Site { return Site{Z: z, Row: row, Col: col} }

	tid := k.Tid(ptx.X)
	lane, warp := tid.And(31), tid.Shr(5)
	p.ty = warp.And(3).Mad(4, lane.Shr(3))
	p.tx = warp.Shr(2).Mad(8, lane.And(7))
	for range t.M / 16 * (t.N / 16) {
		p.accumulators = append(p.accumulators, ptx.NewVar[float32](k))
	}
	return p
}

// Has tells whether the launch has a flag.
func (p *Product) Has(flag uint32) ptx.Reg[bool] { return scalar.HasFlag(p.K, p.flags, flag) }

// Pipelined writes a kernel whose operands pass through registers (CUTLASS: MmaPipelined): while the tiles of one stage are
// multiplied, the next ones are on their way from memory to registers; then they go to the other stage, which was last read before
// the barrier.
func (p *Product) Pipelined(a, b *Operand) {
	k := p.K
	left := ptx.VarOf(k, p.Depth)
	stage := ptx.VarOf(k, ptx.U32(0))
	load := func() {
		a.Load(left.Get())
		b.Load(left.Get())
	}
	store := func() {
		a.Store(stage.Get())
		b.Store(stage.Get())
		k.Barrier()
	}
	load()
	store()
	p.Mainloop(left, p.Depth, func() {
		left.Set(left.Get().Sub(int32(p.Shape.K)))
		load()
		p.MultiplyAdd(a.Fragments(p.FirstRow(), a.Stage(stage.Get())), b.Fragments(p.FirstColumn(), b.Stage(stage.Get())))
		stage.Set(stage.Get().Xor(1))
		store()
	})
}

// Multistage writes a kernel whose operands are copied to shared memory in the background, to a ring of stages (CUTLASS: MmaMultistage).
// The first tile is what the depth has beyond a multiple of a tile's, so that all others are whole and the loop need not ask.
func (p *Product) Multistage(stages int, a, b *AsyncOperand, tileA, tileB OperandTile) {
	k, deep := p.K, uint32(p.Shape.K)
	depth := ptx.Bitcast[uint32](p.Depth)
	whole := depth.Add(deep - 1).Div(deep).Mul(deep) // rounded up
	rest := depth.Min(depth.Sub(whole.Sub(deep)))    // of the first tile
	total := ptx.Bitcast[int32](whole)
	left := ptx.VarOf(k, total)
	ring := NewPipeline(k, stages, 4*(tileA.Elements()+tileB.Elements()))
	fill := func(ahead int) {
		more := left.Get().Gt(ahead * p.Shape.K)
		a.Copy(ring.Write.Get(), more, a.Step)
		b.Copy(ring.Write.Get(), more, b.Step)
		ring.Commit()
	}
	a.CopyPart(ring.Write.Get(), rest)
	b.CopyPart(ring.Write.Get(), rest)
	ring.Commit()
	for i := 1; i < stages-1; i++ {
		fill(i)
	}
	fromA, fromB := tileA.memory.At(p.FirstRow()), tileB.memory.At(p.FirstColumn())
	ring.Wait()
	p.Mainloop(left, total, func() {
		fill(stages - 1)
		left.Set(left.Get().Sub(int32(deep)))
		stage := ring.Read.Get()
		p.MultiplyAdd(tileA.fragments(fromA.Bytes(stage)), tileB.fragments(fromB.Bytes(stage)))
		ring.Release()
		ring.Wait()
	})
}

// Mainloop adds up the products of total depth by iterations, which count down left, in chains of LongestChain, and writes what comes of
// them.
func (p *Product) Mainloop(left *ptx.Var[int32], total ptx.Reg[int32], iterate func()) {
	k := p.K
	k.Loop(func() {
		for _, s := range p.accumulators {
			s.Set(0)
		}
		stop := left.Get().Sub(LongestChain).Max(0)
		k.While(func() ptx.Reg[bool] { return left.Get().Gt(stop) }, iterate)
		last := left.Get().Le(0)
		k.If(last, p.AddBias)
		p.Flush(left.Get().Lt(total.Sub(LongestChain)))
		k.BreakIf(last)
	})
	if p.Mend != nil {
		p.mendAll()
	}
	p.Finish()
}

// FirstRow is the first row of the thread, in the tile.
func (p *Product) FirstRow() ptx.Reg[uint32] { return p.ty.Mul(4) }

// FirstColumn is the first column of the thread, in the tile.
func (p *Product) FirstColumn() ptx.Reg[uint32] { return p.tx.Mul(4) }

// MultiplyAdd adds the products of the fragments at each depth of a tile.
func (p *Product) MultiplyAdd(a, b func(d int) []ptx.Reg[float32]) {
	for i := range p.Shape.K {
		av, bv := a(i), b(i)
		for r := range av {
			for c := range bv {
				s := p.accumulators[r*len(bv)+c]
				s.Set(av[r].Fma(bv[c], s.Get()))
			}
		}
	}
}

// row and column of the thread's i-th row and first of its j-th four columns.
func (p *Product) row(i int) ptx.Reg[uint32] {
	return p.ty.Mad(4, p.Top).Add(i/4*64 + i%4)
}

func (p *Product) column(j int) ptx.Reg[uint32] {
	return p.tx.Mad(4, p.Left).Add(j * 64)
}

// AddBias adds it to the sums.
func (p *Product) AddBias() {
	k, zero, cols := p.K, ptx.Imm(float32(0)), p.Shape.N/16
	k.If(p.Has(BiasOfColumns), func() {
		for c := range cols {
			at := p.column(c / 4).Add(c % 4)
			b := ptx.LoadIf(at.Lt(p.N), p.Bias.At(at), zero)
			for i := c; i < len(p.accumulators); i += cols {
				p.accumulators[i].Set(p.accumulators[i].Get().Add(b))
			}
		}
	})
	k.If(p.Has(BiasOfRows), func() {
		for r := range p.Shape.M / 16 {
			at := p.row(r)
			b := ptx.LoadIf(at.Lt(p.M), p.Bias.At(at), zero)
			for _, s := range p.accumulators[r*cols : (r+1)*cols] {
				s.Set(s.Get().Add(b))
			}
		}
	})
}

// Flush writes the sums to c, added to what is there if more.
func (p *Product) Flush(more ptx.Reg[bool]) {
	k, cols := p.K, p.Shape.N/16
	for r := range p.Shape.M / 16 {
		row := p.row(r)
		k.If(row.Lt(p.M), func() {
			for j := range cols / 4 {
				q := p.strip(row, p.column(j))
				sums := p.accumulators[r*cols+4*j : r*cols+4*j+4]
				k.If(more, func() {
					before := q.Load()
					for i, s := range sums {
						s.Set(s.Get().Add(before[i]))
					}
				})
				q.store(sums.Get())
			}
		})
	}
}

// own goes over what the thread itself has written, in strips of four: that is still near, and the code is there once.
func (p *Product) own(f func(row, col ptx.Reg[uint32])) {
	k := p.K
	ptx.For(k, 0, p.Shape.M/16*p.Shape.N/64, 1, func(i ptx.Reg[uint32]) {
		r, j := i.Div(p.Shape.N/64), i.Rem(p.Shape.N/64)
		row := r.Shr(2).Mad(64, r.And(3)).Add(p.row(0))
		col := j.Mad(64, p.column(0))
		k.If(row.Lt(p.M), func() { f(row, col) })
	}, ptx.NoUnroll())
}

// Finish changes what has been written, if there is anything to change.
func (p *Product) Finish() {
	k, e := p.K, p.After
	change := func() {
		p.own(func(row, col ptx.Reg[uint32]) {
			q := p.strip(row, col)
			x := scalar.Activate(k, p.act, q.Load())
			if e != nil {
				x = e.Apply(x, func(i int) Site { return p.At(row, col.Add(i)) }, q.inside, q.vector)
			}
			q.store(x)
		})
	}
	if e != nil {
		change()
	} else {
		k.If(p.act.Ne(0), change)
	}
}

// mendAll looks for results that are NaN, which hardly any thread has.
func (p *Product) mendAll() {
	k := p.K
	some := p.accumulators[0].Get().Ne(p.accumulators[0].Get())
	for _, s := range p.accumulators[1:] {
		some = some.Or(s.Get().Ne(s.Get()))
	}
	k.If(some.And(p.Has(Padded)), func() {
		p.own(func(row, col ptx.Reg[uint32]) {
			ptx.For(k, col, p.N.Min(col.Add(4)), 1, func(col ptx.Reg[uint32]) {
				at := p.Places(row, col)(0)
				x := at.Load()
				k.If(x.Ne(x), func() { at.Store(p.Mend(row, col)) })
			}, ptx.NoUnroll())
		})
	})
}

// strip is four neighbours in a row of the result, of which some may lie outside.
type strip struct {
	k      *ptx.Kernel
	at     func(i int) ptx.Ptr[ptx.Global, float32]
	inside func(i int) ptx.Reg[bool]
	vector ptx.Reg[bool]
}

func (p *Product) strip(row, col ptx.Reg[uint32]) strip {
	return strip{k: p.K, vector: p.Has(VectorC),
		at:     p.Places(row, col),
		inside: func(i int) ptx.Reg[bool] { return col.Add(i).Lt(p.N) }}
}

// Load reads the strip.
func (q strip) Load() []ptx.Reg[float32] {
	k := q.k
	v := scalar.Zeros(k, 4)
	loadStrip(k, q.vector, q.at, q.inside, v)
	return v.Get()
}

// loadStrip sets those of v that are inside: at once, all or none of them, if vector.
func loadStrip(k *ptx.Kernel, vector ptx.Reg[bool], at func(i int) ptx.Ptr[ptx.Global, float32],
	inside func(i int) ptx.Reg[bool],
	v scalar.Variables[float32], opts ...ptx.MemOption) {
	// Only what has to be is predicated: a register that is set under a predicate is live from the beginning.
	k.If(vector, func() {
		first := at(0)
		k.When(inside(0), func() {
			for i, x := range first.Load4(opts...) {
				v[i].Set(x)
			}
		})
	}, func() {
		for i := range v {
			element := at(i)
			k.When(inside(i), func() { v[i].Set(element.Load(opts...)) })
		}
	})
}

func (q strip) store(v []ptx.Reg[float32]) {
	k := q.k
	k.If(q.vector, func() {
		first := q.at(0)
		k.When(q.inside(0), func() { first.Store4([4]ptx.Reg[float32](v)) })
	}, func() {
		for i := range v {
			ptx.StoreIf(q.inside(i), q.at(i), v[i])
		}
	})
}

// GemmThreads of a block, 16 × 16 over a tile of the result. A warp is 4 × 8 of them: what it reads of a row of either
// operand's tile is then at most 128 bytes, all banks once.
const GemmThreads = 256

// LongestChain is how many products are added up one after the other before the sum goes to another one: the error of a sum
// grows with the length of its chain.
const LongestChain = 2048

// Shape is how products are cut up: a block computes m × n of the result, k of the depth at a time. A thread has m/16 × n/16 of
// that, in squares of 4 × 4 that are 64 apart.
type Shape struct{ M, N, K int }

// Flags of gemm.
const (
	KMajorA = 1 << iota // neighbours in memory are neighbours in depth, so that a is [m, k]; otherwise it is [k, m]
	KMajorB             // likewise: b is [n, k]
	VectorA             // rows begin at multiples of 16 bytes
	VectorB
	VectorC
	BiasOfColumns // bias has n elements
	BiasOfRows    // bias has m elements
	Padded        // zeros of b may stand for what is not there
)

// GemmSizes are the parameters that kernels of [Product] have in common.
type GemmSizes struct {
	M, N, K              int `array:"sizes"`
	Depth                int // of one split: a multiple of every tile's k
	LDA, LDB             int // elements from row to row of a and b, as they lie in memory
	Flags, Act           int
	Across, Tiles, Batch scalar.Divide // tiles in a row of them, tiles of one product, products
}

// PlacesIn is where the elements of the block's product lie in c.
func (p *Product) PlacesIn(c ptx.Ptr[ptx.Global, float32]) func(row, col ptx.Reg[uint32]) func(i int) ptx.Ptr[ptx.Global, float32] {
	return func(row, col ptx.Reg[uint32]) func(i int) ptx.Ptr[ptx.Global, float32] {
		rows := p.place.MulWide(p.M).Add(ptx.Convert[uint64](row))
		from := c.At(rows.Mul(ptx.Convert[uint64](p.N))).At(col)
		return func(i int) ptx.Ptr[ptx.Global, float32] { return from.At(i) }
	}
}

// Tiled is a kernel of that kind.
type Tiled struct {
	Shape
	*kit.Kernel
}

// Blocks is how many tiles so many products of m × n have.
func (t Tiled) Blocks(m, n, products int) int {
	return kit.CeilDiv(m, t.M) * kit.CeilDiv(n, t.N) * products
}

// Sizes is the parameters of so many products of m × n over a depth of k, in parts of that depth, and the grid.
func (t Tiled) Sizes(m, n, k, depth, products int) (at GemmSizes, grid [3]int) {
	parts := max(1, kit.CeilDiv(k, depth))
	at = GemmSizes{M: m, N: n, K: k, Depth: depth, Across: scalar.Divide(kit.CeilDiv(n, t.N)), Tiles: scalar.Divide(t.Blocks(m, n, 1)),
		Batch: scalar.Divide(products)}
	return at, [3]int{t.Blocks(m, n, products) * parts, 1, 1}
}
