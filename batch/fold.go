package batch

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// fold simplifies a step that has one result by what its operands are known to be. It changes the step, not what it points to, or
// returns an operand that already is the result. No rule changes a bit of a result but that of numbers which a device may flush,
// the kind of a NaN, and, where the operands are constants, what the entry's tolerance permits: constants are computed in float64
// and rounded once.
func (s *simplifier) fold(step *op.Step) (same op.Slot, ok bool) {
	if len(step.In) == 0 || len(step.Out) != 1 || step.Attr.Varies() {
		return 0, false
	}
	x := step.In[0]
	if idempotent[step.Entry] && s.producer(x, step.Entry) != nil {
		return x, true
	}
	switch step.Entry {
	case op.Copy:
		return x, true
	case op.Cast:
		return s.foldCast(step)
	case op.Reshape:
		return s.foldReshape(step)
	case op.Neg:
		if twice := s.producer(x, op.Neg); twice != nil {
			return twice.In[0], true
		}
	case op.Clip:
		s.foldClip(step)
	}
	if !step.Entry.Class.Elementwise() || step.Entry.F == nil || s.foldConstants(step) {
		return 0, false
	}
	s.scalarForm(step)
	if step.Entry == op.Scale {
		return s.foldScale(step)
	}
	return 0, false
}

// idempotent are functions with f(f(x)) = f(x).
var idempotent = map[*op.Entry]bool{op.Abs: true, op.ReLU: true, op.Floor: true, op.Ceil: true, op.Round: true, op.Trunc: true, op.Sign: true}

// foldCast knows that conversion to the same type changes nothing, nor that to more bits and back.
func (s *simplifier) foldCast(step *op.Step) (op.Slot, bool) {
	x, to := step.In[0], s.p.Values[step.Out[0]].DType
	if s.p.Values[x].DType == to {
		return x, true
	}
	if first := s.producer(x, op.Cast); first != nil && s.p.Values[x].DType == compute.Float32 && s.p.Values[first.In[0]].DType == to {
		return first.In[0], true
	}
	return 0, false
}

// foldReshape looks through reshapes.
func (s *simplifier) foldReshape(step *op.Step) (op.Slot, bool) {
	x := step.In[0]
	if first := s.producer(x, op.Reshape); first != nil && s.updated[first.In[0]] < 0 {
		x = first.In[0]
		step.In = []op.Slot{x}
	}
	return x, op.EqualShape(s.p.Values[x].Shape, s.p.Values[step.Out[0]].Shape)
}

// foldClip makes one clip of two: the later bounds limit the earlier ones.
func (s *simplifier) foldClip(step *op.Step) {
	first := s.producer(step.In[0], op.Clip)
	if first == nil || s.updated[first.In[0]] >= 0 {
		return
	}
	a, b := first.Attr.Scalars, step.Attr.Scalars
	if !(a[0] <= a[1] && b[0] <= b[1]) { // in the wrong order, or NaN
		return
	}
	step.In = []op.Slot{first.In[0]}
	step.Attr.Scalars = []float32{min(max(a[0], b[0]), b[1]), min(max(a[1], b[0]), b[1])}
}

// foldScale makes one factor of two where that rounds and overflows alike: a factor of ±1, or powers of two from 1 on.
func (s *simplifier) foldScale(step *op.Step) (op.Slot, bool) {
	if first := s.producer(step.In[0], op.Scale); first != nil && s.updated[first.In[0]] < 0 {
		a, b := first.Attr.Scalars[0], step.Attr.Scalars[0]
		if sign(a) || sign(b) || power(a) && power(b) && !math.IsInf(float64(a*b), 0) {
			step.In = []op.Slot{first.In[0]}
			step.Attr.Scalars = []float32{a * b}
		}
	}
	return step.In[0], step.Attr.Scalars[0] == 1
}

func sign(f float32) bool { return f == 1 || f == -1 }

// power reports whether |f| is a power of two that makes no number smaller.
func power(f float32) bool {
	fraction, exponent := math.Frexp(math.Abs(float64(f)))
	return fraction == 0.5 && exponent >= 1
}

// scalarForm turns an operand that is one constant into a scalar, for entries that have such a form.
func (s *simplifier) scalarForm(step *op.Step) {
	out := s.p.Values[step.Out[0]].Shape
	for k, in := range step.In {
		c := s.producer(in, op.Fill)
		if c == nil || len(step.In) != 2 || !op.EqualShape(s.p.Values[step.In[1-k]].Shape, out) {
			continue
		}
		v := c.Attr.Scalars[0]
		var to *op.Entry
		switch {
		case step.Entry == op.Mul:
			to = op.Scale
		case step.Entry == op.Div && k == 1 && v != 0 && isPower(1/v) && isPower(v):
			to, v = op.Scale, 1/v
		case step.Entry == op.Pow && k == 1:
			to = op.PowScalar
		default:
			continue
		}
		step.Entry, step.In, step.Attr.Scalars = to, []op.Slot{step.In[1-k]}, []float32{v}
		return
	}
}

// isPower reports whether f is ±2ⁿ and no subnormal number.
func isPower(f float32) bool {
	fraction, exponent := math.Frexp(math.Abs(float64(f)))
	return fraction == 0.5 && exponent > -125 && exponent < 128
}

// foldConstants makes a constant of a function of constants.
func (s *simplifier) foldConstants(step *op.Step) bool {
	args, scalars := make([]float64, 0, 3), make([]float64, 0, 2)
	for _, in := range step.In {
		c := s.producer(in, op.Fill)
		if c == nil {
			return false
		}
		args = append(args, float64(c.Attr.Scalars[0]))
	}
	for _, v := range step.Attr.Scalars {
		scalars = append(scalars, float64(v))
	}
	*step = op.Step{Entry: op.Fill, Out: step.Out, Attr: op.Attr{Scalars: []float32{float32(step.Entry.F(args, scalars))},
		Options: compute.FillOptions{Shape: slices.Clone(s.p.Values[step.Out[0]].Shape)}}}
	return true
}
