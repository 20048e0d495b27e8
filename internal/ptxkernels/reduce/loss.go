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

var (
	softmaxBackwardKernel = passKernel("softmax_backward", "p·(dy − Σp·dy) of rows."+passDoc+"f32* p, dy, dx.", softmaxBackward)
	crossEntropyKernel    = passKernel("cross_entropy", "log Σexp(x) − x[target] of rows, smoothed."+passDoc+scoreDoc+"f32* loss, one per row.",
		func(t threadgroup.Group) pass { return crossEntropy(t, false) })
	crossEntropyBackwardKernel = passKernel("cross_entropy_backward", "dloss·(softmax(x) − target's distribution) of rows."+passDoc+scoreDoc+
		"f32* dloss, one per row; f32* dx.", func(t threadgroup.Group) pass { return crossEntropy(t, true) })
)

const scoreDoc = "f32 smoothing; u32 shift, 1 if row i has target i+1; u32 sequence, rows of one; u32 ignore, 1 if the next counts; " +
	"i32 ignored; f32* x; i32* targets; "

// SoftmaxBackward lowers the gradient of softmax.
func SoftmaxBackward(s *kit.Step) error {
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	passStep(s, softmaxBackwardKernel, rows, cols, 1, false, kit.In(0), kit.In(1), kit.Out)
	return nil
}

// CrossEntropy lowers the loss of each row.
func CrossEntropy(s *kit.Step) error {
	scores(s, crossEntropyKernel, true, kit.Out)
	return nil
}

// CrossEntropyBackward lowers the gradient of the loss.
func CrossEntropyBackward(s *kit.Step) error {
	scores(s, crossEntropyBackwardKernel, false, kit.In(2), kit.Out)
	return nil
}

func scores(s *kit.Step, k *kit.Kernel, perRow bool, more ...any) {
	o := s.Attr.Options.(compute.CrossEntropyOptions)
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	_, sequence := program.RowsCols(s.Operands[1].Shape)
	passStep(s, k, rows, cols, 4, perRow, append([]any{o.LabelSmoothing, kit.FlagIf(1, o.Shift), sequence, kit.FlagIf(1, o.Ignore),
		uint32(o.IgnoreIndex), kit.In(0), kit.In(1)}, more...)...)
}

func softmaxBackward(t threadgroup.Group) pass {
	p, dy, dx := threadgroup.RowParam(t, "p"), threadgroup.RowParam(t, "dy"), threadgroup.RowParam(t, "dx")
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
func crossEntropy(t threadgroup.Group, backward bool) pass {
	k, c, o := t.K, scalar.Math{K: t.K}, softmax.OfRows(t.K)
	smoothing := ptx.Param[float32](k, "smoothing")
	shift, sequence := ptx.Param[uint32](k, "shift"), ptx.Param[uint32](k, "sequence")
	ignore, ignored := ptx.Param[uint32](k, "ignore"), ptx.Param[uint32](k, "ignored")
	logits := threadgroup.RowParam(t, "x")
	targets := ptx.PointerParam[uint32](k, "targets")

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
	if !backward {
		loss := ptx.PointerParam[float32](k, "loss")
		p.row = func(all []scalar.Float) {
			v := ptx.F32(1).Sub(smoothing).Fma(all[3].Neg(), all[0])
			v = all[1].Lg2().Mul(math.Ln2).Add(v)
			smoothed := smoothing.Neg().Fma(all[2].Mul(each), v)
			v = c.Where(smoothing.Gt(0), smoothed, v)
			loss.At(t.Row).Store(or(v))
		}
		return p
	}
	dloss := ptx.LoadIf(t.Active, ptx.PointerParam[float32](k, "dloss").At(t.Row), 0)
	dx := threadgroup.RowParam(t, "dx")
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
