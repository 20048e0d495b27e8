package simd

import (
	"github.com/wavelane/wavelane/compute"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/simd/internal/kernels"
	"github.com/wavelane/wavelane/simd/internal/pool"
)

// span computes y[i] from the operands at i, which have y's length, and from numbers. Operands that the operation does not have
// are nil. Y may be one of the operands, or begin before it and overlap it.
type span func(y, a, b, c []float32, p numbers)

type numbers [2]float32

// spanOp is an elementwise operation.
type spanOp struct {
	name string // of the slice function
	f    span
	one  func(y, a []float32) // f, if it is of this form, or one of those below
	num  func(y, a []float32, s float32)
	two  func(y, a, b []float32)
	cost cost
	// fixed are the forms in which one operand, a, b or c, is the same number throughout: p[0].
	fixed [3]span
}

func (s *spanOp) unary(y, a []float32, p numbers) {
	mustFit(s.name, y, a)
	switch n := s.cost.threads(len(y)); {
	case n > 1 && !shifted(y, a):
		s.spread(y, a, nil, nil, p, n)
	case s.one != nil:
		s.one(y, a)
	case s.num != nil:
		s.num(y, a, p[0])
	default:
		s.f(y, a, nil, nil, p)
	}
}

func (s *spanOp) binary(y, a, b []float32) {
	mustFit(s.name, y, a)
	mustFit(s.name, y, b)
	switch n := s.cost.threads(len(y)); {
	case n > 1 && !shifted(y, a) && !shifted(y, b):
		s.spread(y, a, b, nil, numbers{}, n)
	default:
		s.two(y, a, b)
	}
}

func (s *spanOp) ternary(y, a, b, c []float32) {
	mustFit(s.name, y, a)
	mustFit(s.name, y, b)
	mustFit(s.name, y, c)
	if n := s.cost.threads(len(y)); n > 1 && !shifted(y, a) && !shifted(y, b) && !shifted(y, c) {
		s.spread(y, a, b, c, numbers{}, n)
		return
	}
	s.f(y, a, b, c, numbers{})
}

// shifted reports whether x and y share elements but do not begin together: parts of such slices depend on each other.
func shifted(y, x []float32) bool { return address(x) != address(y) && overlaps(x, y) }

