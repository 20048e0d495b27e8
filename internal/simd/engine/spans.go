package engine

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/internal/simd/pool"
)

// span computes y[i] from the operands at i, which have y's length, and from numbers. Operands that the operation does not have
// are nil. Y may be one of the operands, or begin before it and overlap it.
type span func(y, a, b, c []float32, p Numbers)

type Numbers [2]float32

// SpanOp is an elementwise operation.
type SpanOp struct {
	Name string // of the slice function
	F    span
	one  func(y, a []float32) // f, if it is of this form, or one of those below
	num  func(y, a []float32, v float32)
	pair func(y, a []float32, v, w float32)
	two  func(y, a, b []float32)
	Cost Cost
	// fixed are the forms in which one operand, a, b or c, is the same number throughout: p[0].
	Fixed [3]span
}

// Unary, Scalar, Pair, Binary, Ternary and Axpy are the calls of slice functions. Nothing is live across a call in them, so that little
// goes to the stack: a loop that stores a line a cycle waits for such stores too.

func (s *SpanOp) Unary(y, a []float32) {
	switch {
	case !fits(y, a):
		misfit(s.Name, y, a)
	case !s.Cost.alone(len(y)):
		s.long(y, a, nil, nil, Numbers{})
	default:
		s.one(y, a)
	}
}

func (s *SpanOp) Scalar(y, a []float32, v float32) {
	switch {
	case !fits(y, a):
		misfit(s.Name, y, a)
	case !s.Cost.alone(len(y)):
		s.long(y, a, nil, nil, Numbers{v})
	default:
		s.num(y, a, v)
	}
}

func (s *SpanOp) Pair(y, a []float32, v, w float32) {
	switch {
	case !fits(y, a):
		misfit(s.Name, y, a)
	case !s.Cost.alone(len(y)):
		s.long(y, a, nil, nil, Numbers{v, w})
	default:
		s.pair(y, a, v, w)
	}
}

func (s *SpanOp) Binary(y, a, b []float32) {
	switch {
	case !fits(y, a):
		misfit(s.Name, y, a)
	case !fits(y, b):
		misfit(s.Name, y, b)
	case !s.Cost.alone(len(y)):
		s.long(y, a, b, nil, Numbers{})
	default:
		s.two(y, a, b)
	}
}

func (s *SpanOp) Ternary(y, a, b, c []float32) {
	switch {
	case !fits(y, a):
		misfit(s.Name, y, a)
	case !fits(y, b):
		misfit(s.Name, y, b)
	case !fits(y, c):
		misfit(s.Name, y, c)
	case !s.Cost.alone(len(y)):
		s.long(y, a, b, c, Numbers{})
	default:
		s.F(y, a, b, c, Numbers{})
	}
}

// Axpy is such a call without one through a function value, which is 5 % of what 1,024 elements take.
func Axpy(y, a []float32, v float32) {
	switch {
	case !fits(y, a):
		misfit("Axpy", y, a)
	case !axpyOp.Cost.alone(len(y)):
		axpyOp.long(y, a, nil, nil, Numbers{v})
	default:
		kernels.Axpy(y, y, a, v)
	}
}

// long is an operation whose operands fit, on several threads if that pays.
func (s *SpanOp) long(y, a, b, c []float32, p Numbers) {
	if n := s.Cost.threads(len(y)); n > 1 && !shifted(y, a) && !shifted(y, b) && !shifted(y, c) {
		s.spread(y, a, b, c, p, n)
		return
	}
	s.F(y, a, b, c, p)
}

// shifted reports whether x and y share elements but do not begin together: parts of such slices depend on each other.
func shifted(y, x []float32) bool { return Address(x) != Address(y) && overlaps(x, y) }

// spreading is an elementwise operation on several threads.
type spreading struct {
	f          span
	y, a, b, c []float32
	p          Numbers
	part       int // elements
}

func (t *spreading) Do(part int) {
	lo := part * t.part
	hi := lo + t.part
	if len(t.y)-hi < t.part {
		hi = len(t.y)
	}
	t.f(t.y[lo:hi], cut(t.a, lo, hi), cut(t.b, lo, hi), cut(t.c, lo, hi), t.p)
}

var spreadings FreeList[spreading]

func (s *SpanOp) spread(y, a, b, c []float32, p Numbers, threads int) {
	t := spreadings.Take()
	defer spreadings.Give(t)
	*t = spreading{s.F, y, a, b, c, p, s.Cost.part()}
	// The last part takes what is left: a short one would run on the portable fallback on js, and threads show in the last bits.
	pool.Shared().EachN(t, max(1, len(y)/t.part), threads)
	*t = spreading{}
}

func unaryOp(name string, c Cost, f func(y, a []float32)) SpanOp {
	return SpanOp{Name: name, Cost: c, one: f, F: func(y, a, _, _ []float32, _ Numbers) { f(y, a) }}
}

