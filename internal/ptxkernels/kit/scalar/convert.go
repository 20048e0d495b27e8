package scalar

import "github.com/wavelane/wavelane/ptx"

// Floating is a number with a fraction as memory holds it; registers compute with float32.
type Floating interface{ float32 | ptx.F16 | ptx.BF16 }

// ToFloat32 is x, exactly.
func ToFloat32[T Floating](k *ptx.Kernel, x ptx.Reg[T]) ptx.Reg[float32] {
	switch x := any(x).(type) {
	case ptx.Reg[ptx.F16]:
		return ptx.Convert[float32](k, x)
	case ptx.Reg[ptx.BF16]:
		return ptx.WidenBF16(k, x)
	default:
		return x.(ptx.Reg[float32])
	}
}

// FromFloat32 is x rounded to nearest, ties to even. What rounds bfloat16 before sm_80 serves everywhere.
func FromFloat32[U Floating](k *ptx.Kernel, x ptx.Reg[float32]) ptx.Reg[U] {
	var y any
	switch any(*new(U)).(type) {
	case ptx.F16:
		y = ptx.Convert[ptx.F16](k, x)
	case ptx.BF16:
		bits := ptx.Bitcast[uint32](k, x)
		odd := ptx.And(k, ptx.Shr(k, bits, U32(16)), U32(1))
		rounded := ptx.Add(k, ptx.Add(k, bits, U32(0x7fff)), odd)
		quiet := ptx.Or(k, bits, U32(0x400000)) // NaN: rounding could make it Inf, or zero
		isNaN := ptx.Gt(k, ptx.And(k, bits, U32(0x7fffffff)), U32(0x7f800000))
		_, upper := ptx.Unpack32(k, ptx.Select(k, isNaN, quiet, rounded))
		y = ptx.Bitcast[ptx.BF16](k, upper)
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
	words := ptx.Load4(k, ptx.Cast[uint32](p), ptx.ReadOnly)
	for _, w := range words {
		switch any(*new(T)).(type) {
		case ptx.F16:
			lo, hi := ptx.UnpackF16(k, ptx.Bitcast[ptx.F16x2](k, w))
			v = append(v, ToFloat32(k, lo), ToFloat32(k, hi))
		case ptx.BF16: // an instruction for each
			lo, hi := ptx.Shl(k, w, U32(16)), ptx.And(k, w, U32(0xffff0000))
			v = append(v, ptx.Bitcast[float32](k, lo), ptx.Bitcast[float32](k, hi))
		default:
			v = append(v, ptx.Bitcast[float32](k, w))
		}
	}
	return v
}

func AllToFloat32[T Floating](k *ptx.Kernel, x []ptx.Reg[T]) (y []ptx.Reg[float32]) {
	for _, v := range x {
		y = append(y, ToFloat32(k, v))
	}
	return y
}

// RoundBF16 is x as the bits of a bfloat16, to nearest even: an instruction of its own only from sm_80 on.
func RoundBF16(k *ptx.Kernel, x Float) ptx.Reg[uint16] {
	bits := ptx.Bitcast[uint32](k, x)
	odd := ptx.And(k, ptx.Shr(k, bits, U32(16)), U32(1))
	rounded := ptx.Add(k, bits, ptx.Add(k, odd, U32(0x7fff)))
	nan := ptx.Ne(k, x, x)
	quiet := ptx.Or(k, bits, ptx.Imm[uint32](0x00400000))
	return ptx.Convert[uint16](k, ptx.Shr(k, ptx.Select(k, nan, quiet, rounded), U32(16)))
}
