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
		BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) { buildConvGemm(k, t, e) },
	})}
}

func (c *convolution) emitTiled(t tiling.Tiled, splits int) {
	depth := c.depth()
	r := tiling.Result{Products: c.Result.Len() / c.OutC / c.plane(), Rows: c.OutC, Cols: c.plane(), Flags: c.biasOf, Act: c.act, After: c.tail, Bias: c.bias, Y: kit.Out}
	r.SplitK(c.Step, splits, func(r tiling.Result) {
		sizes, grid := t.Sizes(c.channels(), c.columns(), depth, tiling.DepthOf(depth, splits), c.Groups)
		sizes.LDA, sizes.Act = depth, int(r.Act)
		sizes.Flags = int(r.Flags | tiling.KMajorA | kit.FlagIf(tiling.VectorA, depth%4 == 0) | kit.FlagIf(tiling.VectorC, c.plane()%4 == 0) |
			kit.FlagIf(tiling.Padded, c.Pad != [2]int{}))
		c.LaunchEpilogue(r.After, false, t.Kernel, grid, convGemmParams{GemmSizes: sizes, convSizes: c.sizes(),
			StepC: t.K / c.KW / c.KH, StepY: t.K / c.KW % c.KH, StepX: t.K % c.KW, X: kit.In(0), Weights: kit.In(1), Bias: r.Bias, Y: r.Y})
	})
}

func buildConvGemm(k *ptx.Kernel, t tiling.Shape, e *kit.Epilogue) {
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
	a := tiling.MatrixOperand(tiling.SwizzledTile(k, "a", t.M, t.K), weights, depth, p.Has(tiling.KMajorA), p.Has(tiling.VectorA), p.Top, p.M, p.First)
	b := windowOperand(g, at, tiling.SwizzledTile(k, "b", t.N, t.K), x, p.Left, p.First)
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
	p.Pipelined(a, b)
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

// windowOperand is the input of a convolution as an operand: columns of the result by depth. Threads bring four columns at one depth,
// with zeros for padding.
func windowOperand(g geometry, at *convGemmParams, t tiling.OperandTile, x ptx.Ptr[ptx.Global, float32], first, d0 ptx.Reg[uint32]) *tiling.Operand {
	k, w := g.k, tiling.GatherOperand(t)
	for i := range t.Rows * t.Depth / 4 / tiling.GemmThreads {
		id := k.Tid(ptx.X).Add(i * tiling.GemmThreads)
		row, d := id.Rem(t.Rows/4).Mul(4), id.Div(t.Rows/4)
		to, from := w.Place(row, d), ptx.Bitcast[int32](d) // it is there while more of the depth than this is left
		line, kx := g.Divisor(&g.KW).Split(k, d0.Add(d))
		c, ky := g.Divisor(&g.KH).Split(k, line)
		filter := [3]*ptx.Var[uint32]{ptx.VarOf(k, kx), ptx.VarOf(k, ky), ptx.VarOf(k, c)} // where in it the piece is
		var ys, xs, base [4]ptx.Reg[uint32]
		for j := range base {
			ys[j], xs[j], base[j] = g.window(first.Add(row).Add(j))
		}
		w.Add(to, func(left ptx.Reg[int32], held scalar.Variables[float32]) {
			more := left.Gt(from)
			right, down := filter[0].Get().Mul(g.U32(&g.DilationX)), filter[1].Get().Mul(g.U32(&g.DilationY))
			lines := filter[2].Get().Mul(g.U32(&g.H))
			for j, v := range held {
				y, column := ys[j].Add(down), xs[j].Add(right)
				inside := more.And(y.Lt(g.U32(&g.H)).And(column.Lt(g.U32(&g.W))))
				v.Set(ptx.LoadIf(inside, x.At(lines.Add(y).Mad(g.U32(&g.W), column).Add(base[j])), 0, ptx.ReadOnly))
			}
			g.advance(at, filter)
		})
	}
	return w
}

// advance moves a piece by the depth of a tile: as adding up numbers of three digits.
func (g geometry) advance(at *convGemmParams, filter [3]*ptx.Var[uint32]) {
	carry := ptx.U32(0)
	bases := []ptx.Reg[uint32]{g.Divided(&g.KW), g.Divided(&g.KH)}
	for i, by := range []*int{&at.StepX, &at.StepY, &at.StepC} {
		sum := filter[i].Get().Add(g.U32(by).Add(carry))
		if i < len(bases) {
			over := sum.Ge(bases[i])
			sum, carry = sum.Sub(ptx.Select(over, bases[i], 0)), ptx.Select(over, ptx.U32(1), 0)
		}
		filter[i].Set(sum)
	}
}
