package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// argument describes an operand in the table of forms: an optional count, a letter, ":" and a type, "@" and the part of the
// opcode with which it is there, "?" if it may be left out.
//
//	d  register written             D  the same, or _           _  _ only
//	s  register or constant         r  register
//	S  as s, or special register    y  address of a variable, or a function    N  as s, or -r
//	v  register or, by .v2 and its like, vector of registers written, or _    V  the same with s read
//	2d, 2r, 2s … n/2d  vector of so many, n being the N of the opcode's shape
//	p  predicate, ! allowed         q  predicate written        Q  q or q|q    P  q|q
//	e  d or d|q                     E  d|q or _|q
//	a  address                      A  address with a vector after it: a tensor map and coordinates
//	M  address in tensor memory, in a register of the type after it if there is one
//	T  texture, perhaps a sampler, and coordinates in brackets      U  surface and coordinates
//	o  vector of registers, of any length: offsets
//	i  integer, of the list or range after the colon           l  label
//	c  the operands of call
//
// The type is that of the opcode with the index 0 … 3, w double that of 0, h half of it, k a quarter of it, or a type by its
// name; none stands for 0. With ~ before it, the register may be wider. A dot and a word after the letter say which parts of the
// register may be selected, see [parts].
type argument struct {
	count    int  // of a vector; 0: not a vector
	perN     bool // count divides N
	kind     byte
	typ      string
	wider    bool
	loose    bool // the width is enough: loads and stores of vectors of floating-point numbers take integers' registers too
	with     Mod
	optional bool
	parts    string  // a name in [parts]
	only     []int64 // of an integer: the values, or
	span     bool    // only[0] to only[1]
}

func parseArgument(s string) argument {
	a := argument{typ: "0"}
	s, a.optional = strings.CutSuffix(s, "?")
	s, with, _ := strings.Cut(s, "@")
	a.with = Mod(with)
	s, typ, typed := strings.Cut(s, ":")
	s, a.parts, _ = strings.Cut(s, ".")
	if strings.HasPrefix(s, "n/") {
		a.perN, s = true, s[2:]
	}
	a.kind = s[len(s)-1]
	if n := s[:len(s)-1]; n != "" {
		a.count, _ = strconv.Atoi(n)
	}
	if typed {
		a.typ, a.wider = strings.CutPrefix(typ, "~")
	}
	if a.kind == 'i' && typed {
		lo, hi, span := strings.Cut(typ, "..")
		if a.span = span; span {
			typ = lo + "," + hi
		}
		for w := range strings.SplitSeq(typ, ",") {
			n, err := strconv.ParseInt(w, 10, 64)
			if err != nil {
				panic("table of forms: " + typ)
			}
			a.only = append(a.only, n)
		}
	}
	return a
}

// typeOf is the type that the argument has in the instruction.
func (a *argument) typeOf(in *Instr) Type {
	switch a.typ {
	case "0", "1", "2", "3":
		return in.Type(int(a.typ[0] - '0'))
	case "w", "h", "k":
		t := in.Type(0)
		n := map[string]int{"w": 2 * t.Bits(), "h": t.Bits() / 2, "k": t.Bits() / 4}[a.typ]
		u, _ := TypeNamed(t.String()[:1] + strconv.Itoa(n))
		return u
	}
	t, _ := TypeNamed(a.typ)
	return t
}

// length is the number of elements of the vector.
func (a *argument) length(in *Instr) int {
	if !a.perN {
		return a.count
	}
	for _, m := range in.Mods {
		if _, rest, ok := strings.Cut(string(m), "n"); ok && m[0] == 'm' {
			n, _, _ := strings.Cut(rest, "k")
			v, _ := strconv.Atoi(n)
			return v / a.count
		}
	}
	return 0
}

// argumentError is what is wrong with the operand with index at.
type argumentError struct {
	at  int
	msg string
}

// arguments checks the operands, with their registers' types if fn is given.
func (f *Form) arguments(in *Instr, fn *Func) *argumentError {
	return f.argumentsFrom(in, fn, 0, 0)
}

func (f *Form) argumentsFrom(in *Instr, fn *Func, i, j int) *argumentError {
	if i == len(f.args) {
		if j == len(in.Args) {
			return negations(in)
		}
		return &argumentError{j, fmt.Sprintf("%d operands are too many", len(in.Args))}
	}
	a := &f.args[i]
	switch {
	case a.kind == 'c':
		return callArguments(in)
	case a.with != "" && !in.Has(a.with):
		return f.argumentsFrom(in, fn, i+1, j)
	}
	var err *argumentError
	if j == len(in.Args) {
		err = &argumentError{j, fmt.Sprintf("%d operands are too few", len(in.Args))}
	} else if msg := a.check(in, &in.Args[j], fn); msg != "" {
		err = &argumentError{j, fmt.Sprintf("operand %d %s", j+1, msg)}
	} else if err = f.argumentsFrom(in, fn, i+1, j+1); err == nil {
		return nil
	}
	if a.optional {
		if e := f.argumentsFrom(in, fn, i+1, j); e == nil || e.at > err.at {
			return e
		}
	}
	return err
}

