package lower

import "github.com/wavelane/wavelane/ptx"

// product is a gemm under construction.
type product struct {
	tile
	k         *ptx.Kernel
	m, n      ptx.Reg[uint32]
	flags     ptx.Reg[uint32]
	act       ptx.Reg[uint32]
	top, left ptx.Reg[uint32] // of the block's tile
	ty, tx    ptx.Reg[uint32] // of the thread
	place     ptx.Reg[uint32] // of the block's result among those of all splits and products
	split, z  ptx.Reg[uint32] // number of the split and of the product
	first     ptx.Reg[uint32] // where the depth of this split begins
	depth     ptx.Reg[int32]  // of this split
	a, b      tileSource
	bias      ptx.Ptr[ptx.Global, float32]
	sums      []*ptx.Var[float32]
	// places is where the element of row and column lies, and the i-th behind it in the row.
	places func(row, col ptx.Reg[uint32]) func(i int) ptx.Ptr[ptx.Global, float32]
	// mend, if there is one, corrects results that are NaN.
	mend func(row, col ptx.Reg[uint32]) ptx.Reg[float32]
	// after is what stands behind the product, if anything; at is where a result is for it, if not in row and column of product z.
	after *epilogue
	at    func(row, col ptx.Reg[uint32]) site
}

// tileSource brings an operand's tiles to shared memory, see side.
type tileSource interface {
	load(left ptx.Reg[int32])
	store(stage ptx.Reg[uint32])
	fragments(stage, first ptx.Reg[uint32]) func(d int) []ptx.Reg[float32]
}

// productOf finds the block's place, by those of the arguments that gemm and its kin have in common.
func productOf(k *ptx.Kernel, t tile, sizes ptx.Array[uint32]) *product {
	p := &product{tile: t, k: k}
	p.m, p.n, p.flags, p.act = sizes.At(k, gemmM), sizes.At(k, gemmN), sizes.At(k, gemmFlags), sizes.At(k, gemmAct)

	place, in := divisorAt(k, sizes, gemmTiles).split(k, k.Ctaid(ptx.X))
	split, z := divisorAt(k, sizes, gemmBatch).split(k, place)
	row, col := divisorAt(k, sizes, gemmAcross).split(k, in)
	p.place, p.split, p.z = place, split, z
	p.top, p.left = ptx.Mul(k, row, u32(t.m)), ptx.Mul(k, col, u32(t.n))
	p.first = ptx.Mul(k, split, sizes.At(k, gemmDepth))
	p.depth = ptx.Bitcast[int32](k, ptx.Min(k, ptx.Sub(k, sizes.At(k, gemmK), p.first), sizes.At(k, gemmDepth)))

	p.at = func(row, col ptx.Reg[uint32]) site { return site{z, row, col} }

	tid := k.Tid(ptx.X)
	lane, warp := ptx.And(k, tid, u32(31)), ptx.Shr(k, tid, u32(5))
	p.ty = ptx.Mad(k, ptx.And(k, warp, u32(3)), u32(4), ptx.Shr(k, lane, u32(3)))
	p.tx = ptx.Mad(k, ptx.Shr(k, warp, u32(2)), u32(8), ptx.And(k, lane, u32(7)))
	for range t.m / 16 * (t.n / 16) {
		p.sums = append(p.sums, ptx.NewVar[float32](k))
	}
	return p
}

func (p *product) has(flag uint32) ptx.Reg[bool] { return hasFlag(p.k, p.flags, flag) }

// build: while the tiles of one stage are multiplied, the next ones are on their way from memory to registers; then they go to
// the other stage, which was last read before the barrier.
func (p *product) build() {
	k := p.k
	left := ptx.VarOf(k, p.depth)
	stage := ptx.VarOf(k, u32(0))
	p.a.load(left.Get())
	p.b.load(left.Get())
	p.a.store(stage.Get())
	p.b.store(stage.Get())
	k.Barrier()
	k.Loop(func() {
		for _, s := range p.sums {
			s.Set(ptx.Imm(float32(0)))
		}
		stop := ptx.Max(k, ptx.Sub(k, left.Get(), ptx.Imm(int32(longestChain))), ptx.Imm(int32(0)))
		k.While(func() ptx.Reg[bool] { return ptx.Gt(k, left.Get(), stop) }, func() {
			left.Set(ptx.Sub(k, left.Get(), ptx.Imm(int32(p.tile.k))))
			p.a.load(left.Get())
			p.b.load(left.Get())
			p.multiply(stage.Get())
			stage.Set(ptx.Xor(k, stage.Get(), u32(1)))
			p.a.store(stage.Get())
			p.b.store(stage.Get())
			k.Barrier()
		})
		last := ptx.Le(k, left.Get(), ptx.Imm(int32(0)))
		k.If(last, p.addBias)
		p.flush(ptx.Lt(k, left.Get(), ptx.Sub(k, p.depth, ptx.Imm(int32(longestChain)))))
		k.BreakIf(last)
	})
	if p.mend != nil {
		p.mendAll()
	}
	p.finish()
}

