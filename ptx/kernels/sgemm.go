package kernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx"
)

const sgemmDoc = "c = a·b of a [m, k], b [k, n], c [m, n]. Parameters: u32 m, u32 n, u32 k, f32* a, f32* b, f32* c. " +
	"c must be neither a nor b. "

// product is what all matrix products begin with.
type product[A, C ptx.Elem] struct {
	m, n, k ptx.Reg[uint32]
	a, b    ptx.Ptr[ptx.Global, A]
	c       ptx.Ptr[ptx.Global, C]
	// The first row and column of the block's tile of c.
	top, left ptx.Reg[uint32]
}

// tiles is the grid for tiles of c, counted in one dimension: the others end at 65,535 blocks.
func tiles(rows, cols int) func(...int) [3]int {
	return func(sizes ...int) [3]int { return [3]int{ceilDiv(sizes[0], rows) * ceilDiv(sizes[1], cols), 1, 1} }
}

// newProduct reads the parameters and finds the block's tile of rows × cols.
func newProduct[A, C ptx.Elem](k *ptx.Kernel, rows, cols int) product[A, C] {
	p := product[A, C]{m: ptx.Param[uint32](k, "m"), n: ptx.Param[uint32](k, "n"), k: ptx.Param[uint32](k, "k")}
	p.a = ptx.PointerParam[A](k, "a", ptx.Align(16))
	p.b = ptx.PointerParam[A](k, "b", ptx.Align(16))
	p.c = ptx.PointerParam[C](k, "c", ptx.Align(16))
	across := ptx.Div(k, ptx.Add(k, p.n, u32(cols-1)), u32(cols))
	block := k.Ctaid(ptx.X)
	p.top = ptx.Mul(k, ptx.Div(k, block, across), u32(rows))
	p.left = ptx.Mul(k, ptx.Rem(k, block, across), u32(cols))
	return p
}

// SGEMMNaive has a thread for each element of c, which reads its row of a and column of b from global memory. What the others are
// measured against.
func SGEMMNaive() Kernel {
	return Kernel{
		Name: "sgemm_naive", Sizes: "m n k", Block: [3]int{16, 16, 1}, Grid: tiles(16, 16),
		Doc: sgemmDoc + "One block per 16 × 16 of c.",
		build: func(k *ptx.Kernel) {
			p := newProduct[float32, float32](k, 16, 16)
			r, c := ptx.Add(k, p.top, k.Tid(ptx.Y)), ptx.Add(k, p.left, k.Tid(ptx.X))
			k.If(ptx.And(k, ptx.Lt(k, r, p.m), ptx.Lt(k, c, p.n)), func() {
				a := ptx.PtrVarOf(k, row(k, p.a, r, p.k))
				b := ptx.PtrVarOf(k, ptx.At(k, p.b, c))
				sum := ptx.VarOf(k, ptx.Imm(float32(0)))
				ptx.For(k, u32(0), p.k, u32(1), func(ptx.Reg[uint32]) {
					sum.Set(ptx.Fma(k, ptx.Load(k, a.Get()), ptx.Load(k, b.Get()), sum.Get()))
					a.Advance(1)
					b.Set(ptx.At(k, b.Get(), p.n))
				})
				ptx.Store(k, ptx.At(k, row(k, p.c, r, p.n), c), sum.Get())
			})
		},
	}
}

// SGEMMTiled brings tiles of a and b to shared memory, from which each thread computes one element.
func SGEMMTiled() Kernel {
	const tile = 16
	return Kernel{
		Name: "sgemm_tiled", Sizes: "m n k", Block: [3]int{tile, tile, 1}, Grid: tiles(tile, tile),
		Doc:   sgemmDoc + "One block per 16 × 16 of c.",
		build: func(k *ptx.Kernel) { buildTiled(k, tile) },
	}
}

func buildTiled(k *ptx.Kernel, tile int) {
	p := newProduct[float32, float32](k, tile, tile)
	as := ptx.SharedArray[float32](k, "a_tile", tile*tile)
	bs := ptx.SharedArray[float32](k, "b_tile", tile*tile)
	tx, ty := k.Tid(ptx.X), k.Tid(ptx.Y)
	r, c := ptx.Add(k, p.top, ty), ptx.Add(k, p.left, tx)
	zero := ptx.Imm(float32(0))
	place := ptx.Mad(k, ty, u32(tile), tx)
	rowOK, colOK := ptx.Lt(k, r, p.m), ptx.Lt(k, c, p.n)
	sum := ptx.VarOf(k, zero)
	ptx.For(k, u32(0), p.k, u32(tile), func(k0 ptx.Reg[uint32]) {
		ka, kb := ptx.Add(k, k0, tx), ptx.Add(k, k0, ty)
		inA, inB := ptx.And(k, rowOK, ptx.Lt(k, ka, p.k)), ptx.And(k, colOK, ptx.Lt(k, kb, p.k))
		ptx.Store(k, ptx.At(k, as, place), ptx.LoadIf(k, inA, ptx.At(k, row(k, p.a, r, p.k), ka), zero))
		ptx.Store(k, ptx.At(k, bs, place), ptx.LoadIf(k, inB, ptx.At(k, row(k, p.b, kb, p.n), c), zero))
		k.Barrier()
		a, b := ptx.At(k, as, ptx.Mul(k, ty, u32(tile))), ptx.At(k, bs, tx)
		for i := range tile {
			sum.Set(ptx.Fma(k, ptx.Load(k, a.At(i)), ptx.Load(k, b.At(i*tile)), sum.Get()))
		}
		k.Barrier()
	})
	k.If(ptx.And(k, rowOK, colOK), func() { ptx.Store(k, ptx.At(k, row(k, p.c, r, p.n), c), sum.Get()) })
}

