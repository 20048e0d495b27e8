package conv

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// convGemmParams are those of conv2d_gemm.
type convGemmParams struct {
	tiling.GemmSizes // products are groups
	convSizes
	StepC, StepY, StepX int // by how much depth to depth of the tiles moves in the filter
	X, Weights, Bias, Y kit.Buffer
}

// convGemm computes convolutions as products of the weights with windows of the input, which it gathers tile by tile.
var convGemm = convGemmKernel(tiling.Shape{M: 64, N: 64, K: 16})

func convGemmKernel(t tiling.Shape) tiling.Tiled {
	return tiling.Tiled{Shape: t, Kernel: kit.Register(kit.Kernel{Family: "window", Name: fmt.Sprintf("conv2d_gemm_%dx%d", t.M, t.N),
		Block: [3]int{tiling.GemmThreads, 1, 1},
		Doc: "y[split] = act(conv2d + bias) over a split of the depth, which is input channels × filter. Bias and activation " +
			"are for a single split.",
		Params:    convGemmParams{},
		BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) { newConvProduct(k, t, e).Build() },
	})}
}

func (c *convolution) emitTiled(t tiling.Tiled, splits int) {
	across := kit.CeilDiv(c.columns(), t.N)
	tiles := across * kit.CeilDiv(c.channels(), t.M)
	y, biasOf, act, behind := kit.Out, c.biasOf, c.act, c.tail
	if splits > 1 {
		y, biasOf, act, behind = c.NewScratch(4*splits*c.Result.Len()), 0, 0, nil
	}
	depth := c.depth()
	flags := biasOf | tiling.AlongA | kit.FlagIf(tiling.VectorA, depth%4 == 0) | kit.FlagIf(tiling.VectorC, c.plane()%4 == 0) |
		kit.FlagIf(tiling.Padded, c.Pad != [2]int{})
	c.LaunchEpilogue(behind, false, t.Kernel, [3]int{tiles * c.Groups * splits, 1, 1}, convGemmParams{
		GemmSizes: tiling.GemmSizes{M: c.channels(), N: c.columns(), K: depth, Depth: tiling.DepthOf(depth, splits), LDA: depth, Flags: int(flags),
			Act: int(act), Across: scalar.Divide(across), Tiles: scalar.Divide(tiles), Batch: scalar.Divide(c.Groups)},
		convSizes: c.sizes(), StepC: t.K / c.KW / c.KH, StepY: t.K / c.KW % c.KH, StepX: t.K % c.KW,
		X: kit.In(0), Weights: kit.In(1), Bias: c.bias, Y: y})
	if splits > 1 {
		tiling.AddPartials(c.Step, tiling.UniformSplit(splits, c.Result.Len()/c.OutC/c.plane(), c.OutC, c.plane()), c.biasOf, c.act, c.tail, y, c.bias, kit.Out)
	}
}

func newConvProduct(k *ptx.Kernel, t tiling.Shape, e *kit.Epilogue) *tiling.Product {
	at := &convGemmParams{}
	params := kit.NewParams(k, at)
	x, weights := kit.Ptr[float32](params, &at.X), kit.Ptr[float32](params, &at.Weights)
	bias, y := kit.Ptr[float32](params, &at.Bias), kit.Ptr[float32](params, &at.Y)
	after := tiling.EpilogueOf(k, e)
	k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
	p := tiling.ProductOf(params, t, &at.GemmSizes)
	g := geometry{params, &at.convSizes, k, p.Z}
	p.After, p.At = after, g.at
	depth := params.U32(&at.LDA)
	filters := p.Z.Mul(p.M) // of the groups before
	weights = weights.At(filters.Mul(depth))
	p.Bias = bias.At(filters)
	p.A = tiling.NewOperand(k, "a", t.M, t.K, weights, depth, p.Has(tiling.AlongA), p.Has(tiling.VectorA), p.Top, p.M, p.First)
	p.B = newWindows(g, at, "b", t.N, t.K, x, p.Left, p.First)
	p.Places = func(row, col ptx.Reg[uint32]) func(i int) ptx.Ptr[ptx.Global, float32] {
		all := p.N.MulWide(g.U32(&g.Outputs))
		y := y.At(ptx.Convert[uint64](p.Split).Mul(all))
		first := y.At(g.Place(row, col))
		return func(i int) ptx.Ptr[ptx.Global, float32] {
			if i == 0 {
				return first
			}
			return y.At(g.Place(row, col.Add(i)))
		}
	}
	p.Mend = func(row, col ptx.Reg[uint32]) ptx.Reg[float32] { return g.exactly(p, &at.LDA, x, weights, row, col) }
	return p
}