func scalarOp(name string, c Cost, f func(y, a []float32, v float32)) SpanOp {
	return SpanOp{Name: name, Cost: c, num: f, F: func(y, a, _, _ []float32, p Numbers) { f(y, a, p[0]) }}
}

func pairOp(name string, c Cost, f func(y, a []float32, v, w float32)) SpanOp {
	return SpanOp{Name: name, Cost: c, pair: f, F: func(y, a, _, _ []float32, p Numbers) { f(y, a, p[0], p[1]) }}
}

// BinaryOp takes the forms in which a or b is one number, or nil.
func BinaryOp(name string, c Cost, f func(y, a, b []float32), fixed ...span) SpanOp {
	return SpanOp{Name: name, Cost: c, two: f, Fixed: [3]span(append(fixed, nil, nil, nil)),
		F: func(y, a, b, _ []float32, _ Numbers) { f(y, a, b) }}
}

// Costs of kinds of functions.
var (
	Cheap    = Cost{0.5, 0.12}
	rounding = Cost{1, 0.12}
	dividing = Cost{0.9, 0.23}
)

// Elementwise operations.
var (
	NegOp       = unaryOp("Neg", Cheap, kernels.Neg)
	AbsOp       = unaryOp("Abs", Cheap, kernels.Abs)
	SqrtOp      = unaryOp("Sqrt", dividing, kernels.Sqrt)
	RecipOp     = unaryOp("Recip", dividing, kernels.Recip)
	FloorOp     = unaryOp("Floor", rounding, kernels.Floor)
	CeilOp      = unaryOp("Ceil", rounding, kernels.Ceil)
	RoundOp     = unaryOp("Round", rounding, kernels.Round)
	TruncOp     = unaryOp("Trunc", rounding, kernels.Trunc)
	FractOp     = unaryOp("Fract", rounding, kernels.Fract)
	SignOp      = unaryOp("Sign", rounding, kernels.Sign)
	ReluOp      = unaryOp("ReLU", Cheap, kernels.ReLU)
	LeakyOp     = scalarOp("LeakyReLU", Cheap, kernels.LeakyReLU)
	ClipOp      = pairOp("Clip", Cheap, kernels.Clip)
	ScaleOp     = scalarOp("Scale", Cheap, kernels.Scale)
	AddScalarOp = scalarOp("AddScalar", Cheap, kernels.AddScalar)
	ScaleAddOp  = pairOp("ScaleAdd", Cheap, kernels.ScaleAdd)
	HardSwishOp = unaryOp("HardSwish", Cost{1.8, 0.12}, kernels.HardSwish)

	AddOp = BinaryOp("Add", Cheap, kernels.Add,
		func(y, _, b, _ []float32, p Numbers) { kernels.AddScalar(y, b, p[0]) },
		func(y, a, _, _ []float32, p Numbers) { kernels.AddScalar(y, a, p[0]) })
	SubOp = BinaryOp("Sub", Cheap, kernels.Sub,
		func(y, _, b, _ []float32, p Numbers) { kernels.ScaleAdd(y, b, -1, p[0]) },
		func(y, a, _, _ []float32, p Numbers) { kernels.AddScalar(y, a, -p[0]) })
	MulOp = BinaryOp("Mul", Cheap, kernels.Mul,
		func(y, _, b, _ []float32, p Numbers) { kernels.Scale(y, b, p[0]) },
		func(y, a, _, _ []float32, p Numbers) { kernels.Scale(y, a, p[0]) })
	DivOp      = BinaryOp("Div", dividing, kernels.Div)
	MaximumOp  = BinaryOp("Maximum", Cheap, kernels.Maximum)
	MinimumOp  = BinaryOp("Minimum", Cheap, kernels.Minimum)
	CopySignOp = BinaryOp("CopySign", Cheap, kernels.CopySign)
	LessOp     = BinaryOp("Less", Cheap, kernels.Less)
	LessEqOp   = BinaryOp("LessEqual", Cheap, kernels.LessEqual)
	EqualOp    = BinaryOp("Equal", Cheap, kernels.Equal)
	SelectOp   = SpanOp{Name: "Select", Cost: Cost{0.6, 0.16}, F: func(y, a, b, c []float32, _ Numbers) { kernels.Select(y, a, b, c) }}
	axpyOp     = SpanOp{Name: "Axpy", Cost: Cheap, F: func(y, a, _, _ []float32, p Numbers) { kernels.Axpy(y, y, a, p[0]) }}
	FmaOp      = SpanOp{Name: "FMA", Cost: Cost{0.6, 0.16},
		F: func(y, a, b, c []float32, _ Numbers) { kernels.MulAdd(y, a, b, c) },
		Fixed: [3]span{
			func(y, _, b, c []float32, p Numbers) { kernels.Axpy(y, c, b, p[0]) },
			func(y, a, _, c []float32, p Numbers) { kernels.Axpy(y, c, a, p[0]) }}}
	LerpOp = SpanOp{Name: "Lerp", Cost: Cost{0.6, 0.16}, F: func(y, a, b, t []float32, _ Numbers) { kernels.Lerp(y, a, b, t) }}

	ExpOp      = unaryOp("Exp", Cost{3.5, 0.22}, kernels.Exp)
	Expm1Op    = unaryOp("Expm1", Cost{20, 0.23}, kernels.Expm1)
	LogOp      = unaryOp("Log", Cost{6, 0.3}, kernels.Log)
	Log2Op     = unaryOp("Log2", Cost{6, 0.3}, kernels.Log2)
	Log10Op    = unaryOp("Log10", Cost{6, 0.3}, kernels.Log10)
	SinOp      = unaryOp("Sin", Cost{15, 0.23}, kernels.Sin)
	CosOp      = unaryOp("Cos", Cost{15, 0.23}, kernels.Cos)
	TanOp      = unaryOp("Tan", Cost{20, 0.4}, kernels.Tan)
	AsinOp     = unaryOp("Asin", Cost{12, 0.3}, kernels.Asin)
	AcosOp     = unaryOp("Acos", Cost{12, 0.3}, kernels.Acos)
	AtanOp     = unaryOp("Atan", Cost{15, 0.33}, kernels.Atan)
	SinhOp     = unaryOp("Sinh", Cost{20, 0.6}, kernels.Sinh)
	CoshOp     = unaryOp("Cosh", Cost{20, 0.6}, kernels.Cosh)
	TanhOp     = unaryOp("Tanh", Cost{15, 0.5}, kernels.Tanh)
	AsinhOp    = unaryOp("Asinh", Cost{30, 0.7}, kernels.Asinh)
	AcoshOp    = unaryOp("Acosh", Cost{15, 0.7}, kernels.Acosh)
	AtanhOp    = unaryOp("Atanh", Cost{15, 0.7}, kernels.Atanh)
	ErfOp      = unaryOp("Erf", Cost{10, 0.6}, kernels.Erf)
	SigmoidOp  = unaryOp("Sigmoid", Cost{10, 0.35}, kernels.Sigmoid)
	GeluOp     = unaryOp("GELU", Cost{16, 0.55}, kernels.GELU)
	GeluErfOp  = unaryOp("GELUErf", Cost{10, 0.8}, kernels.GELUErf)
	SiLUOp     = unaryOp("SiLU", Cost{10, 0.37}, kernels.SiLU)
	MishOp     = unaryOp("Mish", Cost{6, 0.6}, kernels.Mish)
	SoftplusOp = unaryOp("Softplus", Cost{30, 0.55}, kernels.Softplus)
	SeluOp     = unaryOp("SELU", Cost{5, 0.22}, kernels.SELU)
	EluOp      = scalarOp("ELU", Cost{5, 0.22}, kernels.ELU)
	PowOp      = BinaryOp("Pow", Cost{50, 1.5}, kernels.Pow, nil,
		func(y, a, _, _ []float32, p Numbers) { kernels.PowScalar(y, a, p[0]) })
	PowScalarOp = scalarOp("PowScalar", Cost{50, 1.5}, powScalar)

	FastExpOp     = unaryOp("FastExp", Cost{3.5, 0.2}, kernels.FastExp)
	FastTanhOp    = unaryOp("FastTanh", Cost{5.5, 0.3}, kernels.FastTanh)
	FastSigmoidOp = unaryOp("FastSigmoid", Cost{4, 0.3}, kernels.FastSigmoid)
	FastGELUOp    = unaryOp("FastGELU", Cost{5, 0.3}, kernels.FastGELU)
)

// activations are the spans of compute's activations.
var activations = [...]*SpanOp{compute.ReLU: &ReluOp, compute.GELU: &GeluOp, compute.GELUErf: &GeluErfOp, compute.SiLU: &SiLUOp,
	compute.Sigmoid: &SigmoidOp, compute.Tanh: &TanhOp}

// activation returns the span of an epilogue and its cost; nil for none. The call was checked.
func activation(a compute.Activation) (span, float64) {
	s := activations[a]
	if s == nil {
		return nil, 0
	}
	return s.F, s.Cost.Ns()
}

// powScalar has the exponents that people use without logarithms.
func powScalar(y, a []float32, exponent float32) {
	switch exponent {
	case 1:
		copy(y, a)
	case 2:
		kernels.Mul(y, a, a)
	case -1:
		kernels.Recip(y, a)
	default:
		kernels.PowScalar(y, a, exponent)
	}
}
