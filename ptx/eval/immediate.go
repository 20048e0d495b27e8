package eval

import (
	"math"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Immediate is a literal as the bits of an operand of type t. Integers are cut to its width, floating-point literals converted to
// its format; in types that are no floats the bits of a literal stand for themselves, those of a decimal fraction in 32 bits as f32.
func Immediate(o ir.Operand, t ir.Type) uint64 {
	v := o.Bits
	switch w := uint(t.Bits()); {
	case t == ir.Pred:
		return truth(v != 0)
	case t == ir.NoType || w > 64:
		return v
	case o.Kind == ir.F32Operand:
		if f := formatOf(t); f != nil && f != f32 {
			v = floatToFloat(f, f32, ir.RN, false)(v)
		}
	case o.Kind == ir.F64Operand:
		if f := formatOf(t); f != nil && f != f64 {
			v = floatToFloat(f, f64, ir.RN, false)(v)
		} else if f == nil && w == 32 {
			v = uint64(math.Float32bits(float32(math.Float64frombits(v))))
		}
	}
	return v & mask(uint(min(64, t.Bits())))
}

// ArgType is the type as which a pure instruction reads its i-th argument, where that is a scalar. The destination is the 0th.
func ArgType(in *ir.Instr, i int) ir.Type {
	switch in.Op {
	case "cvt":
		return in.Type(1)
	case "cvt.pack":
		if i == 3 {
			return ir.B32
		}
		return in.Type(1)
	case "set":
		if i == 3 {
			return ir.Pred
		}
		return in.Type(1)
	case "setp", "selp":
		if i == 3 {
			return ir.Pred
		}
	case "slct":
		if i == 3 {
			return in.Type(1)
		}
	case "shl", "shr":
		if i == 2 {
			return ir.U32
		}
	case "bfe", "bfi":
		if IsField(in, i) {
			return ir.U32
		}
	case "lop3":
		if i == 5 {
			return ir.Pred
		}
	case "dp4a", "dp2a":
		switch i {
		case 2:
			return in.Type(1)
		case 3:
			return ir.B32
		}
	case "mad":
		if i == 3 && in.Has(ir.Wide) {
			return double[in.Type(0)]
		}
	}
	return in.Type(0)
}

// double is the type of the results of .wide.
var double = map[ir.Type]ir.Type{ir.U16: ir.U32, ir.S16: ir.S32, ir.U32: ir.U64, ir.S32: ir.S64}

// IsField tells whether the i-th argument is the place or the length of a bit field, of which 8 bits are read.
func IsField(in *ir.Instr, i int) bool { return in.Op == "bfe" && i > 1 || in.Op == "bfi" && i > 2 }