// exactly computes one result without the zeros that stand for padding: times an infinite weight they are NaN.
func (g geometry) exactly(p *tiling.Product, lda *int, input, weights ptx.Ptr[ptx.Global, float32], row, col ptx.Reg[uint32]) ptx.Reg[float32] {
	k := g.k
	y0, x0, base := g.window(col)
	filter := weights.At(row.MulWide(g.U32(lda)))
	sum := ptx.VarOf(k, ptx.Imm(float32(0)))
	ptx.For(k, p.First, p.First.Add(ptx.Bitcast[uint32](p.Depth)), 1, func(d ptx.Reg[uint32]) {
		line, kx := g.Divisor(&g.KW).Split(k, d)
		c, ky := g.Divisor(&g.KH).Split(k, line)
		y, x := ky.Mad(g.U32(&g.DilationY), y0), kx.Mad(g.U32(&g.DilationX), x0)
		k.If(y.Lt(g.U32(&g.H)).And(x.Lt(g.U32(&g.W))), func() {
			lines := c.Mad(g.U32(&g.H), y)
			v := input.At(lines.Mad(g.U32(&g.W), x).Add(base)).Load()
			sum.Set(filter.At(d).Load().Fma(v, sum.Get()))
		})
	}, ptx.NoUnroll())
	b := ptx.LoadIf(p.Has(tiling.BiasOfRows), p.Bias.At(row), 0)
	return sum.Get().Add(b)
}

// windows is the input of a convolution as an operand of a product: columns of the result by depth. Threads bring four columns
// at one depth.
type windows struct {
	tiling.TileMemory
	g      geometry
	at     *convGemmParams
	x      ptx.Ptr[ptx.Global, float32]
	pieces []windowPiece
}

// windowPiece is four columns.
type windowPiece struct {
	to         ptx.Reg[uint32]
	from       ptx.Reg[int32] // it exists while more of the depth than this is left
	y, x, base [4]ptx.Reg[uint32]
	c, ky, kx  *ptx.Var[uint32] // where in the filter it is
	held       [4]*ptx.Var[float32]
}

func newWindows(g geometry, at *convGemmParams, name string, size, depth int, x ptx.Ptr[ptx.Global, float32], first, d0 ptx.Reg[uint32]) *windows {
	k := g.k
	w := &windows{TileMemory: tiling.NewTileMemory(k, name, size, depth), g: g, at: at, x: x}
	for i := range size * depth / 4 / tiling.GemmThreads {
		id := k.Tid(ptx.X).Add(i * tiling.GemmThreads)
		row, d := id.Rem(size/4).Mul(4), id.Div(size/4)
		p := windowPiece{to: w.Place(row, d), from: ptx.Bitcast[int32](d)}
		line, kx := g.Divisor(&g.KW).Split(k, d0.Add(d))
		c, ky := g.Divisor(&g.KH).Split(k, line)
		p.c, p.ky, p.kx = ptx.VarOf(k, c), ptx.VarOf(k, ky), ptx.VarOf(k, kx)
		for j := range p.held {
			p.y[j], p.x[j], p.base[j] = g.window(first.Add(row).Add(j))
			p.held[j] = ptx.NewVar[float32](k)
		}
		w.pieces = append(w.pieces, p)
	}
	return w
}

// Load brings the next tile to registers, with zeros for padding and where columns or depth end.
func (w *windows) Load(left ptx.Reg[int32]) {
	for _, p := range w.pieces {
		more := left.Gt(p.from)
		down, right := p.ky.Get().Mul(w.g.U32(&w.g.DilationY)), p.kx.Get().Mul(w.g.U32(&w.g.DilationX))
		lines := p.c.Get().Mul(w.g.U32(&w.g.H))
		for j, held := range p.held {
			y, x := p.y[j].Add(down), p.x[j].Add(right)
			inside := more.And(y.Lt(w.g.U32(&w.g.H)).And(x.Lt(w.g.U32(&w.g.W))))
			at := lines.Add(y).Mad(w.g.U32(&w.g.W), x).Add(p.base[j])
			held.Set(ptx.LoadIf(inside, w.x.At(at), 0, ptx.ReadOnly))
		}
		w.advance(p)
	}
}

// advance moves a piece by the depth of a tile: as adding up numbers of three digits.
func (w *windows) advance(p windowPiece) {
	step := func(v *ptx.Var[uint32], by, base, carry ptx.Reg[uint32]) ptx.Reg[uint32] {
		sum := v.Get().Add(by).Add(carry)
		over := sum.Ge(base)
		v.Set(sum.Sub(ptx.Select(over, base, 0)))
		return ptx.Select(over, ptx.U32(1), 0)
	}
	carry := step(p.kx, w.g.U32(&w.at.StepX), w.g.Divided(&w.g.KW), ptx.U32(0))
	carry = step(p.ky, w.g.U32(&w.at.StepY), w.g.Divided(&w.g.KH), carry)
	p.c.Set(p.c.Get().Add(w.g.U32(&w.at.StepC).Add(carry)))
}

// store writes what load has brought.
func (w *windows) Store(stage ptx.Reg[uint32]) {
	for _, p := range w.pieces {
		v := [4]ptx.Reg[float32]{p.held[0].Get(), p.held[1].Get(), p.held[2].Get(), p.held[3].Get()}
		w.Stage(stage).At(p.to).Store4(v)
	}
}
