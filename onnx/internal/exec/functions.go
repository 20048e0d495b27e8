package exec

import (
	"math"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// Functions of one float that the catalogue does not have, as compositions of those that it has; they become fused expressions.

type unaryFunc func(b *batch.Batch, x batch.Value) batch.Value

var inf = float32(math.Inf(1))

// polynomial is c[0] + c[1]·x + c[2]·x² + …
func polynomial(b *batch.Batch, x batch.Value, c ...float32) batch.Value {
	y := b.Scalar(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		y = b.FMA(y, x, b.Scalar(c[i]))
	}
	return y
}

// withSign gives a function of |x| the sign of x.
func withSign(b *batch.Batch, x, y batch.Value) batch.Value {
	return b.Select(b.Less(x, b.Scalar(0)), b.Neg(y), y)
}

// erf is 7.1.26 of Abramowitz and Stegun, with an error below 2e-7, and Taylor's series near 0.
func erf(b *batch.Batch, x batch.Value) batch.Value {
	a := b.Abs(x)
	t := b.Recip(b.FMA(a, b.Scalar(0.3275911), b.Scalar(1)))
	p := b.Mul(t, polynomial(b, t, 0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429))
	far := b.Sub(b.Scalar(1), b.Mul(p, b.Exp(b.Neg(b.Mul(x, x)))))
	near := b.Mul(a, polynomial(b, b.Mul(x, x), 1.1283791671, -0.3761263890, 0.1128379167, -0.0268661706, 0.0052239776, -0.0008548327))
	return withSign(b, x, b.Select(b.Less(a, b.Scalar(0.5)), near, far))
}

// atan is 4.4.49 of Abramowitz and Stegun, with an error below 2e-8 in [0, 1].
func atan(b *batch.Batch, x batch.Value) batch.Value {
	a := b.Abs(x)
	large := b.Less(b.Scalar(1), a)
	z := b.Select(large, b.Recip(a), a)
	p := b.Mul(z, polynomial(b, b.Mul(z, z), 1, -0.3333314528, 0.1999355085, -0.1420889944, 0.1065626393, -0.0752896400,
		0.0429096138, -0.0161657367, 0.0028662257))
	return withSign(b, x, b.Select(large, b.Sub(b.Scalar(math.Pi/2), p), p))
}

func asin(b *batch.Batch, x batch.Value) batch.Value {
	one := b.Scalar(1)
	return atan(b, b.Div(x, b.Sqrt(b.Mul(b.Sub(one, x), b.Add(one, x)))))
}

func sinh(b *batch.Batch, x batch.Value) batch.Value {
	far := b.Scale(b.Sub(b.Exp(x), b.Exp(b.Neg(x))), 0.5)
	near := b.Mul(x, polynomial(b, b.Mul(x, x), 1, 1.0/6, 1.0/120, 1.0/5040, 1.0/362880))
	return b.Select(b.Less(b.Abs(x), b.Scalar(1)), near, far)
}

func cosh(b *batch.Batch, x batch.Value) batch.Value {
	return b.Scale(b.Add(b.Exp(x), b.Exp(b.Neg(x))), 0.5)
}

func asinh(b *batch.Batch, x batch.Value) batch.Value {
	a := b.Abs(x)
	y := b.Log(b.Add(a, b.Sqrt(b.FMA(a, a, b.Scalar(1)))))
	return withSign(b, x, b.Select(b.Less(b.Scalar(1e4), a), b.Add(b.Log(a), b.Scalar(math.Ln2)), y))
}

func acosh(b *batch.Batch, x batch.Value) batch.Value {
	one := b.Scalar(1)
	y := b.Log(b.Add(x, b.Sqrt(b.Mul(b.Sub(x, one), b.Add(x, one)))))
	return b.Select(b.Less(b.Scalar(1e4), x), b.Add(b.Log(x), b.Scalar(math.Ln2)), y)
}

func atanh(b *batch.Batch, x batch.Value) batch.Value {
	one := b.Scalar(1)
	far := b.Scale(b.Log(b.Div(b.Add(one, x), b.Sub(one, x))), 0.5)
	near := b.Mul(x, polynomial(b, b.Mul(x, x), 1, 1.0/3, 1.0/5, 1.0/7))
	return b.Select(b.Less(b.Abs(x), b.Scalar(0.1)), near, far)
}

func not(b *batch.Batch, x batch.Value) batch.Value { return b.Equal(x, b.Scalar(0)) }

// deviceUnary are the operators of one float.
var deviceUnary = map[string]unaryFunc{
	"Abs": (*batch.Batch).Abs, "Neg": (*batch.Batch).Neg, "Sqrt": (*batch.Batch).Sqrt, "Exp": (*batch.Batch).Exp, "Log": (*batch.Batch).Log,
	"Reciprocal": (*batch.Batch).Recip, "Floor": (*batch.Batch).Floor, "Ceil": (*batch.Batch).Ceil, "Round": (*batch.Batch).Round,
	"Sin": (*batch.Batch).Sin, "Cos": (*batch.Batch).Cos, "Tan": func(b *batch.Batch, x batch.Value) batch.Value { return b.Div(b.Sin(x), b.Cos(x)) },
	"Asin": asin, "Acos": func(b *batch.Batch, x batch.Value) batch.Value { return b.Sub(b.Scalar(math.Pi/2), asin(b, x)) }, "Atan": atan,
	"Sinh": sinh, "Cosh": cosh, "Tanh": (*batch.Batch).Tanh, "Asinh": asinh, "Acosh": acosh, "Atanh": atanh, "Erf": erf,
	"Sign": (*batch.Batch).Sign, "Sigmoid": (*batch.Batch).Sigmoid, "Relu": (*batch.Batch).ReLU, "Softplus": (*batch.Batch).Softplus,
	"HardSwish": (*batch.Batch).HardSwish, "Mish": (*batch.Batch).Mish,
	"Softsign": func(b *batch.Batch, x batch.Value) batch.Value { return b.Div(x, b.Add(b.Scalar(1), b.Abs(x))) },
}

// deviceBinary are the operators of two floats, broadcast.
var deviceBinary = map[string]func(b *batch.Batch, x, y batch.Value) batch.Value{
	"Add": (*batch.Batch).Add, "Sub": (*batch.Batch).Sub, "Mul": (*batch.Batch).Mul, "Div": (*batch.Batch).Div,
	"Max": (*batch.Batch).Maximum, "Min": (*batch.Batch).Minimum, "Pow": (*batch.Batch).Pow,
	"Fmod": remainder, "Mod": floorMod,
	"PRelu": func(b *batch.Batch, x, y batch.Value) batch.Value {
		return b.Select(b.Less(x, b.Scalar(0)), b.Mul(x, y), x)
	},
}

// deviceCompare give booleans.
var deviceCompare = map[string]func(b *batch.Batch, x, y batch.Value) batch.Value{
	"Equal": (*batch.Batch).Equal, "Less": (*batch.Batch).Less, "LessOrEqual": (*batch.Batch).LessEqual,
	"Greater":        func(b *batch.Batch, x, y batch.Value) batch.Value { return b.Less(y, x) },
	"GreaterOrEqual": func(b *batch.Batch, x, y batch.Value) batch.Value { return b.LessEqual(y, x) },
}

// Shapes of device values.

// transposed orders axes, without a step where none changes place.
func transposed(b *batch.Batch, x batch.Value, perm []int) batch.Value {
	for i, p := range perm {
		if i != p {
			return b.Transpose(x, compute.TransposeOptions{Perm: perm})
		}
	}
	return x
}

// axisLast moves one axis to the end; back undoes it.
func axisLast(b *batch.Batch, x batch.Value, axis, rank int) (y batch.Value, back func(y batch.Value) batch.Value) {
	perm, inverse := make([]int, 0, rank), make([]int, rank)
	for d := range rank {
		if d != axis {
			perm = append(perm, d)
		}
	}
	perm = append(perm, axis)
	for i, p := range perm {
		inverse[p] = i
	}
	return transposed(b, x, perm), func(y batch.Value) batch.Value { return transposed(b, y, inverse) }
}

// expanded repeats along axes of 1.
func expanded(b *batch.Batch, x batch.Value, shape []int) batch.Value {
	have := b.Shape(x)
	if equal(have, shape) {
		return x
	}
	if host.Len(have) == host.Len(shape) {
		return b.Reshape(x, shape...)
	}
	return b.Mul(x, b.Fill(1, shape...))
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// picked takes elements of x by a known index. An index of −1 gives fill.
func (c *call) picked(x batch.Value, index host.Index, fill float32) (batch.Value, error) {
	b := c.rec()
	n := host.Len(b.Shape(x))
	ids := make([]int64, len(index.From))
	outside := false
	for i, at := range index.From {
		if at < 0 {
			at, outside = n, true
		}
		ids[i] = int64(at)
	}
	x = b.Reshape(x, n)
	if outside {
		x = b.Concat(0, x, b.Fill(fill, 1))
	}
	table, err := c.dev(constant(host.OfInts(ids)))
	if err != nil {
		return x, err
	}
	return b.Reshape(b.Gather(x, table), index.Shape...), nil
}

// remainder has the sign of x; of a finite x and an infinite y it is x.
func remainder(b *batch.Batch, x, y batch.Value) batch.Value {
	r := b.Sub(x, b.Mul(b.Trunc(b.Div(x, y)), y))
	whole := b.Mul(b.Equal(b.Abs(y), b.Scalar(inf)), b.Less(b.Abs(x), b.Scalar(inf)))
	return b.Select(whole, x, r)
}

// floorMod has the sign of y.
func floorMod(b *batch.Batch, x, y batch.Value) batch.Value {
	r := remainder(b, x, y)
	return b.Select(b.Less(b.Mul(b.Sign(r), b.Sign(y)), b.Scalar(0)), b.Add(r, y), r)
}
