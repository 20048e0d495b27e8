package host

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/wavelane/wavelane/compute"
)

// floatUnary are functions of one float.
var floatUnary = map[string]func(float64) float64{
	"Abs": math.Abs, "Neg": func(x float64) float64 { return -x }, "Sqrt": math.Sqrt, "Exp": math.Exp, "Log": math.Log,
	"Reciprocal": func(x float64) float64 { return 1 / x }, "Floor": math.Floor, "Ceil": math.Ceil, "Round": math.RoundToEven,
	"Sin": math.Sin, "Cos": math.Cos, "Tan": math.Tan, "Asin": math.Asin, "Acos": math.Acos, "Atan": math.Atan,
	"Sinh": math.Sinh, "Cosh": math.Cosh, "Tanh": math.Tanh, "Asinh": math.Asinh, "Acosh": math.Acosh, "Atanh": math.Atanh,
	"Erf": math.Erf, "Sign": func(x float64) float64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return x
	},
	"Sigmoid": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, "Relu": func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return x
	},
	"Softplus": func(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) },
	"Identity": func(x float64) float64 { return x },
}

// Unary applies a function to each element; integers stay integers.
func Unary(op string, t *Tensor) (*Tensor, error) {
	switch op {
	case "Not":
		out := New(Bool, t.Shape...)
		b, ok := t.Data.([]bool)
		if !ok {
			return nil, kindError(op, t)
		}
		for i, v := range b {
			out.Data.([]bool)[i] = !v
		}
		return out, nil
	case "BitwiseNot":
		if !t.Kind.IsInteger() {
			return nil, kindError(op, t)
		}
		n := t.Ints()
		for i := range n {
			n[i] = ^n[i]
		}
		return FromInts(t.Kind, n, t.Shape...), nil
	case "IsNaN", "IsInf":
		f := t.Floats()
		out := New(Bool, t.Shape...)
		for i, v := range f {
			out.Data.([]bool)[i] = op == "IsNaN" && v != v || op == "IsInf" && math.IsInf(v, 0)
		}
		return out, nil
	}
	f, ok := floatUnary[op]
	switch {
	case !ok:
		return nil, fmt.Errorf("%s: %w", op, compute.ErrUnsupported)
	case t.Kind.IsFloat():
		x := t.Floats()
		for i := range x {
			x[i] = f(x[i])
		}
		return FromFloats(t.Kind, x, t.Shape...), nil
	case !t.Kind.IsInteger():
		return nil, kindError(op, t)
	}
	n := t.Ints()
	for i, v := range n {
		switch op {
		case "Abs":
			if v < 0 && !t.Kind.Unsigned() {
				n[i] = -v
			}
		case "Neg":
			n[i] = -v
		case "Sign":
			switch {
			case v > 0 || v < 0 && t.Kind.Unsigned():
				n[i] = 1
			case v < 0:
				n[i] = -1
			}
		case "Relu":
			if !t.Kind.Unsigned() {
				n[i] = max(v, 0)
			}
		case "Floor", "Ceil", "Round", "Identity":
		default:
			n[i] = truncated(f(float64(v)))
		}
	}
	return FromInts(t.Kind, n, t.Shape...), nil
}

func kindError(op string, in ...*Tensor) error {
	var k []Kind
	for _, t := range in {
		k = append(k, t.Kind)
	}
	return fmt.Errorf("%s of %v: %w", op, k, compute.ErrDType)
}

var floatBinary = map[string]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b }, "Sub": func(a, b float64) float64 { return a - b },
	"Mul": func(a, b float64) float64 { return a * b }, "Div": func(a, b float64) float64 { return a / b },
	"Pow": math.Pow, "Mod": floorMod, "Fmod": math.Mod,
	"Max": func(a, b float64) float64 {
		if a != a || b != b {
			return math.NaN()
		}
		return math.Max(a, b)
	},
	"Min": func(a, b float64) float64 {
		if a != a || b != b {
			return math.NaN()
		}
		return math.Min(a, b)
	},
	"PRelu": func(a, b float64) float64 {
		if a < 0 {
			return a * b
		}
		return a
	},
}