// multiply adds the products of a stage.
func (p *product) multiply(stage ptx.Reg[uint32]) {
	p.add(p.a.fragments(stage, p.firstRow()), p.b.fragments(stage, p.firstColumn()))
}

// firstRow and firstColumn are the thread's, in the tile.
func (p *product) firstRow() ptx.Reg[uint32]    { return ptx.Mul(p.k, p.ty, u32(4)) }
func (p *product) firstColumn() ptx.Reg[uint32] { return ptx.Mul(p.k, p.tx, u32(4)) }

// add adds the products of the fragments at each depth of a tile.
func (p *product) add(a, b func(d int) []ptx.Reg[float32]) {
	for i := range p.tile.k {
		av, bv := a(i), b(i)
		for r := range av {
			for c := range bv {
				s := p.sums[r*len(bv)+c]
				s.Set(ptx.Fma(p.k, av[r], bv[c], s.Get()))
			}
		}
	}
}

// row and column of the thread's i-th row and first of its j-th four columns.
func (p *product) row(i int) ptx.Reg[uint32] {
	return ptx.Add(p.k, ptx.Mad(p.k, p.ty, u32(4), p.top), u32(i/4*64+i%4))
}

func (p *product) column(j int) ptx.Reg[uint32] {
	return ptx.Add(p.k, ptx.Mad(p.k, p.tx, u32(4), p.left), u32(j*64))
}

// addBias adds it to the sums.
func (p *product) addBias() {
	k, zero, cols := p.k, ptx.Imm(float32(0)), p.tile.n/16
	k.If(p.has(biasOfColumns), func() {
		for c := range cols {
			at := ptx.Add(k, p.column(c/4), u32(c%4))
			b := ptx.LoadIf(k, ptx.Lt(k, at, p.n), ptx.At(k, p.bias, at), zero)
			for i := c; i < len(p.sums); i += cols {
				p.sums[i].Set(ptx.Add(k, p.sums[i].Get(), b))
			}
		}
	})
	k.If(p.has(biasOfRows), func() {
		for r := range p.tile.m / 16 {
			at := p.row(r)
			b := ptx.LoadIf(k, ptx.Lt(k, at, p.m), ptx.At(k, p.bias, at), zero)
			for _, s := range p.sums[r*cols : (r+1)*cols] {
				s.Set(ptx.Add(k, s.Get(), b))
			}
		}
	})
}

// flush writes the sums to c, added to what is there if more.
func (p *product) flush(more ptx.Reg[bool]) {
	k, cols := p.k, p.tile.n/16
	for r := range p.tile.m / 16 {
		row := p.row(r)
		k.If(ptx.Lt(k, row, p.m), func() {
			for j := range cols / 4 {
				q := p.strip(row, p.column(j))
				sums := p.sums[r*cols+4*j:][:4]
				k.If(more, func() {
					before := q.load()
					for i, s := range sums {
						s.Set(ptx.Add(k, s.Get(), before[i]))
					}
				})
				q.store([]ptx.Reg[float32]{sums[0].Get(), sums[1].Get(), sums[2].Get(), sums[3].Get()})
			}
		})
	}
}

// own goes over what the thread itself has written, in strips of four: that is still near, and the code is there once.
func (p *product) own(f func(row, col ptx.Reg[uint32])) {
	k := p.k
	ptx.For(k, u32(0), u32(p.tile.m/16*p.tile.n/64), u32(1), func(i ptx.Reg[uint32]) {
		r, j := ptx.Div(k, i, u32(p.tile.n/64)), ptx.Rem(k, i, u32(p.tile.n/64))
		row := ptx.Add(k, ptx.Mad(k, ptx.Shr(k, r, u32(2)), u32(64), ptx.And(k, r, u32(3))), p.row(0))
		col := ptx.Mad(k, j, u32(64), p.column(0))
		k.If(ptx.Lt(k, row, p.m), func() { f(row, col) })
	}, ptx.NoUnroll())
}

// finish changes what has been written, if there is anything to change.
func (p *product) finish() {
	k, e := p.k, p.after
	change := func() {
		p.own(func(row, col ptx.Reg[uint32]) {
			q := p.strip(row, col)
			x := activate(k, p.act, q.load())
			if e != nil {
				x = e.apply(x, func(i int) site { return p.at(row, ptx.Add(k, col, u32(i))) }, q.inside, q.vector)
			}
			q.store(x)
		})
	}
	if e != nil {
		change()
	} else {
		k.If(ptx.Ne(k, p.act, u32(0)), change)
	}
}

