package ptx

// Convertible is what Convert converts.
type Convertible interface {
	int8 | uint8 | Scalar
}

// Convert is x as a U, with the meaning of Go's conversion: integers lose their upper bits, floating-point numbers round
// to nearest, and toward zero when they become integers, which saturate. Modifiers round otherwise, or saturate ([Sat],
// [Relu], [FTZ]).
func Convert[U, T Convertible](x Reg[T], mods ...Mod) Reg[U] {
	to, from := typeOf[U](), typeOf[T]()
	if to == from && len(mods) == 0 {
		return Reg[U](x)
	}
	var round Mod
	switch {
	case from.op.IsFloat() && !to.op.IsFloat():
		round = RZI
	case to.op.IsFloat() && (!from.op.IsFloat() || to.op.Bits() < from.op.Bits()):
		round = RN
	case to.op.IsFloat() && from.op.IsFloat() && to.op.Bits() == from.op.Bits() && to != from:
		round = RN // between F16 and BF16
	case !from.op.IsFloat() && to.op.Bits() == from.op.Bits() && to.op.Bits() >= 16 && len(mods) == 0:
		return Reg[U](x) // the same bits in the same register
	}
	k := kernelOf(x)
	if k == nil {
		return noKernel[U]()
	}
	if from.op.Bits() <= 16 { // literals have 32 bits at least
		x = inRegister(k, x)
	}
	return def[U](k, withMods("cvt", round, mods, to.op.String(), from.op.String()), x)
}

// Round is x rounded to an integer: by [RNI], [RZI], [RMI] (floor) or [RPI] (ceiling).
func (x Reg[T]) Round(how Mod, mods ...Mod) Reg[T] {
	t := typeOf[T]().op.String()
	return x.op(withMods("cvt", "", append([]Mod{how}, mods...), t, t))
}

// Bitcast is the bits of x as a U of the same size. Between integers, and packed values of their size, it takes no
// instruction.
func Bitcast[U, T Elem](x Reg[T]) Reg[U] {
	to, from := typeOf[U](), typeOf[T]()
	k := kernelOf(x)
	switch {
	case to.size() != from.size():
		if k != nil {
			k.fail("bits of a %s as a %s: the sizes differ", from.name, to.name)
			return Reg[U]{k.fresh(to)}
		}
		return noKernel[U]()
	case k == nil || to.reg == from.reg:
		return Reg[U](x)
	}
	return def[U](k, "mov."+to.bits.String(), x)
}

// pack joins values into one of their total size, the first lowest.
func pack[U, T Elem](parts ...Reg[T]) Reg[U] {
	var operandsOf []any
	for _, p := range parts {
		operandsOf = append(operandsOf, p)
	}
	k := kernelOf(operandsOf...)
	if k == nil {
		return noKernel[U]()
	}
	return def[U](k, "mov."+typeOf[U]().bits.String(), operands(allInRegisters(k, parts)))
}

// unpack takes a value apart, the lowest part first.
func unpack[U, T Elem](x Reg[T], n int) []Reg[U] {
	k := kernelOf(x)
	if k == nil {
		parts := make([]Reg[U], n)
		for i := range parts {
			parts[i] = noKernel[U]()
		}
		return parts
	}
	parts, out := several[U](k, n)
	k.emit("mov."+typeOf[T]().bits.String(), out, inRegister(k, x))
	return parts
}

// Pack64 is hi:lo.
func Pack64(lo, hi Reg[uint32]) Reg[uint64] { return pack[uint64](lo, hi) }

// Unpack64 is the halves of x.
func Unpack64(x Reg[uint64]) (lo, hi Reg[uint32]) {
	p := unpack[uint32](x, 2)
	return p[0], p[1]
}

// Pack32 is hi:lo.
func Pack32(lo, hi Reg[uint16]) Reg[uint32] { return pack[uint32](lo, hi) }

// Unpack32 is the halves of x.
func Unpack32(x Reg[uint32]) (lo, hi Reg[uint16]) {
	p := unpack[uint16](x, 2)
	return p[0], p[1]
}

// PackF16 is the pair of lo and hi.
func PackF16(lo, hi Reg[F16]) Reg[F16x2] { return pack[F16x2](lo, hi) }

// UnpackF16 is the halves of x.
func UnpackF16(x Reg[F16x2]) (lo, hi Reg[F16]) {
	p := unpack[F16](x, 2)
	return p[0], p[1]
}

