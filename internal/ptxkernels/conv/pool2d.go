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

// poolParams are those of the pooling kernels.
type poolParams struct {
	Total            int `array:"sizes"` // elements of the result
	H, W             int
	WindowH, WindowW int
	StrideY, StrideX int
	PadY, PadX       int // above and left
	Across, Lanes    int // log2 of the lanes that share a line of a window, and of those that share a window; 32 at most
	OutH, OutW       scalar.Divide
	X, Y             kit.Buffer
}

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
	s.Launch(k, [3]int{kit.CeilDiv(total, poolThreads>>lanes), 1, 1}, poolParams{Total: total, H: d.H, W: d.W, WindowH: d.KH, WindowW: d.KW,
		StrideY: d.Stride[0], StrideX: d.Stride[1], PadY: d.Pad[0], PadX: d.Pad[1], Across: across, Lanes: lanes,
		OutH: scalar.Divide(d.OutH), OutW: scalar.Divide(d.OutW), X: kit.In(0), Y: kit.Out})
	return nil
}

const poolDoc = " of each window over planes of H × W; windows are never without elements. So many lanes share a window."

var maxPool = kit.Register(kit.Kernel{Family: "window", Name: "max_pool2d", Block: [3]int{poolThreads, 1, 1},
	Doc: "y = the largest element" + poolDoc, Params: poolParams{},
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
	Doc: "y = the mean of the elements" + poolDoc, Params: poolParams{},
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
	*kit.Params
	poolParams
	k              *ptx.Kernel
	y              ptx.Ptr[ptx.Global, float32]
	plane          ptx.Ptr[ptx.Global, float32]
	i              ptx.Reg[uint32] // element of the result
	y0, y1, x0, x1 ptx.Reg[uint32] // the part of the window that lies inside: never empty, as padding is at most half a window
	lane, lanes    ptx.Reg[uint32]
}

func newPooling(k *ptx.Kernel) *pooling {
	p := &pooling{k: k}
	p.Params = kit.NewParams(k, &p.poolParams)
	x := kit.Ptr[float32](p.Params, &p.X)
	p.y = kit.Ptr[float32](p.Params, &p.Y)
	p.lanes = ptx.U32(1).Shl(p.U32(&p.Lanes))
	p.lane = k.Tid(ptx.X).And(p.lanes.Sub(1))
	perBlock := ptx.U32(poolThreads).Shr(p.U32(&p.Lanes))
	p.i = k.Ctaid(ptx.X).Mad(perBlock, k.Tid(ptx.X).Shr(p.U32(&p.Lanes)))
	// Lanes with nothing to do compute the last element once more: all take part in shuffles.
	i := p.i.Min(p.U32(&p.Total).Sub(1))
	i, ox := p.Divisor(&p.OutW).Split(k, i)
	plane, oy := p.Divisor(&p.OutH).Split(k, i)
	p.plane = x.At(plane.Mul(p.U32(&p.H).Mul(p.U32(&p.W))))
	p.y0, p.y1 = p.inside(oy, &p.StrideY, &p.PadY, &p.WindowH, &p.H)
	p.x0, p.x1 = p.inside(ox, &p.StrideX, &p.PadX, &p.WindowW, &p.W)
	return p
}

// inside is the part of window o along an axis that lies inside.
func (p *pooling) inside(o ptx.Reg[uint32], stride, pad, window, size *int) (first, end ptx.Reg[uint32]) {
	from := o.Mul(p.U32(stride)) // in the padded plane
	first = from.Max(p.U32(pad)).Sub(p.U32(pad))
	end = from.Add(p.U32(window)).Sub(p.U32(pad)).Min(p.U32(size))
	return first, end
}

// first points to the first element of the window.
func (p *pooling) first() ptx.Ptr[ptx.Global, float32] {
	return p.plane.At(p.y0.Mad(p.U32(&p.W), p.x0))
}

// lines calls begin, then each for the elements, then end, for every line that the lane has a part of.
func (p *pooling) lines(begin func(), each func(x ptx.Reg[float32]), end func()) {
	k := p.k
	across := ptx.U32(1).Shl(p.U32(&p.Across))
	down := p.lanes.Shr(p.U32(&p.Across))
	y0 := p.y0.Add(p.lane.Shr(p.U32(&p.Across)))
	x0 := p.x0.Add(p.lane.And(across.Sub(1)))
	ptx.For(k, y0, p.y1, down, func(y ptx.Reg[uint32]) {
		begin()
		at := ptx.PtrVarOf(p.plane.At(y.Mad(p.U32(&p.W), x0)))
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
	mine := p.lane.Eq(0).And(p.i.Lt(p.U32(&p.Total)))
	k.If(mine, func() { p.y.At(p.i).Store(y()) })
}