// mendAll looks for results that are NaN, which hardly any thread has.
func (p *product) mendAll() {
	k := p.k
	some := ptx.Ne(k, p.sums[0].Get(), p.sums[0].Get())
	for _, s := range p.sums[1:] {
		some = ptx.Or(k, some, ptx.Ne(k, s.Get(), s.Get()))
	}
	k.If(ptx.And(k, some, p.has(padded)), func() {
		p.own(func(row, col ptx.Reg[uint32]) {
			ptx.For(k, col, ptx.Min(k, p.n, ptx.Add(k, col, u32(4))), u32(1), func(col ptx.Reg[uint32]) {
				at := p.places(row, col)(0)
				x := ptx.Load(k, at)
				k.If(ptx.Ne(k, x, x), func() { ptx.Store(k, at, p.mend(row, col)) })
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

func (p *product) strip(row, col ptx.Reg[uint32]) strip {
	return strip{k: p.k, vector: p.has(vectorC),
		at:     p.places(row, col),
		inside: func(i int) ptx.Reg[bool] { return ptx.Lt(p.k, ptx.Add(p.k, col, u32(i)), p.n) }}
}

func (q strip) load() []ptx.Reg[float32] {
	k := q.k
	var v [4]*ptx.Var[float32]
	for i := range v {
		v[i] = ptx.VarOf(k, ptx.Imm(float32(0)))
	}
	loadStrip(k, q.vector, q.at, q.inside, v)
	return []ptx.Reg[float32]{v[0].Get(), v[1].Get(), v[2].Get(), v[3].Get()}
}

// loadStrip sets those of v that are inside: at once, all or none of them, if vector.
func loadStrip(k *ptx.Kernel, vector ptx.Reg[bool], at func(i int) ptx.Ptr[ptx.Global, float32],
	inside func(i int) ptx.Reg[bool],
	v [4]*ptx.Var[float32], opts ...ptx.MemOption) {
	// Only what has to be is predicated: a register that is set under a predicate is live from the beginning.
	k.If(vector, func() {
		first := at(0)
		k.When(inside(0), func() {
			for i, x := range ptx.Load4(k, first, opts...) {
				v[i].Set(x)
			}
		})
	}, func() {
		for i := range v {
			element := at(i)
			k.When(inside(i), func() { v[i].Set(ptx.Load(k, element, opts...)) })
		}
	})
}

func (q strip) store(v []ptx.Reg[float32]) {
	k := q.k
	k.If(q.vector, func() {
		first := q.at(0)
		k.When(q.inside(0), func() { ptx.Store4(k, first, [4]ptx.Reg[float32](v)) })
	}, func() {
		for i := range v {
			ptx.StoreIf(k, q.inside(i), q.at(i), v[i])
		}
	})
}

// gemmThreads of a block, 16 × 16 over a tile of the result. A warp is 4 × 8 of them: what it reads of a row of either
// operand's tile is then at most 128 bytes, all banks once.
const gemmThreads = 256

// longestChain is how many products are added up one after the other before the sum goes to another one: the error of a sum
// grows with the length of its chain.
const longestChain = 2048

// tile is how products are cut up: a block computes m × n of the result, k of the depth at a time. A thread has m/16 × n/16 of
// that, in squares of 4 × 4 that are 64 apart.
type tile struct{ m, n, k int }

// Flags of gemm.
const (
	alongA  = 1 << iota // neighbours in memory are neighbours in depth, so that a is [m, k]; otherwise it is [k, m]
	alongB              // likewise: b is [n, k]
	vectorA             // rows begin at multiples of 16 bytes
	vectorB
	vectorC
	biasOfColumns // bias has n elements
	biasOfRows    // bias has m elements
	padded        // zeros of b may stand for what is not there
)

// Arguments in the array sizes of gemm.
const (
	gemmM = iota
	gemmN
	gemmK
	gemmDepth // of one split: a multiple of every tile's k
	gemmLDA   // elements from row to row of a, as it lies in memory
	gemmLDB
	gemmFlags
	gemmAct
	gemmAcross                             // tiles in a row of them: a divisor
	gemmTiles  = gemmAcross + divisorWords // of one product
	gemmBatch  = gemmTiles + divisorWords  // products
	gemmWords  = gemmBatch + divisorWords  //
	gemmParams = "u32 sizes[] (m, n, k, depth of a split, row lengths of a and b in memory, flags, activation; as divisors " +
		"tiles across, tiles of a product, products), u64 strides of a and b from product to product, f32* a, f32* b, f32* " +
		"bias, f32* c"
)

// placesIn is where the elements of the block's product lie in c.
func (p *product) placesIn(c ptx.Ptr[ptx.Global, float32]) func(row, col ptx.Reg[uint32]) func(i int) ptx.Ptr[ptx.Global, float32] {
	k := p.k
	return func(row, col ptx.Reg[uint32]) func(i int) ptx.Ptr[ptx.Global, float32] {
		rows := ptx.Add(k, ptx.MulWideU32(k, p.place, p.m), ptx.Convert[uint64](k, row))
		return ptx.At(k, ptx.At(k, c, ptx.Mul(k, rows, ptx.Convert[uint64](k, p.n))), col).At
	}
}

// tiled is a kernel of that kind.
type tiled struct {
	tile
	*Kernel
}
