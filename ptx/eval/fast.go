package eval

import (
	"math"

	"github.com/wavelane/wavelane/ptx/ir"
)

// What the processor's own arithmetic gives, for what kernels do most. Everything here gives the bits that the general way gives.

// halfArithmetic is an operation of f16 or bf16 to nearest. The sum, difference and product of two such numbers, rounded to f32, round on
// to the right number, for 24 bits are twice theirs and two more; fma goes through a float32 rounded to odd.
func halfArithmetic(op ir.Op, f *format) Func {
	widen, narrow := widenF16, narrowF16
	if f == bf16 {
		widen, narrow = widenBF16, narrowBF16
	}
	two := func(g func(x, y float32) float32) Func {
		return func(a, b, _, _ uint64) uint64 {
			return narrow(bits32(g(from32(widen(uint16(a))), from32(widen(uint16(b))))))
		}
	}
	switch op {
	case "add":
		return two(func(x, y float32) float32 { return x + y })
	case "sub":
		return two(func(x, y float32) float32 { return x - y })
	case "mul":
		return two(func(x, y float32) float32 { return x * y })
	}
	slow := exact(op, f, ir.RN)
	return func(a, b, c, _ uint64) uint64 {
		x, y := from32(widen(uint16(a))), from32(widen(uint16(b)))
		s := math.Float64bits(oddSum(float64(x)*float64(y), float64(from32(widen(uint16(c))))))
		if e := s >> 52 & 0x7ff; e < 1023-100 || e > 1023+100 {
			return slow(a, b, c, 0)
		}
		// To f32, again to odd.
		v := s>>63<<31 | (s&mask(63)>>29 - (1023-127)<<23) | truth(s&mask(29) != 0)
		return narrow(v)
	}
}

// oddSum is p + c in float64, an inexact sum rounded to the neighbour whose last bit is one.
func oddSum(p, c float64) float64 {
	s := p + c
	t := s - p
	e := float64(p-float64(s-t)) + float64(c-t)
	v := math.Float64bits(s)
	switch { // NaN, from infinities, is neither
	case v&1 == 1:
	case e > 0 && s > 0 || e < 0 && s < 0:
		v++
	case e > 0 || e < 0:
		v--
	}
	return math.Float64frombits(v)
}

// widenF16 and the like convert bits; NaN becomes the canonical one.
func widenF16(v uint16) uint64 {
	m, s := uint64(v&0x7fff), uint64(v&0x8000)<<16
	switch {
	case m >= 0x400 && m < 0x7c00:
		return s | (m<<13 + 112<<23)
	case m > 0x7c00:
		return f32.nan
	case m == 0x7c00:
		return s | 0x7f800000
	}
	return s | uint64(math.Float32bits(float32(m)*0x1p-24))
}

func widenBF16(v uint16) uint64 {
	if v&0x7fff > 0x7f80 {
		return f32.nan
	}
	return uint64(v) << 16
}

func narrowF16(v uint64) uint64 {
	if m := v & 0x7fffffff; m >= 113<<23 && m < 143<<23 { // normal in f16; may round up to infinity
		return v>>16&0x8000 | (m+0xfff+m>>13&1-112<<23)>>13
	}
	return f16.round(f32.unpack(v), ir.RN)
}

func narrowBF16(v uint64) uint64 {
	if v&0x7fffffff > 0x7f800000 {
		return bf16.nan
	}
	return (v&0xffffffff + 0x7fff + v>>16&1) >> 16
}

// wholeFloats are math's roundings to integers.
var wholeFloats = map[ir.Mod]func(float64) float64{
	ir.RN: math.RoundToEven, ir.RZ: math.Trunc, ir.RM: math.Floor, ir.RP: math.Ceil,
	ir.RNI: math.RoundToEven, ir.RZI: math.Trunc, ir.RMI: math.Floor, ir.RPI: math.Ceil,
}

// fastConverter is a conversion without modifiers that Go has too, or nil.
func fastConverter(to, from ir.Type, mode ir.Mod) convert {
	df, sf := formatOf(to), formatOf(from)
	w, signed := uint(to.Bits()), to.IsSigned()
	nearest := mode == ir.RN || mode == ""
	switch {
	case (sf == f32 || sf == f64) && df == nil && wholeFloats[mode] != nil:
		round, slow := wholeFloats[mode], floatToInt(to, sf, mode)
		return func(v uint64) uint64 {
			switch x := round(sf.float64(v)); {
			case x >= 0 && x < 1<<63:
				return bounded(false, uint64(x), w, signed)
			case x > -1<<63 && x < 0:
				return bounded(true, uint64(-x), w, signed)
			}
			return slow(v)
		}
	case sf == nil && nearest && (df == f32 || df == f64):
		sw, ss := uint(from.Bits()), from.IsSigned()
		switch {
		case df == f32 && ss:
			return func(v uint64) uint64 { return uint64(math.Float32bits(float32(sext(v, sw)))) }
		case df == f32:
			return func(v uint64) uint64 { return uint64(math.Float32bits(float32(v & mask(sw)))) }
		case ss:
			return func(v uint64) uint64 { return math.Float64bits(float64(sext(v, sw))) }
		}
		return func(v uint64) uint64 { return math.Float64bits(float64(v & mask(sw))) }
	case !nearest:
	case sf == f32 && df == f16:
		return narrowF16
	case sf == f32 && df == bf16:
		return narrowBF16
	case sf == f16 && df == f32:
		return func(v uint64) uint64 { return widenF16(uint16(v)) }
	case sf == bf16 && df == f32:
		return func(v uint64) uint64 { return widenBF16(uint16(v)) }
	case sf == f64 && df == f32:
		return func(v uint64) uint64 { return bits32(float32(math.Float64frombits(v))) }
	}
	return nil
}

// compareFloats32 is a comparison of f32.
func compareFloats32(want int) func(a, b uint64) bool {
	switch want {
	case less:
		return func(a, b uint64) bool { return from32(a) < from32(b) }
	case less | equal:
		return func(a, b uint64) bool { return from32(a) <= from32(b) }
	case greater:
		return func(a, b uint64) bool { return from32(a) > from32(b) }
	case greater | equal:
		return func(a, b uint64) bool { return from32(a) >= from32(b) }
	case equal:
		return func(a, b uint64) bool { return from32(a) == from32(b) }
	}
	return nil
}

// extreme32 is min and max of f32 without modifiers.
func extreme32(most bool, slow func(a, b uint64) uint64) Func {
	if most {
		return func(a, b, _, _ uint64) uint64 {
			switch x, y := from32(a), from32(b); {
			case x > y:
				return a & 0xffffffff
			case x < y:
				return b & 0xffffffff
			case x == y:
				return a & b & 0xffffffff // zeros, or the same
			}
			return slow(a&0xffffffff, b&0xffffffff)
		}
	}
	return func(a, b, _, _ uint64) uint64 {
		switch x, y := from32(a), from32(b); {
		case x < y:
			return a & 0xffffffff
		case x > y:
			return b & 0xffffffff
		case x == y:
			return (a | b) & 0xffffffff
		}
		return slow(a&0xffffffff, b&0xffffffff)
	}
}
