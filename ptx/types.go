package ptx

import (
	"math"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Types of values that Go has no type for. Each is the bits as they lie in the register: F16(0x3c00) is one, as is
// F16Of(1).
type (
	F16    uint16 // IEEE binary16
	BF16   uint16 // bfloat16: the upper half of a float32
	F16x2  uint32 // two F16, the first in the lower half
	BF16x2 uint32
	F32x2  uint64 // two float32, the first in the lower half
	TF32   uint32 // a float32 of which the tensor cores read 19 bits
	S8x4   uint32 // four signed bytes, the first lowest
	U8x4   uint32
	E4M3x2 uint16 // two 8-bit floats of 4 exponent and 3 mantissa bits
	E5M2x2 uint16
	E4M3x4 uint32
	E5M2x4 uint32
)

// Type is what a register can hold. Bytes lie in 16-bit registers and can only be loaded, stored and converted; bool is
// a predicate.
type Type interface {
	bool | Elem
}

// Elem is what memory can hold.
type Elem interface {
	int8 | uint8 | Integer | Float | F32x2 | TF32 | S8x4 | U8x4 | E4M3x2 | E5M2x2 | E4M3x4 | E5M2x4
}

// Integer is what integer instructions take.
type Integer interface {
	int16 | uint16 | Index
}

// Index is what counts loops and selects elements.
type Index interface {
	int32 | uint32 | int64 | uint64
}

// Real is a floating-point number in itself.
type Real interface {
	float32 | float64 | F16 | BF16
}

// Float is what floating-point instructions take.
type Float interface {
	Real | F16x2 | BF16x2
}

// Number is what arithmetic takes.
type Number interface {
	Integer | Float
}

// Word32 is what lies in a 32-bit register that no float32 lies in.
type Word32 interface {
	int32 | uint32 | F16x2 | BF16x2 | TF32 | S8x4 | U8x4 | E4M3x4 | E5M2x4
}

// typeInfo is how PTX sees a Type.
type typeInfo struct {
	name string  // for messages
	op   ir.Type // in arithmetic, comparisons and conversions
	mem  ir.Type // in loads, stores and declarations
	bits ir.Type // in moves and logic
	reg  ir.Type // of the register
	stem string  // of the register's name
	held bool    // immediates have to be moved to a register first
}

var infos = struct {
	pred, s8, u8, s16, u16, s32, u32, s64, u64, f32, f64, f16, bf16, f16x2, bf16x2, f32x2, tf32, s8x4, u8x4,
	e4m3x2, e5m2x2, e4m3x4, e5m2x4 typeInfo
}{
	pred:   typeInfo{"bool", ir.Pred, ir.NoType, ir.Pred, ir.Pred, "%p", true},
	s8:     typeInfo{"int8", ir.S8, ir.S8, ir.B16, ir.B16, "%rs", false},
	u8:     typeInfo{"uint8", ir.U8, ir.U8, ir.B16, ir.B16, "%rs", false},
	s16:    typeInfo{"int16", ir.S16, ir.S16, ir.B16, ir.B16, "%rs", false},
	u16:    typeInfo{"uint16", ir.U16, ir.U16, ir.B16, ir.B16, "%rs", false},
	s32:    typeInfo{"int32", ir.S32, ir.S32, ir.B32, ir.B32, "%r", false},
	u32:    typeInfo{"uint32", ir.U32, ir.U32, ir.B32, ir.B32, "%r", false},
	s64:    typeInfo{"int64", ir.S64, ir.S64, ir.B64, ir.B64, "%rd", false},
	u64:    typeInfo{"uint64", ir.U64, ir.U64, ir.B64, ir.B64, "%rd", false},
	f32:    typeInfo{"float32", ir.F32, ir.F32, ir.B32, ir.F32, "%f", false},
	f64:    typeInfo{"float64", ir.F64, ir.F64, ir.B64, ir.F64, "%fd", false},
	f16:    typeInfo{"F16", ir.F16, ir.B16, ir.B16, ir.B16, "%h", true},
	bf16:   typeInfo{"BF16", ir.BF16, ir.B16, ir.B16, ir.B16, "%h", true},
	f16x2:  typeInfo{"F16x2", ir.F16x2, ir.B32, ir.B32, ir.B32, "%r", true},
	bf16x2: typeInfo{"BF16x2", ir.BF16x2, ir.B32, ir.B32, ir.B32, "%r", true},
	f32x2:  typeInfo{"F32x2", ir.F32x2, ir.B64, ir.B64, ir.B64, "%rd", true},
	tf32:   typeInfo{"TF32", ir.TF32, ir.B32, ir.B32, ir.B32, "%r", true},
	s8x4:   typeInfo{"S8x4", ir.S8, ir.B32, ir.B32, ir.B32, "%r", false},
	u8x4:   typeInfo{"U8x4", ir.U8, ir.B32, ir.B32, ir.B32, "%r", false},
	e4m3x2: typeInfo{"E4M3x2", ir.E4M3x2, ir.B16, ir.B16, ir.B16, "%h", true},
	e5m2x2: typeInfo{"E5M2x2", ir.E5M2x2, ir.B16, ir.B16, ir.B16, "%h", true},
	e4m3x4: typeInfo{"E4M3x4", ir.E4M3, ir.B32, ir.B32, ir.B32, "%r", true},
	e5m2x4: typeInfo{"E5M2x4", ir.E5M2, ir.B32, ir.B32, ir.B32, "%r", true},
}

// typeOf is how PTX sees T.
func typeOf[T Type]() *typeInfo {
	var zero T
	switch any(zero).(type) {
	case bool:
		return &infos.pred
	case int8:
		return &infos.s8
	case uint8:
		return &infos.u8
	case int16:
		return &infos.s16
	case uint16:
		return &infos.u16
	case int32:
		return &infos.s32
	case uint32:
		return &infos.u32
	case int64:
		return &infos.s64
	case uint64:
		return &infos.u64
	case float32:
		return &infos.f32
	case float64:
		return &infos.f64
	case F16:
		return &infos.f16
	case BF16:
		return &infos.bf16
	case F16x2:
		return &infos.f16x2
	case BF16x2:
		return &infos.bf16x2
	case F32x2:
		return &infos.f32x2
	case TF32:
		return &infos.tf32
	case S8x4:
		return &infos.s8x4
	case U8x4:
		return &infos.u8x4
	case E4M3x2:
		return &infos.e4m3x2
	case E5M2x2:
		return &infos.e5m2x2
	case E4M3x4:
		return &infos.e4m3x4
	}
	return &infos.e5m2x4
}

// size is the number of bytes in memory.
func (t *typeInfo) size() int { return t.mem.Size() }

// bitsOf is v as it lies in a register, zero-extended.
func bitsOf[T Type](v T) uint64 {
	switch v := any(v).(type) {
	case bool:
		if v {
			return 1
		}
		return 0
	case int8:
		return uint64(uint8(v))
	case uint8:
		return uint64(v)
	case int16:
		return uint64(uint16(v))
	case uint16:
		return uint64(v)
	case int32:
		return uint64(uint32(v))
	case uint32:
		return uint64(v)
	case int64:
		return uint64(v)
	case uint64:
		return v
	case float32:
		return uint64(math.Float32bits(v))
	case float64:
		return math.Float64bits(v)
	case F16:
		return uint64(v)
	case BF16:
		return uint64(v)
	case F16x2:
		return uint64(v)
	case BF16x2:
		return uint64(v)
	case F32x2:
		return uint64(v)
	case TF32:
		return uint64(v)
	case S8x4:
		return uint64(v)
	case U8x4:
		return uint64(v)
	case E4M3x2:
		return uint64(v)
	case E5M2x2:
		return uint64(v)
	case E4M3x4:
		return uint64(v)
	case E5M2x4:
		return uint64(v)
	}
	return 0
}

// immediate is the operand of type t with these bits.
func (t *typeInfo) immediate(bits uint64) ir.Operand {
	switch {
	case t.reg == ir.F32:
		return ir.Operand{Kind: ir.F32Operand, Bits: bits}
	case t.reg == ir.F64:
		return ir.Operand{Kind: ir.F64Operand, Bits: bits}
	case t.op.IsSigned() && t.op == t.mem:
		n := 64 - t.mem.Bits()
		return ir.Int(int64(bits<<n) >> n)
	}
	return ir.Int(int64(bits))
}

// F16Of is x rounded to the nearest half, ties to even.
func F16Of(x float32) F16 {
	b := math.Float32bits(x)
	sign, abs := F16(b>>16&0x8000), b&0x7fffffff
	switch {
	case abs > 0x7f800000:
		return sign | 0x7e00 | F16(abs>>13&0x1ff)
	case abs >= 0x47800000: // 65536 and more
		return sign | 0x7c00
	case abs >= 0x38800000: // normal: rebias by 112, keep 10 of 23 bits
		return sign + F16((abs-112<<23+0xfff+abs>>13&1)>>13)
	}
	// Subnormal, in units of 2⁻²⁴. The product is exact.
	return sign | F16(math.RoundToEven(float64(math.Float32frombits(abs))*(1<<24)))
}

// BF16Of is x rounded to the nearest bfloat16, ties to even.
func BF16Of(x float32) BF16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return BF16(b>>16 | 0x40)
	}
	return BF16((b + 0x7fff + b>>16&1) >> 16)
}

// PairF16 is the two halves in one, lo in the lower half.
func PairF16(lo, hi F16) F16x2 { return F16x2(lo) | F16x2(hi)<<16 }

// PairBF16 is the two in one, lo in the lower half.
func PairBF16(lo, hi BF16) BF16x2 { return BF16x2(lo) | BF16x2(hi)<<16 }
