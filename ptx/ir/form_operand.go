package ir

import "fmt"

// address checks [base + offset], and what the base is.
func (a *argument) address(in *Instr, o *Operand, fn *Func) string {
	if o.Kind != AddrOperand {
		return "has to be an address in brackets"
	}
	if a.kind == 'A' {
		if len(o.Elems) != 1 || o.Elems[0].Kind != VecOperand {
			return "has to be a tensor map with its coordinates: [map, {x, y}]"
		}
		if n := dimensions(in); n != len(o.Elems[0].Elems) {
			return fmt.Sprintf("has to have %d coordinates", n)
		}
		coordinates := argument{kind: 's'}
		if msg := coordinates.each(o.Elems[0].Elems, S32, fn); msg != "" {
			return msg
		}
	} else if len(o.Elems) > 0 {
		return "is an address with more than a base and an offset"
	}
	if fn == nil || o.Reg == 0 {
		return ""
	}
	if r := fn.Regs[o.Reg]; r.Type.IsFloat() || r.Type.Bits() != 32 && r.Type.Bits() != 64 {
		return fmt.Sprintf("has %s of type .%s as base, which is no address", r.Name, r.Type)
	} else if space := addressSpace(in, o); r.Type.Bits() == 32 && (space == NoSpace || space == GlobalSpace) {
		return fmt.Sprintf("has %s of type .%s as base, but %s addresses have 64 bits", r.Name, r.Type, space)
	}
	return ""
}

// tensorAddress checks [base + offset] in tensor memory, whose addresses have 32 bits.
func (a *argument) tensorAddress(o *Operand, fn *Func) string {
	if o.Kind != AddrOperand || o.Reg == 0 || len(o.Elems) > 0 {
		return "has to be an address in tensor memory in brackets"
	}
	if fn == nil {
		return ""
	}
	if r := fn.Regs[o.Reg]; r.Type.IsFloat() || r.Type.Bits() != 32 || a.typ == "b32" && r.Type != B32 {
		return fmt.Sprintf("has %s of type .%s as base, which is no address in tensor memory here", r.Name, r.Type)
	}
	return ""
}

// addressSpace is the space that the address o among the instruction's operands is in: copies name that of the destination
// first.
func addressSpace(in *Instr, o *Operand) Space {
	n := 0 // addresses before it
	for i := range in.Args {
		if &in.Args[i] == o {
			break
		}
		if in.Args[i].Kind == AddrOperand {
			n++
		}
	}
	named := SharedSpace // for the barrier after the addresses, and without being named
	found := in.Op == "st.async" || in.Op == "red.async" || in.Op == "st.bulk"
	for _, m := range in.Mods {
		if s := SpaceNamed(m); s != NoSpace {
			if found = true; n == 0 {
				return s
			}
			n--
		}
	}
	if !found {
		return NoSpace
	}
	return named
}

// dimensions is the number of coordinates that a tensor copy takes.
func dimensions(in *Instr) int {
	gather := in.Has("tile::gather4") || in.Has("tile::scatter4")
	for _, m := range in.Mods {
		if len(m) == 2 && m[1] == 'd' && m[0] >= '1' && m[0] <= '5' {
			if gather {
				return 5
			}
			return int(m[0] - '0')
		}
	}
	return 0
}

// registerFits tells whether a register of type r may stand where the instruction says t.
func registerFits(r, t Type, wider bool) bool {
	if r == t {
		return true
	}
	if t == Pred || r == Pred || t == NoType {
		return false
	}
	switch t {
	case BF16, BF16x2, TF32, E4M3, E5M2, E4M3x2, E5M2x2, F32x2, U16x2, S16x2, U8x4, S8x4: // live in untyped registers
		return r.Class() == Bits && (r.Bits() == t.Bits() || wider && r.Bits() > t.Bits())
	}
	if r.Bits() != t.Bits() && (!wider || r.Bits() < t.Bits()) {
		return false
	}
	return r.Class() == Bits || t.Class() == Bits || !r.IsFloat() && !t.IsFloat()
}

// callArguments checks (results), function, (arguments), prototype.
func callArguments(in *Instr) *argumentError {
	args, at := in.Args, 0
	if len(args) > 0 && args[0].Kind == ListOperand {
		args, at = args[1:], 1
	}
	if len(args) == 0 || args[0].Kind != SymOperand && args[0].Kind != RegOperand {
		return &argumentError{at, "a function, or the register that holds its address, is missing"}
	}
	indirect := args[0].Kind == RegOperand
	args, at = args[1:], at+1
	if len(args) > 0 && args[0].Kind == ListOperand {
		args, at = args[1:], at+1
	}
	if len(args) > 0 && args[0].Kind == LabelOperand {
		args, at, indirect = args[1:], at+1, false
	}
	if len(args) > 0 {
		return &argumentError{at, "what follows the arguments has to be the label of a .callprototype"}
	}
	if indirect {
		return &argumentError{at, "a call by address needs the label of a .callprototype"}
	}
	return nil
}
