package opt

import (
	"math"
	"math/bits"

	"github.com/wavelane/wavelane/ptx/ir"
)

// strength replaces instructions with a literal among their operands by cheaper ones that give the same bits.
func (u *unit) strength() int {
	n := 0
	body := make([]ir.Instr, 0, len(u.f.Body))
	for i := range u.f.Body {
		in := u.f.Body[i]
		seq := u.cheaper(&in)
		if seq == nil {
			body = append(body, in)
			continue
		}
		n++
		for _, s := range seq {
			s.Pos, s.Guard = in.Pos, in.Guard
			body = append(body, s)
		}
	}
	u.f.Body = body
	return n
}

func instr(op ir.Op, mods []ir.Mod, args ...ir.Operand) ir.Instr {
	return ir.Instr{Op: op, Mods: mods, Args: args}
}

// cheaper is what an instruction may be replaced by, nil for nothing.
func (u *unit) cheaper(in *ir.Instr) []ir.Instr {
	if in.Kind() == ir.Carry || len(in.Args) < 2 || in.Args[0].Kind != ir.RegOperand || u.bits(in.Args[0].Reg) == 0 {
		return nil
	}
	t := in.Type(0)
	switch {
	case t == ir.F32 || t == ir.F64:
		return u.cheaperFloat(in, t)
	case t == ir.NoType || t.IsFloat() || packed(t) || t.Bits() < 16 || t.Bits() > 64:
		return nil
	}
	return u.cheaperInteger(in, t)
}

// literalArg is the i-th argument as a literal of w bits.
func literalArg(in *ir.Instr, i, w int) (uint64, bool) {
	if o := &in.Args[i]; o.Kind == ir.IntOperand {
		return o.Bits & (^uint64(0) >> (64 - w)), true
	}
	return 0, false
}

// becomes is a mov of an operand, if it is a register as wide as the result or a literal.
func (u *unit) becomes(in *ir.Instr, o ir.Operand) []ir.Instr {
	d := in.Args[0].Reg
	switch {
	case o.Kind == ir.IntOperand:
		mod, l := u.movOf(d, o.Bits&(^uint64(0)>>(64-u.bits(d))))
		return []ir.Instr{instr("mov", []ir.Mod{mod}, in.Args[0], l)}
	case o.Kind == ir.RegOperand && u.bits(o.Reg) == u.bits(d):
		return []ir.Instr{instr("mov", []ir.Mod{u.copyType(d, o.Reg)}, in.Args[0], o)}
	}
	return nil
}

// cheaperInteger knows the identities of integers. Opcodes are looked at only in their plain forms: a type, and .lo or .wide.
func (u *unit) cheaperInteger(in *ir.Instr, t ir.Type) []ir.Instr {
	w := t.Bits()
	d, a := in.Args[0], in.Args[1]
	typ := []ir.Mod{t.Mod()}
	if in.Op == "cvt" {
		if len(in.Mods) == 2 && in.Type(1).Bits() == w && !in.Type(1).IsFloat() && a.Kind == ir.RegOperand && u.bits(a.Reg) == w {
			return u.becomes(in, a)
		}
		return nil
	}
	if len(in.Args) < 3 || len(in.Mods) > 2 || u.bits(d.Reg) != w && !in.Has(ir.Wide) {
		return nil
	}
	b := in.Args[2]
	if commutes(in) && a.Kind == ir.IntOperand && b.Kind != ir.IntOperand {
		in.Args[1], in.Args[2] = b, a // the literal second; no change worth counting
		a, b = b, a
	}
	width := w
	if in.Op == "shl" || in.Op == "shr" {
		width = 32 // of the count
	}
	k, ok := literalArg(in, 2, width)
	ones := ^uint64(0) >> (64 - w)
	if len(in.Mods) == 1 && ok {
		switch in.Op {
		case "add", "sub", "or", "xor", "shl", "shr":
			if k == 0 {
				return u.becomes(in, a)
			}
			if in.Op == "or" && k == ones {
				return u.becomes(in, b)
			}
		case "and":
			if k == 0 {
				return u.becomes(in, b)
			}
			if k == ones {
				return u.becomes(in, a)
			}
		case "div":
			if k == 1 {
				return u.becomes(in, a)
			}
			if t.Class() == ir.Unsigned {
				return u.divide(in, t, k)
			}
		case "rem":
			if k == 1 {
				return u.becomes(in, ir.Int(0))
			}
			if t.Class() == ir.Unsigned {
				return u.remainder(in, t, k)
			}
		}
		return nil
	}
	if len(in.Mods) != 2 {
		return nil
	}
	switch {
	case in.Op == "mul" && in.Has(ir.Lo) && ok:
		switch {
		case k == 0:
			return u.becomes(in, ir.Int(0))
		case k == 1:
			return u.becomes(in, a)
		case bits.OnesCount64(k) == 1:
			shift := ir.Int(int64(bits.TrailingZeros64(k)))
			return []ir.Instr{instr("shl", []ir.Mod{bitsType(w).Mod()}, d, a, shift)}
		}
	case in.Op == "mul" && in.Has(ir.Wide) && ok && k == 0:
		return u.becomes(in, ir.Int(0))
	case in.Op == "mad" && (in.Has(ir.Lo) || in.Has(ir.Wide)) && len(in.Args) == 4:
		c := in.Args[3]
		zero, isLiteral := literalArg(in, 3, 64)
		switch {
		case ok && k == 0:
			return u.becomes(in, c)
		case ok && k == 1 && in.Has(ir.Lo):
			return []ir.Instr{instr("add", typ, d, a, c)}
		case isLiteral && zero == 0:
			return []ir.Instr{instr("mul", in.Mods, d, a, b)}
		}
	}
	return nil
}