// Tile is how a matrix product is cut up: a block computes M × N of c, K of the inner dimension at a time, and a thread PerThreadM ×
// PerThreadN of that.
type Tile struct{ M, N, K, PerThreadM, PerThreadN int }

// threads of a block.
func (t Tile) threads() int { return t.M / max(1, t.PerThreadM) * (t.N / max(1, t.PerThreadN)) }

// check says what is wrong with a tile.
func (t Tile) check() error {
	switch {
	case min(t.M, t.N, t.K, t.PerThreadM, t.PerThreadN) < 1 || t.PerThreadM%4 != 0 || t.PerThreadN%4 != 0:
		return fmt.Errorf("%w: tile %+v: PerThreadM and PerThreadN have to be multiples of 4", compute.ErrArgument, t)
	case t.M%t.PerThreadM != 0 || t.N%t.PerThreadN != 0 || t.threads()%32 != 0 || t.threads() > 1024:
		return fmt.Errorf("%w: tile %+v: M × N does not divide into whole warps, 32 at most", compute.ErrArgument, t)
	case t.M*t.K%t.threads() != 0 || t.N*t.K%t.threads() != 0 || t.threads()%t.K != 0 && t.K%t.threads() != 0 ||
		t.threads()%t.N != 0 && t.N%t.threads() != 0:
		return fmt.Errorf("%w: tile %+v: %d threads cannot share the copying of its operands evenly", compute.ErrArgument, t, t.threads())
	case 2*4*t.K*(t.M+pad+t.N) > 48<<10:
		return fmt.Errorf("%w: tile %+v: two stages need more than 48 KiB of shared memory", compute.ErrArgument, t)
	}
	return nil
}

// pad words follow each row of a's tile, which is kept transposed, so that the threads that bring a column of it meet few in a bank.
const pad = 4

// SGEMM computes tiles in registers and brings the next tiles of a and b by asynchronous copies meanwhile, into the other half of shared
// memory. Products are added in order of the inner dimension, each rounded once.
func SGEMM(t Tile) Kernel {
	return Kernel{
		Name:  fmt.Sprintf("sgemm_%dx%dx%d_%dx%d", t.M, t.N, t.K, t.PerThreadM, t.PerThreadN),
		Sizes: "m n k", Block: [3]int{t.threads(), 1, 1}, Grid: tiles(t.M, t.N),
		Doc:   sgemmDoc + fmt.Sprintf("One block per %d × %d of c.", t.M, t.N),
		build: func(k *ptx.Kernel) { (&sgemm{Tile: t, k: k}).build() },
		err:   t.check(),
	}
}

// sgemm is the kernel under construction.
type sgemm struct {
	Tile
	k    *ptx.Kernel
	p    product[float32, float32]
	tid  ptx.Reg[uint32]
	a, b ptx.Ptr[ptx.Shared, float32] // two stages each: a[K][M + pad], b[K][N]
}

func (g *sgemm) build() {
	k := g.k
	g.p = newProduct[float32, float32](k, g.M, g.N)
	g.a = ptx.SharedArray[float32](k, "a_tiles", 2*g.K*(g.M+pad), ptx.Align(16))
	g.b = ptx.SharedArray[float32](k, "b_tiles", 2*g.K*g.N, ptx.Align(16))
	g.tid = k.Tid(ptx.X)
	across := g.N / g.PerThreadN
	tx, ty := ptx.Rem(k, g.tid, u32(across)), ptx.Div(k, g.tid, u32(across))

	sums := make([]*ptx.Var[float32], g.PerThreadM*g.PerThreadN)
	for i := range sums {
		sums[i] = ptx.VarOf(k, ptx.Imm(float32(0)))
	}
	stage := ptx.VarOf(k, u32(0))
	g.copy(u32(0), u32(0))
	k.CpAsyncCommit()
	ptx.For(k, u32(0), g.p.k, u32(g.K), func(k0 ptx.Reg[uint32]) {
		here := ptx.Copy(k, stage.Get())
		stage.Set(ptx.Xor(k, here, u32(1)))
		// The other stage was last read before the barrier that ended the turn before.
		g.copy(stage.Get(), ptx.Add(k, k0, u32(g.K)))
		k.CpAsyncCommit()
		k.CpAsyncWait(1)
		k.Barrier()
		g.multiply(here, ty, tx, sums)
		k.Barrier()
	})
	k.CpAsyncWait(0)
	g.store(ty, tx, sums)
}

