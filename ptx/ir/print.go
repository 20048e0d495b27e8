package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// String is the module as PTX text: the same for equal modules, and what package parse reads back as an equal one.
func (m *Module) String() string {
	p := printer{}
	p.line(".version %s", m.Version)
	p.line(".target %s", strings.Join(append([]string{m.Target.String()}, m.Options...), ", "))
	p.line(".address_size %d", m.AddressSize)
	if len(m.Vars) > 0 {
		p.line("")
	}
	known := map[string]bool{} // functions declared so far
	declare := func(name string) {
		if f := m.Func(name); f != nil && !known[name] {
			known[name] = true
			p.head(f)
			p.line(";")
		}
	}
	for i := range m.Vars {
		for _, e := range m.Vars[i].Init {
			declare(e.Sym)
		}
	}
	for i := range m.Vars {
		p.line("%s%s;", linkages[m.Vars[i].Linkage], m.Vars[i].String())
	}
	for _, f := range m.Funcs {
		p.line("")
		known[f.Name] = true
		for i := range f.Body {
			symbols(f.Body[i].Args, declare)
		}
		p.function(f)
	}
	for _, a := range m.Aliases {
		p.line("\n.alias %s, %s;", a.Name, a.Of)
	}
	return p.b.String()
}

// symbols calls f with the names of functions and variables that operands take the address of.
func symbols(args []Operand, f func(string)) {
	for i := range args {
		if args[i].Kind == SymOperand {
			f(args[i].Sym)
		}
		symbols(args[i].Elems, f)
	}
}

// String is the function as PTX text.
func (f *Func) String() string {
	p := printer{}
	p.function(f)
	return p.b.String()
}

// InstrString is one instruction of f as PTX text, with its semicolon and without indentation.
func (f *Func) InstrString(in *Instr) string {
	p := printer{}
	p.instr(f, in)
	return p.b.String()
}

type printer struct{ b strings.Builder }

func (p *printer) line(format string, args ...any) {
	fmt.Fprintf(&p.b, format, args...)
	p.b.WriteByte('\n')
}

// head is what comes before the directives and the body.
func (p *printer) head(f *Func) {
	p.b.WriteString(linkages[f.Linkage])
	if f.Entry {
		p.b.WriteString(".entry ")
	} else {
		p.b.WriteString(".func ")
		if len(f.Rets) > 0 {
			p.b.WriteString("(")
			p.vars(f.Rets, ", ")
			p.b.WriteString(") ")
		}
	}
	p.b.WriteString(f.Name)
	switch {
	case len(f.Params) > 0 && f.Entry:
		p.b.WriteString("(\n\t")
		p.vars(f.Params, ",\n\t")
		p.b.WriteString("\n)")
	default:
		p.b.WriteString("(")
		p.vars(f.Params, ", ")
		p.b.WriteString(")")
	}
	if f.NoRet {
		p.b.WriteString(" .noreturn")
	}
}

func (p *printer) function(f *Func) {
	p.head(f)
	if f.Body == nil {
		p.line(";")
		return
	}
	p.line("")
	p.bounds(f.Bounds)
	p.line("{")
	p.registers(f)
	for i := range f.Vars {
		p.line("\t%s;", f.Vars[i].String())
	}
	for i := range f.Body {
		in := &f.Body[i]
		if in.Op == OpLabel {
			p.line("%s:", in.Args[0].Sym)
			continue
		}
		p.b.WriteByte('\t')
		p.instr(f, in)
		p.b.WriteByte('\n')
	}
	p.line("}")
}

func (p *printer) bounds(b Bounds) {
	for _, d := range []struct {
		name string
		dims [3]int
	}{{"maxntid", b.MaxThreads}, {"reqntid", b.ReqThreads}, {"reqnctapercluster", b.ReqCluster}} {
		if d.dims[0] > 0 {
			p.line(".%s %d, %d, %d", d.name, d.dims[0], max(1, d.dims[1]), max(1, d.dims[2]))
		}
	}
	for _, d := range []struct {
		name string
		n    int
	}{{"minnctapersm", b.MinBlocks}, {"maxnreg", b.MaxRegs}, {"maxclusterrank", b.MaxClusterBlocks}} {
		if d.n > 0 {
			p.line(".%s %d", d.name, d.n)
		}
	}
	if b.ExplicitCluster {
		p.line(".explicitcluster")
	}
}

