package eval

import "github.com/wavelane/wavelane/ptx/ir"

const convertible = "u8 s8 " + allInts + " f16 bf16 f32 f64"

func addConversions(add adder) {
	add("cvt",
		row{convertible, "rn rz rm rp rna rni rzi rmi rpi ftz sat relu satfinite", 1, 1, cvt},
		row{"tf32", "rn rz rna relu satfinite", 1, 1, cvt},
		row{"f16x2 bf16x2 e4m3x2 e5m2x2", "rn rz relu satfinite", 1, 2, cvtPacked})
	add("cvt.pack", row{"u16 s16", "sat", 2, 2, cvtPack}, row{"u8 s8 u4 s4", "sat", 3, 3, cvtPack})
}

// convert is a conversion of a scalar. Narrow signed results are sign-extended to 64 bits, for cvt fills a wider register.
type convert func(v uint64) uint64

func cvt(in *ir.Instr, t ir.Type) (Func, error) {
	f, err := converter(in, t, in.Type(1))
	if err != nil {
		return nil, err
	}
	return func(a, _, _, _ uint64) uint64 { return f(a) }, nil
}

func converter(in *ir.Instr, to, from ir.Type) (convert, error) {
	mode := in.Rounding()
	df, sf := formatOf(to), formatOf(from)
	known := func(t ir.Type, f *format) bool {
		_, two := part(t)
		return !two && t.Bits() >= 8 && (f != nil || t.Class() == ir.Signed || t.Class() == ir.Unsigned)
	}
	if !known(to, df) || !known(from, sf) {
		return nil, errForm
	}
	var f convert
	if !in.Has("satfinite") {
		f = fastConverter(to, from, mode)
	}
	switch {
	case df == nil && sf == nil:
		return intToInt(to, from, in.Has(ir.Sat)), nil
	case f != nil:
	case df == nil:
		f = floatToInt(to, sf, mode)
	case sf == nil:
		f = intToFloat(df, from, mode)
	default:
		f = floatToFloat(df, sf, mode, in.Has("satfinite"))
	}
	if in.Has(ir.FTZ) && sf == f32 {
		f = chain(sf.flush, f)
	}
	if df == nil {
		return f, nil
	}
	for _, after := range []struct {
		mod ir.Mod
		f   convert
		on  bool
	}{{ir.FTZ, df.flush, df == f32}, {ir.Sat, df.saturate, true}, {ir.Relu, df.relu, true}} {
		if in.Has(after.mod) && after.on {
			f = chain(f, after.f)
		}
	}
	return f, nil
}

func chain(f, g convert) convert { return func(v uint64) uint64 { return g(f(v)) } }

// widen puts a value into a register of 64 bits.
func widen(v uint64, w uint, signed bool) uint64 {
	if signed {
		return uint64(sext(v, w))
	}
	return v & mask(w)
}

// bounded clamps a number, given by sign and magnitude, to the integers of w bits.
func bounded(neg bool, v uint64, w uint, signed bool) uint64 {
	switch {
	case neg && !signed:
		return 0
	case neg:
		return -min(v, 1<<(w-1))
	case signed:
		return min(v, 1<<(w-1)-1)
	}
	return min(v, mask(w))
}

// magnitude splits a w-bit integer.
func magnitude(v uint64, w uint, signed bool) (neg bool, m uint64) {
	if v = widen(v, w, signed); signed && int64(v) < 0 {
		return true, -v
	}
	return false, v
}

func intToInt(to, from ir.Type, sat bool) convert {
	dw, ds, sw, ss := uint(to.Bits()), to.IsSigned(), uint(from.Bits()), from.IsSigned()
	if !sat {
		return func(v uint64) uint64 { return widen(widen(v, sw, ss), dw, ds) }
	}
	return func(v uint64) uint64 {
		neg, m := magnitude(v, sw, ss)
		return bounded(neg, m, dw, ds)
	}
}

func intToFloat(to *format, from ir.Type, mode ir.Mod) convert {
	w, signed := uint(from.Bits()), from.IsSigned()
	return func(v uint64) uint64 { return to.round(integer(magnitude(v, w, signed)), mode) }
}

// whole rounds a number's magnitude to an integer; at most all ones for what is beyond 64 bits.
func whole(n number, mode ir.Mod) uint64 {
	switch {
	case n.kind == zero:
		return 0
	case n.kind == infinite || n.exp > 63:
		return ^uint64(0)
	}
	return cut(n.hi, uint(63-n.exp), mode, n.neg)
}

// floatToInt clamps to the integers there are. NaN gives 0, but where 64 bits are involved the highest bit alone.
func floatToInt(to ir.Type, from *format, mode ir.Mod) convert {
	w, signed := uint(to.Bits()), to.IsSigned()
	var nan uint64
	if from == f64 || w == 64 {
		nan = widen(1<<(w-1), w, signed)
	}
	return func(v uint64) uint64 {
		n := from.unpack(v)
		if n.kind == notANumber {
			return nan
		}
		return bounded(n.neg, whole(n, mode), w, signed)
	}
}

