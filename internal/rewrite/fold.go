package rewrite

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// fold simplifies a step by what is known of its operands. It returns the step to take instead, which may be the same, and the value
// that already is the result, or none. A rule may change results only as follows: subnormal numbers that a device may flush, the payload
// of a NaN, and within the entry's tolerance where all operands are constants, since those are computed in float64 and rounded once.
func (s *simplifier) fold(step *program.Step) (*program.Step, program.Slot) {
	if len(step.In) == 0 || len(step.Out) != 1 || step.Attr.Varies() {
		return step, none
	}
	x := step.In[0]
	if idempotent[step.Entry] && s.producer(x, step.Entry) != nil {
		return step, x
	}
	switch step.Entry {
	case catalogue.Copy:
		return step, x
	case catalogue.Cast:
		return step, s.foldCast(step)
	case catalogue.Reshape:
		return s.foldReshape(step)
	case catalogue.Neg:
		if twice := s.producer(x, catalogue.Neg); twice != nil {
			return step, twice.In[0]
		}
	case catalogue.Clip:
		step = s.foldClip(step)
	}
	if !step.Entry.Class.Elementwise() || step.Entry.F == nil {
		return step, none
	}
	constants := 0
	for _, in := range step.In {
		if s.producer(in, catalogue.Fill) != nil {
			constants++
		}
	}
	switch {
	case constants == len(step.In):
		return s.foldConstants(step), none
	case constants > 0:
		step = s.scalarForm(step)
	}
	if step.Entry == catalogue.Scale {
		return s.foldScale(step)
	}
	return step, none
}

// idempotent are functions with f(f(x)) = f(x).
var idempotent = map[*program.Entry]bool{catalogue.Abs: true, catalogue.ReLU: true, catalogue.Floor: true, catalogue.Ceil: true,
	catalogue.Round: true, catalogue.Trunc: true, catalogue.Sign: true}

// with returns a step of entry e with one operand and these scalars, and the result and options of another.
func with(step *program.Step, e *program.Entry, x program.Slot, scalars ...float32) *program.Step {
	return &program.Step{Entry: e, In: []program.Slot{x}, Out: step.Out, Attr: program.Attr{Scalars: scalars, Options: step.Attr.Options}}
}

// foldCast removes conversions to the same type, and to a wider type and back.
func (s *simplifier) foldCast(step *program.Step) program.Slot {
	x, to := step.In[0], s.p.Values[step.Out[0]].DType
	if s.p.Values[x].DType == to {
		return x
	}
	if first := s.producer(x, catalogue.Cast); first != nil && s.p.Values[x].DType == compute.Float32 && s.p.Values[first.In[0]].DType == to {
		return first.In[0]
	}
	return none
}

// foldReshape removes reshapes of reshapes and reshapes to the same shape.
func (s *simplifier) foldReshape(step *program.Step) (*program.Step, program.Slot) {
	if first := s.producer(step.In[0], catalogue.Reshape); first != nil && s.updated[first.In[0]] < 0 {
		step = with(step, catalogue.Reshape, first.In[0])
	}
	if x := step.In[0]; program.EqualShape(s.p.Values[x].Shape, s.p.Values[step.Out[0]].Shape) {
		return step, x
	}
	return step, none
}

// foldClip makes one clip of two: the later bounds clip the earlier ones.
func (s *simplifier) foldClip(step *program.Step) *program.Step {
	first := s.producer(step.In[0], catalogue.Clip)
	if first == nil || s.updated[first.In[0]] >= 0 {
		return step
	}
	a, b := first.Attr.Scalars, step.Attr.Scalars
	if !(a[0] <= a[1] && b[0] <= b[1]) { // in the wrong order, or NaN
		return step
	}
	return with(step, catalogue.Clip, first.In[0], min(max(a[0], b[0]), b[1]), min(max(a[1], b[0]), b[1]))
}

// foldScale multiplies two factors into one where that rounds and overflows the same: if one is ±1, or both are powers of two ≥ 1.
func (s *simplifier) foldScale(step *program.Step) (*program.Step, program.Slot) {
	if first := s.producer(step.In[0], catalogue.Scale); first != nil && s.updated[first.In[0]] < 0 {
		a, b := first.Attr.Scalars[0], step.Attr.Scalars[0]
		if sign(a) || sign(b) || grows(a) && grows(b) && !math.IsInf(float64(a*b), 0) {
			step = with(step, catalogue.Scale, first.In[0], a*b)
		}
	}
	if step.Attr.Scalars[0] == 1 {
		return step, step.In[0]
	}
	return step, none
}

func sign(f float32) bool { return f == 1 || f == -1 }

// power returns n of ±2ⁿ.
func power(f float32) (n int, ok bool) {
	fraction, n := math.Frexp(math.Abs(float64(f)))
	return n - 1, fraction == 0.5
}

// grows reports whether |f| is a power of two that makes no number smaller.
func grows(f float32) bool {
	n, ok := power(f)
	return ok && n >= 0
}

// scalarForm makes a constant operand a scalar, for entries that have such a form.
func (s *simplifier) scalarForm(step *program.Step) *program.Step {
	if len(step.In) != 2 {
		return step
	}
	for k, in := range step.In {
		c, x := s.producer(in, catalogue.Fill), step.In[1-k]
		if c == nil || !program.EqualShape(s.p.Values[x].Shape, s.p.Values[step.Out[0]].Shape) {
			continue
		}
		v := c.Attr.Scalars[0]
		switch {
		case step.Entry == catalogue.Mul:
			return with(step, catalogue.Scale, x, v)
		case step.Entry == catalogue.Pow && k == 1:
			return with(step, catalogue.PowScalar, x, v)
		case step.Entry == catalogue.Div && k == 1:
			if n, ok := power(v); ok && -125 < n && n < 126 { // neither it nor its inverse is subnormal
				return with(step, catalogue.Scale, x, 1/v)
			}
		}
	}
	return step
}

// foldConstants computes a function of constants.
func (s *simplifier) foldConstants(step *program.Step) *program.Step {
	var args, scalars []float64
	for _, in := range step.In {
		args = append(args, float64(s.producer(in, catalogue.Fill).Attr.Scalars[0]))
	}
	for _, v := range step.Attr.Scalars {
		scalars = append(scalars, float64(v))
	}
	return &program.Step{Entry: catalogue.Fill, Out: step.Out, Attr: program.Attr{Scalars: []float32{float32(step.Entry.F(args, scalars))},
		Options: compute.FillOptions{Shape: slices.Clone(s.p.Values[step.Out[0]].Shape)}}}
}
