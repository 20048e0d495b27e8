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
	depth := sizes.At(tiling.GemmLDA)
	filters := p.Z.Mul(p.M) // of the groups before
	weights = weights.At(filters.Mul(depth))
	p.Bias = bias.At(filters)
	p.A = tiling.NewOperand(k, "a", t.M, t.K, weights, depth, p.Has(tiling.AlongA), p.Has(tiling.VectorA), p.Top, p.M, p.First)
	p.B = newWindows(g, "b", t.N, t.K, x, p.Left, p.First)
	p.Places = func(row, col ptx.Reg[uint32]) func(i int) ptx.Ptr[ptx.Global, float32] {
		all := p.N.MulWide(g.size(convOutputs))
		y := y.At(ptx.Convert[uint64](p.Split).Mul(all))
		first := y.At(g.Place(row, col))
		return func(i int) ptx.Ptr[ptx.Global, float32] {
			if i == 0 {
				return first
			}
			return y.At(g.Place(row, col.Add(i)))
		}
	}
	p.Mend = func(row, col ptx.Reg[uint32]) ptx.Reg[float32] { return g.exactly(p, x, weights, row, col) }
	return p
}

// exactly computes one result without the zeros that stand for padding: times an infinite weight they are NaN.
func (g geometry) exactly(p *tiling.Product, input, weights ptx.Ptr[ptx.Global, float32], row, col ptx.Reg[uint32]) ptx.Reg[float32] {
	k := g.k
	y0, x0, base := g.window(col)
	filter := weights.At(row.MulWide(g.sizes.At(tiling.GemmLDA)))
	sum := ptx.VarOf(k, ptx.Imm(float32(0)))
	ptx.For(k, p.First, p.First.Add(ptx.Bitcast[uint32](p.Depth)), 1, func(d ptx.Reg[uint32]) {
		line, kx := g.divisor(convKW).Split(k, d)
		c, ky := g.divisor(convKH).Split(k, line)
		y, x := ky.Mad(g.size(convDilationY), y0), kx.Mad(g.size(convDilationX), x0)
		k.If(y.Lt(g.size(convH)).And(x.Lt(g.size(convW))), func() {
			lines := c.Mad(g.size(convH), y)
			v := input.At(lines.Mad(g.size(convW), x).Add(base)).Load()
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
		id := k.Tid(ptx.X).Add(i * tiling.GemmThreads)
		row, d := id.Rem(size/4).Mul(4), id.Div(size/4)
		p := windowPiece{to: w.Place(row, d), from: ptx.Bitcast[int32](d)}
		line, kx := g.divisor(convKW).Split(k, d0.Add(d))
		c, ky := g.divisor(convKH).Split(k, line)
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
		down, right := p.ky.Get().Mul(w.g.size(convDilationY)), p.kx.Get().Mul(w.g.size(convDilationX))
		lines := p.c.Get().Mul(w.g.size(convH))
		for j, held := range p.held {
			y, x := p.y[j].Add(down), p.x[j].Add(right)
			inside := more.And(y.Lt(w.g.size(convH)).And(x.Lt(w.g.size(convW))))
			at := lines.Add(y).Mad(w.g.size(convW), x).Add(p.base[j])
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
	carry := step(p.kx, w.g.sizes.At(convStepX), w.g.size(convKW), ptx.U32(0))
	carry = step(p.ky, w.g.sizes.At(convStepY), w.g.size(convKH), carry)
	p.c.Set(p.c.Get().Add(w.g.sizes.At(convStepC).Add(carry)))
}

// store writes what load has brought.
func (w *windows) Store(stage ptx.Reg[uint32]) {
	for _, p := range w.pieces {
		v := [4]ptx.Reg[float32]{p.held[0].Get(), p.held[1].Get(), p.held[2].Get(), p.held[3].Get()}
		w.Stage(stage).At(p.to).Store4(v)
	}
}
