package conv

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

const (
	directThreads = 256
	directColumns = 4 // of a thread, directThreads apart
)

// directParams are those of conv2d_direct.
type directParams struct {
	Biased, Act   int           `array:"sizes"` // Biased is 0 or 1
	Tiles, Blocks scalar.Divide // of columns, of filters in a group
	convSizes
	X, Weights, Bias, Y kit.Buffer
}

// direct is a kernel of which a thread computes so many channels.
type direct struct {
	channels int
	*kit.Kernel
}

// convDirects are the kernels without shared memory, for few filters or little depth.
var convDirects = []direct{convDirectKernel(4), convDirectKernel(1)}

func convDirectKernel(channels int) direct {
	return direct{channels, kit.Register(kit.Kernel{Family: "window", Name: fmt.Sprint("conv2d_direct_", channels),
		Block:     [3]int{directThreads, 1, 1},
		Doc:       fmt.Sprintf("y = act(conv2d + bias); a thread has %d columns and %d filters of a group.", directColumns, channels),
		Params:    directParams{},
		BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) { newDirect(k, channels, e).Build() }})}
}

func (c *convolution) emitDirect(d direct) {
	tiles, blocks := kit.CeilDiv(c.columns(), directThreads*directColumns), kit.CeilDiv(c.channels(), d.channels)
	c.LaunchEpilogue(c.tail, false, d.Kernel, [3]int{tiles * blocks * c.Groups, 1, 1}, directParams{
		Biased: int(c.biasOf / tiling.BiasOfRows), Act: int(c.act), Tiles: scalar.Divide(tiles), Blocks: scalar.Divide(blocks), convSizes: c.sizes(),
		X: kit.In(0), Weights: kit.In(1), Bias: c.bias, Y: kit.Out})
}

// directConv is such a kernel under construction.
type directConv struct {
	geometry
	of              directParams
	channels        int
	x, bias, y      ptx.Ptr[ptx.Global, float32]
	weights         []*ptx.PtrVar[ptx.Global, float32] // of each filter
	filter          ptx.Reg[uint32]                    // the first of the thread's
	columns         [directColumns]ptx.Reg[uint32]
	top, left, base [directColumns]ptx.Reg[uint32]
	chains, sums    []*ptx.Var[float32] // of each filter, each column
	after           *tiling.Epilogue
}

func newDirect(k *ptx.Kernel, channels int, e *kit.Epilogue) *directConv {
	k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
	d := &directConv{channels: channels}
	p := kit.NewParams(k, &d.of)
	d.geometry = geometry{Params: p, convSizes: &d.of.convSizes, k: k}
	d.x = kit.Ptr[float32](p, &d.of.X)
	weights := kit.Ptr[float32](p, &d.of.Weights)
	d.bias, d.y = kit.Ptr[float32](p, &d.of.Bias), kit.Ptr[float32](p, &d.of.Y)
	d.after = tiling.EpilogueOf(k, e)

	rest, tile := p.Divisor(&d.of.Tiles).Split(k, k.Ctaid(ptx.X))
	group, block := p.Divisor(&d.of.Blocks).Split(k, rest)
	d.group, d.filter = group, block.Mul(channels)
	column := tile.Mad(directThreads*directColumns, k.Tid(ptx.X))
	for j := range d.columns {
		d.columns[j] = column.Add(j * directThreads)
		d.top[j], d.left[j], d.base[j] = d.window(d.columns[j])
	}
	filters := d.U32(&d.GroupOutputs)
	depth := d.U32(&d.GroupInputs).Mul(d.Divided(&d.KH).Mul(d.Divided(&d.KW)))
	for i := range channels {
		// The last filter once more, where there are fewer.
		filter := d.filter.Add(i).Min(filters.Sub(1))
		filter = group.Mad(filters, filter)
		d.weights = append(d.weights, ptx.PtrVarOf(weights.At(filter.Mul(depth))))
		for range directColumns {
			d.chains = append(d.chains, ptx.VarOf(k, ptx.Imm(float32(0))))
			d.sums = append(d.sums, ptx.VarOf(k, ptx.Imm(float32(0))))
		}
	}
	return d
}

