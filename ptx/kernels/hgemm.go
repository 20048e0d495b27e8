package kernels

import "github.com/wavelane/wavelane/ptx"

// The tile of a block, in elements, and what of it a warp computes.
const (
	hgemmM, hgemmN, hgemmK = 64, 64, 32
	hgemmWarpM, hgemmWarpN = 32, 32
	hgemmThreads           = 32 * (hgemmM / hgemmWarpM) * (hgemmN / hgemmWarpN)
	chunk                  = 8 // elements that are copied together, 16 bytes
)

// HGEMM computes with tensor cores: half-precision operands, products added up in single precision. Operands arrive by asynchronous copies
// of 16 bytes where n and k are multiples of 8, element by element otherwise. Chunks of 16 bytes lie in shared memory in an order that
// depends on the row, so that ldmatrix meets each bank once.
func HGEMM() Kernel {
	return Kernel{
		Name: "hgemm_mma_64x64x32", Sizes: "m n k", Block: [3]int{hgemmThreads, 1, 1}, Grid: tiles(hgemmM, hgemmN),
		Doc: "c = a·b of a [m, k], b [k, n], c [m, n]. Parameters: u32 m, u32 n, u32 k, f16* a, f16* b, f32* c. " +
			"One block per 64 × 64 of c.",
		build: func(k *ptx.Kernel) { (&hgemm{k: k}).build() },
	}
}

// hgemm is the kernel under construction.
type hgemm struct {
	k       *ptx.Kernel
	p       product[ptx.F16, float32]
	aligned ptx.Reg[bool] // rows of a and b begin at multiples of 16 bytes
	tid     ptx.Reg[uint32]
	lane    ptx.Reg[uint32]
	// The warp's part of the tile.
	warpTop, warpLeft ptx.Reg[uint32]
	a, b              ptx.Ptr[ptx.Shared, ptx.F16] // two stages each: a[M][K], b[K][N], chunks permuted
}

func (g *hgemm) build() {
	k := g.k
	g.p = newProduct[ptx.F16, float32](k, hgemmM, hgemmN)
	g.a = ptx.SharedArray[ptx.F16](k, "a_tiles", 2*hgemmM*hgemmK, ptx.Align(128))
	g.b = ptx.SharedArray[ptx.F16](k, "b_tiles", 2*hgemmK*hgemmN, ptx.Align(128))
	g.aligned = ptx.Eq(k, ptx.And(k, ptx.Or(k, g.p.n, g.p.k), u32(chunk-1)), u32(0))
	g.tid = k.Tid(ptx.X)
	g.lane = ptx.And(k, g.tid, u32(31))
	warp := ptx.Shr(k, g.tid, u32(5))
	g.warpTop = ptx.Mul(k, ptx.Shr(k, warp, u32(1)), u32(hgemmWarpM))
	g.warpLeft = ptx.Mul(k, ptx.And(k, warp, u32(1)), u32(hgemmWarpN))

	sums := make([][]*ptx.Var[float32], hgemmWarpM/16*hgemmWarpN/8)
	for i := range sums {
		for range 4 {
			sums[i] = append(sums[i], ptx.VarOf(k, ptx.Imm(float32(0))))
		}
	}
	stage := ptx.VarOf(k, u32(0))
	g.copy(u32(0), u32(0))
	k.CpAsyncCommit()
	ptx.For(k, u32(0), g.p.k, u32(hgemmK), func(k0 ptx.Reg[uint32]) {
		here := ptx.Copy(k, stage.Get())
		stage.Set(ptx.Xor(k, here, u32(1)))
		// The other stage was last read before the barrier that ended the turn before.
		g.copy(stage.Get(), ptx.Add(k, k0, u32(hgemmK)))
		k.CpAsyncCommit()
		k.CpAsyncWait(1)
		k.Barrier()
		g.multiply(here, sums)
		k.Barrier()
	})
	k.CpAsyncWait(0)
	g.store(sums)
}

// placeA is chunk c of row r of a's tile: rows are 64 bytes, so that two of them share the banks.
func (g *hgemm) placeA(stage, r, c ptx.Reg[uint32]) ptx.Ptr[ptx.Shared, ptx.F16] {
	k := g.k
	c = ptx.Xor(k, c, ptx.And(k, ptx.Shr(k, r, u32(1)), u32(3)))
	return g.place(g.a, stage, r, c, hgemmM, hgemmK)
}

// placeB is chunk c of row r of b's tile: rows are 128 bytes, all banks.
func (g *hgemm) placeB(stage, r, c ptx.Reg[uint32]) ptx.Ptr[ptx.Shared, ptx.F16] {
	k := g.k
	return g.place(g.b, stage, r, ptx.Xor(k, c, ptx.And(k, r, u32(7))), hgemmK, hgemmN)
}

func (g *hgemm) place(tile ptx.Ptr[ptx.Shared, ptx.F16], stage, r, c ptx.Reg[uint32], rows, cols int) ptx.Ptr[ptx.Shared, ptx.F16] {
	k := g.k
	at := ptx.Mad(k, r, u32(cols), ptx.Mul(k, c, u32(chunk)))
	return ptx.At(k, tile, ptx.Mad(k, stage, u32(rows*cols), at))
}

