package ptx

import (
	"slices"
	"strings"
)

// Mod changes how an instruction computes. An instruction that has no such form is an error of Build.
type Mod string

// The modifiers. Arithmetic on floating-point numbers rounds to nearest even unless told otherwise, and is never
// contracted.
const (
	RN         Mod = "rn"          // to nearest, ties to even
	RZ         Mod = "rz"          // toward zero
	RM         Mod = "rm"          // toward −∞
	RP         Mod = "rp"          // toward +∞
	RNA        Mod = "rna"         // to nearest, ties away from zero
	RNI        Mod = "rni"         // to an integer: nearest, ties to even
	RZI        Mod = "rzi"         // toward zero
	RMI        Mod = "rmi"         // toward −∞
	RPI        Mod = "rpi"         // toward +∞
	Approx     Mod = "approx"      // within the documented error
	Full       Mod = "full"        // division within 2 ulp over the full range
	FTZ        Mod = "ftz"         // denormals are zero
	NaN        Mod = "NaN"         // a NaN operand makes the result NaN
	XorSignAbs Mod = "xorsign.abs" // minimum of the absolute values, with the product's sign
	Sat        Mod = "sat"         // clamp to [0, 1], or to the type's range
	Relu       Mod = "relu"        // clamp to at least 0
	SatFinite  Mod = "satfinite"   // clamp to the largest finite number
)

// modOrder is the order in opcodes; those up to full exclude each other.
var modOrder = []Mod{RN, RZ, RM, RP, RNA, RNI, RZI, RMI, RPI, Approx, Full, FTZ, NaN, XorSignAbs, SatFinite, Sat, Relu}

// withMods is the opcode with its modifiers in order and its type, rounding as first says unless a modifier rounds.
func withMods(op string, first Mod, mods []Mod, types ...string) string {
	rounds := func(m Mod) bool { return slices.Index(modOrder, m) <= slices.Index(modOrder, Full) }
	if first != "" && !slices.ContainsFunc(mods, rounds) {
		mods = append([]Mod{first}, mods...)
	}
	if len(mods) > 1 {
		mods = slices.Clone(mods)
		slices.SortStableFunc(mods, func(a, b Mod) int { return slices.Index(modOrder, a) - slices.Index(modOrder, b) })
		mods = slices.Compact(mods)
	}
	var b strings.Builder
	b.WriteString(op)
	for _, m := range mods {
		b.WriteByte('.')
		b.WriteString(string(m))
	}
	for _, t := range types {
		b.WriteByte('.')
		b.WriteString(t)
	}
	return b.String()
}

// nearest is the rounding of a type: none for integers.
func nearest(t *typeInfo) Mod {
	if t.op.IsFloat() {
		return RN
	}
	return ""
}

// opcode is an operation with its modifiers on a type's numbers, rounded to nearest unless a modifier rounds.
func (r Reg[T]) opcode(name string, mods []Mod) string {
	t := typeOf[T]()
	return withMods(name, nearest(t), mods, t.op.String())
}

// plain is an operation with its modifiers on a type's numbers, without rounding.
func (r Reg[T]) plain(name string, mods ...Mod) string {
	return withMods(name, "", mods, typeOf[T]().op.String())
}

// Add is x + y.
func (x Reg[T]) Add(y any, mods ...Mod) Reg[T] { return x.op(x.opcode("add", mods), y) }

// Sub is x − y.
func (x Reg[T]) Sub(y any, mods ...Mod) Reg[T] { return x.op(x.opcode("sub", mods), y) }

// Mul is x · y, of integers the lower half.
func (x Reg[T]) Mul(y any, mods ...Mod) Reg[T] {
	if !typeOf[T]().op.IsFloat() {
		return x.op(x.plain("mul.lo", mods...), y)
	}
	return x.op(x.opcode("mul", mods), y)
}

// MulHi is the upper half of x · y.
func (x Reg[T]) MulHi(y any) Reg[T] { return x.op(x.plain("mul.hi"), y) }

// Mad is x · y + z of integers, the lower half.
func (x Reg[T]) Mad(y, z any) Reg[T] { return x.op(x.plain("mad.lo"), y, z) }

// MadHi is the upper half of x · y, plus z.
func (x Reg[T]) MadHi(y, z any, mods ...Mod) Reg[T] { return x.op(x.plain("mad.hi", mods...), y, z) }

// MulWide is the whole product of two numbers of type uint32. For other types there is [WideProduct].
func (x Reg[T]) MulWide(y any) Reg[uint64] { return WideProduct[uint64](x, y) }

