package ir

import (
	"errors"

	"github.com/wavelane/wavelane/compute"
)

// Validate tells whether the module is one: every instruction has a form, registers have the types that it takes, labels,
// variables and functions exist, addresses of variables are used in their space. It returns the first error of each function,
// of type [*Error], joined. What the module's version and target allow is not looked at; see [Requires].
func Validate(m *Module) error {
	var errs []error
	for _, f := range m.Funcs {
		if err := validate(m, f); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// validator is what is known of a function.
type validator struct {
	m      *Module
	f      *Func
	labels map[string]Op // by name, what follows the label if that is a directive
	vars   map[string]*Var
	funcs  map[string]bool
}

func validate(m *Module, f *Func) error {
	v := &validator{m: m, f: f, labels: map[string]Op{}, vars: map[string]*Var{}, funcs: map[string]bool{}}
	for _, list := range [][]Var{m.Vars, f.Params, f.Rets, f.Vars} { // inner ones hide outer ones
		for i := range list {
			v.vars[list[i].Name] = &list[i]
		}
	}
	for _, g := range m.Funcs {
		v.funcs[g.Name] = true
	}
	for i := range f.Body {
		if in := &f.Body[i]; in.Op == OpLabel {
			if e := v.label(in, i); e != nil {
				return v.in(e)
			}
		}
	}
	for i := range f.Body {
		if e := v.instr(&f.Body[i]); e != nil {
			return v.in(e)
		}
	}
	return nil
}

func (v *validator) in(e *Error) error {
	e.Func = v.f.Name
	return e
}

func (v *validator) label(in *Instr, i int) *Error {
	if len(in.Args) != 1 || in.Args[0].Kind != LabelOperand {
		return wrong(in, "a label has to have its name as the only operand")
	}
	name := in.Args[0].Sym
	if _, ok := v.labels[name]; ok {
		return wrong(in, "label %s is defined a second time", name)
	}
	v.labels[name] = ""
	if i+1 < len(v.f.Body) {
		if next := v.f.Body[i+1].Op; next == OpBranchTargets || next == OpCallPrototype || next == OpCallTargets {
			v.labels[name] = next
		}
	}
	return nil
}

// undeclared finds registers that the function does not have.
func (f *Func) undeclared(in *Instr) (e *Error) {
	in.Regs(func(r Reg, _ Role) {
		if r < 0 || int(r) >= len(f.Regs) {
			e = wrong(in, "register %d is not among those of %s", r, f.Name)
		}
	})
	return e
}

func (v *validator) instr(in *Instr) *Error {
	if e := v.f.undeclared(in); e != nil {
		return e
	}
	if in.Guard.Reg != 0 && v.f.Regs[in.Guard.Reg].Type != Pred {
		return wrong(in, "%s before it is no predicate", v.f.Regs[in.Guard.Reg].Name)
	}
	if in.Kind() == Directive {
		if in.Op == OpBranchTargets {
			for i := range in.Args {
				if e := v.target(in, &in.Args[i], ""); e != nil {
					return e
				}
			}
		}
		return nil
	}
	if _, e := formOf(in, v.f); e != nil {
		return e
	}
	return v.operands(in, in.Args)
}

func (v *validator) operands(in *Instr, args []Operand) *Error {
	for i := range args {
		o := &args[i]
		switch o.Kind {
		case LabelOperand:
			want := Op("")
			switch in.Op {
			case "brx.idx":
				want = OpBranchTargets
			case "call":
				if want = OpCallPrototype; v.labels[o.Sym] == OpCallTargets {
					want = OpCallTargets
				}
			}
			if e := v.target(in, o, want); e != nil {
				return e
			}
		case SymOperand, AddrOperand:
			if e := v.symbol(in, o); e != nil {
				return e
			}
		case SpecialOperand:
			if _, ok := Special(o.Sym); !ok {
				return wrong(in, "there is no special register %s", o.Sym)
			}
			if info, _ := Special(o.Sym); in.Op == "mov" && info.Type.Bits() != in.Type(0).Bits() && in.Type(0).Bits() != 16 &&
				o.Sym != "%gridid" { // which had 32 bits once
				return wrong(in, "%s is of type .%s", o.Sym, info.Type)
			}
		}
		if e := v.operands(in, o.Elems); e != nil {
			return e
		}
	}
	return nil
}

// target looks for a label; directive is what has to follow it, "" for a place in the code.
func (v *validator) target(in *Instr, o *Operand, directive Op) *Error {
	follows, ok := v.labels[o.Sym]
	switch {
	case o.Kind != LabelOperand:
		return wrong(in, "has to have labels as operands")
	case !ok:
		return wrong(in, "label %s is not defined", o.Sym)
	case follows != directive && directive != "":
		return wrong(in, "label %s has to be that of a %s", o.Sym, directive)
	case follows != directive:
		return wrong(in, "label %s is that of a %s, not of a place in the code", o.Sym, follows)
	}
	return nil
}

// symbol looks for a variable or function.
func (v *validator) symbol(in *Instr, o *Operand) *Error {
	if o.Sym == "" {
		if o.Kind == AddrOperand && o.Reg == 0 && in.Space() != LocalSpace {
			return wrong(in, "has a constant as address, which only .local allows")
		}
		return nil
	}
	x := v.vars[o.Sym]
	switch {
	case x == nil && v.funcs[o.Sym] && o.Kind == SymOperand:
		return nil
	case x == nil:
		return wrong(in, "%s is not declared", o.Sym)
	case x.Space == RegSpace:
		return wrong(in, "%s is a register, not a variable", o.Sym)
	case in.Op == "mov" && in.Type(0).Bits() == 32 && x.Space == GlobalSpace && v.m.AddressSize == 64:
		return wrong(in, "%s has an address of 64 bits", o.Sym)
	case o.Kind == AddrOperand && in.Op != "cvta":
		return v.space(in, o, x)
	}
	return nil
}

// space compares the space of an address with those that the instruction names: each one has its place for it.
func (v *validator) space(in *Instr, o *Operand, x *Var) *Error {
	var named []Space
	for _, m := range in.Mods {
		if s := SpaceNamed(m); s != NoSpace {
			named = append(named, s)
		}
	}
	if len(named) != 1 || len(in.Args) == 0 { // generic, or a copy between spaces
		return nil
	}
	space := named[0]
	if space == SharedClusterSpace {
		space = SharedSpace
	}
	if space != x.Space {
		return wrong(in, "%s is in the %s space, not in %s", o.Sym, x.Space, named[0])
	}
	return nil
}

// unsupportedError is an error for PTX that is right, but not covered.
func (e *Error) unsupported() *Error {
	e.err = compute.ErrUnsupported
	return e
}