func bitsType(w int) ir.Type {
	return map[int]ir.Type{16: ir.B16, 32: ir.B32, 64: ir.B64}[w]
}

// cheaperFloat knows the few identities of floats that hold for every value, NaN, −0 and subnormals among them. x·1 and
// x+0 are not among those: they make NaN canonical, and flush with .ftz.
func (u *unit) cheaperFloat(in *ir.Instr, t ir.Type) []ir.Instr {
	switch {
	case in.Op == "div" && in.Rounding() != "" && len(in.Args) == 3:
		// The quotient by a power of two and the product with its reciprocal are the same number before rounding.
		if r, ok := reciprocal(in.Args[2], t); ok {
			return []ir.Instr{instr("mul", in.Mods, in.Args[0], in.Args[1], r)}
		}
	case in.Op == "fma" && len(in.Args) == 4:
		a, b, c := in.Args[1], in.Args[2], in.Args[3]
		if isFloat(a, t, 1) {
			a, b = b, a
		}
		switch {
		case isFloat(b, t, 1):
			return []ir.Instr{instr("add", in.Mods, in.Args[0], a, c)}
		case isFloat(c, t, math.Copysign(0, -1)) && !in.Has(ir.RM):
			// A product of +0 plus −0 is +0 unless it is rounded down.
			return []ir.Instr{instr("mul", in.Mods, in.Args[0], a, b)}
		}
	}
	return nil
}

// isFloat tells whether the operand is a literal of type t with exactly the bits of v.
func isFloat(o ir.Operand, t ir.Type, v float64) bool {
	switch o.Kind {
	case ir.F32Operand:
		return t == ir.F32 && uint32(o.Bits) == math.Float32bits(float32(v))
	case ir.F64Operand:
		return t == ir.F64 && o.Bits == math.Float64bits(v)
	}
	return false
}

// reciprocal is that of a literal power of two, if both are normal numbers.
func reciprocal(o ir.Operand, t ir.Type) (ir.Operand, bool) {
	mantissa, bias := 23, uint64(127)
	switch {
	case t == ir.F32 && o.Kind == ir.F32Operand:
		o.Bits = uint64(uint32(o.Bits))
	case t == ir.F64 && o.Kind == ir.F64Operand:
		mantissa, bias = 52, 1023
	default:
		return o, false
	}
	exponent := o.Bits >> mantissa & (2*bias + 1)
	if o.Bits&(1<<mantissa-1) != 0 || exponent == 0 || exponent >= 2*bias {
		return o, false
	}
	sign := o.Bits >> mantissa &^ (2*bias + 1)
	o.Bits = (sign | 2*bias - exponent) << mantissa
	return o, true
}
