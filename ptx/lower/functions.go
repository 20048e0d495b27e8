package lower

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx"
)

// The elementwise entries of the catalogue, each as a function of one element.

func init() {
	unary := func(e *program.Entry, f func(c calc, x float) float) {
		newElementwise(e, func(c calc, x, _ []float) float { return f(c, x[0]) })
	}
	rounding := func(e *program.Entry, how ptx.Mod) {
		unary(e, func(c calc, x float) float { return ptx.Round(c.k, x, how) })
	}
	unary(catalogue.Neg, calc.neg)
	unary(catalogue.Abs, calc.abs)
	unary(catalogue.Sqrt, func(c calc, x float) float { return ptx.Sqrt(c.k, x) })
	unary(catalogue.Recip, func(c calc, x float) float { return ptx.Rcp(c.k, x) })
	unary(catalogue.Exp, calc.exp)
	unary(catalogue.Log, calc.log)
	unary(catalogue.Log2, calc.log2)
	unary(catalogue.Sin, func(c calc, x float) float { return c.sine(x, 0) })
	unary(catalogue.Cos, func(c calc, x float) float { return c.sine(x, 1) })
	unary(catalogue.Tanh, calc.tanh)
	rounding(catalogue.Floor, ptx.RMI)
	rounding(catalogue.Ceil, ptx.RPI)
	rounding(catalogue.Round, ptx.RNI)
	rounding(catalogue.Trunc, ptx.RZI)
	unary(catalogue.Sign, calc.sign)

	unary(catalogue.ReLU, calc.relu)
	unary(catalogue.SELU, func(c calc, x float) float {
		return c.mul(c.elu(x, num(catalogue.SELUAlpha)), num(catalogue.SELUScale))
	})
	unary(catalogue.Sigmoid, calc.sigmoid)
	unary(catalogue.GELU, calc.gelu)
	unary(catalogue.GELUErf, calc.geluErf)
	unary(catalogue.SiLU, calc.silu)
	unary(catalogue.HardSwish, calc.hardSwish)
	unary(catalogue.Mish, calc.mish)
	unary(catalogue.Softplus, calc.softplus)
}

func init() {
	scalar := func(e *program.Entry, f func(c calc, x, p float) float) {
		newElementwise(e, func(c calc, x, p []float) float { return f(c, x[0], p[0]) })
	}
	scalar(catalogue.LeakyReLU, func(c calc, x, alpha float) float { return c.where(ptx.Lt(c.k, x, num(0)), c.mul(alpha, x), x) })
	scalar(catalogue.ELU, calc.elu)
	scalar(catalogue.Scale, calc.mul)
	scalar(catalogue.PowScalar, calc.pow)
	newElementwise(catalogue.Clip, func(c calc, x, p []float) float { return c.nanMin(c.nanMax(x[0], p[0]), p[1]) })
}

func init() {
	binary := func(e *program.Entry, f func(c calc, a, b float) float) {
		newElementwise(e, func(c calc, x, _ []float) float { return f(c, x[0], x[1]) })
	}
	binary(catalogue.Add, calc.add)
	binary(catalogue.Sub, calc.sub)
	binary(catalogue.Mul, calc.mul)
	binary(catalogue.Div, func(c calc, a, b float) float { return ptx.Div(c.k, a, b) })
	binary(catalogue.Maximum, calc.nanMax)
	binary(catalogue.Minimum, calc.nanMin)
	binary(catalogue.Pow, calc.pow)
	binary(catalogue.Less, func(c calc, a, b float) float { return c.truth(ptx.Lt(c.k, a, b)) })
	binary(catalogue.LessEqual, func(c calc, a, b float) float { return c.truth(ptx.Le(c.k, a, b)) })
	binary(catalogue.Equal, func(c calc, a, b float) float { return c.truth(ptx.Eq(c.k, a, b)) })

	newElementwise(catalogue.FMA, func(c calc, x, _ []float) float { return c.fma(x[0], x[1], x[2]) })
	newElementwise(catalogue.Lerp, func(c calc, x, _ []float) float { return c.fma(x[2], c.sub(x[1], x[0]), x[0]) })
	newElementwise(catalogue.Select, func(c calc, x, _ []float) float { return c.where(ptx.Eq(c.k, x[0], num(0)), x[2], x[1]) })
}
