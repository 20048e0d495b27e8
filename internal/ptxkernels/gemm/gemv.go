package gemm

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// gemvThreads of a block.
const gemvThreads = 256

// A gemv multiplies a matrix with a few vectors: a product of which one side of the result has at most fewVectors elements.
// The long side of the result is called rows here, whichever operand it comes from. The matrix is of any type of numbers, the
// vectors are float32.
const FewVectors = 8

// Flags of the gemv kernels. For the bias, see gemm.
const gemvVector = 1 << 0 // four neighbours of the matrix, and of the vectors along depth, may be read at once

// gemvParams are those of the gemv kernels.
type gemvParams struct {
	K, Depth                                  int `array:"sizes"` // of all, and of one split
	Vectors                                   int // how many
	Shape                                     int // log2 of the lanes for a row, or of the warps that share out the depth
	Flags, Act                                int
	VectorK, VectorV                          int           // elements from depth to depth of a vector, and from vector to vector
	ResultR, ResultV                          int           // elements from row to row of the result, and from vector to vector
	BiasR, BiasV                              int           // as in the result, or 0
	HasBias                                   int           // 0 or 1
	Rows                                      scalar.Divide // of one matrix
	Total                                     int           // rows of all matrices
	Blocks, Across                            scalar.Divide // of one split, and of one matrix
	StrideMatrix, StrideVectors, StrideResult uint64        // from product to product
	StrideSplit                               uint64        // of the result, from split to split
	Matrix                                    kit.Buffer    `of:"numbers"`
	X                                         kit.Buffer    `name:"vectors"`
	Bias, Result                              kit.Buffer
}

// gemvKernels are for so many vectors at most.
type gemvKernels struct {
	vectors       int
	rows, columns *kit.Kernel
}

// gemvs are the kernels that matmul picks from, by the element type of the matrix and the number of vectors that they have
// room for.
var gemvs = map[compute.DType][]gemvKernels{
	compute.Float32:  gemvsOf[float32](""),
	compute.Float16:  gemvsOf[ptx.F16]("f16_"),
	compute.BFloat16: gemvsOf[ptx.BF16]("bf16_"),
}

// gemvRooms is for how many vectors there are kernels.
func gemvRooms[T scalar.Floating]() []int {
	if scalar.WideElements[T]() > 4 { // halves have to be converted, which takes as long as another vector
		return []int{1, 2, 4, FewVectors}
	}
	return []int{1, 4, FewVectors}
}

func gemvsOf[T scalar.Floating](name string) (kernels []gemvKernels) {
	for _, room := range gemvRooms[T]() {
		kernels = append(kernels, gemvKernels{room, gemvRowsKernel[T](name, room), gemvColumnsKernel[T](name, room)})
	}
	return kernels
}

// gemv is a kernel under construction.
type gemv[T scalar.Floating] struct {
	*kit.Params
	gemvParams
	k               *ptx.Kernel
	room            int // for vectors
	least           int // vectors that there are: for fewer, another kernel has room
	strideM         ptx.Reg[uint64]
	strideX         ptx.Reg[uint64]
	strideC         ptx.Reg[uint64]
	strideS         ptx.Reg[uint64]
	m               ptx.Ptr[ptx.Global, T]
	x, bias, c      ptx.Ptr[ptx.Global, float32]
	split, block    ptx.Reg[uint32]
	first, end      ptx.Reg[uint32] // of the depth
	shape           ptx.Reg[uint32]
	vector, hasBias ptx.Reg[bool]
	chains, sums    []*ptx.Var[float32]
	after           *tiling.Epilogue
}

// newGemv reads the parameters. Of blocks so many fit a multiprocessor: ptxas needs to know lest it saves registers and spills.
func newGemv[T scalar.Floating](k *ptx.Kernel, room, blocks int, e *kit.Epilogue) *gemv[T] {
	g := &gemv[T]{k: k, room: room, least: 1}
	for _, r := range gemvRooms[T]() {
		if r < room {
			g.least = r + 1
		}
	}
	g.Params = kit.NewParams(k, &g.gemvParams)
	p := g.Params
	k.MinBlocks(blocks)
	g.strideM, g.strideX = kit.Read(p, &g.StrideMatrix), kit.Read(p, &g.StrideVectors)
	g.strideC, g.strideS = kit.Read(p, &g.StrideResult), kit.Read(p, &g.StrideSplit)
	g.m, g.x = kit.Ptr[T](p, &g.Matrix), kit.Ptr[float32](p, &g.X)
	g.bias, g.c = kit.Ptr[float32](p, &g.Bias), kit.Ptr[float32](p, &g.Result)
	g.after = tiling.EpilogueOf(k, e)
	g.split, g.block = p.Divisor(&g.Blocks).Split(k, k.Ctaid(ptx.X))
	depth := g.U32(&g.Depth)
	g.first = g.split.Mul(depth)
	g.end = g.first.Add(depth).Min(g.U32(&g.K))
	g.shape = g.U32(&g.Shape)
	g.vector = scalar.HasFlag(k, g.U32(&g.Flags), gemvVector)
	g.hasBias = g.U32(&g.HasBias).Ne(0)
	return g
}