// Build writes the kernel.
func (d *directConv) Build() {
	k := d.k
	chained := ptx.VarOf(k, ptx.U32(0)) // products in each chain
	ptx.For(k, 0, d.U32(&d.GroupInputs), 1, func(c ptx.Reg[uint32]) {
		lines := c.Mul(d.U32(&d.H))
		ptx.For(k, 0, d.Divided(&d.KH), 1, func(ky ptx.Reg[uint32]) {
			var x, line [directColumns]*ptx.Var[uint32]
			down := ky.Mul(d.U32(&d.DilationY))
			for j := range x {
				y := d.top[j].Add(down)
				x[j] = ptx.VarOf(k, ptx.Select(y.Lt(d.U32(&d.H)), d.left[j], outside))
				line[j] = ptx.VarOf(k, lines.Add(y).Mad(d.U32(&d.W), d.base[j]))
			}
			left := ptx.VarOf(k, d.Divided(&d.KW))
			k.While(func() ptx.Reg[bool] { return left.Get().Ne(0) }, func() {
				now := left.Get().Min(tiling.LongestChain)
				left.Set(left.Get().Sub(now))
				ptx.For(k, 0, now, 1, func(ptx.Reg[uint32]) { d.multiply(x, line) })
				chained.Set(chained.Get().Add(now))
				k.If(chained.Get().Ge(tiling.LongestChain), func() {
					d.fold()
					for _, c := range d.chains {
						c.Set(0)
					}
					chained.Set(0)
				})
			})
		}, ptx.NoUnroll())
	}, ptx.NoUnroll())
	d.fold()
	d.Finish()
}

// multiply adds the products of one element of each filter with those of the input that lie inside: padding has none.
func (d *directConv) multiply(x, line [directColumns]*ptx.Var[uint32]) {
	k := d.k
	var w []ptx.Reg[float32]
	for _, p := range d.weights {
		w = append(w, p.Get().Load(ptx.ReadOnly))
		p.Advance(1)
	}
	for j := range x {
		at := d.x.At(line[j].Get().Add(x[j].Get()))
		k.When(x[j].Get().Lt(d.U32(&d.W)), func() {
			v := at.Load(ptx.ReadOnly)
			for i := range w {
				s := d.chains[i*directColumns+j]
				s.Set(w[i].Fma(v, s.Get()))
			}
		})
		x[j].Set(x[j].Get().Add(d.U32(&d.DilationX)))
	}
}

// fold adds the chains to the sums.
func (d *directConv) fold() {
	for i, s := range d.sums {
		s.Set(s.Get().Add(d.chains[i].Get()))
	}
}

// Finish writes the results; those of several filters are activated in memory, so that the code for it is there once.
func (d *directConv) Finish() {
	k := d.k
	hasBias, act := d.U32(&d.of.Biased).Ne(0), d.U32(&d.of.Act)
	place := func(filter ptx.Reg[uint32], j int) ptx.Ptr[ptx.Global, float32] {
		return d.y.At(d.Place(filter, d.columns[j]))
	}
	inside := func(j int) ptx.Reg[bool] { return d.columns[j].Lt(d.U32(&d.Columns)) }
	for i := range d.channels {
		filter := d.filter.Add(i)
		k.If(filter.Lt(d.U32(&d.GroupOutputs)), func() {
			at := d.bias.At(d.group.Mad(d.U32(&d.GroupOutputs), filter))
			b := ptx.LoadIf(hasBias, at, 0)
			var y []ptx.Reg[float32]
			for _, s := range d.sums[i*directColumns : (i+1)*directColumns] {
				y = append(y, s.Get().Add(b))
			}
			if d.channels == 1 {
				y = d.epilogue(filter, scalar.Activate(k, act, y))
			}
			for j := range y {
				ptx.StoreIf(inside(j), place(filter, j), y[j])
			}
		})
	}
	if d.channels == 1 {
		return
	}
	change := func() {
		end := d.filter.Add(d.channels).Min(d.U32(&d.GroupOutputs))
		ptx.For(k, d.filter, end, 1, func(filter ptx.Reg[uint32]) {
			var y []ptx.Reg[float32]
			for j := range d.columns {
				y = append(y, ptx.LoadIf(inside(j), place(filter, j), 0))
			}
			for j, v := range d.epilogue(filter, scalar.Activate(k, act, y)) {
				ptx.StoreIf(inside(j), place(filter, j), v)
			}
		}, ptx.NoUnroll())
	}
	if d.after != nil {
		change()
	} else {
		k.If(act.Ne(0), change)
	}
}

// epilogue applies the epilogue, if there is one, to results of a filter.
func (d *directConv) epilogue(filter ptx.Reg[uint32], y []ptx.Reg[float32]) []ptx.Reg[float32] {
	if d.after == nil {
		return y
	}
	return d.after.Apply(y, func(j int) tiling.Site { return d.at(filter, d.columns[j]) },
		func(j int) ptx.Reg[bool] { return d.columns[j].Lt(d.U32(&d.Columns)) })
}
