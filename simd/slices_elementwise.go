package simd

// Arithmetic.

// Add computes dst[i] = a[i] + b[i].
func Add(dst, a, b []float32) { addOp.binary(dst, a, b) }

// Sub computes dst[i] = a[i] − b[i].
func Sub(dst, a, b []float32) { subOp.binary(dst, a, b) }

// Mul computes dst[i] = a[i]·b[i].
func Mul(dst, a, b []float32) { mulOp.binary(dst, a, b) }

// Div computes dst[i] = a[i]/b[i].
func Div(dst, a, b []float32) { divOp.binary(dst, a, b) }

// Maximum computes the larger of a[i] and b[i], NaN if either is NaN.
func Maximum(dst, a, b []float32) { maximumOp.binary(dst, a, b) }

// Minimum computes the smaller of a[i] and b[i], NaN if either is NaN.
func Minimum(dst, a, b []float32) { minimumOp.binary(dst, a, b) }

// Less computes 1 where a[i] < b[i], else 0.
func Less(dst, a, b []float32) { lessOp.binary(dst, a, b) }

// LessEqual computes 1 where a[i] ≤ b[i], else 0.
func LessEqual(dst, a, b []float32) { lessEqOp.binary(dst, a, b) }

// Equal computes 1 where a[i] = b[i], else 0; NaN equals nothing.
func Equal(dst, a, b []float32) { equalOp.binary(dst, a, b) }

// Select computes a[i] where cond[i] is not 0, else b[i]. NaN is not 0.
func Select(dst, cond, a, b []float32) { selectOp.ternary(dst, cond, a, b) }

// Pow computes a[i] to the power b[i], with C's special values: a negative base takes integer exponents, else gives NaN; x⁰ and
// 1ʸ are 1.
func Pow(dst, a, b []float32) { powOp.binary(dst, a, b) }

// CopySign computes a[i] with the sign of b[i].
func CopySign(dst, a, b []float32) { copySignOp.binary(dst, a, b) }

// FMA computes dst[i] = a[i]·b[i] + c[i], with one rounding where the processor has that.
func FMA(dst, a, b, c []float32) { fmaOp.ternary(dst, a, b, c) }

// Lerp computes dst[i] = a[i] + t[i]·(b[i] − a[i]).
func Lerp(dst, a, b, t []float32) { lerpOp.ternary(dst, a, b, t) }

// AddScalar computes dst[i] = x[i] + s.
func AddScalar(dst, x []float32, s float32) { addScalarOp.unary(dst, x, numbers{s}) }

// Scale computes dst[i] = factor·x[i].
func Scale(dst, x []float32, factor float32) { scaleOp.unary(dst, x, numbers{factor}) }

// ScaleAdd computes dst[i] = factor·x[i] + s, with one rounding where the processor has that.
func ScaleAdd(dst, x []float32, factor, s float32) { scaleAddOp.unary(dst, x, numbers{factor, s}) }

// Axpy adds to dst: dst[i] += factor·x[i], with one rounding where the processor has that.
func Axpy(dst, x []float32, factor float32) { axpyOp.unary(dst, x, numbers{factor}) }

// PowScalar computes x[i] to the power exponent; see [Pow].
func PowScalar(dst, x []float32, exponent float32) { powScalarOp.unary(dst, x, numbers{exponent}) }

// Clip limits x[i] to [low, high]: min(max(x[i], low), high). NaN stays.
func Clip(dst, x []float32, low, high float32) { clipOp.unary(dst, x, numbers{low, high}) }

// Neg computes −x[i].
func Neg(dst, x []float32) { negOp.unary(dst, x, numbers{}) }

// Abs computes |x[i]|.
func Abs(dst, x []float32) { absOp.unary(dst, x, numbers{}) }

// Sqrt computes √x[i], rounded right; NaN below 0.
func Sqrt(dst, x []float32) { sqrtOp.unary(dst, x, numbers{}) }

// Recip computes 1/x[i], rounded right.
func Recip(dst, x []float32) { recipOp.unary(dst, x, numbers{}) }

// Floor computes the largest integer not above x[i].
func Floor(dst, x []float32) { floorOp.unary(dst, x, numbers{}) }

// Ceil computes the smallest integer not below x[i].
func Ceil(dst, x []float32) { ceilOp.unary(dst, x, numbers{}) }

// Round computes the integer nearest to x[i], halves to even.
func Round(dst, x []float32) { roundOp.unary(dst, x, numbers{}) }

// Trunc computes x[i] without its fraction.
func Trunc(dst, x []float32) { truncOp.unary(dst, x, numbers{}) }

// Fract computes x[i] − trunc(x[i]): the fraction of −1.5 is −0.5.
func Fract(dst, x []float32) { fractOp.unary(dst, x, numbers{}) }

// Sign computes −1 or 1 by the sign of x[i]; zeros and NaN stay.
func Sign(dst, x []float32) { signOp.unary(dst, x, numbers{}) }

// Functions, within 2 ULP of the exact value (Go's math in float64) for every x, results that are denormal included.

// Exp computes eˣ of each element.
func Exp(dst, x []float32) { expOp.unary(dst, x, numbers{}) }

// Expm1 computes eˣ − 1 without loss near 0.
func Expm1(dst, x []float32) { expm1Op.unary(dst, x, numbers{}) }