// vectorsOf are pointers to depth d of the vectors of product z. Where there are fewer than room, the last is repeated.
func (g *gemv[T]) vectorsOf(z, d ptx.Reg[uint32]) (x []ptx.Ptr[ptx.Global, float32]) {
	base := g.x.At(ptx.Convert[uint64](z).Mul(g.strideX))
	base = base.At(d.MulWide(g.U32(&g.VectorK)))
	for v := range g.room {
		i := ptx.U32(v)
		if v >= g.least {
			i = i.Min(g.U32(&g.Vectors).Sub(1))
		}
		x = append(x, base.At(i.MulWide(g.U32(&g.VectorV))))
	}
	return x
}

// accumulate makes n sums of count products each: step is given the chains to add to. A chain ends after so many steps, and is
// added to its sum.
func (g *gemv[T]) accumulate(count ptx.Reg[uint32], step func()) {
	k, unroll := g.k, 4
	if g.room > 4 { // or registers for what is loaded ahead leave room for few warps
		unroll = 2
	}
	left := ptx.VarOf(k, count)
	k.While(func() ptx.Reg[bool] { return left.Get().Ne(0) }, func() {
		now := left.Get().Min(tiling.LongestChain)
		ptx.For(k, 0, now, 1, func(ptx.Reg[uint32]) { step() }, ptx.Unroll(unroll))
		left.Set(left.Get().Sub(now))
		for i, s := range g.sums {
			s.Set(s.Get().Add(g.chains[i].Get()))
			g.chains[i].Set(0)
		}
	})
}

// zeros begins n sums.
func (g *gemv[T]) zeros(n int) {
	for range n {
		g.chains = append(g.chains, ptx.VarOf(g.k, ptx.Imm(float32(0))))
		g.sums = append(g.sums, ptx.VarOf(g.k, ptx.Imm(float32(0))))
	}
}

// Finish writes a row of the result, one element for each vector.
func (g *gemv[T]) Finish(z, row ptx.Reg[uint32], y []ptx.Reg[float32]) {
	k := g.k
	at := func(p ptx.Ptr[ptx.Global, float32], r, v *int, i int) ptx.Ptr[ptx.Global, float32] {
		return p.At(row.MulWide(g.U32(r))).At(ptx.U32(i).MulWide(g.U32(v)))
	}
	c := g.c.At(ptx.Convert[uint64](g.split).Mul(g.strideS))
	c = c.At(ptx.Convert[uint64](z).Mul(g.strideC))
	for i := range y {
		ok := g.hasBias
		if i >= g.least {
			ok = ok.And(ptx.U32(i).Lt(g.U32(&g.Vectors)))
		}
		y[i] = y[i].Add(ptx.LoadIf(ok, at(g.bias, &g.BiasR, &g.BiasV, i), 0))
	}
	y = scalar.Activate(k, g.U32(&g.Act), y)
	if g.after != nil {
		y = g.after.Apply(y, func(i int) tiling.Site { return tiling.Site{Z: z, Row: row, Col: ptx.U32(i)} }, func(i int) ptx.Reg[bool] {
			return ptx.U32(i).Lt(g.U32(&g.Vectors))
		})
	}
	for i := range y {
		to := at(c, &g.ResultR, &g.ResultV, i)
		if i < g.least {
			to.Store(y[i])
			continue
		}
		ptx.StoreIf(ptx.U32(i).Lt(g.U32(&g.Vectors)), to, y[i])
	}
}

// gemvRowsKernel is for matrices whose rows are neighbours in memory along the depth.
func gemvRowsKernel[T scalar.Floating](name string, room int) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "matmul", Name: fmt.Sprint("gemv_rows_", name, room), Block: [3]int{gemvThreads, 1, 1},
		Doc: fmt.Sprintf("result = act(matrix·vectors + bias) over a split of the depth, for up to %d vectors; so many lanes "+
			"share a row.", room),
		Params: gemvParams{},
		BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) {
			newGemv[T](k, room, gemvResident(room), e).buildRows()
		}})
}