// check says what is wrong with an operand, "" if nothing.
func (a *argument) check(in *Instr, o *Operand, fn *Func) string {
	t := a.typeOf(in)
	if a.count > 0 {
		if o.Kind != VecOperand {
			return "has to be a vector in braces"
		}
		if n := a.length(in); len(o.Elems) != n {
			return fmt.Sprintf("has to be a vector of %d, not of %d", n, len(o.Elems))
		}
		return a.each(o.Elems, t, fn)
	}
	switch a.kind {
	case 'v', 'V':
		n := in.Width()
		if n == 1 && o.Kind != VecOperand {
			return a.scalar(o, t, fn)
		}
		if o.Kind != VecOperand || len(o.Elems) != n {
			return fmt.Sprintf("has to be a vector of %d in braces", n)
		}
		loose := *a
		loose.loose = t == F16 || t == F32 || t == F64
		return loose.each(o.Elems, t, fn)
	case 'o':
		if o.Kind != VecOperand || len(o.Elems) == 0 {
			return "has to be a vector in braces"
		}
		return a.each(o.Elems, t, fn)
	case 'Q', 'P', 'e', 'E':
		if o.Kind == PairOperand {
			return a.pair(o, t, fn)
		}
		if a.kind == 'P' || a.kind == 'E' {
			return "has to be a pair a|b"
		}
	case 'a', 'A':
		return a.address(in, o, fn)
	case 'T', 'U':
		return a.textured(in, o, fn)
	case 'M':
		return a.tensorAddress(o, fn)
	}
	return a.scalar(o, t, fn)
}

func (a *argument) each(elems []Operand, t Type, fn *Func) string {
	for i := range elems {
		if msg := a.scalar(&elems[i], t, fn); msg != "" {
			return msg
		}
	}
	// Bits may be of any class, but the elements of a vector have to agree.
	if fn == nil || t.Class() != Bits {
		return ""
	}
	first := NoType
	for i := range elems {
		if elems[i].Kind != RegOperand {
			continue
		}
		r := fn.Regs[elems[i].Reg].Type
		switch {
		case first == NoType:
			first = r
		case r.Class() != Bits && first.Class() != Bits && r.IsFloat() != first.IsFloat():
			return "mixes integers and floating-point numbers"
		case r.Bits() != first.Bits():
			return "mixes registers of different widths"
		}
	}
	return ""
}

func (a *argument) pair(o *Operand, t Type, fn *Func) string {
	if len(o.Elems) != 2 {
		return "has to be a pair a|b"
	}
	first := argument{kind: 'q'}
	switch a.kind {
	case 'e':
		first.kind = 'd'
	case 'E':
		first.kind = 'D'
	}
	if msg := first.scalar(&o.Elems[0], t, fn); msg != "" {
		return msg
	}
	return (&argument{kind: 'q'}).scalar(&o.Elems[1], Pred, fn)
}

// scalar checks an operand that is neither vector nor address.
func (a *argument) scalar(o *Operand, t Type, fn *Func) string {
	if o.Not && a.kind != 'p' {
		return "cannot be negated with !"
	}
	if o.Neg && a.kind != 'N' {
		return "cannot be negated with -"
	}
	if msg := a.selects(o); msg != "" {
		return msg
	}
	switch a.kind {
	case 'p', 'q', 'Q':
		t = Pred
	}
	switch o.Kind {
	case RegOperand:
		if a.kind == 'i' || a.kind == 'l' || a.kind == 'y' || a.kind == '_' {
			break
		}
		if fn == nil {
			return ""
		}
		r := fn.Regs[o.Reg]
		if !registerFits(r.Type, t, a.wider) && !(a.loose && r.Type.Bits() == t.Bits() && r.Type != Pred) {
			return fmt.Sprintf("is %s of type .%s, which does not fit .%s", r.Name, r.Type, t)
		}
		return ""
	case IntOperand:
		switch a.kind {
		case 'i':
			return a.integer(int64(o.Bits))
		case 's', 'S', 'V', 'N':
			if t.IsFloat() {
				return fmt.Sprintf("is an integer, .%s takes floating-point constants such as 0f3F800000 or 1.0", t)
			}
			return ""
		case 'p':
			return ""
		}
	case F32Operand, F64Operand:
		if a.kind != 's' && a.kind != 'S' && a.kind != 'V' {
			break
		}
		switch {
		case t == F32 || t == F64 || t == F32x2, t == B32 && o.Kind == F32Operand, t == B64 && o.Kind == F64Operand:
			return ""
		}
		return fmt.Sprintf("is a floating-point constant, which .%s does not take", t)
	case SpecialOperand:
		if info, _ := Special(o.Sym); a.kind == 'S' || a.kind == 'p' && info.Type == Pred {
			return ""
		}
		return fmt.Sprintf("is the special register %s; only mov and cvt read those", o.Sym)
	case SymOperand:
		if a.kind == 'y' {
			return ""
		}
	case LabelOperand:
		if a.kind == 'l' {
			return ""
		}
	case SinkOperand:
		if strings.IndexByte("DvE_", a.kind) >= 0 {
			return ""
		}
	}
	return "has to be " + a.describe(t)
}

func (a *argument) integer(v int64) string {
	switch {
	case a.span && (v < a.only[0] || v > a.only[1]):
		return fmt.Sprintf("has to be from %d to %d", a.only[0], a.only[1])
	case a.span || a.only == nil:
		return ""
	}
	for _, n := range a.only {
		if n == v {
			return ""
		}
	}
	return fmt.Sprintf("has to be one of %v", a.only)
}

func (a *argument) describe(t Type) string {
	switch a.kind {
	case 'd', 'r', 'e', 'o':
		return fmt.Sprintf("a register of type .%s", t)
	case 'D', 'v', 'E':
		return fmt.Sprintf("a register of type .%s or _", t)
	case '_':
		return "_"
	case 'p', 'q', 'Q', 'P':
		return "a predicate"
	case 'y':
		return "a variable or function"
	case 'i':
		return "an integer constant"
	case 'l':
		return "a label"
	}
	return fmt.Sprintf("a register or constant of type .%s", t)
}
