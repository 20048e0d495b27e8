package cpu

import (
	"math"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// rowPass accumulates over each row, block by block, and then finishes the row.
type rowPass[S any] struct {
	rows, cols int
	ns         float64 // of an element
	gather     func(a *args, row, lo, hi int) S
	merge      func(x, y S) S
	// One of these: the row's result, or that of its elements lo to hi, of which s is what the whole row gave.
	row   func(a *args, row int, s S)
	write func(a *args, row, lo, hi int, s S)
}

func (p rowPass[S]) work() work {
	size := engine.BlockLen()
	perRow := max(1, engine.CeilDiv(p.cols, size))
	if perRow == 1 {
		return one(p.rows, 30+p.ns*float64(p.cols), func(a *args, lo, hi int) {
			for r := lo; r < hi; r++ {
				if s := p.gather(a, r, 0, p.cols); p.row != nil {
					p.row(a, r, s)
				} else {
					p.write(a, r, 0, p.cols, s)
				}
			}
		})
	}
	units := p.rows * perRow
	states := func(a *args) []S { return cells[S](a.scratch, units+p.rows) } // of blocks, then of rows
	w := work{scratch: (units + p.rows) * int(unsafe.Sizeof(*new(S))), phases: []phase{
		{units: units, ns: p.ns * float64(size), do: func(a *args, lo, hi int) {
			for u := lo; u < hi; u++ {
				from := u % perRow * size
				states(a)[u] = p.gather(a, u/perRow, from, min(from+size, p.cols))
			}
		}},
		{units: p.rows, ns: 20 * float64(perRow), do: func(a *args, lo, hi int) {
			s := states(a)
			for r := lo; r < hi; r++ {
				all := s[r*perRow]
				for _, t := range s[r*perRow+1 : (r+1)*perRow] {
					all = p.merge(all, t)
				}
				if s[units+r] = all; p.row != nil {
					p.row(a, r, all)
				}
			}
		}},
	}}
	if p.write != nil {
		w.phases = append(w.phases, phase{units: units, ns: p.ns * float64(size), do: func(a *args, lo, hi int) {
			for u := lo; u < hi; u++ {
				from := u % perRow * size
				p.write(a, u/perRow, from, min(from+size, p.cols), states(a)[units+u/perRow])
			}
		}})
	}
	return w
}

func softmaxBackward(c *call) work {
	rows, cols := program.RowsCols(c.in[0].Shape)
	part := func(a *args, i, row, lo, hi int) []float32 { return a.in[i].f32()[row*cols+lo : row*cols+hi] }
	return rowPass[float64]{rows: rows, cols: cols, ns: engine.DotFold.Cost.Ns(), merge: engine.Add64,
		gather: func(a *args, row, lo, hi int) float64 {
			return float64(kernels.Dot(part(a, 0, row, lo, hi), part(a, 1, row, lo, hi)))
		},
		write: func(a *args, row, lo, hi int, s float64) {
			dx := a.out.f32()[row*cols+lo : row*cols+hi]
			kernels.AddScalar(dx, part(a, 1, row, lo, hi), float32(-s))
			kernels.Mul(dx, dx, part(a, 0, row, lo, hi))
		}}.work()
}

// scored is a row of logits, with its target.
type scored struct {
	compute.CrossEntropyOptions
	rows, classes, sequence int
}

func scoredRows(c *call) scored {
	s := scored{CrossEntropyOptions: c.attr.Options.(compute.CrossEntropyOptions)}
	s.rows, s.classes = program.RowsCols(c.in[0].Shape)
	_, s.sequence = program.RowsCols(c.in[1].Shape)
	return s
}

// target is the class of a row; ok tells that there is one. Otherwise nan tells whether its result is NaN or 0.
func (s *scored) target(a *args, row int) (class int, ok, nan bool) {
	if s.Shift {
		if row++; row%s.sequence == 0 {
			return 0, false, false
		}
	}
	t := a.in[1].i32()[row]
	if s.Ignore && t == s.IgnoreIndex {
		return 0, false, false
	}
	ok = 0 <= t && int(t) < s.classes
	return int(t), ok, !ok
}

// logits holds statistics of a row of logits: the largest, Σexp(x − max) and, for label smoothing, Σx.
type logits struct {
	engine.ShiftedSum
	sum float64
}

func (x logits) Plus(y logits) logits { return logits{x.ShiftedSum.Plus(y.ShiftedSum), x.sum + y.sum} }

func (s *scored) gather(a *args, row, lo, hi int) (l logits) {
	if _, ok, _ := s.target(a, row); !ok {
		return l
	}
	x := a.in[0].f32()[row*s.classes+lo : row*s.classes+hi]
	l.Max = math.Inf(-1)
	if m := kernels.Max(x); !math.IsInf(float64(m), -1) {
		l.ShiftedSum = engine.ShiftedSum{Max: float64(m), Sum: float64(kernels.SumExpSub(x, m))}
	}
	if s.LabelSmoothing > 0 {
		l.sum = float64(kernels.Sum(x))
	}
	return l
}

func crossEntropy(c *call) work {
	s := scoredRows(c)
	return rowPass[logits]{rows: s.rows, cols: s.classes, ns: engine.LogSoftmaxRow.Cost.Ns(), merge: logits.Plus, gather: s.gather,
		row: func(a *args, row int, l logits) {
			target, ok, nan := s.target(a, row)
			loss := &a.out.f32()[row]
			switch {
			case ok:
				e := float64(s.LabelSmoothing)
				v := math.Log(l.ShiftedSum.Sum) + (l.Max - (1-e)*float64(a.in[0].f32()[row*s.classes+target]))
				if e > 0 {
					v -= e * l.sum / float64(s.classes)
				}
				*loss = float32(v)
			case nan:
				*loss = float32(math.NaN())
			default:
				*loss = 0
			}
		}}.work()
}

func crossEntropyBackward(c *call) work {
	s := scoredRows(c)
	return rowPass[logits]{rows: s.rows, cols: s.classes, ns: engine.SoftmaxRow.Cost.Ns(), merge: logits.Plus, gather: s.gather,
		write: func(a *args, row, lo, hi int, l logits) {
			target, ok, nan := s.target(a, row)
			dx := a.out.f32()[row*s.classes+lo : row*s.classes+hi]
			if !ok {
				engine.FillWith(dx, 0)
				if nan {
					engine.FillWith(dx, float32(math.NaN()))
				}
				return
			}
			x, dloss, e := a.in[0].f32()[row*s.classes:][:s.classes], a.in[2].f32()[row], float64(s.LabelSmoothing)
			kernels.ExpSub(dx, x[lo:hi], float32(l.Max))
			kernels.Scale(dx, dx, float32(1/l.ShiftedSum.Sum))
			if e > 0 {
				kernels.AddScalar(dx, dx, float32(-e/float64(s.classes)))
			}
			if lo <= target && target < hi {
				p := math.Exp(float64(x[target])-l.Max) / l.ShiftedSum.Sum
				dx[target-lo] = float32(p - e/float64(s.classes) - (1 - e))
			}
			kernels.Scale(dx, dx, dloss)
		}}.work()
}
