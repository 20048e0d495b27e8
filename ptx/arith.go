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

// Add is x + y.
func Add[T Number](k *Kernel, x, y Reg[T], mods ...Mod) Reg[T] { return rounded(k, "add", x, y, mods) }

// Sub is x − y.
func Sub[T Number](k *Kernel, x, y Reg[T], mods ...Mod) Reg[T] { return rounded(k, "sub", x, y, mods) }

func rounded[T Number](k *Kernel, op string, x, y Reg[T], mods []Mod) Reg[T] {
	t := typeOf[T]()
	return def[T](k, withMods(op, nearest(t), mods, t.op.String()), x, y)
}

// Mul is x · y, of integers the lower half.
func Mul[T Number](k *Kernel, x, y Reg[T], mods ...Mod) Reg[T] {
	if t := typeOf[T](); !t.op.IsFloat() {
		return def[T](k, withMods("mul.lo", "", mods, t.op.String()), x, y)
	}
	return rounded(k, "mul", x, y, mods)
}

// MulHi is the upper half of x · y.
func MulHi[T Integer](k *Kernel, x, y Reg[T]) Reg[T] {
	return def[T](k, "mul.hi."+typeOf[T]().op.String(), x, y)
}

// Mad is x · y + z, the lower half.
func Mad[T Integer](k *Kernel, x, y, z Reg[T]) Reg[T] {
	return def[T](k, "mad.lo."+typeOf[T]().op.String(), x, y, z)
}

// MadHi is the upper half of x · y, plus z.
func MadHi[T Integer](k *Kernel, x, y, z Reg[T], mods ...Mod) Reg[T] {
	return def[T](k, withMods("mad.hi", "", mods, typeOf[T]().op.String()), x, y, z)
}

// MulWideU32 is the whole product.
func MulWideU32(k *Kernel, x, y Reg[uint32]) Reg[uint64] { return def[uint64](k, "mul.wide.u32", x, y) }

// MulWideS32 is the whole product.
func MulWideS32(k *Kernel, x, y Reg[int32]) Reg[int64] { return def[int64](k, "mul.wide.s32", x, y) }

// MulWideU16 is the whole product.
func MulWideU16(k *Kernel, x, y Reg[uint16]) Reg[uint32] { return def[uint32](k, "mul.wide.u16", x, y) }

// MulWideS16 is the whole product.
func MulWideS16(k *Kernel, x, y Reg[int16]) Reg[int32] { return def[int32](k, "mul.wide.s16", x, y) }

// MadWideU32 is the whole product plus z.
func MadWideU32(k *Kernel, x, y Reg[uint32], z Reg[uint64]) Reg[uint64] {
	return def[uint64](k, "mad.wide.u32", x, y, z)
}

// MadWideS32 is the whole product plus z.
func MadWideS32(k *Kernel, x, y Reg[int32], z Reg[int64]) Reg[int64] {
	return def[int64](k, "mad.wide.s32", x, y, z)
}

// MadWideU16 is the whole product plus z.
func MadWideU16(k *Kernel, x, y Reg[uint16], z Reg[uint32]) Reg[uint32] {
	return def[uint32](k, "mad.wide.u16", x, y, z)
}

// MadWideS16 is the whole product plus z.
func MadWideS16(k *Kernel, x, y Reg[int16], z Reg[int32]) Reg[int32] {
	return def[int32](k, "mad.wide.s16", x, y, z)
}

// Fma is x · y + z, rounded once.
func Fma[T Float](k *Kernel, x, y, z Reg[T], mods ...Mod) Reg[T] {
	return def[T](k, withMods("fma", RN, mods, typeOf[T]().op.String()), x, y, z)
}

// Div is x / y, of integers toward zero. For float32 it takes many instructions; [Approx] and [Full] take few.
func Div[T Index | int16 | uint16 | float32 | float64](k *Kernel, x, y Reg[T], mods ...Mod) Reg[T] {
	t := typeOf[T]()
	return def[T](k, withMods("div", nearest(t), mods, t.op.String()), x, y)
}