func floorMod(a, b float64) float64 {
	m := math.Mod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m
}

// intBinary is an operation on integers of a type; bits beyond the type's do not matter, as results lose them.
func intBinary(op string, k Kind) func(a, b int64) int64 {
	unsigned := k.Unsigned()
	switch op {
	case "Add":
		return func(a, b int64) int64 { return a + b }
	case "Sub":
		return func(a, b int64) int64 { return a - b }
	case "Mul":
		return func(a, b int64) int64 { return a * b }
	case "Div":
		if unsigned {
			return func(a, b int64) int64 {
				if b == 0 {
					return 0
				}
				return int64(uint64(a) / uint64(b))
			}
		}
		return func(a, b int64) int64 {
			if b == 0 {
				return 0
			}
			return a / b
		}
	case "Mod", "Fmod":
		if unsigned {
			return func(a, b int64) int64 {
				if b == 0 {
					return 0
				}
				return int64(uint64(a) % uint64(b))
			}
		}
		return func(a, b int64) int64 {
			if b == 0 {
				return 0
			}
			m := a % b
			if op == "Mod" && m != 0 && (m < 0) != (b < 0) {
				m += b
			}
			return m
		}
	case "Max":
		if unsigned {
			return func(a, b int64) int64 { return int64(max(uint64(a), uint64(b))) }
		}
		return func(a, b int64) int64 { return max(a, b) }
	case "Min":
		if unsigned {
			return func(a, b int64) int64 { return int64(min(uint64(a), uint64(b))) }
		}
		return func(a, b int64) int64 { return min(a, b) }
	case "BitwiseAnd", "And":
		return func(a, b int64) int64 { return a & b }
	case "BitwiseOr", "Or":
		return func(a, b int64) int64 { return a | b }
	case "BitwiseXor", "Xor":
		return func(a, b int64) int64 { return a ^ b }
	case "ShiftLeft":
		return func(a, b int64) int64 { return int64(uint64(a) << uint64(b)) }
	case "ShiftRight":
		if !unsigned { // a negative distance is beyond all bits
			return func(a, b int64) int64 { return a >> min(uint64(b), 63) }
		}
		return func(a, b int64) int64 { return int64(uint64(a) >> uint64(b)) }
	case "PRelu":
		return func(a, b int64) int64 {
			if a < 0 && !unsigned {
				return a * b
			}
			return a
		}
	case "Pow":
		return func(a, b int64) int64 {
			if b < 0 {
				switch a {
				case 1:
					return 1
				case -1:
					return 1 - 2*(b&1)
				}
				return 0
			}
			r := int64(1)
			for range 64 - bits.LeadingZeros64(uint64(b)) {
				if b&1 == 1 {
					r *= a
				}
				a, b = a*a, b>>1
			}
			return r
		}
	}
	return nil
}

// pairs calls visit for each element of the broadcast shape with the elements of both operands.
func pairs(shape []int, a, b *Tensor, visit func(i, x, y int)) {
	sb := BroadcastStrides(b.Shape, shape)
	sa := BroadcastStrides(a.Shape, shape)
	xs := make([]int, Len(shape))
	Walk(shape, sa, 0, func(i, at int) { xs[i] = at })
	Walk(shape, sb, 0, func(i, at int) { visit(i, xs[i], at) })
}

