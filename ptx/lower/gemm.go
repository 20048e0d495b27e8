package lower

import (
	"fmt"

	"github.com/wavelane/wavelane/ptx"
)

// gemmThreads of a block, 16 × 16 over a tile of the result. A warp is 4 × 8 of them: what it reads of a row of either operand's
// tile is then at most 128 bytes, all banks once.
const gemmThreads = 256

// longestChain is how many products are added up one after the other before the sum goes to another one: the error of a sum
// grows with the length of its chain.
const longestChain = 2048

// tile is how products are cut up: a block computes m × n of the result, k of the depth at a time. A thread has m/16 × n/16 of
// that, in squares of 4 × 4 that are 64 apart.
type tile struct{ m, n, k int }

// tiled is a kernel of that kind.
type tiled struct {
	tile
	*Kernel
}

// gemms are the kernels that matmul picks from, the largest tile first.
var gemms = []tiled{gemm(tile{128, 128, 8}), gemm(tile{64, 64, 16})}

// Flags of gemm.
const (
	alongA  = 1 << iota // neighbours in memory are neighbours in depth, so that a is [m, k]; otherwise it is [k, m]
	alongB              // likewise: b is [n, k]
	vectorA             // rows begin at multiples of 16 bytes
	vectorB
	vectorC
	biasOfColumns // bias has n elements
	biasOfRows    // bias has m elements
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
		"tiles across, tiles of a product, products), u64 strides of a and b from product to product, f32* a, f32* b, f32* bias, f32* c"
)

func gemm(t tile) tiled {
	return tiled{t, register(Kernel{Family: "matmul", Name: fmt.Sprintf("gemm_%dx%dx%d", t.m, t.n, t.k), Block: [3]int{gemmThreads, 1, 1},
		Doc: "c[split][product] = act(a·b + bias) over a split of the depth. Bias and activation are for a single split. " +
			"Block = (split · products + product) · tiles + tile. Parameters: " + gemmParams + ".",
		build: func(k *ptx.Kernel) { newProduct(k, t).build() },
	})}
}

// product is a gemm under construction.
type product struct {
	tile
	k         *ptx.Kernel
	m, n      ptx.Reg[uint32]
	flags     ptx.Reg[uint32]
	act       ptx.Reg[uint32]
	top, left ptx.Reg[uint32] // of the block's tile
	ty, tx    ptx.Reg[uint32] // of the thread
	depth     ptx.Reg[int32]  // of this split
	a, b      *side
	place     ptx.Reg[uint32] // of the block's result among those of all splits and products
	c, bias   ptx.Ptr[ptx.Global, float32]
	sums      []*ptx.Var[float32]
}

// newProduct reads the parameters and finds the block's place.
func newProduct(k *ptx.Kernel, t tile) *product {
	p := &product{tile: t, k: k}
	sizes := ptx.ParamArray[uint32](k, "sizes", gemmWords)
	k.MinBlocks(map[int]int{64: 3, 128: 2}[t.m]) // what ptxas needs to know lest it saves registers and spills
	strideA, strideB := ptx.Param[uint64](k, "stride_a"), ptx.Param[uint64](k, "stride_b")
	a, b := ptx.PointerParam[float32](k, "a"), ptx.PointerParam[float32](k, "b")
	p.bias, p.c = ptx.PointerParam[float32](k, "bias"), ptx.PointerParam[float32](k, "c")
	p.m, p.n, p.flags, p.act = sizes.At(k, gemmM), sizes.At(k, gemmN), sizes.At(k, gemmFlags), sizes.At(k, gemmAct)

	place, in := divisorAt(k, sizes, gemmTiles).split(k, k.Ctaid(ptx.X))
	split, z := divisorAt(k, sizes, gemmBatch).split(k, place)
	row, col := divisorAt(k, sizes, gemmAcross).split(k, in)
	p.top, p.left = ptx.Mul(k, row, u32(t.m)), ptx.Mul(k, col, u32(t.n))
	first := ptx.Mul(k, split, sizes.At(k, gemmDepth))
	p.depth = ptx.Bitcast[int32](k, ptx.Min(k, ptx.Sub(k, sizes.At(k, gemmK), first), sizes.At(k, gemmDepth)))
	p.place = place

	tid := k.Tid(ptx.X)
	lane, warp := ptx.And(k, tid, u32(31)), ptx.Shr(k, tid, u32(5))
	p.ty = ptx.Mad(k, ptx.And(k, warp, u32(3)), u32(4), ptx.Shr(k, lane, u32(3)))
	p.tx = ptx.Mad(k, ptx.Shr(k, warp, u32(2)), u32(8), ptx.And(k, lane, u32(7)))

	wideZ := ptx.Convert[uint64](k, z)
	a, b = ptx.At(k, a, ptx.Mul(k, wideZ, strideA)), ptx.At(k, b, ptx.Mul(k, wideZ, strideB))
	p.a = newSide(k, "a", t.m, t.k, a, sizes.At(k, gemmLDA), p.has(alongA), p.has(vectorA), p.top, p.m, first)
	p.b = newSide(k, "b", t.n, t.k, b, sizes.At(k, gemmLDB), p.has(alongB), p.has(vectorB), p.left, p.n, first)
	for range t.m / 16 * (t.n / 16) {
		p.sums = append(p.sums, ptx.NewVar[float32](k))
	}
	return p
}