// MadWide is the whole product of two numbers of type uint32, plus z.
func (x Reg[T]) MadWide(y, z any) Reg[uint64] { return WideSum[uint64](x, y, z) }

// WideProduct is the whole product of two numbers of half of U's width.
func WideProduct[U, T Type](x Reg[T], y any) Reg[U] {
	return to[U](x, "mul.wide."+typeOf[T]().op.String(), y).widened(typeOf[T]())
}

// WideSum is the whole product of two numbers of half of U's width, plus z, which is a U.
func WideSum[U, T Type](x Reg[T], y, z any) Reg[U] {
	k := kernelOf(x, y, z)
	if k == nil {
		return noKernel[U]()
	}
	return def[U](k, "mad.wide."+typeOf[T]().op.String(), x, lift[T](k, y), lift[U](k, z)).widened(typeOf[T]())
}

// widened is x, which is to be twice as wide as what it was made of.
func (x Reg[T]) widened(from *typeInfo) Reg[T] {
	if t := typeOf[T](); x.v.k != nil && (t.op.Bits() != 2*from.op.Bits() || t.op.IsSigned() != from.op.IsSigned()) {
		x.v.k.fail("the wide product of two numbers %s as a %s", from.name, t.name)
	}
	return x
}

// Fma is x · y + z of floating-point numbers, rounded once.
func (x Reg[T]) Fma(y, z any, mods ...Mod) Reg[T] {
	return x.op(withMods("fma", RN, mods, typeOf[T]().op.String()), y, z)
}

// Div is x / y, of integers toward zero. For float32 it takes many instructions; [Approx] and [Full] take few.
func (x Reg[T]) Div(y any, mods ...Mod) Reg[T] { return x.op(x.opcode("div", mods), y) }

// Rem is the remainder of x / y, with the sign of x.
func (x Reg[T]) Rem(y any) Reg[T] { return x.op(x.plain("rem"), y) }

// Min is the lesser; of a number and a NaN the number, unless modified by [NaN].
func (x Reg[T]) Min(y any, mods ...Mod) Reg[T] { return x.op(x.plain("min", mods...), y) }

// Max is the greater; of a number and a NaN the number, unless modified by [NaN].
func (x Reg[T]) Max(y any, mods ...Mod) Reg[T] { return x.op(x.plain("max", mods...), y) }

// Abs is |x|.
func (x Reg[T]) Abs(mods ...Mod) Reg[T] { return x.op(x.plain("abs", mods...)) }

// Neg is −x.
func (x Reg[T]) Neg(mods ...Mod) Reg[T] { return x.op(x.plain("neg", mods...)) }

// Sad is |x − y| + z.
func (x Reg[T]) Sad(y, z any) Reg[T] { return x.op(x.plain("sad"), y, z) }

// Sqrt is √x, rounded to nearest or [Approx].
func (x Reg[T]) Sqrt(mods ...Mod) Reg[T] { return x.function("sqrt", RN, mods) }

// Rcp is 1/x, rounded to nearest or [Approx].
func (x Reg[T]) Rcp(mods ...Mod) Reg[T] { return x.function("rcp", RN, mods) }

// Rsqrt is 1/√x, approximately.
func (x Reg[T]) Rsqrt(mods ...Mod) Reg[T] { return x.function("rsqrt", Approx, mods) }

// Sin is the sine, approximately.
func (x Reg[T]) Sin(mods ...Mod) Reg[T] { return x.function("sin", Approx, mods) }

// Cos is the cosine, approximately.
func (x Reg[T]) Cos(mods ...Mod) Reg[T] { return x.function("cos", Approx, mods) }

// Lg2 is the binary logarithm, approximately.
func (x Reg[T]) Lg2(mods ...Mod) Reg[T] { return x.function("lg2", Approx, mods) }

// Ex2 is 2ˣ, approximately. bfloat16 needs [FTZ].
func (x Reg[T]) Ex2(mods ...Mod) Reg[T] { return x.function("ex2", Approx, mods) }

// Tanh is the hyperbolic tangent, approximately.
func (x Reg[T]) Tanh() Reg[T] { return x.function("tanh", Approx, nil) }

func (x Reg[T]) function(name string, first Mod, mods []Mod) Reg[T] {
	return x.op(withMods(name, first, mods, typeOf[T]().op.String()))
}

// Copysign is |x| with the sign of sign.
func (x Reg[T]) Copysign(sign any) Reg[T] {
	k := kernelOf(x, sign)
	if k == nil {
		return noKernel[T]()
	}
	k.admit("copysign", typeOf[T]())
	return def[T](k, x.plain("copysign"), lift[T](k, sign), x)
}
