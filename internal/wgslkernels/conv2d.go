package wgslkernels

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// conv2D is the code of [catalogue.Conv2D].
func conv2D(s *step) error {
	d, err := catalogue.ConvShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Attr.Options.(compute.Conv2DOptions))
	if err != nil {
		return err
	}
	return s.convolve(d, 2)
}

// conv1D is the code of [catalogue.Conv1D], of planes of one line.
func conv1D(s *step) error {
	d, err := catalogue.Conv1DShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Attr.Options.(compute.Conv1DOptions))
	if err != nil {
		return err
	}
	return s.convolve(d, 1)
}

// convolution describes one specialisation of conv2d.wgsl or, sliding, conv2d_slide.wgsl: an invocation computes channels ×
// pixels outputs.
type convolution struct {
	convBlock
	Lanes  int
	Padded bool
	Resume bool // add to what an earlier dispatch has left in the result
	finish epilogue
}

// Vectors is the number of vectors of four that hold the sums of one channel.
func (c convolution) Vectors() int { return c.Pixels / 4 }

// field has what templates take of the methods.
func (c convolution) field(name string) any {
	if name == "Vectors" {
		return c.Vectors()
	}
	return nil
}

func (c convolution) kernel() *wgsl.Kernel {
	key := fmt.Sprintf("conv2d/%s/%d/%v/%v/%s", c.convBlock, c.Lanes, c.Padded, c.Resume, c.finish.key())
	return cached(key, func() *wgsl.Kernel {
		k := &wgsl.Kernel{Bindings: make([]wgsl.Access, 2+len(c.finish.reaches), 3+len(c.finish.reaches)), // all Read
			Uniform: roundUniform(23 + len(c.finish.words())), Workgroup: [3]uint32{uint32(c.Lanes), 1, 1}}
		k.Bindings = append(k.Bindings, wgsl.ReadWrite)
		file := "conv2d.wgsl"
		if c.Slide {
			file = "conv2d_slide.wgsl"
		}
		k.Source = render(file, struct {
			convolution
			Finish finishText
			Result int // binding
		}{c, c.finish.text(2, 0, false, "row", "col"), len(k.Bindings) - 1})
		return k
	})
}

// convBlock is a variant: the more channels and pixels an invocation has, the more it does with what it reads. Sliding reads
// less, but neighbouring invocations do not read side by side. The first that fits a problem is its default.
type convBlock struct {
	Slide            bool
	Channels, Pixels int
}

func (b convBlock) String() string {
	if b.Slide {
		return fmt.Sprintf("slide%dx%d", b.Channels, b.Pixels)
	}
	return fmt.Sprintf("block%dx%d", b.Channels, b.Pixels)
}

var convBlocks = []convBlock{
	{false, 4, 4}, {true, 1, 8}, {false, 1, 4}, {false, 1, 8}, {false, 4, 8}, {false, 8, 8}, {true, 4, 8}, {true, 8, 8},
}

