package lower

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx"
)

var (
	softmaxBackwardKernel = passKernel("softmax_backward", "p·(dy − Σp·dy) of rows."+passDoc+"f32* p, dy, dx.", softmaxBackward)
	crossEntropyKernel    = passKernel("cross_entropy", "log Σexp(x) − x[target] of rows, smoothed."+passDoc+scoreDoc+"f32* loss, one per row.",
		func(t team) pass { return crossEntropy(t, false) })
	crossEntropyBackwardKernel = passKernel("cross_entropy_backward", "dloss·(softmax(x) − target's distribution) of rows."+passDoc+scoreDoc+
		"f32* dloss, one per row; f32* dx.", func(t team) pass { return crossEntropy(t, true) })
)

const scoreDoc = "f32 smoothing; u32 shift, 1 if row i has target i+1; u32 sequence, rows of one; u32 ignore, 1 if the next counts; " +
	"i32 ignored; f32* x; i32* targets; "

func SoftmaxBackward(s *step) error {
	rows, cols := program.RowsCols(s.in[0].Shape)
	passStep(s, softmaxBackwardKernel, rows, cols, 1, false, operand(0), operand(1), result)
	return nil
}

func CrossEntropy(s *step) error {
	scores(s, crossEntropyKernel, true, result)
	return nil
}

func CrossEntropyBackward(s *step) error {
	scores(s, crossEntropyBackwardKernel, false, operand(2), result)
	return nil
}

func scores(s *step, k *Kernel, perRow bool, more ...any) {
	o := s.Attr.Options.(compute.CrossEntropyOptions)
	rows, cols := program.RowsCols(s.in[0].Shape)
	_, sequence := program.RowsCols(s.in[1].Shape)
	flag := func(b bool) uint32 {
		if b {
			return 1
		}
		return 0
	}
	passStep(s, k, rows, cols, 4, perRow, append([]any{o.LabelSmoothing, flag(o.Shift), sequence, flag(o.Ignore), uint32(o.IgnoreIndex),
		operand(0), operand(1)}, more...)...)
}

func softmaxBackward(t team) pass {
	k, c := t.k, calc{t.k}
	p := rowOf(t, ptx.PointerParam[float32](k, "p"))
	dy := rowOf(t, ptx.PointerParam[float32](k, "dy"))
	dx := rowOf(t, ptx.PointerParam[float32](k, "dx"))
	return pass{
		empty: []float32{0},
		merge: func(a, b []float) []float { return []float{c.add(a[0], b[0])} },
		take: func(b columns) []float {
			x := b.load(p, num(0))
			for j, d := range b.load(dy, num(0)) {
				x[j] = c.mul(x[j], d)
			}
			return []float{sumOf(c, x)}
		},
		elements: func(all []float, b columns) {
			x, d := b.load(p, num(0)), b.load(dy, num(0))
			for j := range x {
				b.store(j, dx, c.mul(x[j], c.sub(d[j], all[0])))
			}
		},
	}
}

// crossEntropy gathers the largest logit m of a row, at least −FLT_MAX, Σexp(x − m), Σx and the target's logit; see exponentials.
func crossEntropy(t team, backward bool) pass {
	k, c := t.k, calc{t.k}
	smoothing := ptx.Param[float32](k, "smoothing")
	shift, sequence := ptx.Param[uint32](k, "shift"), ptx.Param[uint32](k, "sequence")
	ignore, ignored := ptx.Param[uint32](k, "ignore"), ptx.Param[uint32](k, "ignored")
	logits := rowOf(t, ptx.PointerParam[float32](k, "x"))
	targets := ptx.PointerParam[uint32](k, "targets")

	at := ptx.Add(k, t.row, shift)
	last := ptx.And(k, ptx.Ne(k, shift, u32(0)), ptx.Eq(k, ptx.Rem(k, at, ptx.Max(k, sequence, u32(1))), u32(0)))
	target := ptx.LoadIf(k, ptx.And(k, t.active, ptx.Not(k, last)), ptx.At(k, targets, at), u32(0))
	skipped := ptx.Or(k, last, ptx.And(k, ptx.Ne(k, ignore, u32(0)), ptx.Eq(k, target, ignored)))
	known := ptx.Lt(k, target, t.cols) // as unsigned numbers: negative ones are beyond
	// or is v where the row has a class; else 0, or NaN.
	or := func(v float) float {
		return c.where(skipped, num(0), c.where(known, v, num(math.NaN())))
	}

	exp := func(x, m float) float { return c.smallExp2(c.mul(ptx.Sub(k, x, m), num(math.Log2E))) }
	each := c.inverse(ptx.Convert[float32](k, t.cols))
	p := pass{
		empty: []float32{-math.MaxFloat32, 0, 0, 0},
		merge: func(a, b []float) []float {
			m := ptx.Max(k, a[0], b[0])
			return []float{m, c.fma(a[1], exp(a[0], m), c.mul(b[1], exp(b[0], m))), c.add(a[2], b[2]), c.add(a[3], b[3])}
		},
		take: func(b columns) []float {
			x := b.load(logits, num(math.Inf(-1)))
			m := num(-math.MaxFloat32)
			for _, v := range x {
				m = ptx.Max(k, v, m)
			}
			var terms, all, own []float
			for j, v := range x {
				terms = append(terms, exp(v, m))
				all = append(all, b.orZero(j, v))
				own = append(own, c.where(ptx.Eq(k, b.at[j], target), all[j], num(0)))
			}
			return []float{m, sumOf(c, terms), sumOf(c, all), sumOf(c, own)}
		},
	}
	if !backward {
		loss := ptx.PointerParam[float32](k, "loss")
		p.row = func(all []float) {
			v := c.fma(c.sub(num(1), smoothing), c.neg(all[3]), all[0])
			v = c.add(c.mul(ptx.Lg2(k, all[1]), num(math.Ln2)), v)
			smoothed := c.fma(c.neg(smoothing), c.mul(all[2], each), v)
			v = c.where(ptx.Gt(k, smoothing, num(0)), smoothed, v)
			ptx.Store(k, ptx.At(k, loss, t.row), or(v))
		}
		return p
	}
	dloss := ptx.LoadIf(k, t.active, ptx.At(k, ptx.PointerParam[float32](k, "dloss"), t.row), num(0))
	dx := rowOf(t, ptx.PointerParam[float32](k, "dx"))
	p.elements = func(all []float, b columns) {
		scale := ptx.Rcp(k, all[1], ptx.Approx)
		elsewhere := c.mul(smoothing, each)
		own := c.add(elsewhere, c.sub(num(1), smoothing))
		for j, x := range b.load(logits, num(0)) {
			wanted := c.where(ptx.Eq(k, b.at[j], target), own, elsewhere)
			v := c.mul(dloss, c.sub(c.mul(exp(x, all[0]), scale), wanted))
			b.store(j, dx, or(v))
		}
	}
	return p
}
