package scalar

import "github.com/wavelane/wavelane/ptx"

// Floating is a number with a fraction as memory holds it; registers compute with float32.
type Floating interface{ float32 | ptx.F16 | ptx.BF16 }

// Castable are the element types that convert to float32 and back.
type Castable interface{ Floating | uint8 }

// ToFloat32 is x, exactly.
func ToFloat32[T Castable](k *ptx.Kernel, x ptx.Reg[T]) ptx.Reg[float32] {
	switch x := any(x).(type) {
	case ptx.Reg[ptx.F16]:
		return ptx.Convert[float32](x)
	case ptx.Reg[ptx.BF16]:
		return ptx.WidenBF16(x)
	case ptx.Reg[uint8]:
		return ptx.Convert[float32](x)
	default:
		return x.(ptx.Reg[float32])
	}
}

// FromFloat32 is x rounded to nearest, ties to even, and for a byte the nearest one. What rounds bfloat16 before sm_80 serves everywhere.
func FromFloat32[U Castable](k *ptx.Kernel, x ptx.Reg[float32]) ptx.Reg[U] {
	var y any
	switch any(*new(U)).(type) {
	case ptx.F16:
		y = ptx.Convert[ptx.F16](x)
	case ptx.BF16:
		bits := ptx.Bitcast[uint32](x)
		odd := bits.Shr(16).And(1)
		rounded := bits.Add(0x7fff).Add(odd)
		quiet := bits.Or(0x400000) // NaN: rounding could make it Inf, or zero
		isNaN := bits.And(0x7fffffff).Gt(0x7f800000)
		_, upper := ptx.Unpack32(ptx.Select(isNaN, quiet, rounded))
		y = ptx.Bitcast[ptx.BF16](upper)
	case uint8:
		y = ptx.Convert[uint8](x, ptx.RNI, ptx.Sat) // NaN gives 0
	default:
		y = x
	}
	return y.(ptx.Reg[U])
}

// WideElements is how many elements of a matrix 16 bytes hold.
func WideElements[T Floating]() int {
	if _, ok := any(*new(T)).(float32); ok {
		return 4
	}
	return 8
}

// LoadWide reads 16 bytes of a matrix.
func LoadWide[T Floating](k *ptx.Kernel, p ptx.Ptr[ptx.Global, T]) (v []ptx.Reg[float32]) {
	words := ptx.Cast[uint32](p).Load4(ptx.ReadOnly)
	for _, w := range words {
		switch any(*new(T)).(type) {
		case ptx.F16:
			lo, hi := ptx.UnpackF16(ptx.Bitcast[ptx.F16x2](w))
			v = append(v, ToFloat32(k, lo), ToFloat32(k, hi))
		case ptx.BF16: // an instruction for each
			lo, hi := w.Shl(16), w.And(0xffff0000)
			v = append(v, ptx.Bitcast[float32](lo), ptx.Bitcast[float32](hi))
		default:
			v = append(v, ptx.Bitcast[float32](w))
		}
	}
	return v
}

// AllToFloat32 is ToFloat32 for each of x.
func AllToFloat32[T Floating](k *ptx.Kernel, x []ptx.Reg[T]) (y []ptx.Reg[float32]) {
	for _, v := range x {
		y = append(y, ToFloat32(k, v))
	}
	return y
}

// RoundBF16 is x as the bits of a bfloat16, to nearest even: an instruction of its own only from sm_80 on.
func RoundBF16(k *ptx.Kernel, x Float) ptx.Reg[uint16] {
	bits := ptx.Bitcast[uint32](x)
	odd := bits.Shr(16).And(1)
	rounded := bits.Add(odd.Add(0x7fff))
	nan := x.Ne(x)
	quiet := bits.Or(0x00400000)
	return ptx.Convert[uint16](ptx.Select(nan, quiet, rounded).Shr(16))
}