// PackBF16 is the pair of lo and hi.
func PackBF16(lo, hi Reg[BF16]) Reg[BF16x2] { return pack[BF16x2](lo, hi) }

// UnpackBF16 is the halves of x.
func UnpackBF16(x Reg[BF16x2]) (lo, hi Reg[BF16]) {
	p := unpack[BF16](x, 2)
	return p[0], p[1]
}

// PackF32 is the pair of lo and hi.
func PackF32(lo, hi Reg[float32]) Reg[F32x2] { return pack[F32x2](lo, hi) }

// UnpackF32 is the halves of x.
func UnpackF32(x Reg[F32x2]) (lo, hi Reg[float32]) {
	p := unpack[float32](x, 2)
	return p[0], p[1]
}

// WidenBF16 is x as a float32, exactly, on every target: by a shift, where Convert needs sm_90.
func WidenBF16(x Reg[BF16]) Reg[float32] {
	k := kernelOf(x)
	if k == nil {
		return noKernel[float32]()
	}
	return def[float32](k, "mov.b32", vector{inRegister(k, Imm[uint16](0)), inRegister(k, x)})
}

// ConvertPair is lo and hi, each rounded, as a pair. [Relu] makes negative numbers zero.
func ConvertPair[U F16x2 | BF16x2](lo, hi Reg[float32], mods ...Mod) Reg[U] {
	k := kernelOf(lo, hi)
	if k == nil {
		return noKernel[U]()
	}
	return def[U](k, withMods("cvt", RN, mods, typeOf[U]().op.String(), "f32"), hi, lo)
}

// ConvertPairFP8 is lo and hi, each rounded and clamped to the finite range, as a pair of bytes.
func ConvertPairFP8[U E4M3x2 | E5M2x2](lo, hi Reg[float32], mods ...Mod) Reg[U] {
	k := kernelOf(lo, hi)
	if k == nil {
		return noKernel[U]()
	}
	return def[U](k, withMods("cvt", RN, append([]Mod{SatFinite}, mods...), typeOf[U]().op.String(), "f32"), hi, lo)
}

// NarrowFP8 is a pair of halves, each rounded and clamped to the finite range, as a pair of bytes.
func NarrowFP8[U E4M3x2 | E5M2x2](x Reg[F16x2], mods ...Mod) Reg[U] {
	k := kernelOf(x)
	if k == nil {
		return noKernel[U]()
	}
	return def[U](k, withMods("cvt", RN, append([]Mod{SatFinite}, mods...), typeOf[U]().op.String(), "f16x2"), x)
}

// WidenFP8 is a pair of 8-bit floats as a pair of halves, exactly.
func WidenFP8[T E4M3x2 | E5M2x2](x Reg[T], mods ...Mod) Reg[F16x2] {
	k := kernelOf(x)
	if k == nil {
		return noKernel[F16x2]()
	}
	return def[F16x2](k, withMods("cvt", RN, mods, "f16x2", typeOf[T]().op.String()), x)
}

// ConvertTF32 is x rounded to the 19 bits that tensor cores read, ties away from zero unless modified by [RN] or [RZ].
func ConvertTF32(x Reg[float32], mods ...Mod) Reg[TF32] {
	k := kernelOf(x)
	if k == nil {
		return noKernel[TF32]()
	}
	return def[TF32](k, withMods("cvt", RNA, mods, "tf32", "f32"), x)
}

// PackS8 is four integers clamped to signed bytes, x0 lowest.
func PackS8(x0, x1, x2, x3 Reg[int32]) Reg[S8x4] {
	k := kernelOf(x0, x1, x2, x3)
	if k == nil {
		return noKernel[S8x4]()
	}
	upper := def[S8x4](k, "cvt.pack.sat.s8.s32.b32", x3, x2, Imm[int32](0))
	return def[S8x4](k, "cvt.pack.sat.s8.s32.b32", x1, x0, upper)
}

// PackU8 is four integers clamped to unsigned bytes, x0 lowest.
func PackU8(x0, x1, x2, x3 Reg[int32]) Reg[U8x4] {
	k := kernelOf(x0, x1, x2, x3)
	if k == nil {
		return noKernel[U8x4]()
	}
	upper := def[U8x4](k, "cvt.pack.sat.u8.s32.b32", x3, x2, Imm[int32](0))
	return def[U8x4](k, "cvt.pack.sat.u8.s32.b32", x1, x0, upper)
}