// Binary applies an operation with broadcasting. Types are equal, but that the exponent of Pow may have another.
func Binary(op string, a, b *Tensor) (*Tensor, error) {
	shape, err := Broadcast(a.Shape, b.Shape)
	if err != nil {
		return nil, err
	}
	if a.Kind != b.Kind && op != "Pow" {
		return nil, kindError(op, a, b)
	}
	n := Len(shape)
	switch {
	case a.Kind.IsFloat() || op == "Pow" && b.Kind.IsFloat():
		f := floatBinary[op]
		if f == nil {
			return nil, kindError(op, a, b)
		}
		x, y, z := a.Floats(), b.Floats(), make([]float64, n)
		pairs(shape, a, b, func(i, p, q int) { z[i] = f(x[p], y[q]) })
		return FromFloats(a.Kind, z, shape...), nil
	case a.Kind.IsInteger() || a.Kind == Bool && (op == "And" || op == "Or" || op == "Xor"):
		f := intBinary(op, a.Kind)
		if f == nil {
			return nil, kindError(op, a, b)
		}
		x, y, z := a.Ints(), b.Ints(), make([]int64, n)
		pairs(shape, a, b, func(i, p, q int) { z[i] = f(x[p], y[q]) })
		return FromInts(a.Kind, z, shape...), nil
	}
	return nil, kindError(op, a, b)
}

// Compare gives booleans: "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual".
func Compare(op string, a, b *Tensor) (*Tensor, error) {
	shape, err := Broadcast(a.Shape, b.Shape)
	if err != nil {
		return nil, err
	}
	if a.Kind != b.Kind {
		return nil, kindError(op, a, b)
	}
	holds := map[string]func(c int) bool{
		"Equal": func(c int) bool { return c == 0 }, "Less": func(c int) bool { return c < 0 },
		"LessOrEqual": func(c int) bool { return c <= 0 }, "Greater": func(c int) bool { return c > 0 },
		"GreaterOrEqual": func(c int) bool { return c >= 0 }}[op]
	if holds == nil {
		return nil, fmt.Errorf("%s: %w", op, compute.ErrUnsupported)
	}
	out := New(Bool, shape...)
	z := out.Data.([]bool)
	if len(z) == 0 {
		return out, nil
	}
	switch x := a.Data.(type) {
	case []int64:
		compareInts(op, shape, a, b, x, b.Data.([]int64), z)
		return out, nil
	case []int32:
		compareInts(op, shape, a, b, x, b.Data.([]int32), z)
		return out, nil
	}
	switch {
	case a.Kind == String:
		x, y := a.Data.([]string), b.Data.([]string)
		pairs(shape, a, b, func(i, p, q int) { z[i] = holds(order(x[p], y[q])) })
	case a.Kind.IsInteger() && !a.Kind.Unsigned():
		x, y := a.Ints(), b.Ints()
		pairs(shape, a, b, func(i, p, q int) { z[i] = holds(order(x[p], y[q])) })
	case a.Kind.IsInteger():
		x, y := a.Ints(), b.Ints()
		pairs(shape, a, b, func(i, p, q int) { z[i] = holds(order(uint64(x[p]), uint64(y[q]))) })
	default:
		x, y := a.Floats(), b.Floats()
		pairs(shape, a, b, func(i, p, q int) { z[i] = x[p] == x[p] && y[q] == y[q] && holds(order(x[p], y[q])) })
	}
	return out, nil
}

func order[E int64 | uint64 | float64 | string](a, b E) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Where takes elements of a where cond is true, else of b.
func Where(cond, a, b *Tensor) (*Tensor, error) {
	shape, err := Broadcast(cond.Shape, a.Shape, b.Shape)
	if err != nil {
		return nil, err
	}
	c, ok := cond.Data.([]bool)
	if !ok || a.Kind != b.Kind {
		return nil, kindError("Where", cond, a, b)
	}
	both := Concat(0, a.Reshaped(a.Len()), b.Reshaped(b.Len()))
	x := Index{shape, make([]int, Len(shape))}
	Walk(shape, BroadcastStrides(b.Shape, shape), a.Len(), func(i, at int) { x.From[i] = at })
	from := make([]int, Len(shape))
	Walk(shape, BroadcastStrides(a.Shape, shape), 0, func(i, at int) { from[i] = at })
	Walk(shape, BroadcastStrides(cond.Shape, shape), 0, func(i, at int) {
		if c[at] {
			x.From[i] = from[i]
		}
	})
	return both.Pick(x), nil
}
