package lower

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/ptx"
)

func Conv2D(s *step) error {
	d, err := catalogue.ConvShape(s.in[0].Shape, s.in[1].Shape, s.Attr.Options.(compute.Conv2DOptions))
	if err != nil {
		return err
	}
	return convolve(s, d)
}

func Conv1D(s *step) error { // of planes of one line
	d, err := catalogue.Conv1DShape(s.in[0].Shape, s.in[1].Shape, s.Attr.Options.(compute.Conv1DOptions))
	if err != nil {
		return err
	}
	return convolve(s, d)
}

// convolve lowers a convolution with its bias and activation.
func convolve(s *step, d catalogue.ConvDims) error {
	c := convolution{step: s, ConvDims: d, act: activationCode(s.Attr)}
	if len(s.in) == 3 {
		c.bias, c.biasOf = operand(2), biasOfRows
	}
	if d.KH == 1 && d.KW == 1 && d.Pad == [2]int{} && d.Stride == [2]int{1, 1} && d.Groups == 1 {
		return c.pointwise()
	}
	var err error
	if c.tail, err = s.tail(c.N, c.OutC, c.plane()); err != nil {
		return err
	}
	return c.lower()
}

// convolution lowers conv2d.
type convolution struct {
	*step
	catalogue.ConvDims
	bias   Buffer
	biasOf uint32 // biasOfRows, or 0 for none: the buffer is then never read
	act    uint32
	tail   *tail
}

// pointwise is a filter of one element: for each image the product of the weights [o c] and the planes [c h·w].
func (c *convolution) pointwise() error {
	size := c.H * c.W
	m := matmul{step: c.step, a: operand(1), b: operand(0), c: result, act: c.act, bias: c.bias, biasOf: c.biasOf,
		MatMulDims: catalogue.MatMulDims{Batch: c.N, M: c.OutC, K: c.C, N: size, StrideB: c.C * size}}
	return m.lower()
}

func (c *convolution) plane() int    { return c.OutH * c.OutW }
func (c *convolution) columns() int  { return c.N * c.plane() }              // places of the filter in all images
func (c *convolution) depth() int    { return c.C / c.Groups * c.KH * c.KW } // weights of a filter
func (c *convolution) channels() int { return c.OutC / c.Groups }            // filters of a group

// Until a group has so many filters, direct convolution has no more to do than a product whose tiles would be half empty.
const convFilters = 32

func (c *convolution) lower() error {
	var names []string
	var emit []func()
	add := func(name string, f func()) {
		names, emit = append(names, name), append(emit, f)
	}
	products := func() {
		t := convGemm
		blocks := c.Groups * ceilDiv(c.channels(), t.m) * ceilDiv(c.columns(), t.n)
		name := fmt.Sprintf("tile%dx%d", t.m, t.n)
		if n := splitsOf(c.step.caps.Multiprocessors, blocks, c.depth(), c.out.Len()); n > 1 {
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
	emit[c.choose("conv2d", problem, names)]()
	return nil
}

// Arguments that the kernels of conv2d have in common, from an element of their array sizes on.
const (
	convH = iota
	convW
	convStrideY
	convStrideX
	convPadY
	convPadX
	convDilationY
	convDilationX
	convInputs      // channels of an image
	convGroupInputs // of which a group has so many
	convOutputs     // channels of the result
	convGroupOutputs
	convColumns
	convKH                            // a divisor
	convKW    = convKH + divisorWords // likewise, as are those that follow
	convPlane = convKW + divisorWords
	convOutW  = convPlane + divisorWords
	convWords = convOutW + divisorWords

	convDoc = "height, width, strides down and across, padding above and left, dilations, channels of the input, of its " +
		"groups, of the result, of its groups, places of the filter in all images; as divisors the filter's height and width, " +
		"the result's " +
		"plane and width"
)

// geometry is the arguments with those numbers.
func (c *convolution) geometry() []uint32 {
	var sizes []uint32
	for _, n := range []int{c.H, c.W, c.Stride[0], c.Stride[1], c.Pad[0], c.Pad[1], c.Dilation[0], c.Dilation[1], c.C,
		c.C / c.Groups,
		c.OutC, c.channels(), c.columns()} {
		sizes = append(sizes, uint32(n))
	}
	for _, n := range []int{c.KH, c.KW, c.plane(), c.OutW} {
		sizes = append(sizes, divisorOf(n)...)
	}
	return sizes
}

// geometry reads them in a kernel.
type geometry struct {
	k     *ptx.Kernel
	sizes ptx.Array[uint32]
	first int // element of sizes
	group ptx.Reg[uint32]
}

func (g geometry) size(i int) ptx.Reg[uint32] { return g.sizes.At(g.k, g.first+i) }

func (g geometry) divisor(i int) divisor { return divisorAt(g.k, g.sizes, g.first+i) }

// outside is a coordinate that is outside of every plane, and stays so if a window's extent is added.
const outside = 0xc0000000

// window is where in the input the filter lies for a column of the result: at y, x of the plane that begins at element base of
// the input. y and x may wrap below zero; columns behind the last lie outside.
func (g geometry) window(column ptx.Reg[uint32]) (y, x, base ptx.Reg[uint32]) {
	k := g.k
	image, at := g.divisor(convPlane).split(k, column)
	oy, ox := g.divisor(convOutW).split(k, at)
	y = ptx.Sub(k, ptx.Mul(k, oy, g.size(convStrideY)), g.size(convPadY))
	x = ptx.Sub(k, ptx.Mul(k, ox, g.size(convStrideX)), g.size(convPadX))
	y = ptx.Select(k, ptx.Lt(k, column, g.size(convColumns)), y, ptx.Imm(uint32(outside)))
	channel := ptx.Mad(k, image, g.size(convInputs), ptx.Mul(k, g.group, g.size(convGroupInputs)))
	return y, x, ptx.Mul(k, channel, ptx.Mul(k, g.size(convH), g.size(convW)))
}

// place is the element of the result for a filter of the group and a column.
func (g geometry) place(filter, column ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := g.k
	plane := g.divisor(convPlane)
	image, at := plane.split(k, column)
	before := ptx.Mad(k, image, g.size(convOutputs), ptx.Mul(k, g.group, g.size(convGroupOutputs))) // channels
	return ptx.Mad(k, filter, plane.d, ptx.Mad(k, before, plane.d, at))
}

// at is where that element is for an epilogue: an image's plane has channels as rows.
func (g geometry) at(filter, column ptx.Reg[uint32]) site {
	k := g.k
	image, at := g.divisor(convPlane).split(k, column)
	return site{image, ptx.Mad(k, g.group, g.size(convGroupOutputs), filter), at}
}