func floatToFloat(to, from *format, mode ir.Mod, satfinite bool) convert {
	integral := mode == ir.RNI || mode == ir.RZI || mode == ir.RMI || mode == ir.RPI
	return func(v uint64) uint64 {
		n := from.unpack(v)
		switch {
		case n.kind == notANumber:
			return to.nanFrom(from, v)
		case integral && n.kind == finite && n.exp < int(from.man):
			n = integer(n.neg, whole(n, mode))
		}
		r := to.round(n, mode)
		if satfinite && r&(to.sign()-1) > to.largest() {
			r = r&to.sign() | to.largest()
		}
		return r
	}
}

// nanFrom converts a NaN: into f64 with sign and payload.
func (f *format) nanFrom(from *format, v uint64) uint64 {
	if f != f64 {
		return f.nan
	}
	r := f.inf() | 1<<51 | v&mask(from.man+from.pad)<<(52-from.man-from.pad)
	if v&from.sign() != 0 {
		r |= f.sign()
	}
	return r
}

// packedPart is the type of an element of what cvt packs in two.
func packedPart(t ir.Type) (elem ir.Type, width uint) {
	switch t {
	case ir.F16x2:
		return ir.F16, 16
	case ir.BF16x2:
		return ir.BF16, 16
	case ir.E4M3x2:
		return ir.E4M3, 8
	case ir.E5M2x2:
		return ir.E5M2, 8
	}
	return ir.NoType, 0
}

// cvtPacked converts two f32, the first into the upper half, or one pair into another.
func cvtPacked(in *ir.Instr, t ir.Type) (Func, error) {
	to, w := packedPart(t)
	from, sw := packedPart(in.Type(1))
	pair := from != ir.NoType
	if !pair {
		from = in.Type(1)
	}
	if !pair && from != ir.F32 || pair && w == sw || pair != (len(in.Args) == 2) {
		return nil, errForm
	}
	f, err := converter(in, to, from)
	if err != nil {
		return nil, err
	}
	if pair {
		return func(a, _, _, _ uint64) uint64 { return f(a>>sw&mask(sw))<<w | f(a&mask(sw)) }, nil
	}
	return func(a, b, _, _ uint64) uint64 { return f(a)<<w | f(b) }, nil
}

// cvtPack saturates two s32 and packs them, the first above the second, below the low bits of c.
func cvtPack(in *ir.Instr, t ir.Type) (Func, error) {
	w := uint(t.Bits())
	if !in.Has(ir.Sat) || in.Type(1) != ir.S32 || (in.Type(2) == ir.B32) != (len(in.Args) == 4) {
		return nil, errForm
	}
	f := intToInt(t, ir.S32, true)
	return func(a, b, c, _ uint64) uint64 {
		return uint64(uint32(c<<(2*w)&mask(32)*truth(w < 16) | f(a)&mask(w)<<w | f(b)&mask(w)))
	}, nil
}

// F16ToF32 is exact; a NaN becomes the canonical one.
func F16ToF32(v uint16) float32 { return from32(widenF16(v)) }

// BF16ToF32 is exact; a NaN becomes the canonical one.
func BF16ToF32(v uint16) float32 { return from32(widenBF16(v)) }

// F32ToF16 rounds to nearest even.
func F32ToF16(v float32) uint16 { return uint16(narrowF16(bits32(v))) }

// F32ToBF16 rounds to nearest even.
func F32ToBF16(v float32) uint16 { return uint16(narrowBF16(bits32(v))) }

// F32ToTF32 rounds to the 10 bits of significand of tf32: to nearest, ties away from zero, as cvt.rna does.
func F32ToTF32(v float32) float32 { return from32(tf32.round(f32.unpack(bits32(v)), ir.RNA)) }

// E4M3ToF32 is exact.
func E4M3ToF32(v uint8) float32 { return from32(f32.round(e4m3.unpack(uint64(v)), ir.RN)) }

// E5M2ToF32 is exact.
func E5M2ToF32(v uint8) float32 { return from32(f32.round(e5m2.unpack(uint64(v)), ir.RN)) }

// F32ToE4M3 rounds to nearest even; what is beyond ±448 becomes ±448 (.satfinite).
func F32ToE4M3(v float32) uint8 { return uint8(floatToFloat(e4m3, f32, ir.RN, true)(bits32(v))) }

// F32ToE5M2 rounds to nearest even; what is beyond ±57344 becomes ±57344 (.satfinite).
func F32ToE5M2(v float32) uint8 { return uint8(floatToFloat(e5m2, f32, ir.RN, true)(bits32(v))) }
