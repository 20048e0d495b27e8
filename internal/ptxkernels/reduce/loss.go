package reduce

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/softmax"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// backwardParams are those of softmax_backward.
type backwardParams struct {
	stageParams
	P, DY, DX kit.Buffer
}

// lossParams are those of cross_entropy, with Loss, and of its gradient, with dloss and dx.
type lossParams struct {
	stageParams
	Smoothing       float32
	Shift, Sequence int    // Shift is 1 if row i has target i+1; Sequence is the rows of one
	Ignore          int    // 1 if the next counts
	Ignored         uint32 // an int32
	X               kit.Buffer
	Targets         kit.Buffer   `of:"s32"`
	Loss            []kit.Buffer `names:"loss"`
	Gradient        []kit.Buffer `names:"dloss,dx"`
}

var (
	softmaxBackwardKernel = passKernel("softmax_backward", "p·(dy − Σp·dy) of rows.", func() (p backwardParams) { return p },
		func(at *backwardParams) *stageParams { return &at.stageParams }, softmaxBackward)
	crossEntropyKernel = lossKernel("cross_entropy", "log Σexp(x) − x[target] of rows, smoothed.",
		func() lossParams { return lossParams{Loss: make([]kit.Buffer, 1)} })
	crossEntropyBackwardKernel = lossKernel("cross_entropy_backward", "dloss·(softmax(x) − target's distribution) of rows.",
		func() lossParams { return lossParams{Gradient: make([]kit.Buffer, 2)} })
)

func lossKernel(name, doc string, params func() lossParams) *kit.Kernel {
	return passKernel(name, doc, params, func(at *lossParams) *stageParams { return &at.stageParams }, crossEntropy)
}

// SoftmaxBackward lowers the gradient of softmax.
func SoftmaxBackward(s *kit.Step) error {
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	passStep(s, softmaxBackwardKernel, rows, cols, 1, false, func(head stageParams) any {
		return backwardParams{head, kit.In(0), kit.In(1), kit.Out}
	})
	return nil
}

// CrossEntropy lowers the loss of each row.
func CrossEntropy(s *kit.Step) error {
	scores(s, crossEntropyKernel, lossParams{Loss: []kit.Buffer{kit.Out}})
	return nil
}

// CrossEntropyBackward lowers the gradient of the loss.
func CrossEntropyBackward(s *kit.Step) error {
	scores(s, crossEntropyBackwardKernel, lossParams{Gradient: []kit.Buffer{kit.In(2), kit.Out}})
	return nil
}

func scores(s *kit.Step, k *kit.Kernel, p lossParams) {
	o := s.Attr.Options.(compute.CrossEntropyOptions)
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	_, sequence := program.RowsCols(s.Operands[1].Shape)
	p.Smoothing, p.Shift, p.Sequence, p.Ignore = o.LabelSmoothing, int(kit.FlagIf(1, o.Shift)), sequence, int(kit.FlagIf(1, o.Ignore))
	p.Ignored, p.X, p.Targets = uint32(o.IgnoreIndex), kit.In(0), kit.In(1)
	passStep(s, k, rows, cols, 4, len(p.Loss) > 0, func(head stageParams) any {
		p.stageParams = head
		return p
	})
}

func softmaxBackward(t threadgroup.Group, at *backwardParams) pass {
	p, dy, dx := threadgroup.RowParam(t, &at.P), threadgroup.RowParam(t, &at.DY), threadgroup.RowParam(t, &at.DX)
	return pass{
		Accumulator: threadgroup.Sums[float32](1),
		partial: func(e threadgroup.Elements) []scalar.Float {
			x := e.Load(p, ptx.F32(0))
			for j, d := range e.Load(dy, ptx.F32(0)) {
				x[j] = x[j].Mul(d)
			}
			return []scalar.Float{scalar.SumOf(x)}
		},
		elements: func(all []scalar.Float, e threadgroup.Elements) {
			x, d := e.Load(p, ptx.F32(0)), e.Load(dy, ptx.F32(0))
			for j := range x {
				e.Store(j, dx, x[j].Mul(d[j].Sub(all[0])))
			}
		},
	}
}

// crossEntropy accumulates what softmax does of a row's logits, then their sum and the target's logit.
func crossEntropy(t threadgroup.Group, params *lossParams) pass {
	c, o := scalar.Math{K: t.K}, softmax.OfRows(t.K)
	smoothing := kit.Read(t.Params, &params.Smoothing)
	shift, sequence := t.U32(&params.Shift), t.U32(&params.Sequence)
	ignore, ignored := t.U32(&params.Ignore), kit.Read(t.Params, &params.Ignored)
	logits := threadgroup.RowParam(t, &params.X)
	targets := kit.Ptr[uint32](t.Params, &params.Targets)

	at := t.Row.Add(shift)
	last := shift.Ne(0).And(at.Rem(sequence.Max(1)).Eq(0))
	target := ptx.LoadIf(t.Active.And(last.Not()), targets.At(at), 0)
	skipped := last.Or(ignore.Ne(0).And(target.Eq(ignored)))
	known := target.Lt(t.Cols) // as unsigned numbers: negative ones are beyond
	// or is v where the row has a class; else 0, or NaN.
	or := func(v scalar.Float) scalar.Float {
		return c.Where(skipped, ptx.F32(0), c.Where(known, v, ptx.F32(math.NaN())))
	}

	each := c.Inverse(ptx.Convert[float32](t.Cols))
	p := pass{
		Accumulator: o.Accumulator().With(threadgroup.Sums[float32](2)),
		partial: func(e threadgroup.Elements) []scalar.Float {
			x := e.Load(logits, ptx.F32(math.Inf(-1)))
			var all, own []scalar.Float
			for j, v := range x {
				all = append(all, e.OrZero(j, v))
				own = append(own, c.Where(e.At[j].Eq(target), all[j], ptx.F32(0)))
			}
			return append(o.Of(x), scalar.SumOf(all), scalar.SumOf(own))
		},
	}
	if len(params.Loss) > 0 {
		loss := kit.Ptr[float32](t.Params, &params.Loss[0])
		p.row = func(all []scalar.Float) {
			v := ptx.F32(1).Sub(smoothing).Fma(all[3].Neg(), all[0])
			v = all[1].Lg2().Mul(math.Ln2).Add(v)
			smoothed := smoothing.Neg().Fma(all[2].Mul(each), v)
			v = c.Where(smoothing.Gt(0), smoothed, v)
			loss.At(t.Row).Store(or(v))
		}
		return p
	}
	dloss := ptx.LoadIf(t.Active, kit.Ptr[float32](t.Params, &params.Gradient[0]).At(t.Row), 0)
	dx := threadgroup.RowParam(t, &params.Gradient[1])
	p.elements = func(all []scalar.Float, e threadgroup.Elements) {
		scale := all[1].Rcp(ptx.Approx)
		elsewhere := smoothing.Mul(each)
		own := elsewhere.Add(ptx.F32(1).Sub(smoothing))
		for j, x := range e.Load(logits, ptx.F32(0)) {
			wanted := c.Where(e.At[j].Eq(target), own, elsewhere)
			v := dloss.Mul(o.Exp(x, all[0]).Mul(scale).Sub(wanted))
			e.Store(j, dx, or(v))
		}
	}
	return p
}
