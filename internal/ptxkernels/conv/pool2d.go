package conv

import (
	"math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// MaxPool2D lowers the largest element of each window.
func MaxPool2D(s *kit.Step) error { return poolStep(s, maxPool) }

// AvgPool2D lowers the mean of each window.
func AvgPool2D(s *kit.Step) error { return poolStep(s, avgPool) }

// poolThreads of a block.
const poolThreads = 256

// Arguments in the array sizes of the pooling kernels.
const (
	poolTotal = iota // elements of the result
	poolH
	poolW
	poolWindowH
	poolWindowW
	poolStrideY
	poolStrideX
	poolPadY
	poolPadX
	poolAcross // log2 of the lanes that share a line of a window, and of those that share a window; 32 at most
	poolLanes
	poolOutH  // a divisor
	poolOutW  = poolOutH + scalar.DivisorWords
	poolWords = poolOutW + scalar.DivisorWords
)

// poolStep runs a kernel over planes of the last two axes.
func poolStep(s *kit.Step, k *kit.Kernel) error {
	d, err := catalogue.PoolShape(s.Operands[0].Shape, s.Attr.Options.(compute.PoolOptions))
	if err != nil {
		return err
	}
	total := d.N * d.OutH * d.OutW
	// A thread has a window to itself, unless that is large and few threads would have something to do.
	across, lanes := 0, 0
	if d.KH*d.KW >= 64 && total < 2048*s.Caps.Multiprocessors {
		lanes = 5
		across = min(lanes, bits.Len(uint(d.KW-1)))
	}
	sizes := []uint32{uint32(total), uint32(d.H), uint32(d.W), uint32(d.KH), uint32(d.KW), uint32(d.Stride[0]),
		uint32(d.Stride[1]),
		uint32(d.Pad[0]), uint32(d.Pad[1]), uint32(across), uint32(lanes)}
	sizes = append(append(sizes, scalar.DivisorOf(d.OutH)...), scalar.DivisorOf(d.OutW)...)
	s.Launch(k, [3]int{kit.CeilDiv(total, poolThreads>>lanes), 1, 1}, sizes, kit.In(0), kit.Out)
	return nil
}

const poolDoc = " of each window over planes of H × W; windows are never without elements. So many lanes share a window. " +
	"Parameters: u32 sizes[] (elements of the result, height, width, window height and width, strides down and across, " +
	"padding above and " +
	"left, log2 of the lanes that share a line of a window, log2 of the lanes of a window; as divisors the height and width " +
	"of the " +
	"result), f32* x, f32* y."

var maxPool = kit.Register(kit.Kernel{Family: "window", Name: "max_pool2d", Block: [3]int{poolThreads, 1, 1},
	Doc: "y = the largest element" + poolDoc,
	Build: func(k *ptx.Kernel) {
		p := newPooling(k)
		best := ptx.VarOf(k, p.first().Load())
		larger := func(x ptx.Reg[float32]) {
			take := x.Gt(best.Get()).Or(x.Ne(x)) // a NaN stays
			best.Set(ptx.Select(take, x, best.Get()))
		}
		p.lines(func() {}, larger, func() {})
		p.Finish(best, larger, best.Get)
	}})

var avgPool = kit.Register(kit.Kernel{Family: "window", Name: "avg_pool2d", Block: [3]int{poolThreads, 1, 1},
	Doc: "y = the mean of the elements" + poolDoc,
	Build: func(k *ptx.Kernel) {
		p := newPooling(k)
		sum, line := ptx.VarOf(k, ptx.Imm(float32(0))), ptx.NewVar[float32](k)
		p.lines(func() { line.Set(0) },
			func(x ptx.Reg[float32]) { line.Set(line.Get().Add(x)) },
			func() { sum.Set(sum.Get().Add(line.Get())) })
		p.Finish(sum, func(x ptx.Reg[float32]) { sum.Set(sum.Get().Add(x)) }, func() ptx.Reg[float32] {
			n := p.y1.Sub(p.y0).Mul(p.x1.Sub(p.x0))
			return sum.Get().Div(ptx.Convert[float32](n))
		})
	}})

// pooling is such a kernel under construction.
type pooling struct {
	k              *ptx.Kernel
	sizes          ptx.Array[uint32]
	y              ptx.Ptr[ptx.Global, float32]
	plane          ptx.Ptr[ptx.Global, float32]
	i              ptx.Reg[uint32] // element of the result
	y0, y1, x0, x1 ptx.Reg[uint32] // the part of the window that lies inside: never empty, as padding is at most half a window
	lane, lanes    ptx.Reg[uint32]
}

func newPooling(k *ptx.Kernel) *pooling {
	p := &pooling{k: k, sizes: ptx.ParamArray[uint32](k, "sizes", poolWords)}
	x := ptx.PointerParam[float32](k, "x")
	p.y = ptx.PointerParam[float32](k, "y")
	p.lanes = ptx.U32(1).Shl(p.size(poolLanes))
	p.lane = k.Tid(ptx.X).And(p.lanes.Sub(1))
	perBlock := ptx.U32(poolThreads).Shr(p.size(poolLanes))
	p.i = k.Ctaid(ptx.X).Mad(perBlock, k.Tid(ptx.X).Shr(p.size(poolLanes)))
	// Lanes with nothing to do compute the last element once more: all take part in shuffles.
	i := p.i.Min(p.size(poolTotal).Sub(1))
	i, ox := scalar.DivisorAt(k, p.sizes, poolOutW).Split(k, i)
	plane, oy := scalar.DivisorAt(k, p.sizes, poolOutH).Split(k, i)
	p.plane = x.At(plane.Mul(p.size(poolH).Mul(p.size(poolW))))
	p.y0, p.y1 = p.inside(oy, poolStrideY, poolPadY, poolWindowH, poolH)
	p.x0, p.x1 = p.inside(ox, poolStrideX, poolPadX, poolWindowW, poolW)
	return p
}

func (p *pooling) size(i int) ptx.Reg[uint32] { return p.sizes.At(i) }

// inside is the part of window o along an axis that lies inside.
func (p *pooling) inside(o ptx.Reg[uint32], stride, pad, window, size int) (first, end ptx.Reg[uint32]) {
	from := o.Mul(p.size(stride)) // in the padded plane
	first = from.Max(p.size(pad)).Sub(p.size(pad))
	end = from.Add(p.size(window)).Sub(p.size(pad)).Min(p.size(size))
	return first, end
}

// first points to the first element of the window.
func (p *pooling) first() ptx.Ptr[ptx.Global, float32] {
	return p.plane.At(p.y0.Mad(p.size(poolW), p.x0))
}

// lines calls begin, then each for the elements, then end, for every line that the lane has a part of.
func (p *pooling) lines(begin func(), each func(x ptx.Reg[float32]), end func()) {
	k := p.k
	across := ptx.U32(1).Shl(p.size(poolAcross))
	down := p.lanes.Shr(p.size(poolAcross))
	y0 := p.y0.Add(p.lane.Shr(p.size(poolAcross)))
	x0 := p.x0.Add(p.lane.And(across.Sub(1)))
	ptx.For(k, y0, p.y1, down, func(y ptx.Reg[uint32]) {
		begin()
		at := ptx.PtrVarOf(p.plane.At(y.Mad(p.size(poolW), x0)))
		ptx.For(k, x0, p.x1, across, func(ptx.Reg[uint32]) {
			each(at.Get().Load())
			at.Set(at.Get().At(across))
		})
		end()
	})
}

// Finish combines what the lanes of a window have, and stores the result.
func (p *pooling) Finish(v *ptx.Var[float32], combine func(x ptx.Reg[float32]), y func() ptx.Reg[float32]) {
	k := p.k
	for d := 16; d > 0; d /= 2 {
		k.If(p.lanes.Gt(d), func() {
			combine(v.Get().Shuffle(ptx.ShuffleXor, d, 32, ptx.FullWarp()))
		})
	}
	mine := p.lane.Eq(0).And(p.i.Lt(p.size(poolTotal)))
	k.If(mine, func() { p.y.At(p.i).Store(y()) })
}