func (p *product) has(flag uint32) ptx.Reg[bool] { return hasFlag(p.k, p.flags, flag) }

func hasFlag(k *ptx.Kernel, flags ptx.Reg[uint32], flag uint32) ptx.Reg[bool] {
	return ptx.Ne(k, ptx.And(k, flags, ptx.Imm(flag)), u32(0))
}

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
	k.If(ptx.Ne(k, p.act, u32(0)), p.activate)
}

// multiply adds the products of a stage.
func (p *product) multiply(stage ptx.Reg[uint32]) {
	a := p.a.fragments(stage, ptx.Mul(p.k, p.ty, u32(4)))
	b := p.b.fragments(stage, ptx.Mul(p.k, p.tx, u32(4)))
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

// activate goes over what the thread itself has written: that is still near, and the code is there once.
func (p *product) activate() {
	k := p.k
	ptx.For(k, u32(0), u32(p.tile.m/16*p.tile.n/64), u32(1), func(i ptx.Reg[uint32]) {
		r, j := ptx.Div(k, i, u32(p.tile.n/64)), ptx.Rem(k, i, u32(p.tile.n/64))
		row := ptx.Add(k, ptx.Mad(k, ptx.Shr(k, r, u32(2)), u32(64), ptx.And(k, r, u32(3))), p.row(0))
		k.If(ptx.Lt(k, row, p.m), func() {
			q := p.strip(row, ptx.Mad(k, j, u32(64), p.column(0)))
			q.store(activate(k, p.act, q.load()))
		})
	}, ptx.NoUnroll())
}

// strip is four neighbours in a row of c, of which some may lie outside.
type strip struct {
	k      *ptx.Kernel
	at     ptx.Ptr[ptx.Global, float32]
	inside func(i int) ptx.Reg[bool]
	vector ptx.Reg[bool]
}

func (p *product) strip(row, col ptx.Reg[uint32]) strip {
	k := p.k
	rows := ptx.Add(k, ptx.MulWideU32(k, p.place, p.m), ptx.Convert[uint64](k, row))
	at := ptx.At(k, p.c, ptx.Mul(k, rows, ptx.Convert[uint64](k, p.n)))
	q := strip{k: k, at: ptx.At(k, at, col), vector: p.has(vectorC)}
	q.inside = func(i int) ptx.Reg[bool] { return ptx.Lt(k, ptx.Add(k, col, u32(i)), p.n) }
	return q
}

func (q strip) load() []ptx.Reg[float32] {
	k := q.k
	var v [4]*ptx.Var[float32]
	for i := range v {
		v[i] = ptx.VarOf(k, ptx.Imm(float32(0)))
	}
	loadStrip(k, q.at, q.vector, q.inside, v)
	return []ptx.Reg[float32]{v[0].Get(), v[1].Get(), v[2].Get(), v[3].Get()}
}

// loadStrip sets those of v that are inside: at once, all or none of them, if vector.
func loadStrip(k *ptx.Kernel, at ptx.Ptr[ptx.Global, float32], vector ptx.Reg[bool], inside func(i int) ptx.Reg[bool],
	v [4]*ptx.Var[float32],
	opts ...ptx.MemOption) {
	k.If(vector, func() {
		k.When(inside(0), func() {
			for i, x := range ptx.Load4(k, at, opts...) {
				v[i].Set(x)
			}
		})
	}, func() {
		for i := range v {
			k.When(inside(i), func() { v[i].Set(ptx.Load(k, at.At(i), opts...)) })
		}
	})
}

func (q strip) store(v []ptx.Reg[float32]) {
	k := q.k
	k.If(q.vector, func() {
		k.When(q.inside(0), func() { ptx.Store4(k, q.at, [4]ptx.Reg[float32](v)) })
	}, func() {
		for i := range v {
			ptx.StoreIf(k, q.inside(i), q.at.At(i), v[i])
		}
	})
}
