package simd

import (
	"github.com/wavelane/wavelane/internal/simd/engine"
)

// Arithmetic.

// Add computes dst[i] = a[i] + b[i].
func Add(dst, a, b []float32) { engine.AddOp.Binary(dst, a, b) }

// Sub computes dst[i] = a[i] − b[i].
func Sub(dst, a, b []float32) { engine.SubOp.Binary(dst, a, b) }

// Mul computes dst[i] = a[i]·b[i].
func Mul(dst, a, b []float32) { engine.MulOp.Binary(dst, a, b) }

// Div computes dst[i] = a[i]/b[i].
func Div(dst, a, b []float32) { engine.DivOp.Binary(dst, a, b) }

// Maximum computes the larger of a[i] and b[i], NaN if either is NaN.
func Maximum(dst, a, b []float32) { engine.MaximumOp.Binary(dst, a, b) }

// Minimum computes the smaller of a[i] and b[i], NaN if either is NaN.
func Minimum(dst, a, b []float32) { engine.MinimumOp.Binary(dst, a, b) }

// Less computes 1 where a[i] < b[i], else 0.
func Less(dst, a, b []float32) { engine.LessOp.Binary(dst, a, b) }

// LessEqual computes 1 where a[i] ≤ b[i], else 0.
func LessEqual(dst, a, b []float32) { engine.LessEqOp.Binary(dst, a, b) }

// Equal computes 1 where a[i] = b[i], else 0; NaN equals nothing.
func Equal(dst, a, b []float32) { engine.EqualOp.Binary(dst, a, b) }

// Select computes a[i] where cond[i] is not 0, else b[i]. NaN is not 0.
func Select(dst, cond, a, b []float32) { engine.SelectOp.Ternary(dst, cond, a, b) }

// Pow computes a[i] to the power b[i], with C's special values: a negative base takes integer exponents, else gives NaN; x⁰ and
// 1ʸ are 1.
func Pow(dst, a, b []float32) { engine.PowOp.Binary(dst, a, b) }

// CopySign computes a[i] with the sign of b[i].
func CopySign(dst, a, b []float32) { engine.CopySignOp.Binary(dst, a, b) }

// FMA computes dst[i] = a[i]·b[i] + c[i], with one rounding where the processor has that.
func FMA(dst, a, b, c []float32) { engine.FmaOp.Ternary(dst, a, b, c) }

// Lerp computes dst[i] = a[i] + t[i]·(b[i] − a[i]).
func Lerp(dst, a, b, t []float32) { engine.LerpOp.Ternary(dst, a, b, t) }

// AddScalar computes dst[i] = x[i] + s.
func AddScalar(dst, x []float32, s float32) { engine.AddScalarOp.Scalar(dst, x, s) }

// Scale computes dst[i] = factor·x[i].
func Scale(dst, x []float32, factor float32) { engine.ScaleOp.Scalar(dst, x, factor) }

// ScaleAdd computes dst[i] = factor·x[i] + s, with one rounding where the processor has that.
func ScaleAdd(dst, x []float32, factor, s float32) {
	engine.ScaleAddOp.Pair(dst, x, factor, s)
}

// Axpy adds to dst: dst[i] += factor·x[i], with one rounding where the processor has that.
func Axpy(dst, x []float32, factor float32) { engine.Axpy(dst, x, factor) }

// PowScalar computes x[i] to the power exponent; see [Pow].
func PowScalar(dst, x []float32, exponent float32) {
	engine.PowScalarOp.Scalar(dst, x, exponent)
}

// Clip limits x[i] to [low, high]: min(max(x[i], low), high). NaN stays NaN.
func Clip(dst, x []float32, low, high float32) {
	engine.ClipOp.Pair(dst, x, low, high)
}

// Neg computes −x[i].
func Neg(dst, x []float32) { engine.NegOp.Unary(dst, x) }

// Abs computes |x[i]|.
func Abs(dst, x []float32) { engine.AbsOp.Unary(dst, x) }

// Sqrt computes √x[i], correctly rounded; NaN below 0.
func Sqrt(dst, x []float32) { engine.SqrtOp.Unary(dst, x) }

// Recip computes 1/x[i], correctly rounded.
func Recip(dst, x []float32) { engine.RecipOp.Unary(dst, x) }

// Floor computes the largest integer not above x[i].
func Floor(dst, x []float32) { engine.FloorOp.Unary(dst, x) }

// Ceil computes the smallest integer not below x[i].
func Ceil(dst, x []float32) { engine.CeilOp.Unary(dst, x) }

// Round computes the integer nearest to x[i], halves to even.
func Round(dst, x []float32) { engine.RoundOp.Unary(dst, x) }

// Trunc computes x[i] without its fraction.
func Trunc(dst, x []float32) { engine.TruncOp.Unary(dst, x) }

// Fract computes x[i] − trunc(x[i]): the fraction of −1.5 is −0.5.
func Fract(dst, x []float32) { engine.FractOp.Unary(dst, x) }

// Sign computes −1 or 1 by the sign of x[i]; zeros and NaN stay.
func Sign(dst, x []float32) { engine.SignOp.Unary(dst, x) }

// Functions, within 2 ULP of the exact value (Go's math in float64) for every x, results that are denormal included.

// Exp computes eˣ of each element.
func Exp(dst, x []float32) { engine.ExpOp.Unary(dst, x) }