// convolve lowers a convolution with its bias and activation; planes are the last axes of the result.
func (s *step) convolve(d catalogue.ConvDims, axes int) error {
	var bias []program.Type
	if len(s.Operands) == 3 {
		bias = append(bias, program.F32(append([]int{d.OutC}, slices.Repeat([]int{1}, axes)...)...))
	}
	finish, err := s.finishing(s.biased(bias...), axes)
	if err != nil {
		return err
	}
	if d.KH == 1 && d.KW == 1 && d.Pad == [2]int{} && d.Stride == [2]int{1, 1} && d.Groups == 1 {
		return s.pointwise(d, finish)
	}
	image, produced := d.C*d.H*d.W, d.OutC*d.OutH*d.OutW
	images, err := s.planes(d.N, image, produced, "an image", "convolve bands of its rows")
	if err != nil {
		return err
	}
	if weights := s.Operands[1].Len(); wgsl.BufferSize(4*weights) > s.caps.MaxBinding {
		return s.tooLarge("weights", weights, "convolve groups of output channels")
	}
	c := convolution{convBlock: s.convBlock(d), Lanes: min(s.workgroup(), 64), Padded: d.Pad != [2]int{}}
	tiles, blocks := ceilDiv(d.OutH*d.OutW, c.Lanes*c.Pixels), ceilDiv(d.OutC/d.Groups, c.Channels)
	if c.Slide {
		tiles = ceilDiv(d.OutH*ceilDiv(d.OutW, c.Pixels), c.Lanes)
	}
	rows := d.C / d.Groups * d.KH // of a filter, all its channels together
	some := loopBudget / (d.KW + 2)
	if some == 0 {
		return fmt.Errorf("a row of the filter has %d elements, a loop of a kernel may go round %d times: convolve with parts of at most %d elements "+
			"and add the results: %w", d.KW, loopBudget, loopBudget-2, compute.ErrTooLarge)
	}
	for n := 0; n < d.N; n += images {
		count := min(images, d.N-n)
		x, x0 := s.window(operand(0), n*image, count*image)
		y, y0 := s.window(result, n*produced, count*produced)
		total := count * d.Groups * blocks * tiles
		for first := 0; first == 0 || first < rows; first += some {
			last := min(first+some, rows)
			bind := []Buffer{x, operand(1)}
			c.Resume = first > 0
			if last == rows {
				c.finish = finish
			}
			bind = append(bind, c.finish.bindings(y)...)
			params := words(d.H, d.W, d.OutH, d.OutW, d.KH, d.KW, d.Stride[0], d.Stride[1], d.Pad[0], d.Pad[1], d.Dilation[0],
				d.Dilation[1], d.C/d.Groups, d.OutC/d.Groups, d.Groups, total, tiles, blocks, x0, y0, first, last, infBits)
			s.dispatch(c.kernel(), s.linear(total), append(params, c.finish.words()...), append(bind, y)...)
		}
		c.finish = epilogue{}
	}
	return nil
}

// convBlock chooses among the blocks that are not wider than a group has channels.
func (s *step) convBlock(d catalogue.ConvDims) convBlock {
	var names []string
	var blocks []convBlock
	for _, b := range convBlocks {
		wide := b.Channels >= 2*d.OutC/d.Groups && b.Channels > 1
		if !wide && (!b.Slide || d.Stride[1] == 1 && d.Dilation[1] == 1) {
			blocks = append(blocks, b)
			names = append(names, b.String())
		}
	}
	problem := fmt.Sprintf("%d*%d of %dx%d, %dx%dx%d, %d groups, stride %d, padded %v", d.N, d.OutC, d.OutH, d.OutW,
		d.C, d.KH, d.KW, d.Groups, d.Stride, d.Pad != [2]int{})
	return blocks[s.Choose("conv2d", problem, names)]
}

// pointwise is a filter of one element: for each image the product of the weights [o c] and the planes [c h·w].
func (s *step) pointwise(d catalogue.ConvDims, finish epilogue) error {
	size := d.H * d.W
	m := matmul{step: s, a: operand(1), b: operand(0), c: result, product: product{finish: finish},
		MatMulDims: catalogue.MatMulDims{Batch: d.N, M: d.OutC, K: d.C, N: size, StrideB: d.C * size}}
	return m.lower()
}

// planes returns how many of n successive pieces, given the elements that each reads and writes, one dispatch may bind.
func (s *step) planes(n, read, written int, what, wayOut string) (int, error) {
	elements := max(read, written, 1)
	if wgsl.BufferSize(4*elements*n) <= s.caps.MaxBinding {
		return n, nil
	}
	fit := (int(s.caps.MaxBinding) - s.align()) / 4 / elements
	if fit == 0 {
		return 0, s.tooLarge(what+", aligned,", elements+s.align()/4, wayOut)
	}
	return fit, nil
}

// words are integers as the contents of a uniform.
func words(v ...int) []uint32 {
	w := make([]uint32, len(v))
	for i := range v {
		w[i] = uint32(v[i])
	}
	return w
}