// registers declares registers whose names are a stem and a number together, %r<12>, where all of a stem have one type.
func (p *printer) registers(f *Func) {
	type group struct {
		typ   Type
		count int // largest number + 1
		mixed bool
	}
	groups := map[string]*group{}
	declared := map[string]bool{} // as parameters or return values
	for _, list := range [][]Var{f.Params, f.Rets} {
		for i := range list {
			declared[list[i].Name] = list[i].Space == RegSpace
		}
	}
	var stems []string
	for _, r := range f.Regs[min(1, len(f.Regs)):] {
		if declared[r.Name] {
			continue
		}
		stem, n, ok := splitName(r.Name)
		if !ok {
			p.line("\t.reg .%s %s;", r.Type, r.Name)
			continue
		}
		g := groups[stem]
		if g == nil {
			g = &group{typ: r.Type}
			groups[stem] = g
			stems = append(stems, stem)
		}
		g.count = max(g.count, n+1)
		g.mixed = g.mixed || g.typ != r.Type
	}
	f.names(func(name string) { // that the short declaration would take away
		if stem, n, ok := splitName(name); ok && groups[stem] != nil && n < groups[stem].count {
			groups[stem].mixed = true
		}
	})
	for _, stem := range stems {
		if g := groups[stem]; !g.mixed {
			p.line("\t.reg .%s %s<%d>;", g.typ, stem, g.count)
		}
	}
	for _, r := range f.Regs[min(1, len(f.Regs)):] {
		if stem, _, ok := splitName(r.Name); ok && groups[stem] != nil && groups[stem].mixed && !declared[r.Name] {
			p.line("\t.reg .%s %s;", r.Type, r.Name)
		}
	}
}

// names calls f with the names that the function uses, other than those of registers.
func (f *Func) names(use func(string)) {
	for name := range specials {
		use(name)
	}
	for _, list := range [][]Var{f.Params, f.Rets, f.Vars} {
		for i := range list {
			use(list[i].Name)
		}
	}
	var operands func([]Operand)
	operands = func(args []Operand) {
		for i := range args {
			if args[i].Sym != "" {
				use(args[i].Sym)
			}
			operands(args[i].Elems)
		}
	}
	for i := range f.Body {
		operands(f.Body[i].Args)
	}
}

// splitName cuts %r12 into %r and 12. Numbers that the short declaration would not bring back, 007 or a huge one, do not count.
func splitName(name string) (stem string, n int, ok bool) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	n, err := strconv.Atoi(name[i:])
	if err != nil || n >= 1<<20 || strconv.Itoa(n) != name[i:] || i == 0 {
		return "", 0, false
	}
	return name[:i], n, true
}

func (p *printer) vars(list []Var, sep string) {
	for i := range list {
		if i > 0 {
			p.b.WriteString(sep)
		}
		p.b.WriteString(list[i].String())
	}
}

// String is the declaration without linkage and semicolon.
func (v *Var) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".%s", v.Space)
	if v.Managed {
		b.WriteString(" .attribute(.managed)")
	}
	if v.Align > 0 {
		fmt.Fprintf(&b, " .align %d", v.Align)
	}
	if v.Vec > 0 {
		fmt.Fprintf(&b, " .v%d", v.Vec)
	}
	fmt.Fprintf(&b, " .%s", v.Type)
	if v.Ptr {
		b.WriteString(" .ptr")
		if v.PtrSpace != NoSpace {
			fmt.Fprintf(&b, " .%s", v.PtrSpace)
		}
		if v.PtrAlign > 0 {
			fmt.Fprintf(&b, " .align %d", v.PtrAlign)
		}
	}
	b.WriteString(" " + v.Name)
	for _, d := range v.Dims {
		if d == 0 {
			b.WriteString("[]")
		} else {
			fmt.Fprintf(&b, "[%d]", d)
		}
	}
	if len(v.Fields) > 0 {
		fmt.Fprintf(&b, " = {%s}", strings.Join(v.Fields, ", "))
	}
	if len(v.Init) == 0 {
		return b.String()
	}
	b.WriteString(" = ")
	if v.Dims == nil && v.Vec == 0 {
		b.WriteString(v.Init[0].text(v.Type))
		return b.String()
	}
	shape := v.Dims
	if v.Vec > 0 {
		shape = append(slices.Clip(shape), v.Vec)
	}
	initList(&b, v, shape, v.Init)
	return b.String()
}

// initList writes the elements in nested braces, as the shape says.
func initList(b *strings.Builder, v *Var, shape []int, list []Init) {
	inner := 1
	for _, d := range shape[1:] {
		inner *= d
	}
	b.WriteByte('{')
	for i := 0; i < len(list); i += max(1, inner) {
		if i > 0 {
			b.WriteString(", ")
		}
		if len(shape) > 1 {
			initList(b, v, shape[1:], list[i:min(i+max(1, inner), len(list))])
		} else {
			b.WriteString(list[i].text(v.Type))
		}
	}
	b.WriteByte('}')
}