// Rem is the remainder of x / y, with the sign of x.
func Rem[T Integer](k *Kernel, x, y Reg[T]) Reg[T] {
	return def[T](k, "rem."+typeOf[T]().op.String(), x, y)
}

// Min is the lesser; of a number and a NaN the number, unless modified by [NaN].
func Min[T Number](k *Kernel, x, y Reg[T], mods ...Mod) Reg[T] {
	return def[T](k, withMods("min", "", mods, typeOf[T]().op.String()), x, y)
}

// Max is the greater; of a number and a NaN the number, unless modified by [NaN].
func Max[T Number](k *Kernel, x, y Reg[T], mods ...Mod) Reg[T] {
	return def[T](k, withMods("max", "", mods, typeOf[T]().op.String()), x, y)
}

// Abs is |x|.
func Abs[T int16 | int32 | int64 | Float](k *Kernel, x Reg[T], mods ...Mod) Reg[T] {
	return def[T](k, withMods("abs", "", mods, typeOf[T]().op.String()), x)
}

// Neg is −x.
func Neg[T int16 | int32 | int64 | Float](k *Kernel, x Reg[T], mods ...Mod) Reg[T] {
	return def[T](k, withMods("neg", "", mods, typeOf[T]().op.String()), x)
}

// Sad is |x − y| + z.
func Sad[T Integer](k *Kernel, x, y, z Reg[T]) Reg[T] {
	return def[T](k, "sad."+typeOf[T]().op.String(), x, y, z)
}

// Sqrt is √x, rounded to nearest or [Approx].
func Sqrt[T float32 | float64](k *Kernel, x Reg[T], mods ...Mod) Reg[T] {
	return def[T](k, withMods("sqrt", RN, mods, typeOf[T]().op.String()), x)
}

// Rcp is 1/x, rounded to nearest or [Approx].
func Rcp[T float32 | float64](k *Kernel, x Reg[T], mods ...Mod) Reg[T] {
	return def[T](k, withMods("rcp", RN, mods, typeOf[T]().op.String()), x)
}

// Rsqrt is 1/√x, approximately.
func Rsqrt[T float32 | float64](k *Kernel, x Reg[T], mods ...Mod) Reg[T] {
	return def[T](k, withMods("rsqrt", Approx, mods, typeOf[T]().op.String()), x)
}

// Sin is the sine, approximately.
func Sin(k *Kernel, x Reg[float32], mods ...Mod) Reg[float32] {
	return def[float32](k, withMods("sin", Approx, mods, "f32"), x)
}

// Cos is the cosine, approximately.
func Cos(k *Kernel, x Reg[float32], mods ...Mod) Reg[float32] {
	return def[float32](k, withMods("cos", Approx, mods, "f32"), x)
}

// Lg2 is the binary logarithm, approximately.
func Lg2(k *Kernel, x Reg[float32], mods ...Mod) Reg[float32] {
	return def[float32](k, withMods("lg2", Approx, mods, "f32"), x)
}

// Ex2 is 2ˣ, approximately. bfloat16 needs [FTZ].
func Ex2[T float32 | F16 | F16x2 | BF16 | BF16x2](k *Kernel, x Reg[T], mods ...Mod) Reg[T] {
	return def[T](k, withMods("ex2", Approx, mods, typeOf[T]().op.String()), x)
}

// Tanh is the hyperbolic tangent, approximately.
func Tanh[T float32 | F16 | F16x2 | BF16 | BF16x2](k *Kernel, x Reg[T]) Reg[T] {
	return def[T](k, "tanh.approx."+typeOf[T]().op.String(), x)
}

// Copysign is |x| with the sign of sign.
func Copysign[T float32 | float64](k *Kernel, x, sign Reg[T]) Reg[T] {
	return def[T](k, "copysign."+typeOf[T]().op.String(), sign, x)
}
