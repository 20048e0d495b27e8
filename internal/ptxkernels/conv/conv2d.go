package conv

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/gemm"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// Conv2D lowers a convolution of planes.
func Conv2D(s *kit.Step) error {
	d, err := catalogue.ConvShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Attr.Options.(compute.Conv2DOptions))
	if err != nil {
		return err
	}
	return convolve(s, d)
}

// Conv1D lowers a convolution of lines, as planes of one line.
func Conv1D(s *kit.Step) error { // of planes of one line
	d, err := catalogue.Conv1DShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Attr.Options.(compute.Conv1DOptions))
	if err != nil {
		return err
	}
	return convolve(s, d)
}

// convolve lowers a convolution with its bias and activation.
func convolve(s *kit.Step, d catalogue.ConvDims) error {
	c := convolution{Step: s, ConvDims: d, act: kit.ActivationCode(s.Attr)}
	if len(s.Operands) == 3 {
		c.bias, c.biasOf = kit.In(2), tiling.BiasOfRows
	}
	if d.KH == 1 && d.KW == 1 && d.Pad == [2]int{} && d.Stride == [2]int{1, 1} && d.Groups == 1 {
		return c.pointwise()
	}
	var err error
	if c.tail, err = s.Epilogue(c.N, c.OutC, c.plane()); err != nil {
		return err
	}
	return c.Lower()
}

// convolution lowers conv2d.
type convolution struct {
	*kit.Step
	catalogue.ConvDims
	bias   kit.Buffer
	biasOf uint32 // biasOfRows, or 0 for none: the buffer is then never read
	act    uint32
	tail   *kit.Epilogue
}

// pointwise is a filter of one element: for each image the product of the weights [o c] and the planes [c h·w].
func (c *convolution) pointwise() error {
	size := c.H * c.W
	m := gemm.Problem{Step: c.Step, A: kit.In(1), B: kit.In(0), C: kit.Out, Act: c.act, Bias: c.bias, BiasOf: c.biasOf,
		MatMulDims: catalogue.MatMulDims{Batch: c.N, M: c.OutC, K: c.C, N: size, StrideB: c.C * size}}
	return m.Lower()
}

func (c *convolution) plane() int    { return c.OutH * c.OutW }
func (c *convolution) columns() int  { return c.N * c.plane() }              // places of the filter in all images
func (c *convolution) depth() int    { return c.C / c.Groups * c.KH * c.KW } // weights of a filter
func (c *convolution) channels() int { return c.OutC / c.Groups }            // filters of a group

// Until a group has so many filters, direct convolution has no more to do than a product whose tiles would be half empty.
const convFilters = 32

// Lower chooses a variant and launches it.
func (c *convolution) Lower() error {
	var names []string
	var emit []func()
	add := func(name string, f func()) {
		names, emit = append(names, name), append(emit, f)
	}
	products := func() {
		t := convGemm
		blocks := t.Blocks(c.channels(), c.columns(), c.Groups)
		name := fmt.Sprintf("tile%dx%d", t.M, t.N)
		if n := tiling.Splits(c.Step.Caps.Multiprocessors, blocks, c.depth(), c.Result.Len()); n > 1 {
			add(name+"/splitk", func() { c.emitTiled(t, n) })
		}
		add(name, func() { c.emitTiled(t, 1) })
	}
	if c.channels() >= convFilters {
		products()
	}
	for _, d := range convDirects {
		if d.channels == 1 || c.channels() > 1 {
			add(fmt.Sprint("direct", d.channels), func() { c.emitDirect(d) })
		}
	}
	if c.channels() < convFilters {
		products()
	}
	problem := fmt.Sprintf("%d*%d of %dx%d, %dx%dx%d, %d groups, stride %d, dilation %d, pad %d", c.N, c.OutC, c.OutH, c.OutW,
		c.C, c.KH, c.KW, c.Groups, c.Stride, c.Dilation, c.Pad)
	emit[c.Choose("conv2d", problem, names)]()
	return nil
}

// convSizes are the parameters that the kernels of conv2d have in common.
type convSizes struct {
	H, W                  int
	StrideY, StrideX      int // down and across
	PadY, PadX            int // above and left
	DilationY, DilationX  int
	Inputs, GroupInputs   int // channels of an image, of which a group has so many
	Outputs, GroupOutputs int // channels of the result, likewise
	Columns               int // places of the filter in all images
	KH, KW                scalar.Divide
	Plane, OutW           scalar.Divide // of the result
}

func (c *convolution) sizes() convSizes {
	return convSizes{H: c.H, W: c.W, StrideY: c.Stride[0], StrideX: c.Stride[1], PadY: c.Pad[0], PadX: c.Pad[1], DilationY: c.Dilation[0],
		DilationX: c.Dilation[1], Inputs: c.C, GroupInputs: c.C / c.Groups, Outputs: c.OutC, GroupOutputs: c.channels(), Columns: c.columns(),
		KH: scalar.Divide(c.KH), KW: scalar.Divide(c.KW), Plane: scalar.Divide(c.plane()), OutW: scalar.Divide(c.OutW)}
}

// geometry reads them in a kernel.
type geometry struct {
	*kit.Params
	*convSizes
	k     *ptx.Kernel
	group ptx.Reg[uint32]
}

// outside is a coordinate that is outside of every plane, and stays so if a window's extent is added.
const outside = 0xc0000000

// window is where in the input the filter lies for a column of the result: at y, x of the plane that begins at element base of
// the input. y and x may wrap below zero; columns after the last lie outside.
func (g geometry) window(column ptx.Reg[uint32]) (y, x, base ptx.Reg[uint32]) {
	k := g.k
	image, at := g.Divisor(&g.Plane).Split(k, column)
	oy, ox := g.Divisor(&g.OutW).Split(k, at)
	y = oy.Mul(g.U32(&g.StrideY)).Sub(g.U32(&g.PadY))
	x = ox.Mul(g.U32(&g.StrideX)).Sub(g.U32(&g.PadX))
	y = ptx.Select(column.Lt(g.U32(&g.Columns)), y, outside)
	channel := image.Mad(g.U32(&g.Inputs), g.group.Mul(g.U32(&g.GroupInputs)))
	return y, x, channel.Mul(g.U32(&g.H).Mul(g.U32(&g.W)))
}

// Place is the element of the result for a filter of the group and a column.
func (g geometry) Place(filter, column ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := g.k
	plane := g.Divisor(&g.Plane)
	image, at := plane.Split(k, column)
	before := image.Mad(g.U32(&g.Outputs), g.group.Mul(g.U32(&g.GroupOutputs))) // channels
	return filter.Mad(plane.D, before.Mad(plane.D, at))
}

// at is where that element is for an epilogue: an image's plane has channels as rows.
func (g geometry) at(filter, column ptx.Reg[uint32]) tiling.Site {
	k := g.k
	image, at := g.Divisor(&g.Plane).Split(k, column)
	return tiling.Site{Z: image, Row: g.group.Mad(g.U32(&g.GroupOutputs), filter), Col: at}
}
