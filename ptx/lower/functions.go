package lower

import (
	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/ptx"
)

// The elementwise entries of the catalogue, each as a function of one element.

func init() {
	unary := func(e *op.Entry, f func(c calc, x float) float) {
		newElementwise(e, func(c calc, x, _ []float) float { return f(c, x[0]) })
	}
	rounding := func(e *op.Entry, how ptx.Mod) {
		unary(e, func(c calc, x float) float { return ptx.Round(c.k, x, how) })
	}
	unary(op.Neg, calc.neg)
	unary(op.Abs, calc.abs)
	unary(op.Sqrt, func(c calc, x float) float { return ptx.Sqrt(c.k, x) })
	unary(op.Recip, func(c calc, x float) float { return ptx.Rcp(c.k, x) })
	unary(op.Exp, calc.exp)
	unary(op.Log, calc.log)
	unary(op.Log2, calc.log2)
	unary(op.Sin, func(c calc, x float) float { return c.sine(x, 0) })
	unary(op.Cos, func(c calc, x float) float { return c.sine(x, 1) })
	unary(op.Tanh, calc.tanh)
	rounding(op.Floor, ptx.RMI)
	rounding(op.Ceil, ptx.RPI)
	rounding(op.Round, ptx.RNI)
	rounding(op.Trunc, ptx.RZI)
	unary(op.Sign, calc.sign)

	unary(op.ReLU, calc.relu)
	unary(op.SELU, func(c calc, x float) float { return c.mul(c.elu(x, num(op.SELUAlpha)), num(op.SELUScale)) })
	unary(op.Sigmoid, calc.sigmoid)
	unary(op.GELU, calc.gelu)
	unary(op.GELUErf, calc.geluErf)
	unary(op.Swish, calc.swish)
	unary(op.HardSwish, calc.hardSwish)
	unary(op.Mish, calc.mish)
	unary(op.Softplus, calc.softplus)
}

func init() {
	scalar := func(e *op.Entry, f func(c calc, x, p float) float) {
		newElementwise(e, func(c calc, x, p []float) float { return f(c, x[0], p[0]) })
	}
	scalar(op.LeakyReLU, func(c calc, x, alpha float) float { return c.where(ptx.Lt(c.k, x, num(0)), c.mul(alpha, x), x) })
	scalar(op.ELU, calc.elu)
	scalar(op.Scale, calc.mul)
	scalar(op.PowScalar, calc.pow)
	newElementwise(op.Clip, func(c calc, x, p []float) float { return c.nanMin(c.nanMax(x[0], p[0]), p[1]) })
}

func init() {
	binary := func(e *op.Entry, f func(c calc, a, b float) float) {
		newElementwise(e, func(c calc, x, _ []float) float { return f(c, x[0], x[1]) })
	}
	binary(op.Add, calc.add)
	binary(op.Sub, calc.sub)
	binary(op.Mul, calc.mul)
	binary(op.Div, func(c calc, a, b float) float { return ptx.Div(c.k, a, b) })
	binary(op.Maximum, calc.nanMax)
	binary(op.Minimum, calc.nanMin)
	binary(op.Pow, calc.pow)
	binary(op.Less, func(c calc, a, b float) float { return c.truth(ptx.Lt(c.k, a, b)) })
	binary(op.LessEqual, func(c calc, a, b float) float { return c.truth(ptx.Le(c.k, a, b)) })
	binary(op.Equal, func(c calc, a, b float) float { return c.truth(ptx.Eq(c.k, a, b)) })

	newElementwise(op.FMA, func(c calc, x, _ []float) float { return c.fma(x[0], x[1], x[2]) })
	newElementwise(op.Lerp, func(c calc, x, _ []float) float { return c.fma(x[2], c.sub(x[1], x[0]), x[0]) })
	newElementwise(op.Select, func(c calc, x, _ []float) float { return c.where(ptx.Eq(c.k, x[0], num(0)), x[2], x[1]) })
}