// copy starts to bring the tiles at k0 of the inner dimension, with zeros where the matrices end.
func (g *hgemm) copy(stage, k0 ptx.Reg[uint32]) {
	k := g.k
	for first := 0; first < hgemmM*hgemmK/chunk; first += hgemmThreads {
		e := ptx.Add(k, g.tid, u32(first))
		r, c := ptx.Div(k, e, u32(hgemmK/chunk)), ptx.Rem(k, e, u32(hgemmK/chunk))
		at := ptx.Add(k, k0, ptx.Mul(k, c, u32(chunk)))
		g.bring(g.placeA(stage, r, c), g.p.a, ptx.Add(k, g.p.top, r), at, g.p.m, g.p.k)
	}
	for first := 0; first < hgemmK*hgemmN/chunk; first += hgemmThreads {
		e := ptx.Add(k, g.tid, u32(first))
		r, c := ptx.Div(k, e, u32(hgemmN/chunk)), ptx.Rem(k, e, u32(hgemmN/chunk))
		at := ptx.Add(k, g.p.left, ptx.Mul(k, c, u32(chunk)))
		g.bring(g.placeB(stage, r, c), g.p.b, ptx.Add(k, k0, r), at, g.p.k, g.p.n)
	}
}

// bring copies the chunk at x[r][c] of a rows × cols matrix, with zeros for what lies outside.
func (g *hgemm) bring(to ptx.Ptr[ptx.Shared, ptx.F16], x ptx.Ptr[ptx.Global, ptx.F16], r, c, rows, cols ptx.Reg[uint32]) {
	k := g.k
	rowOK := ptx.Lt(k, r, rows)
	k.If(g.aligned, func() { // then a chunk is inside or outside as a whole
		inside := ptx.And(k, rowOK, ptx.Lt(k, c, cols))
		from := ptx.At(k, row(k, x, ptx.Select(k, inside, r, u32(0)), cols), ptx.Select(k, inside, c, u32(0)))
		ptx.CpAsyncFill(k, to, from, 16, ptx.Select(k, inside, u32(16), u32(0)))
	}, func() {
		from := ptx.At(k, row(k, x, r, cols), c)
		var pairs [4]ptx.Reg[ptx.F16x2]
		for i := range pairs {
			pairs[i] = ptx.PackF16(k, g.element(from, 2*i, rowOK, c, cols), g.element(from, 2*i+1, rowOK, c, cols))
		}
		ptx.Store4(k, ptx.Cast[ptx.F16x2](to), pairs)
	})
}

// element is from[i], at column c+i, or zero.
func (g *hgemm) element(from ptx.Ptr[ptx.Global, ptx.F16], i int, rowOK ptx.Reg[bool], c, cols ptx.Reg[uint32]) ptx.Reg[ptx.F16] {
	k := g.k
	inside := ptx.And(k, rowOK, ptx.Lt(k, ptx.Add(k, c, u32(i)), cols))
	return ptx.LoadIf(k, inside, from.At(i), ptx.Imm(ptx.F16(0)))
}

// multiply adds the products of a stage.
func (g *hgemm) multiply(stage ptx.Reg[uint32], sums [][]*ptx.Var[float32]) {
	k := g.k
	// Lanes 0 to 15 address the rows of the left or only half, lanes 16 to 31 those of the right one.
	half, r := ptx.Shr(k, g.lane, u32(4)), ptx.And(k, g.lane, u32(15))
	for k0 := 0; k0 < hgemmK; k0 += 16 {
		var a [hgemmWarpM / 16][]ptx.Reg[ptx.F16x2]
		for i := range a {
			at := ptx.Add(k, g.warpTop, ptx.Add(k, r, u32(16*i)))
			a[i] = ptx.LdMatrix[ptx.F16x2](k, g.placeA(stage, at, ptx.Add(k, half, u32(k0/chunk))), 4)
		}
		var b [hgemmWarpN / 8][]ptx.Reg[ptx.F16x2]
		for j := 0; j < len(b); j += 2 {
			at := ptx.Add(k, ptx.Shr(k, g.warpLeft, u32(3)), ptx.Add(k, half, u32(j)))
			pair := ptx.LdMatrixTrans[ptx.F16x2](k, g.placeB(stage, ptx.Add(k, r, u32(k0)), at), 4)
			b[j], b[j+1] = pair[:2], pair[2:]
		}
		for i := range a {
			for j := range b {
				sum := sums[i*len(b)+j]
				for at, s := range ptx.Mma(k, ptx.M16N8K16, a[i], b[j], values(sum)) {
					sum[at].Set(s)
				}
			}
		}
	}
}

func values(vars []*ptx.Var[float32]) []ptx.Reg[float32] {
	out := make([]ptx.Reg[float32], len(vars))
	for i, v := range vars {
		out[i] = v.Get()
	}
	return out
}

// store writes the warp's part of c: of each 16 × 8 a lane has two neighbours in row lane/4 and two in row lane/4 + 8.
func (g *hgemm) store(sums [][]*ptx.Var[float32]) {
	k := g.k
	top := ptx.Add(k, ptx.Add(k, g.p.top, g.warpTop), ptx.Shr(k, g.lane, u32(2)))
	left := ptx.Mad(k, ptx.And(k, g.lane, u32(3)), u32(2), ptx.Add(k, g.p.left, g.warpLeft))
	for i := 0; i < hgemmWarpM; i += 8 {
		r := ptx.Add(k, top, u32(i))
		k.If(ptx.Lt(k, r, g.p.m), func() {
			to := ptx.At(k, row(k, g.p.c, r, g.p.n), left)
			for j := 0; j < hgemmWarpN; j += 8 {
				sum := sums[i/16*hgemmWarpN/8+j/8][i%16/8*2:]
				for e := range 2 {
					ok := ptx.Lt(k, ptx.Add(k, left, u32(j+e)), g.p.n)
					ptx.StoreIf(k, ok, to.At(j+e), sum[e].Get())
				}
			}
		})
	}
}
