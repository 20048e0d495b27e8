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
