package conv

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// Arguments of conv2d_gemm in the array sizes: first those of gemm, then the geometry, then by how much depth to depth of the
// tiles moves in the filter.
const (
	convGeometry = tiling.GemmWords
	convStepC    = convGeometry + convWords
	convStepY    = convStepC + 1
	convStepX    = convStepY + 1
	convGemmSize = convStepX + 1
)

// convGemm computes convolutions as products of the weights with windows of the input, which it gathers tile by tile.
var convGemm = convGemmKernel(tiling.Shape{M: 64, N: 64, K: 16})

func convGemmKernel(t tiling.Shape) tiling.Tiled {
	return tiling.Tiled{Shape: t, Kernel: kit.Register(kit.Kernel{Family: "window", Name: fmt.Sprintf("conv2d_gemm_%dx%d", t.M, t.N),
		Block: [3]int{tiling.GemmThreads, 1, 1},
		Doc: "y[split] = act(conv2d + bias) over a split of the depth, which is input channels × filter. Bias and activation " +
			"are for a single split. Parameters: u32 sizes[] (as gemm's, products being groups; " + convDoc +
			"; the tile's depth in channels, " +
			"lines and elements of a filter), f32* x, f32* weights, f32* bias, f32* y.",
		BuildEpilogue: func(k *ptx.Kernel, e *kit.Epilogue) { newConvProduct(k, t, e).Build() },
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
	sizes := []uint32{uint32(c.channels()), uint32(c.columns()), uint32(depth), uint32(tiling.DepthOf(depth, splits)), uint32(depth), 0,
		flags, act}
	for _, d := range []int{across, tiles, c.Groups} {
		sizes = append(sizes, scalar.DivisorOf(d)...)
	}
	sizes = append(sizes, c.geometry()...)
	sizes = append(sizes, uint32(t.K/c.KW/c.KH), uint32(t.K/c.KW%c.KH), uint32(t.K%c.KW))
	c.LaunchEpilogue(behind, false, t.Kernel, [3]int{tiles * c.Groups * splits, 1, 1}, sizes, kit.In(0), kit.In(1), c.bias, y)
	if splits > 1 {
		tiling.AddPartials(c.Step, tiling.UniformSplit(splits, c.Result.Len()/c.OutC/c.plane(), c.OutC, c.plane()), c.biasOf, c.act, c.tail, y, c.bias, kit.Out)
	}
}

func newConvProduct(k *ptx.Kernel, t tiling.Shape, e *kit.Epilogue) *tiling.Product {
	sizes := ptx.ParamArray[uint32](k, "sizes", convGemmSize)
	x, weights := ptx.PointerParam[float32](k, "x"), ptx.PointerParam[float32](k, "weights")
	bias, y := ptx.PointerParam[float32](k, "bias"), ptx.PointerParam[float32](k, "y")
	after := tiling.EpilogueOf(k, e)
	k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
	p := tiling.ProductOf(k, t, sizes)
	g := geometry{k, sizes, convGeometry, p.Z}
	p.After, p.At = after, g.at
	depth := sizes.At(k, tiling.GemmLDA)
	filters := ptx.Mul(k, p.Z, p.M) // of the groups before
	weights = ptx.At(k, weights, ptx.Mul(k, filters, depth))
	p.Bias = ptx.At(k, bias, filters)
	p.A = tiling.NewOperand(k, "a", t.M, t.K, weights, depth, p.Has(tiling.AlongA), p.Has(tiling.VectorA), p.Top, p.M, p.First)
	p.B = newWindows(g, "b", t.N, t.K, x, p.Left, p.First)
	p.Places = func(row, col ptx.Reg[uint32]) func(i int) ptx.Ptr[ptx.Global, float32] {
		all := ptx.MulWideU32(k, p.N, g.size(convOutputs))
		y := ptx.At(k, y, ptx.Mul(k, ptx.Convert[uint64](k, p.Split), all))
		first := ptx.At(k, y, g.Place(row, col))
		return func(i int) ptx.Ptr[ptx.Global, float32] {
			if i == 0 {
				return first
			}
			return ptx.At(k, y, g.Place(row, ptx.Add(k, col, scalar.U32(i))))
		}
	}
	p.Mend = func(row, col ptx.Reg[uint32]) ptx.Reg[float32] { return g.exactly(p, x, weights, row, col) }
	return p
}

// exactly computes one result without the zeros that stand for padding: times an infinite weight they are NaN.
func (g geometry) exactly(p *tiling.Product, input, weights ptx.Ptr[ptx.Global, float32], row, col ptx.Reg[uint32]) ptx.Reg[float32] {
	k := g.k
	y0, x0, base := g.window(col)
	filter := ptx.At(k, weights, ptx.MulWideU32(k, row, g.sizes.At(k, tiling.GemmLDA)))
	sum := ptx.VarOf(k, ptx.Imm(float32(0)))
	ptx.For(k, p.First, ptx.Add(k, p.First, ptx.Bitcast[uint32](k, p.Depth)), scalar.U32(1), func(d ptx.Reg[uint32]) {
		line, kx := g.divisor(convKW).Split(k, d)
		c, ky := g.divisor(convKH).Split(k, line)
		y, x := ptx.Mad(k, ky, g.size(convDilationY), y0), ptx.Mad(k, kx, g.size(convDilationX), x0)
		k.If(ptx.And(k, ptx.Lt(k, y, g.size(convH)), ptx.Lt(k, x, g.size(convW))), func() {
			lines := ptx.Mad(k, c, g.size(convH), y)
			v := ptx.Load(k, ptx.At(k, input, ptx.Add(k, ptx.Mad(k, lines, g.size(convW), x), base)))
			sum.Set(ptx.Fma(k, ptx.Load(k, ptx.At(k, filter, d)), v, sum.Get()))
		})
	}, ptx.NoUnroll())
	b := ptx.LoadIf(k, p.Has(tiling.BiasOfRows), ptx.At(k, p.Bias, row), ptx.Imm(float32(0)))
	return ptx.Add(k, sum.Get(), b)
}

// windows is the input of a convolution as an operand of a product: columns of the result by depth. Threads bring four columns
// at one depth.
type windows struct {
	tiling.TileMemory
	g      geometry
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

func newWindows(g geometry, name string, size, depth int, x ptx.Ptr[ptx.Global, float32], first, d0 ptx.Reg[uint32]) *windows {
	k := g.k
	w := &windows{TileMemory: tiling.NewTileMemory(k, name, size, depth), g: g, x: x}
	for i := range size * depth / 4 / tiling.GemmThreads {
		id := ptx.Add(k, k.Tid(ptx.X), scalar.U32(i*tiling.GemmThreads))
		row, d := ptx.Mul(k, ptx.Rem(k, id, scalar.U32(size/4)), scalar.U32(4)), ptx.Div(k, id, scalar.U32(size/4))
		p := windowPiece{to: w.Place(row, d), from: ptx.Bitcast[int32](k, d)}
		line, kx := g.divisor(convKW).Split(k, ptx.Add(k, d0, d))
		c, ky := g.divisor(convKH).Split(k, line)
		p.c, p.ky, p.kx = ptx.VarOf(k, c), ptx.VarOf(k, ky), ptx.VarOf(k, kx)
		for j := range p.held {
			p.y[j], p.x[j], p.base[j] = g.window(ptx.Add(k, ptx.Add(k, first, row), scalar.U32(j)))
			p.held[j] = ptx.NewVar[float32](k)
		}
		w.pieces = append(w.pieces, p)
	}
	return w
}

// Load brings the next tile to registers, with zeros for padding and where columns or depth end.
func (w *windows) Load(left ptx.Reg[int32]) {
	k := w.K
	for _, p := range w.pieces {
		more := ptx.Gt(k, left, p.from)
		down, right := ptx.Mul(k, p.ky.Get(), w.g.size(convDilationY)), ptx.Mul(k, p.kx.Get(), w.g.size(convDilationX))
		lines := ptx.Mul(k, p.c.Get(), w.g.size(convH))
		for j, held := range p.held {
			y, x := ptx.Add(k, p.y[j], down), ptx.Add(k, p.x[j], right)
			inside := ptx.And(k, more, ptx.And(k, ptx.Lt(k, y, w.g.size(convH)), ptx.Lt(k, x, w.g.size(convW))))
			at := ptx.Add(k, ptx.Mad(k, ptx.Add(k, lines, y), w.g.size(convW), x), p.base[j])
			held.Set(ptx.LoadIf(k, inside, ptx.At(k, w.x, at), ptx.Imm(float32(0)), ptx.ReadOnly))
		}
		w.advance(p)
	}
}

// advance moves a piece by the depth of a tile: as adding up numbers of three digits.
func (w *windows) advance(p windowPiece) {
	k := w.K
	step := func(v *ptx.Var[uint32], by, base, carry ptx.Reg[uint32]) ptx.Reg[uint32] {
		sum := ptx.Add(k, ptx.Add(k, v.Get(), by), carry)
		over := ptx.Ge(k, sum, base)
		v.Set(ptx.Sub(k, sum, ptx.Select(k, over, base, scalar.U32(0))))
		return ptx.Select(k, over, scalar.U32(1), scalar.U32(0))
	}
	carry := step(p.kx, w.g.sizes.At(k, convStepX), w.g.size(convKW), scalar.U32(0))
	carry = step(p.ky, w.g.sizes.At(k, convStepY), w.g.size(convKH), carry)
	p.c.Set(ptx.Add(k, p.c.Get(), ptx.Add(k, w.g.sizes.At(k, convStepC), carry)))
}

// store writes what load has brought.
func (w *windows) Store(stage ptx.Reg[uint32]) {
	for _, p := range w.pieces {
		v := [4]ptx.Reg[float32]{p.held[0].Get(), p.held[1].Get(), p.held[2].Get(), p.held[3].Get()}
		ptx.Store4(w.K, ptx.At(w.K, w.Stage(stage), p.to), v)
	}
}
