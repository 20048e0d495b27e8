package lower

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx"
)

// function computes an entry for one element of each operand; p are the entry's scalars.
type function func(c calc, x, p []float) float

func unary(f func(c calc, x float) float) function {
	return func(c calc, x, _ []float) float { return f(c, x[0]) }
}

func scalar(f func(c calc, x, p float) float) function {
	return func(c calc, x, p []float) float { return f(c, x[0], p[0]) }
}

func pairwise(f func(c calc, a, b float) float) function {
	return func(c calc, x, _ []float) float { return f(c, x[0], x[1]) }
}

func rounding(how ptx.Mod) function {
	return unary(func(c calc, x float) float { return ptx.Round(c.k, x, how) })
}

// gradient is of a function with that slope: of x and dy.
func gradientOf(slope func(c calc, x float) float) function {
	return pairwise(func(c calc, x, dy float) float { return c.mul(dy, slope(c, x)) })
}

// functions are those of the catalogue's elementwise entries.
var functions = map[*program.Entry]function{
	catalogue.Neg:   unary(calc.neg),
	catalogue.Abs:   unary(calc.abs),
	catalogue.Sqrt:  unary(func(c calc, x float) float { return ptx.Sqrt(c.k, x) }),
	catalogue.Recip: unary(func(c calc, x float) float { return ptx.Rcp(c.k, x) }),
	catalogue.Exp:   unary(calc.exp),
	catalogue.Log:   unary(calc.log),
	catalogue.Log2:  unary(calc.log2),
	catalogue.Sin:   unary(func(c calc, x float) float { return c.sine(x, 0) }),
	catalogue.Cos:   unary(func(c calc, x float) float { return c.sine(x, 1) }),
	catalogue.Tanh:  unary(calc.tanh),
	catalogue.Floor: rounding(ptx.RMI),
	catalogue.Ceil:  rounding(ptx.RPI),
	catalogue.Round: rounding(ptx.RNI),
	catalogue.Trunc: rounding(ptx.RZI),
	catalogue.Sign:  unary(calc.sign),

	catalogue.ReLU: unary(calc.relu),
	catalogue.SELU: unary(func(c calc, x float) float {
		return c.mul(c.elu(x, num(catalogue.SELUAlpha)), num(catalogue.SELUScale))
	}),
	catalogue.Sigmoid:   unary(calc.sigmoid),
	catalogue.GELU:      unary(calc.gelu),
	catalogue.GELUErf:   unary(calc.geluErf),
	catalogue.SiLU:      unary(calc.silu),
	catalogue.HardSwish: unary(calc.hardSwish),
	catalogue.Mish:      unary(calc.mish),
	catalogue.Softplus:  unary(calc.softplus),

	catalogue.LeakyReLU: scalar(func(c calc, x, alpha float) float { return c.where(ptx.Lt(c.k, x, num(0)), c.mul(alpha, x), x) }),
	catalogue.ELU:       scalar(calc.elu),
	catalogue.Scale:     scalar(calc.mul),
	catalogue.PowScalar: scalar(calc.pow),
	catalogue.Clip:      func(c calc, x, p []float) float { return c.nanMin(c.nanMax(x[0], p[0]), p[1]) },

	catalogue.Add:       pairwise(calc.add),
	catalogue.Sub:       pairwise(calc.sub),
	catalogue.Mul:       pairwise(calc.mul),
	catalogue.Div:       pairwise(func(c calc, a, b float) float { return ptx.Div(c.k, a, b) }),
	catalogue.Maximum:   pairwise(calc.nanMax),
	catalogue.Minimum:   pairwise(calc.nanMin),
	catalogue.Pow:       pairwise(calc.pow),
	catalogue.Less:      pairwise(func(c calc, a, b float) float { return c.truth(ptx.Lt(c.k, a, b)) }),
	catalogue.LessEqual: pairwise(func(c calc, a, b float) float { return c.truth(ptx.Le(c.k, a, b)) }),
	catalogue.Equal:     pairwise(func(c calc, a, b float) float { return c.truth(ptx.Eq(c.k, a, b)) }),

	catalogue.FMA:    func(c calc, x, _ []float) float { return c.fma(x[0], x[1], x[2]) },
	catalogue.Lerp:   func(c calc, x, _ []float) float { return c.fma(x[2], c.sub(x[1], x[0]), x[0]) },
	catalogue.Select: func(c calc, x, _ []float) float { return c.where(ptx.Eq(c.k, x[0], num(0)), x[2], x[1]) },

	catalogue.ClipByNorm: func(c calc, x, p []float) float {
		by := c.nanMin(num(1), c.mul(p[0], ptx.Rsqrt(c.k, x[1])))
		return c.mul(x[0], c.where(ptx.Eq(c.k, x[1], num(0)), num(1), by)) // 1/√−0 is −Inf
	},

	catalogue.SwiGLU: pairwise(func(c calc, a, b float) float { return c.mul(c.silu(a), b) }),

	catalogue.GELUBackward:    gradientOf(calc.geluSlope),
	catalogue.GELUErfBackward: gradientOf(calc.geluErfSlope),
	catalogue.SiLUBackward:    gradientOf(calc.siluSlope),
	catalogue.ReLUBackward: pairwise(func(c calc, x, dy float) float {
		known := c.where(ptx.Gt(c.k, x, num(0)), dy, x) // dy, or NaN
		return c.where(ptx.Le(c.k, x, num(0)), num(0), known)
	}),
}
