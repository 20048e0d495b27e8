package ir

import (
	"fmt"
	"iter"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// Form is one form of an instruction: the parts that may follow its root, its operands, and what it needs.
//
// The table is written in lines such as
//
//	add{.(rn rz rm rp)}{.ftz}{.sat}.f32   d s s
//	fma.rn{.ftz}.relu.(f16 f16x2)         d s s s   | 80 7.0
//
// Parts in braces may be left out, of those in parentheses one is to be chosen, and @80/7.0 after one is what it needs more.
// The operands are described at [argument]. After the bar stand the least architecture and PTX version; without, they are
// those of [Oldest]. $words are abbreviations, see macros.
type Form struct {
	Op     Op
	Syntax string // the line of the table
	SM     Target
	PTX    Version

	parts []part
	args  []argument
}

// Oldest is what all PTX here needs at least: nothing older is supported by any assembler that still is.
var (
	OldestTarget  = Target{SM: 50}
	OldestVersion = Version{4, 0}
)

// part is a place in the opcode.
type part struct {
	optional bool
	alts     []alternative
}

// alternative is what may stand there: one part of the opcode, or several that belong together.
type alternative struct {
	mods []Mod
	sm   Target
	ptx  Version
}

// Forms are all forms, those of one root together.
func Forms() iter.Seq[*Form] {
	return func(yield func(*Form) bool) {
		for op := range formTable() {
			for _, f := range FormsOf(op) {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// FormsOf are the forms of a root.
func FormsOf(op Op) []*Form {
	if of := formTable()[op]; of != nil {
		return of.forms()
	}
	return nil
}

// Error is what is wrong with an instruction, and where. It wraps [compute.ErrArgument] or [compute.ErrUnsupported].
type Error struct {
	Pos    Pos
	Func   string // "" if not known
	Opcode string
	Msg    string
	err    error
}

// Error says it with the position, as far as known.
func (e *Error) Error() string {
	where := e.Pos.String()
	if where != "" {
		where += ": "
	}
	return fmt.Sprintf("ptx: %s%s: %s", where, e.Opcode, e.Msg)
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.err }

func wrong(in *Instr, format string, args ...any) *Error {
	return &Error{Pos: in.Pos, Opcode: in.Opcode(), Msg: fmt.Sprintf(format, args...), err: compute.ErrArgument}
}

// Form is [FormOf] with the types of the function's registers looked at too.
func (f *Func) Form(in *Instr) (*Form, error) {
	err := f.undeclared(in)
	var form *Form
	if err == nil {
		form, err = formOf(in, f)
	}
	if err != nil {
		err.Func = f.Name
		return nil, err
	}
	return form, nil
}

// FormOf finds the form that the instruction has, with what its parts need together. The error, of type [*Error], says what is
// wrong: an unknown instruction, a part that does not fit, the wrong number or kind of operands. Types of registers are for
// [Validate].
func FormOf(in *Instr) (*Form, error) {
	f, err := formOf(in, nil)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// formOf is FormOf with the types of registers looked at too, if fn is given.
func formOf(in *Instr, fn *Func) (*Form, *Error) {
	forms := FormsOf(in.Op)
	if len(forms) == 0 {
		if reason := Unsupported(in.Op); reason != "" {
			return nil, wrong(in, "%s", reason).unsupported()
		}
		return nil, wrong(in, "there is no such instruction")
	}
	mods := in.Mods
	deepest, depth := -1, -1
	var bad *argumentError
	var of *Form
	for _, f := range forms {
		need := alternative{sm: f.SM, ptx: f.PTX}
		ok, reached := f.match(0, mods, 0, &need)
		deepest = max(deepest, reached)
		if !ok {
			continue
		}
		e := f.arguments(in, fn)
		if e == nil {
			if need.sm != f.SM || need.ptx != f.PTX {
				g := *f
				g.SM, g.PTX = need.sm, need.ptx
				f = &g
			}
			return f, nil
		}
		if bad == nil || e.at > depth {
			bad, of, depth = e, f, e.at
		}
	}
	if ordered := InOrder(in.Op, mods); bad == nil && !slices.Equal(ordered, mods) {
		c := *in
		c.Mods = ordered
		return formOf(&c, fn)
	}
	switch {
	case bad != nil:
		return nil, wrong(in, "%s; the form is %s", bad.msg, of.Usage())
	case deepest < len(mods):
		return nil, wrong(in, "%s has no part .%s at this place", in.Op, mods[deepest])
	}
	return nil, wrong(in, "a part of the opcode, such as its type, is missing")
}

// InOrder returns the parts of an opcode in the order of the manual. Assemblers take any order that keeps types, and layouts of
// matrices, among themselves as they are, and compilers and headers make use of it. Parts that belong to no form come back as
// they are.
func InOrder(op Op, mods []Mod) []Mod {
	forms := FormsOf(op)
	for _, f := range forms {
		if ok, _ := f.match(0, mods, 0, &alternative{}); ok {
			return mods
		}
	}
	for _, f := range forms {
		if ordered, ok := f.order(0, mods); ok {
			return ordered
		}
	}
	return mods
}

// order puts mods in the order of the parts from the i-th on, if all of them belong there.
func (f *Form) order(i int, mods []Mod) ([]Mod, bool) {
	if i == len(f.parts) {
		return nil, len(mods) == 0
	}
	p := &f.parts[i]
	for k := range p.alts {
		chosen := p.alts[k].mods
		left, ok := without(mods, chosen)
		if !ok {
			continue
		}
		if rest, ok := f.order(i+1, left); ok {
			return append(slices.Clone(chosen), rest...), true
		}
	}
	if p.optional {
		return f.order(i+1, mods)
	}
	return nil, false
}

// without takes the parts in take out of mods. It is not ok if one is missing, or if it is a type or layout and not the first
// one left.
func without(mods, take []Mod) (left []Mod, ok bool) {
	typed := func(m Mod) bool { _, ok := m.Type(); return ok }
	layout := func(m Mod) bool { return m == Row || m == Col }
	left = slices.Clone(mods)
	for _, m := range take {
		i := slices.Index(left, m)
		if i < 0 || typed(m) && slices.IndexFunc(left, typed) < i || layout(m) && slices.IndexFunc(left, layout) < i {
			return nil, false
		}
		left = slices.Delete(left, i, i+1)
	}
	return left, true
}

// match tells whether mods[j:] are the parts from the i-th on, and how many of mods fitted at best. It adds to need what the
// chosen alternatives need.
func (f *Form) match(i int, mods []Mod, j int, need *alternative) (bool, int) {
	if i == len(f.parts) {
		return j == len(mods), j
	}
	p, reached := &f.parts[i], j
	for k := range p.alts {
		a := &p.alts[k]
		n := 0
		for n < len(a.mods) && j+n < len(mods) && a.mods[n] == mods[j+n] {
			n++
		}
		reached = max(reached, j+n)
		if n < len(a.mods) {
			continue
		}
		ok, r := f.match(i+1, mods, j+n, need)
		reached = max(reached, r)
		if ok {
			need.raise(a.sm, a.ptx)
			return true, r
		}
	}
	if p.optional {
		ok, r := f.match(i+1, mods, j, need)
		return ok, max(reached, r)
	}
	return false, reached
}

func (a *alternative) raise(sm Target, ptx Version) {
	if a.sm.SM < sm.SM || a.sm.SM == sm.SM && sm.Suffix != "" {
		a.sm = sm
	}
	if a.ptx.Less(ptx) {
		a.ptx = ptx
	}
}