func (g *gemv[T]) buildRows() {
	k, tid := g.k, g.k.Tid(ptx.X)
	lanes := ptx.U32(1).Shl(g.shape)
	lane := tid.And(lanes.Sub(1))
	// Rows of all products in one line. Those after the last compute it once more.
	id := g.block.Mul(ptx.U32(gemvThreads).Shr(g.shape)).Add(tid.Shr(g.shape))
	z, row := g.Divisor(&g.Rows).Split(k, id.Min(g.U32(&g.Total).Sub(1)))
	matrix := g.m.At(ptx.Convert[uint64](z).Mul(g.strideM))
	matrix = matrix.At(row.MulWide(g.U32(&g.K)))

	g.zeros(4 * g.room)
	// An iteration takes an element of each lane, or four.
	walk := func(per int, step func(m *ptx.PtrVar[ptx.Global, T], x []*ptx.PtrVar[ptx.Global, float32])) {
		d := g.first.Add(lane.Mul(per))
		stride := lanes.Mul(per)
		rest := g.end.Max(d).Sub(d)
		count := rest.Add(stride.Sub(1)).Shr(g.shape.Add(scalar.Log2(per)))
		m := ptx.PtrVarOf(matrix.At(d))
		var x []*ptx.PtrVar[ptx.Global, float32]
		for _, p := range g.vectorsOf(z, d) {
			x = append(x, ptx.PtrVarOf(p))
		}
		strideX := stride.MulWide(g.U32(&g.VectorK)).Shl(2) // in bytes
		g.accumulate(count, func() {
			step(m, x)
			m.Set(m.Get().At(stride))
			for _, p := range x {
				p.Set(p.Get().Bytes(strideX))
			}
		})
	}
	k.If(g.vector, func() {
		walk(scalar.WideElements[T](), func(m *ptx.PtrVar[ptx.Global, T], x []*ptx.PtrVar[ptx.Global, float32]) {
			mv := scalar.LoadWide(k, m.Get())
			for v := range x {
				for i := 0; i < len(mv); i += 4 {
					for j, y := range x[v].Get().At(i).Load4(ptx.ReadOnly) {
						s := g.chains[4*v+j]
						s.Set(mv[i+j].Fma(y, s.Get()))
					}
				}
			}
		})
	}, func() {
		walk(1, func(m *ptx.PtrVar[ptx.Global, T], x []*ptx.PtrVar[ptx.Global, float32]) {
			mv := scalar.ToFloat32(k, m.Get().Load(ptx.ReadOnly))
			for v := range x {
				s := g.chains[4*v]
				s.Set(mv.Fma(x[v].Get().Load(ptx.ReadOnly), s.Get()))
			}
		})
	})
	y := g.acrossLanes(lane, lanes)
	k.If(lane.Eq(0).And(id.Lt(g.U32(&g.Total))), func() { g.Finish(z, row, y) })
}

// gemvResident is how many blocks a multiprocessor has of a kernel whose lanes have four sums for each vector.
func gemvResident(room int) int { return max(1, 4/min(room, 2)-room/FewVectors) }

// acrossLanes adds up the sums of the lanes of a row; lane 0 has the results.
func (g *gemv[T]) acrossLanes(lane, lanes ptx.Reg[uint32]) (y []ptx.Reg[float32]) {
	k := g.k
	total := make([]*ptx.Var[float32], g.room)
	for v := range total {
		s := g.sums[4*v : 4*v+4]
		sum := s[0].Get().Add(s[1].Get()).Add(s[2].Get().Add(s[3].Get()))
		total[v] = ptx.VarOf(k, sum)
	}
	for d := 16; d > 0; d /= 2 {
		within := lanes.Gt(d)
		for _, t := range total {
			other := t.Get().Shuffle(ptx.ShuffleXor, d, 32, ptx.FullWarp())
			t.Set(t.Get().Add(ptx.Select(within, other, 0)))
		}
	}
	// A row that is the whole block's.
	partial := ptx.SharedArray[float32](k, "warp_sums", g.room*gemvThreads/32)
	k.If(lanes.Gt(32), func() {
		k.If(lane.And(31).Eq(0), func() {
			for v, t := range total {
				partial.At(lane.Shr(5)).At(v * gemvThreads / 32).Store(t.Get())
			}
		})
		k.Barrier()
		for v, t := range total {
			sum := partial.At(v * gemvThreads / 32).Load()
			for w := 1; w < gemvThreads/32; w++ {
				sum = sum.Add(partial.At(v*gemvThreads/32 + w).Load())
			}
			t.Set(sum)
		}
	})
	for _, t := range total {
		y = append(y, t.Get())
	}
	return y
}