func (e Init) text(t Type) string {
	switch {
	case e.Mask != 0:
		whole := e
		whole.Mask = 0
		return fmt.Sprintf("0x%X(%s)", e.Mask, whole.text(U64))
	case e.Sym != "" && e.Generic:
		return fmt.Sprintf("generic(%s)%s", e.Sym, offset(int64(e.Bits)))
	case e.Sym != "":
		return e.Sym + offset(int64(e.Bits))
	case t == F32:
		return fmt.Sprintf("0f%08X", e.Bits)
	case t == F64:
		return fmt.Sprintf("0d%016X", e.Bits)
	case t.IsSigned():
		return strconv.FormatInt(int64(e.Bits)<<(64-t.Bits())>>(64-t.Bits()), 10)
	}
	return strconv.FormatUint(e.Bits, 10)
}

// offset is what follows a base: "+-8" for a negative one, since PTX knows no minus there.
func offset(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("+%d", n)
}

func (p *printer) instr(f *Func, in *Instr) {
	switch in.Op {
	case OpLabel:
		p.b.WriteString(in.Args[0].Sym + ":")
		return
	case OpPragma:
		fmt.Fprintf(&p.b, ".pragma %q;", in.Args[0].Sym)
		return
	case OpCallPrototype:
		p.b.WriteString(string(in.Op) + " " + in.Args[0].Sym + ";")
		return
	}
	if in.Guard.Reg != 0 {
		p.b.WriteByte('@')
		if in.Guard.Not {
			p.b.WriteByte('!')
		}
		p.b.WriteString(f.regName(in.Guard.Reg) + " ")
	}
	p.b.WriteString(in.Opcode())
	for i := range in.Args {
		if i > 0 {
			p.b.WriteByte(',')
		}
		p.b.WriteByte(' ')
		p.operand(f, &in.Args[i])
	}
	p.b.WriteByte(';')
}

// Opcode is the root and its parts, joined by dots.
func (in *Instr) Opcode() string {
	var b strings.Builder
	b.WriteString(string(in.Op))
	for _, m := range in.Mods {
		b.WriteByte('.')
		b.WriteString(string(m))
	}
	return b.String()
}

func (f *Func) regName(r Reg) string {
	if int(r) < len(f.Regs) {
		return f.Regs[r].Name
	}
	return fmt.Sprintf("%%?%d", r)
}

func (p *printer) operand(f *Func, o *Operand) {
	switch o.Kind {
	case RegOperand:
		if o.Not {
			p.b.WriteByte('!')
		}
		if o.Neg {
			p.b.WriteByte('-')
		}
		p.b.WriteString(f.regName(o.Reg))
		if o.Part != "" {
			p.b.WriteString("." + o.Part)
		}
	case IntOperand:
		p.b.WriteString(strconv.FormatInt(int64(o.Bits), 10))
	case F32Operand:
		fmt.Fprintf(&p.b, "0f%08X", uint32(o.Bits))
	case F64Operand:
		fmt.Fprintf(&p.b, "0d%016X", o.Bits)
	case SpecialOperand, LabelOperand, TextOperand:
		p.b.WriteString(o.Sym)
	case SymOperand:
		p.b.WriteString(o.Sym + offset(o.Off))
	case AddrOperand:
		p.b.WriteByte('[')
		switch {
		case o.Reg != 0:
			p.b.WriteString(f.regName(o.Reg) + offset(o.Off))
		case o.Sym != "":
			p.b.WriteString(o.Sym + offset(o.Off))
		default:
			p.b.WriteString(strconv.FormatInt(o.Off, 10))
		}
		for i := range o.Elems {
			p.b.WriteString(", ")
			p.operand(f, &o.Elems[i])
		}
		p.b.WriteByte(']')
	case VecOperand:
		p.list(f, "{", o.Elems, ", ", "}")
	case ListOperand:
		p.list(f, "(", o.Elems, ", ", ")")
	case PairOperand:
		p.list(f, "", o.Elems, "|", "")
	case SinkOperand:
		p.b.WriteByte('_')
	}
}

func (p *printer) list(f *Func, open string, elems []Operand, sep, end string) {
	p.b.WriteString(open)
	for i := range elems {
		if i > 0 {
			p.b.WriteString(sep)
		}
		p.operand(f, &elems[i])
	}
	p.b.WriteString(end)
}