// spreading is an elementwise operation on several threads.
type spreading struct {
	f          span
	y, a, b, c []float32
	p          numbers
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

var spreadings freeList[spreading]

func (s *spanOp) spread(y, a, b, c []float32, p numbers, threads int) {
	t := spreadings.take()
	defer spreadings.give(t)
	*t = spreading{s.f, y, a, b, c, p, s.cost.part()}
	// The last part takes what is left: a short one would run on the twin on js, and threads show in the last bits.
	pool.Shared().EachN(t, max(1, len(y)/t.part), threads)
	*t = spreading{}
}

func unaryOp(name string, c cost, f func(y, a []float32)) spanOp {
	return spanOp{name: name, cost: c, one: f, f: func(y, a, _, _ []float32, _ numbers) { f(y, a) }}
}

func scalarOp(name string, c cost, f func(y, a []float32, s float32)) spanOp {
	return spanOp{name: name, cost: c, num: f, f: func(y, a, _, _ []float32, p numbers) { f(y, a, p[0]) }}
}

// binaryOp takes the forms in which a or b is one number, or nil.
func binaryOp(name string, c cost, f func(y, a, b []float32), fixed ...span) spanOp {
	return spanOp{name: name, cost: c, two: f, fixed: [3]span(append(fixed, nil, nil, nil)),
		f: func(y, a, b, _ []float32, _ numbers) { f(y, a, b) }}
}

// Costs of kinds of functions.
var (
	cheap    = cost{0.5, 0.12}
	rounding = cost{1, 0.12}
	dividing = cost{0.9, 0.23}
)

// Elementwise operations.
var (
	negOp       = unaryOp("Neg", cheap, kernels.Neg)
	absOp       = unaryOp("Abs", cheap, kernels.Abs)
	sqrtOp      = unaryOp("Sqrt", dividing, kernels.Sqrt)
	recipOp     = unaryOp("Recip", dividing, kernels.Recip)
	floorOp     = unaryOp("Floor", rounding, kernels.Floor)
	ceilOp      = unaryOp("Ceil", rounding, kernels.Ceil)
	roundOp     = unaryOp("Round", rounding, kernels.Round)
	truncOp     = unaryOp("Trunc", rounding, kernels.Trunc)
	fractOp     = unaryOp("Fract", rounding, kernels.Fract)
	signOp      = unaryOp("Sign", rounding, kernels.Sign)
	reluOp      = unaryOp("ReLU", cheap, kernels.ReLU)
	leakyOp     = scalarOp("LeakyReLU", cheap, kernels.LeakyReLU)
	clipOp      = spanOp{name: "Clip", cost: cheap, f: func(y, a, _, _ []float32, p numbers) { kernels.Clip(y, a, p[0], p[1]) }}
	scaleOp     = scalarOp("Scale", cheap, kernels.Scale)
	addScalarOp = scalarOp("AddScalar", cheap, kernels.AddScalar)
	scaleAddOp  = spanOp{name: "ScaleAdd", cost: cheap,
		f: func(y, a, _, _ []float32, p numbers) { kernels.ScaleAdd(y, a, p[0], p[1]) }}
	hardSwishOp = unaryOp("HardSwish", cost{1.8, 0.12}, kernels.HardSwish)

	addOp = binaryOp("Add", cheap, kernels.Add,
		func(y, _, b, _ []float32, p numbers) { kernels.AddScalar(y, b, p[0]) },
		func(y, a, _, _ []float32, p numbers) { kernels.AddScalar(y, a, p[0]) })
	subOp = binaryOp("Sub", cheap, kernels.Sub,
		func(y, _, b, _ []float32, p numbers) { kernels.ScaleAdd(y, b, -1, p[0]) },
		func(y, a, _, _ []float32, p numbers) { kernels.AddScalar(y, a, -p[0]) })
	mulOp = binaryOp("Mul", cheap, kernels.Mul,
		func(y, _, b, _ []float32, p numbers) { kernels.Scale(y, b, p[0]) },
		func(y, a, _, _ []float32, p numbers) { kernels.Scale(y, a, p[0]) })
	divOp      = binaryOp("Div", dividing, kernels.Div)
	maximumOp  = binaryOp("Maximum", cheap, kernels.Maximum)
	minimumOp  = binaryOp("Minimum", cheap, kernels.Minimum)
	copySignOp = binaryOp("CopySign", cheap, kernels.CopySign)
	lessOp     = binaryOp("Less", cheap, kernels.Less)
	lessEqOp   = binaryOp("LessEqual", cheap, kernels.LessEqual)
	equalOp    = binaryOp("Equal", cheap, kernels.Equal)
	selectOp   = spanOp{name: "Select", cost: cost{0.6, 0.16}, f: func(y, a, b, c []float32, _ numbers) { kernels.Select(y, a, b, c) }}
	axpyOp     = scalarOp("Axpy", cheap, func(y, a []float32, s float32) { kernels.Axpy(y, y, a, s) })
	fmaOp      = spanOp{name: "FMA", cost: cost{0.6, 0.16},
		f: func(y, a, b, c []float32, _ numbers) { kernels.MulAdd(y, a, b, c) },
		fixed: [3]span{
			func(y, _, b, c []float32, p numbers) { kernels.Axpy(y, c, b, p[0]) },
			func(y, a, _, c []float32, p numbers) { kernels.Axpy(y, c, a, p[0]) }}}
	lerpOp = spanOp{name: "Lerp", cost: cost{0.6, 0.16}, f: func(y, a, b, t []float32, _ numbers) { kernels.Lerp(y, a, b, t) }}

	expOp      = unaryOp("Exp", cost{3.5, 0.22}, kernels.Exp)
	expm1Op    = unaryOp("Expm1", cost{20, 0.23}, kernels.Expm1)
	logOp      = unaryOp("Log", cost{6, 0.3}, kernels.Log)
	log2Op     = unaryOp("Log2", cost{6, 0.3}, kernels.Log2)
	log10Op    = unaryOp("Log10", cost{6, 0.3}, kernels.Log10)
	sinOp      = unaryOp("Sin", cost{15, 0.23}, kernels.Sin)
	cosOp      = unaryOp("Cos", cost{15, 0.23}, kernels.Cos)
	tanOp      = unaryOp("Tan", cost{20, 0.4}, kernels.Tan)
	asinOp     = unaryOp("Asin", cost{12, 0.3}, kernels.Asin)
	acosOp     = unaryOp("Acos", cost{12, 0.3}, kernels.Acos)
	atanOp     = unaryOp("Atan", cost{15, 0.33}, kernels.Atan)
	sinhOp     = unaryOp("Sinh", cost{20, 0.6}, kernels.Sinh)
	coshOp     = unaryOp("Cosh", cost{20, 0.6}, kernels.Cosh)
	tanhOp     = unaryOp("Tanh", cost{15, 0.5}, kernels.Tanh)
	asinhOp    = unaryOp("Asinh", cost{30, 0.7}, kernels.Asinh)
	acoshOp    = unaryOp("Acosh", cost{15, 0.7}, kernels.Acosh)
	atanhOp    = unaryOp("Atanh", cost{15, 0.7}, kernels.Atanh)
	erfOp      = unaryOp("Erf", cost{10, 0.6}, kernels.Erf)
	sigmoidOp  = unaryOp("Sigmoid", cost{10, 0.35}, kernels.Sigmoid)
	geluOp     = unaryOp("GELU", cost{16, 0.55}, kernels.GELU)
	geluErfOp  = unaryOp("GELUErf", cost{10, 0.8}, kernels.GELUErf)
	swishOp    = unaryOp("Swish", cost{10, 0.37}, kernels.Swish)
	mishOp     = unaryOp("Mish", cost{6, 0.6}, kernels.Mish)
	softplusOp = unaryOp("Softplus", cost{30, 0.55}, kernels.Softplus)
	seluOp     = unaryOp("SELU", cost{5, 0.22}, kernels.SELU)
	eluOp      = scalarOp("ELU", cost{5, 0.22}, kernels.ELU)
	powOp      = binaryOp("Pow", cost{50, 1.5}, kernels.Pow, nil,
		func(y, a, _, _ []float32, p numbers) { kernels.PowScalar(y, a, p[0]) })
	powScalarOp = scalarOp("PowScalar", cost{50, 1.5}, powScalar)

	fastExpOp     = unaryOp("FastExp", cost{3.5, 0.2}, kernels.FastExp)
	fastTanhOp    = unaryOp("FastTanh", cost{5.5, 0.3}, kernels.FastTanh)
	fastSigmoidOp = unaryOp("FastSigmoid", cost{4, 0.3}, kernels.FastSigmoid)
	fastGELUOp    = unaryOp("FastGELU", cost{5, 0.3}, kernels.FastGELU)
)

// spans are the elementwise operations of the catalogue, by entry.
var spans = map[string]*spanOp{
	"neg": &negOp, "abs": &absOp, "sqrt": &sqrtOp, "recip": &recipOp, "floor": &floorOp, "ceil": &ceilOp, "round": &roundOp,
	"trunc": &truncOp, "sign": &signOp, "relu": &reluOp, "leaky_relu": &leakyOp, "clip": &clipOp, "scale": &scaleOp,
	"hardswish": &hardSwishOp, "add": &addOp, "sub": &subOp, "mul": &mulOp, "div": &divOp, "maximum": &maximumOp,
	"minimum": &minimumOp, "fma": &fmaOp, "lerp": &lerpOp, "exp": &expOp, "log": &logOp, "log2": &log2Op, "sin": &sinOp,
	"cos": &cosOp, "tanh": &tanhOp, "sigmoid": &sigmoidOp, "gelu": &geluOp, "gelu_erf": &geluErfOp, "swish": &swishOp,
	"mish": &mishOp, "softplus": &softplusOp, "selu": &seluOp, "elu": &eluOp, "pow_scalar": &powScalarOp, "pow": &powOp,
	"less": &lessOp, "less_equal": &lessEqOp, "equal": &equalOp, "select": &selectOp,
}

// activation returns the span of an epilogue and its cost; nil for none.
func activation(a compute.Activation) (span, float64) {
	e, err := catalogue.ActivationEntry(a)
	if err != nil || e == nil { // errors were found when the call was checked
		return nil, 0
	}
	s := spans[e.Name]
	return s.f, s.cost.ns()
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
