package scalar

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx"
)

// Function computes an entry for one element of each operand; p are the entry's scalars.
type Function func(c Math, x, p []Float) Float

func unary(f func(c Math, x Float) Float) Function {
	return func(c Math, x, _ []Float) Float { return f(c, x[0]) }
}

func withScalar(f func(c Math, x, p Float) Float) Function {
	return func(c Math, x, p []Float) Float { return f(c, x[0], p[0]) }
}

func pairwise(f func(c Math, a, b Float) Float) Function {
	return func(c Math, x, _ []Float) Float { return f(c, x[0], x[1]) }
}

func rounding(how ptx.Mod) Function {
	return unary(func(c Math, x Float) Float { return x.Round(how) })
}

// gradient is of a function with that slope: of x and dy.
func gradientOf(slope func(c Math, x Float) Float) Function {
	return pairwise(func(c Math, x, dy Float) Float { return dy.Mul(slope(c, x)) })
}

// Functions are those of the catalogue's elementwise entries.
var Functions = map[*program.Entry]Function{
	catalogue.Neg:   unary(func(_ Math, x Float) Float { return x.Neg() }),
	catalogue.Abs:   unary(func(_ Math, x Float) Float { return x.Abs() }),
	catalogue.Sqrt:  unary(func(c Math, x Float) Float { return x.Sqrt() }),
	catalogue.Recip: unary(func(c Math, x Float) Float { return x.Rcp() }),
	catalogue.Exp:   unary(Math.exp),
	catalogue.Log:   unary(Math.Log),
	catalogue.Log2:  unary(Math.log2),
	catalogue.Sin:   unary(func(c Math, x Float) Float { return c.Sine(x, 0) }),
	catalogue.Cos:   unary(func(c Math, x Float) Float { return c.Sine(x, 1) }),
	catalogue.Tanh:  unary(Math.Tanh),
	catalogue.Floor: rounding(ptx.RMI),
	catalogue.Ceil:  rounding(ptx.RPI),
	catalogue.Round: rounding(ptx.RNI),
	catalogue.Trunc: rounding(ptx.RZI),
	catalogue.Sign:  unary(Math.sign),

	catalogue.ReLU: unary(Math.relu),
	catalogue.SELU: unary(func(c Math, x Float) Float {
		return c.elu(x, ptx.F32(catalogue.SELUAlpha)).Mul(catalogue.SELUScale)
	}),
	catalogue.Sigmoid:   unary(Math.sigmoid),
	catalogue.GELU:      unary(Math.gelu),
	catalogue.GELUErf:   unary(Math.geluErf),
	catalogue.SiLU:      unary(Math.Silu),
	catalogue.HardSwish: unary(Math.hardSwish),
	catalogue.Mish:      unary(Math.mish),
	catalogue.Softplus:  unary(Math.softplus),

	catalogue.LeakyReLU: withScalar(func(c Math, x, alpha Float) Float { return c.Where(x.Lt(0), alpha.Mul(x), x) }),
	catalogue.ELU:       withScalar(Math.elu),
	catalogue.Scale:     withScalar(func(_ Math, x, p Float) Float { return x.Mul(p) }),
	catalogue.PowScalar: withScalar(Math.pow),
	catalogue.Clip:      func(c Math, x, p []Float) Float { return c.nanMin(c.NanMax(x[0], p[0]), p[1]) },

	catalogue.Add:       pairwise(func(_ Math, a, b Float) Float { return a.Add(b) }),
	catalogue.Sub:       pairwise(func(_ Math, a, b Float) Float { return a.Sub(b) }),
	catalogue.Mul:       pairwise(func(_ Math, a, b Float) Float { return a.Mul(b) }),
	catalogue.Div:       pairwise(func(c Math, a, b Float) Float { return a.Div(b) }),
	catalogue.Maximum:   pairwise(Math.NanMax),
	catalogue.Minimum:   pairwise(Math.nanMin),
	catalogue.Pow:       pairwise(Math.pow),
	catalogue.Less:      pairwise(func(c Math, a, b Float) Float { return c.truth(a.Lt(b)) }),
	catalogue.LessEqual: pairwise(func(c Math, a, b Float) Float { return c.truth(a.Le(b)) }),
	catalogue.Equal:     pairwise(func(c Math, a, b Float) Float { return c.truth(a.Eq(b)) }),

	catalogue.FMA:    func(c Math, x, _ []Float) Float { return x[0].Fma(x[1], x[2]) },
	catalogue.Lerp:   func(c Math, x, _ []Float) Float { return x[2].Fma(x[1].Sub(x[0]), x[0]) },
	catalogue.Select: func(c Math, x, _ []Float) Float { return c.Where(x[0].Eq(0), x[2], x[1]) },

	catalogue.ClipByNorm: func(c Math, x, p []Float) Float {
		by := c.nanMin(ptx.F32(1), p[0].Mul(x[1].Rsqrt()))
		return x[0].Mul(c.Where(x[1].Eq(0), ptx.F32(1), by)) // 1/√−0 is −Inf
	},

	catalogue.SwiGLU: pairwise(func(c Math, a, b Float) Float { return c.Silu(a).Mul(b) }),

	catalogue.GELUBackward:    gradientOf(Math.geluSlope),
	catalogue.GELUErfBackward: gradientOf(Math.geluErfSlope),
	catalogue.SiLUBackward:    gradientOf(Math.SiluSlope),
	catalogue.ReLUBackward: pairwise(func(c Math, x, dy Float) Float {
		known := c.Where(x.Gt(0), dy, x) // dy, or NaN
		return c.Where(x.Le(0), ptx.F32(0), known)
	}),
}