// copy starts to bring the tiles at k0 of the inner dimension, with zeros where the matrices end.
func (g *sgemm) copy(stage, k0 ptx.Reg[uint32]) {
	k, threads := g.k, g.threads()
	a := ptx.At(k, g.a, ptx.Mul(k, stage, u32(g.K*(g.M+pad))))
	b := ptx.At(k, g.b, ptx.Mul(k, stage, u32(g.K*g.N)))
	// Thread t brings elements t, t + threads … of the tile of a, row by row.
	g.each(g.M*g.K, g.K, threads, func(i, j ptx.Reg[uint32]) {
		r, c := ptx.Add(k, g.p.top, i), ptx.Add(k, k0, j)
		inside := ptx.And(k, ptx.Lt(k, r, g.p.m), ptx.Lt(k, c, g.p.k))
		g.bring(inside, ptx.At(k, a, ptx.Mad(k, j, u32(g.M+pad), i)), g.p.a, r, g.p.k, c)
	})
	g.each(g.K*g.N, g.N, threads, func(i, j ptx.Reg[uint32]) {
		r, c := ptx.Add(k, k0, i), ptx.Add(k, g.p.left, j)
		inside := ptx.And(k, ptx.Lt(k, r, g.p.k), ptx.Lt(k, c, g.p.n))
		g.bring(inside, ptx.At(k, b, ptx.Mad(k, i, u32(g.N), j)), g.p.b, r, g.p.n, c)
	})
}

// each calls f with row and column of the elements that the thread has of a tile.
func (g *sgemm) each(elements, cols, threads int, f func(i, j ptx.Reg[uint32])) {
	k := g.k
	for first := 0; first < elements; first += threads {
		e := ptx.Add(k, g.tid, u32(first))
		f(ptx.Div(k, e, u32(cols)), ptx.Rem(k, e, u32(cols)))
	}
}

// bring copies x[r][c] of a matrix with n columns, or a zero.
func (g *sgemm) bring(inside ptx.Reg[bool], to ptx.Ptr[ptx.Shared, float32], x ptx.Ptr[ptx.Global, float32], r, n, c ptx.Reg[uint32]) {
	k := g.k
	size := ptx.Select(k, inside, u32(4), u32(0))
	from := ptx.At(k, row(k, x, ptx.Select(k, inside, r, u32(0)), n), ptx.Select(k, inside, c, u32(0)))
	ptx.CpAsyncFill(k, to, from, 4, size)
}

// multiply adds the products of a stage.
func (g *sgemm) multiply(stage, ty, tx ptx.Reg[uint32], sums []*ptx.Var[float32]) {
	k := g.k
	a := ptx.At(k, g.a, ptx.Mad(k, stage, u32(g.K*(g.M+pad)), ptx.Mul(k, ty, u32(g.PerThreadM))))
	b := ptx.At(k, g.b, ptx.Mad(k, stage, u32(g.K*g.N), ptx.Mul(k, tx, u32(g.PerThreadN))))
	for i := range g.K {
		av, bv := loadRow(k, a.At(i*(g.M+pad)), g.PerThreadM), loadRow(k, b.At(i*g.N), g.PerThreadN)
		for r := range av {
			for c := range bv {
				s := sums[r*g.PerThreadN+c]
				s.Set(ptx.Fma(k, av[r], bv[c], s.Get()))
			}
		}
	}
}

// loadRow loads n elements, a multiple of 4.
func loadRow(k *ptx.Kernel, p ptx.Ptr[ptx.Shared, float32], n int) []ptx.Reg[float32] {
	var v []ptx.Reg[float32]
	for i := 0; i < n; i += 4 {
		four := ptx.Load4(k, p.At(i))
		v = append(v, four[:]...)
	}
	return v
}

// store writes the thread's part of c.
func (g *sgemm) store(ty, tx ptx.Reg[uint32], sums []*ptx.Var[float32]) {
	k := g.k
	left := ptx.Mad(k, tx, u32(g.PerThreadN), g.p.left)
	for i := range g.PerThreadM {
		r := ptx.Add(k, ptx.Mad(k, ty, u32(g.PerThreadM), g.p.top), u32(i))
		k.If(ptx.Lt(k, r, g.p.m), func() {
			to := ptx.At(k, row(k, g.p.c, r, g.p.n), left)
			for j := range g.PerThreadN {
				ok := ptx.Lt(k, ptx.Add(k, left, u32(j)), g.p.n)
				ptx.StoreIf(k, ok, to.At(j), sums[i*g.PerThreadN+j].Get())
			}
		})
	}
}