// Log computes the natural logarithm: −Inf of 0, NaN below.
func Log(dst, x []float32) { logOp.unary(dst, x, numbers{}) }

// Log2 computes the logarithm of base 2: −Inf of 0, NaN below.
func Log2(dst, x []float32) { log2Op.unary(dst, x, numbers{}) }

// Log10 computes the logarithm of base 10: −Inf of 0, NaN below.
func Log10(dst, x []float32) { log10Op.unary(dst, x, numbers{}) }

// Sin computes the sine of radians; NaN of ±Inf.
func Sin(dst, x []float32) { sinOp.unary(dst, x, numbers{}) }

// Cos computes the cosine of radians; NaN of ±Inf.
func Cos(dst, x []float32) { cosOp.unary(dst, x, numbers{}) }

// Tan computes the tangent of radians; NaN of ±Inf.
func Tan(dst, x []float32) { tanOp.unary(dst, x, numbers{}) }

// Asin computes the arc sine in radians; NaN beyond ±1.
func Asin(dst, x []float32) { asinOp.unary(dst, x, numbers{}) }

// Acos computes the arc cosine in radians; NaN beyond ±1.
func Acos(dst, x []float32) { acosOp.unary(dst, x, numbers{}) }

// Atan computes the arc tangent in radians.
func Atan(dst, x []float32) { atanOp.unary(dst, x, numbers{}) }

// Sinh computes the hyperbolic sine.
func Sinh(dst, x []float32) { sinhOp.unary(dst, x, numbers{}) }

// Cosh computes the hyperbolic cosine.
func Cosh(dst, x []float32) { coshOp.unary(dst, x, numbers{}) }

// Tanh computes the hyperbolic tangent.
func Tanh(dst, x []float32) { tanhOp.unary(dst, x, numbers{}) }

// Asinh computes the inverse of the hyperbolic sine.
func Asinh(dst, x []float32) { asinhOp.unary(dst, x, numbers{}) }

// Acosh computes the inverse of the hyperbolic cosine; NaN below 1.
func Acosh(dst, x []float32) { acoshOp.unary(dst, x, numbers{}) }

// Atanh computes the inverse of the hyperbolic tangent; ±Inf of ±1, NaN beyond.
func Atanh(dst, x []float32) { atanhOp.unary(dst, x, numbers{}) }

// Erf computes the error function.
func Erf(dst, x []float32) { erfOp.unary(dst, x, numbers{}) }

// Activations, within 2 ULP as well.

// ReLU computes max(x[i], 0).
func ReLU(dst, x []float32) { reluOp.unary(dst, x, numbers{}) }

// LeakyReLU computes x[i] where it is not negative, else alpha·x[i].
func LeakyReLU(dst, x []float32, alpha float32) { leakyOp.unary(dst, x, numbers{alpha}) }

// ELU computes x[i] where it is positive, else alpha·(eˣ − 1).
func ELU(dst, x []float32, alpha float32) { eluOp.unary(dst, x, numbers{alpha}) }

// SELU is ELU with the self-normalising constants of Klambauer et al. (2017).
func SELU(dst, x []float32) { seluOp.unary(dst, x, numbers{}) }

// Sigmoid computes 1/(1 + e⁻ˣ).
func Sigmoid(dst, x []float32) { sigmoidOp.unary(dst, x, numbers{}) }

// GELU computes x·Φ(x) in its tanh form, ½x·(1 + tanh(√(2/π)·(x + 0.044715x³))); 0 of −Inf.
func GELU(dst, x []float32) { geluOp.unary(dst, x, numbers{}) }

// GELUErf computes x·Φ(x) = ½x·(1 + erf(x/√2)); 0 of −Inf.
func GELUErf(dst, x []float32) { geluErfOp.unary(dst, x, numbers{}) }

// Swish computes x·sigmoid(x), also known as SiLU; 0 of −Inf.
func Swish(dst, x []float32) { swishOp.unary(dst, x, numbers{}) }

// HardSwish computes x·min(max(x + 3, 0), 6)/6; 0 of −Inf.
func HardSwish(dst, x []float32) { hardSwishOp.unary(dst, x, numbers{}) }

// Mish computes x·tanh(log(1 + eˣ)); 0 of −Inf.
func Mish(dst, x []float32) { mishOp.unary(dst, x, numbers{}) }

// Softplus computes log(1 + eˣ).
func Softplus(dst, x []float32) { softplusOp.unary(dst, x, numbers{}) }

// FastExp is Exp within a relative error of 8.5e-5, faster: 0 below −87.7, +Inf above 88.4.
func FastExp(dst, x []float32) { fastExpOp.unary(dst, x, numbers{}) }

// FastTanh is Tanh within a relative error of 5e-5, faster.
func FastTanh(dst, x []float32) { fastTanhOp.unary(dst, x, numbers{}) }

// FastSigmoid is Sigmoid within a relative error of 8.5e-5, faster: 0 below −88.4.
func FastSigmoid(dst, x []float32) { fastSigmoidOp.unary(dst, x, numbers{}) }

// FastGELU is GELU within a relative error of 1e-4, faster: 0 below −10.1.
func FastGELU(dst, x []float32) { fastGELUOp.unary(dst, x, numbers{}) }

// Fill sets all elements to v.
func Fill(dst []float32, v float32) { fillWith(dst, v) }
