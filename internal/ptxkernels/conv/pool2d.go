package conv

import (
	"math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

func MaxPool2D(s *kit.Step) error { return poolStep(s, maxPool) }

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
		best := ptx.VarOf(k, ptx.Load(k, p.first()))
		larger := func(x ptx.Reg[float32]) {
			take := ptx.Or(k, ptx.Gt(k, x, best.Get()), ptx.Ne(k, x, x)) // a NaN stays
			best.Set(ptx.Select(k, take, x, best.Get()))
		}
		p.lines(func() {}, larger, func() {})
		p.Finish(best, larger, best.Get)
	}})

var avgPool = kit.Register(kit.Kernel{Family: "window", Name: "avg_pool2d", Block: [3]int{poolThreads, 1, 1},
	Doc: "y = the mean of the elements" + poolDoc,
	Build: func(k *ptx.Kernel) {
		p := newPooling(k)
		sum, line := ptx.VarOf(k, ptx.Imm(float32(0))), ptx.NewVar[float32](k)
		p.lines(func() { line.Set(ptx.Imm(float32(0))) },
			func(x ptx.Reg[float32]) { line.Set(ptx.Add(k, line.Get(), x)) },
			func() { sum.Set(ptx.Add(k, sum.Get(), line.Get())) })
		p.Finish(sum, func(x ptx.Reg[float32]) { sum.Set(ptx.Add(k, sum.Get(), x)) }, func() ptx.Reg[float32] {
			n := ptx.Mul(k, ptx.Sub(k, p.y1, p.y0), ptx.Sub(k, p.x1, p.x0))
			return ptx.Div(k, sum.Get(), ptx.Convert[float32](k, n))
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
	p.lanes = ptx.Shl(k, scalar.U32(1), p.size(poolLanes))
	p.lane = ptx.And(k, k.Tid(ptx.X), ptx.Sub(k, p.lanes, scalar.U32(1)))
	perBlock := ptx.Shr(k, scalar.U32(poolThreads), p.size(poolLanes))
	p.i = ptx.Mad(k, k.Ctaid(ptx.X), perBlock, ptx.Shr(k, k.Tid(ptx.X), p.size(poolLanes)))
	// Lanes with nothing to do compute the last element once more: all take part in shuffles.
	i := ptx.Min(k, p.i, ptx.Sub(k, p.size(poolTotal), scalar.U32(1)))
	i, ox := scalar.DivisorAt(k, p.sizes, poolOutW).Split(k, i)
	plane, oy := scalar.DivisorAt(k, p.sizes, poolOutH).Split(k, i)
	p.plane = ptx.At(k, x, ptx.Mul(k, plane, ptx.Mul(k, p.size(poolH), p.size(poolW))))
	p.y0, p.y1 = p.inside(oy, poolStrideY, poolPadY, poolWindowH, poolH)
	p.x0, p.x1 = p.inside(ox, poolStrideX, poolPadX, poolWindowW, poolW)
	return p
}

func (p *pooling) size(i int) ptx.Reg[uint32] { return p.sizes.At(p.k, i) }

// inside is the part of window o along an axis that lies inside.
func (p *pooling) inside(o ptx.Reg[uint32], stride, pad, window, size int) (first, end ptx.Reg[uint32]) {
	k := p.k
	from := ptx.Mul(k, o, p.size(stride)) // in the padded plane
	first = ptx.Sub(k, ptx.Max(k, from, p.size(pad)), p.size(pad))
	end = ptx.Min(k, ptx.Sub(k, ptx.Add(k, from, p.size(window)), p.size(pad)), p.size(size))
	return first, end
}

// first points to the first element of the window.
func (p *pooling) first() ptx.Ptr[ptx.Global, float32] {
	return ptx.At(p.k, p.plane, ptx.Mad(p.k, p.y0, p.size(poolW), p.x0))
}

// lines calls begin, then each for the elements, then end, for every line that the lane has a part of.
func (p *pooling) lines(begin func(), each func(x ptx.Reg[float32]), end func()) {
	k := p.k
	across := ptx.Shl(k, scalar.U32(1), p.size(poolAcross))
	down := ptx.Shr(k, p.lanes, p.size(poolAcross))
	y0 := ptx.Add(k, p.y0, ptx.Shr(k, p.lane, p.size(poolAcross)))
	x0 := ptx.Add(k, p.x0, ptx.And(k, p.lane, ptx.Sub(k, across, scalar.U32(1))))
	ptx.For(k, y0, p.y1, down, func(y ptx.Reg[uint32]) {
		begin()
		at := ptx.PtrVarOf(k, ptx.At(k, p.plane, ptx.Mad(k, y, p.size(poolW), x0)))
		ptx.For(k, x0, p.x1, across, func(ptx.Reg[uint32]) {
			each(ptx.Load(k, at.Get()))
			at.Set(ptx.At(k, at.Get(), across))
		})
		end()
	})
}

// Finish combines what the lanes of a window have, and stores the result.
func (p *pooling) Finish(v *ptx.Var[float32], combine func(x ptx.Reg[float32]), y func() ptx.Reg[float32]) {
	k := p.k
	for d := 16; d > 0; d /= 2 {
		k.If(ptx.Gt(k, p.lanes, scalar.U32(d)), func() {
			combine(ptx.Shuffle(k, ptx.ShuffleXor, v.Get(), scalar.U32(d), 32, ptx.FullWarp()))
		})
	}
	mine := ptx.And(k, ptx.Eq(k, p.lane, scalar.U32(0)), ptx.Lt(k, p.i, p.size(poolTotal)))
	k.If(mine, func() { ptx.Store(k, ptx.At(k, p.y, p.i), y()) })
}
