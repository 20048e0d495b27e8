package reduce

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
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
	flag := func(b bool) uint32 {
		if b {
			return 1
		}
		return 0
	}
	passStep(s, k, rows, cols, 4, perRow, append([]any{o.LabelSmoothing, flag(o.Shift), sequence, flag(o.Ignore), uint32(o.IgnoreIndex),
		kit.In(0), kit.In(1)}, more...)...)
}

func softmaxBackward(t threadgroup.Group) pass {
	k, c := t.K, scalar.Math{K: t.K}
	p := threadgroup.RowOf(t, ptx.PointerParam[float32](k, "p"))
	dy := threadgroup.RowOf(t, ptx.PointerParam[float32](k, "dy"))
	dx := threadgroup.RowOf(t, ptx.PointerParam[float32](k, "dx"))
	return pass{
		empty: []float32{0},
		merge: func(a, b []scalar.Float) []scalar.Float { return []scalar.Float{a[0].Add(b[0])} },
		take: func(b columns) []scalar.Float {
			x := b.Load(p, ptx.F32(0))
			for j, d := range b.Load(dy, ptx.F32(0)) {
				x[j] = x[j].Mul(d)
			}
			return []scalar.Float{scalar.SumOf(c, x)}
		},
		elements: func(all []scalar.Float, b columns) {
			x, d := b.Load(p, ptx.F32(0)), b.Load(dy, ptx.F32(0))
			for j := range x {
				b.store(j, dx, x[j].Mul(d[j].Sub(all[0])))
			}
		},
	}
}

// crossEntropy gathers the largest logit m of a row, at least −FLT_MAX, Σexp(x − m), Σx and the target's logit; see exponentials.
func crossEntropy(t threadgroup.Group, backward bool) pass {
	k, c := t.K, scalar.Math{K: t.K}
	smoothing := ptx.Param[float32](k, "smoothing")
	shift, sequence := ptx.Param[uint32](k, "shift"), ptx.Param[uint32](k, "sequence")
	ignore, ignored := ptx.Param[uint32](k, "ignore"), ptx.Param[uint32](k, "ignored")
	logits := threadgroup.RowOf(t, ptx.PointerParam[float32](k, "x"))
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

	exp := func(x, m scalar.Float) scalar.Float {
		return c.SmallExp2(x.Sub(m).Mul(math.Log2E))
	}
	each := c.Inverse(ptx.Convert[float32](t.Cols))
	p := pass{
		empty: []float32{-math.MaxFloat32, 0, 0, 0},
		merge: func(a, b []scalar.Float) []scalar.Float {
			m := a[0].Max(b[0])
			return []scalar.Float{m, a[1].Fma(exp(a[0], m), b[1].Mul(exp(b[0], m))), a[2].Add(b[2]), a[3].Add(b[3])}
		},
		take: func(b columns) []scalar.Float {
			x := b.Load(logits, ptx.F32(math.Inf(-1)))
			m := ptx.F32(-math.MaxFloat32)
			for _, v := range x {
				m = v.Max(m)
			}
			var terms, all, own []scalar.Float
			for j, v := range x {
				terms = append(terms, exp(v, m))
				all = append(all, b.orZero(j, v))
				own = append(own, c.Where(b.at[j].Eq(target), all[j], ptx.F32(0)))
			}
			return []scalar.Float{m, scalar.SumOf(c, terms), scalar.SumOf(c, all), scalar.SumOf(c, own)}
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
	dx := threadgroup.RowOf(t, ptx.PointerParam[float32](k, "dx"))
	p.elements = func(all []scalar.Float, b columns) {
		scale := all[1].Rcp(ptx.Approx)
		elsewhere := smoothing.Mul(each)
		own := elsewhere.Add(ptx.F32(1).Sub(smoothing))
		for j, x := range b.Load(logits, ptx.F32(0)) {
			wanted := c.Where(b.at[j].Eq(target), own, elsewhere)
			v := dloss.Mul(exp(x, all[0]).Mul(scale).Sub(wanted))
			b.store(j, dx, or(v))
		}
	}
	return p
}