// Expm1 computes eˣ − 1 without loss near 0.
func Expm1(dst, x []float32) { engine.Expm1Op.Unary(dst, x) }

// Log computes the natural logarithm: −Inf of 0, NaN below.
func Log(dst, x []float32) { engine.LogOp.Unary(dst, x) }

// Log2 computes the logarithm of base 2: −Inf of 0, NaN below.
func Log2(dst, x []float32) { engine.Log2Op.Unary(dst, x) }

// Log10 computes the logarithm of base 10: −Inf of 0, NaN below.
func Log10(dst, x []float32) { engine.Log10Op.Unary(dst, x) }

// Sin computes the sine of radians; NaN of ±Inf.
func Sin(dst, x []float32) { engine.SinOp.Unary(dst, x) }

// Cos computes the cosine of radians; NaN of ±Inf.
func Cos(dst, x []float32) { engine.CosOp.Unary(dst, x) }

// Tan computes the tangent of radians; NaN of ±Inf.
func Tan(dst, x []float32) { engine.TanOp.Unary(dst, x) }

// Asin computes the arc sine in radians; NaN beyond ±1.
func Asin(dst, x []float32) { engine.AsinOp.Unary(dst, x) }

// Acos computes the arc cosine in radians; NaN beyond ±1.
func Acos(dst, x []float32) { engine.AcosOp.Unary(dst, x) }

// Atan computes the arc tangent in radians.
func Atan(dst, x []float32) { engine.AtanOp.Unary(dst, x) }

// Sinh computes the hyperbolic sine.
func Sinh(dst, x []float32) { engine.SinhOp.Unary(dst, x) }

// Cosh computes the hyperbolic cosine.
func Cosh(dst, x []float32) { engine.CoshOp.Unary(dst, x) }

// Tanh computes the hyperbolic tangent.
func Tanh(dst, x []float32) { engine.TanhOp.Unary(dst, x) }

// Asinh computes the inverse of the hyperbolic sine.
func Asinh(dst, x []float32) { engine.AsinhOp.Unary(dst, x) }

// Acosh computes the inverse of the hyperbolic cosine; NaN below 1.
func Acosh(dst, x []float32) { engine.AcoshOp.Unary(dst, x) }

// Atanh computes the inverse of the hyperbolic tangent; ±Inf of ±1, NaN beyond.
func Atanh(dst, x []float32) { engine.AtanhOp.Unary(dst, x) }

// Erf computes the error function.
func Erf(dst, x []float32) { engine.ErfOp.Unary(dst, x) }

// Activations, within 2 ULP as well.

// ReLU computes max(x[i], 0).
func ReLU(dst, x []float32) { engine.ReluOp.Unary(dst, x) }

// LeakyReLU computes x[i] where it is not negative, else alpha·x[i].
func LeakyReLU(dst, x []float32, alpha float32) { engine.LeakyOp.Scalar(dst, x, alpha) }

// ELU computes x[i] where it is positive, else alpha·(eˣ − 1).
func ELU(dst, x []float32, alpha float32) { engine.EluOp.Scalar(dst, x, alpha) }

// SELU is ELU with the self-normalising constants of Klambauer et al. (2017).
func SELU(dst, x []float32) { engine.SeluOp.Unary(dst, x) }

// Sigmoid computes 1/(1 + e⁻ˣ).
func Sigmoid(dst, x []float32) { engine.SigmoidOp.Unary(dst, x) }

// GELU computes x·Φ(x) in its tanh form, ½x·(1 + tanh(√(2/π)·(x + 0.044715x³))); 0 of −Inf.
func GELU(dst, x []float32) { engine.GeluOp.Unary(dst, x) }

// GELUErf computes x·Φ(x) = ½x·(1 + erf(x/√2)); 0 of −Inf.
func GELUErf(dst, x []float32) { engine.GeluErfOp.Unary(dst, x) }

// SiLU computes x·sigmoid(x), also known as swish; 0 of −Inf.
func SiLU(dst, x []float32) { engine.SiLUOp.Unary(dst, x) }

// HardSwish computes x·min(max(x + 3, 0), 6)/6; 0 of −Inf.
func HardSwish(dst, x []float32) { engine.HardSwishOp.Unary(dst, x) }

// Mish computes x·tanh(log(1 + eˣ)); 0 of −Inf.
func Mish(dst, x []float32) { engine.MishOp.Unary(dst, x) }

// Softplus computes log(1 + eˣ).
func Softplus(dst, x []float32) { engine.SoftplusOp.Unary(dst, x) }

// FastExp is Exp within a relative error of 8.5e-5, faster: 0 below −87.7, +Inf above 88.4.
func FastExp(dst, x []float32) { engine.FastExpOp.Unary(dst, x) }

// FastTanh is Tanh within a relative error of 5e-5, faster.
func FastTanh(dst, x []float32) { engine.FastTanhOp.Unary(dst, x) }

// FastSigmoid is Sigmoid within a relative error of 8.5e-5, faster: 0 below −88.4.
func FastSigmoid(dst, x []float32) { engine.FastSigmoidOp.Unary(dst, x) }

// FastGELU is GELU within a relative error of 1e-4, faster: 0 below −10.1.
func FastGELU(dst, x []float32) { engine.FastGELUOp.Unary(dst, x) }

// Fill sets all elements to v.
func Fill(dst []float32, v float32) { engine.FillWith(dst, v) }
