package parse

import (
	"strconv"

	"github.com/wavelane/wavelane/ptx/ir"
)

// function reads the rest of an .entry or .func.
func (p *parser) function(t token, entry bool, link ir.Linkage) {
	if link == ir.Common {
		p.failAt(t.off, ".common is for variables")
	}
	f := &ir.Func{Entry: entry, Linkage: link}
	fn := &function{f: f, used: map[string]bool{}, count: map[string]int{}, scope: newScope(nil)}
	var own []*register // parameters and results that are registers
	if !entry && p.accept('(') {
		f.Rets, own = p.params(fn, own)
	}
	name := p.expect(ident, "the function's name")
	p.reserved(name)
	f.Name, f.Pos = p.text(name), p.pos(name.off)
	if p.accept('(') {
		f.Params, own = p.params(fn, own)
	}
	for p.peek().kind == dot {
		p.directive(f)
	}
	body := p.next()
	defined := body.kind == '{'
	if !defined && body.kind != ';' {
		p.failAt(body.off, "{ or ; expected after the head of %s, found %s", f.Name, p.describe(body))
	}
	if defined && link == ir.Extern {
		p.failAt(body.off, "%s is .extern, but has a body", f.Name)
	}
	p.declare(name.off, f.Name, true, defined, len(p.module.m.Funcs))
	p.module.m.Funcs = append(p.module.m.Funcs, f)
	if !defined {
		return
	}
	f.Body, f.Regs = []ir.Instr{}, []ir.RegDecl{{}}
	p.openScope(fn)
	p.body(fn)
	p.closeScope(fn)
	p.closeScope(fn) // that of the parameters
	for _, r := range own {
		p.number(fn, r)
	}
	if fn.added {
		renumber(f)
	}
}

// renumber brings the registers of a function that has instructions which the text does not have into the order in which the
// body mentions them.
func renumber(f *ir.Func) {
	to, regs := make([]ir.Reg, len(f.Regs)), []ir.RegDecl{{}}
	number := func(r *ir.Reg) {
		if *r != 0 && to[*r] == 0 {
			to[*r] = ir.Reg(len(regs))
			regs = append(regs, f.Regs[*r])
		}
		*r = to[*r]
	}
	var operands func([]ir.Operand)
	operands = func(args []ir.Operand) {
		for i := range args {
			number(&args[i].Reg)
			operands(args[i].Elems)
		}
	}
	for i := range f.Body {
		number(&f.Body[i].Guard.Reg)
		operands(f.Body[i].Args)
	}
	for r := range ir.Reg(len(f.Regs)) { // parameters that are not mentioned
		number(&r)
	}
	f.Regs = regs
}

// params reads a list of parameters after its (.
func (p *parser) params(fn *function, own []*register) ([]ir.Var, []*register) {
	var list []ir.Var
	for p.peek().kind != ')' {
		if len(list) > 0 {
			p.expect(',', "a comma or )")
		}
		t := p.next()
		if word := p.text(t); t.kind != dot || word != ".param" && word != ".reg" || word == ".reg" && fn.f.Entry {
			p.failAt(t.off, "a parameter (.param …) expected, found %s", p.describe(t))
		}
		v := p.variable(t)
		at := p.declarator(&v)
		declared := v.Name != "_"
		n, elems := &name{isVar: true, sym: v.Name}, []ir.Var{v}
		if v.Space == ir.RegSpace {
			n = registerName(v.Name, v.Type, v.Vec, true)
			if declared && n.reg != nil {
				own = append(own, n.reg)
			}
			if n.vector != nil { // each element is a parameter of its own
				elems = nil
			}
			for _, r := range n.vector {
				e := v
				e.Vec = 0
				if declared {
					e.Name = r.text
					own = append(own, r)
				}
				elems = append(elems, e)
			}
		}
		list = append(list, elems...)
		if !declared {
			continue
		}
		p.add(fn, at, n)
		for i := range elems {
			fn.used[elems[i].Name] = true
		}
	}
	p.next()
	return list, own
}

// directive reads one directive between a function's head and its body.
func (p *parser) directive(f *ir.Func) {
	t := p.next()
	dims := func(d *[3]int) {
		*d = [3]int{1, 1, 1}
		for i := range 3 {
			if i > 0 && !p.accept(',') {
				return
			}
			d[i] = int(p.integer(p.text(t), 1, 1<<31-1))
		}
	}
	count := func(n *int) { *n = int(p.integer(p.text(t), 0, 1<<31-1)) }
	b := &f.Bounds
	switch word := p.text(t); word {
	case ".maxntid":
		dims(&b.MaxThreads)
	case ".reqntid":
		dims(&b.ReqThreads)
	case ".reqnctapercluster":
		dims(&b.ReqCluster)
	case ".minnctapersm", ".maxnctapersm": // the second is its old name
		count(&b.MinBlocks)
	case ".maxnreg":
		count(&b.MaxRegs)
	case ".maxclusterrank":
		count(&b.MaxClusterBlocks)
	case ".explicitcluster":
		b.ExplicitCluster = true
	case ".noreturn":
		f.NoRet = true
	case ".pragma":
		for ok := true; ok; ok = p.accept(',') {
			p.expect(text, "the text of .pragma")
		}
		p.accept(';')
	default:
		p.failAt(t.off, "%s is no directive for a function%s", word, nearest(word, func(f func(string)) {
			for _, w := range []string{".maxntid", ".reqntid", ".reqnctapercluster", ".minnctapersm", ".maxnreg", ".maxclusterrank",
				".explicitcluster", ".noreturn"} {
				f(w)
			}
		}))
	}
}

// body reads what stands between the braces of a function, and the closing one.
func (p *parser) body(fn *function) {
	for depth := 1; ; {
		t := p.next()
		switch {
		case t.kind == ';':
		case t.kind == '{':
			depth++
			p.openScope(fn)
		case t.kind == '}':
			if depth--; depth == 0 {
				return
			}
			p.closeScope(fn)
		case t.kind == eof:
			p.failAt(t.off, "the file ends inside of %s: } is missing; it seems cut off", fn.f.Name)
		case t.kind == dot:
			p.local(fn, t)
		case t.kind == ident && p.peek().kind == ':':
			p.next()
			p.label(fn, t)
		default:
			p.instruction(fn, t)
		}
	}
}

func (p *parser) label(fn *function, t token) {
	text := p.text(t)
	p.reserved(t)
	if fn.scope.labels[text] != "" {
		p.failAt(t.off, "label %s is defined a second time", text)
	}
	label := p.unique(fn, text)
	fn.scope.labels[text] = label
	p.emit(fn, ir.Instr{Pos: p.pos(t.off), Op: ir.OpLabel, Args: []ir.Operand{ir.LabelOf(label)}})
}

func (p *parser) emit(fn *function, in ir.Instr) { fn.f.Body = append(fn.f.Body, in) }

// local reads a declaration or directive inside a body.
func (p *parser) local(fn *function, t token) {
	switch word := p.text(t); word {
	case ".reg":
		p.registers(fn, t)
	case ".local", ".shared", ".param", ".global", ".const":
		p.localVars(fn, t)
	case ".extern", ".visible", ".weak", ".common":
		p.failAt(t.off, "%s inside a function; such declarations stand outside", word)
	case ".pragma":
		for ok := true; ok; ok = p.accept(',') {
			s := p.expect(text, "the text of .pragma")
			value, err := strconv.Unquote(p.text(s))
			if err != nil {
				p.failAt(s.off, "%s is no text", p.text(s))
			}
			p.emit(fn, ir.Instr{Pos: p.pos(t.off), Op: ir.OpPragma, Args: []ir.Operand{{Kind: ir.TextOperand, Sym: value}}})
		}
		p.expect(';', "a semicolon")
	case ".branchtargets":
		in := ir.Instr{Pos: p.pos(t.off), Op: ir.OpBranchTargets}
		for ok := true; ok; ok = p.accept(',') {
			in.Args = append(in.Args, p.jump(fn, p.expect(ident, "a label"), len(in.Args)))
		}
		p.emit(fn, in)
		p.expect(';', "a semicolon")
	case ".callprototype":
		p.emit(fn, ir.Instr{Pos: p.pos(t.off), Op: ir.OpCallPrototype,
			Args: []ir.Operand{{Kind: ir.TextOperand, Sym: p.prototype()}}})
	case ".section":
		p.skipSection()
	case ".calltargets":
		in := ir.Instr{Pos: p.pos(t.off), Op: ir.OpCallTargets}
		for ok := true; ok; ok = p.accept(',') {
			f := p.expect(ident, "a function")
			if s := p.module.symbols[p.text(f)]; s == nil || !s.fn {
				p.failAt(f.off, "%s is no function", p.text(f))
			}
			in.Args = append(in.Args, ir.Operand{Kind: ir.SymOperand, Sym: p.text(f)})
		}
		p.emit(fn, in)
		p.expect(';', "a semicolon")
	default:
		p.failAt(t.off, "%s is no directive%s", word, nearest(word, func(f func(string)) {
			for _, w := range []string{".reg", ".local", ".shared", ".param", ".pragma", ".branchtargets", ".callprototype",
				".calltargets"} {
				f(w)
			}
		}))
	}
}

// prototype reads "(results) _ (parameters);" and returns it in one spelling.
func (p *parser) prototype() string {
	fn := &function{f: &ir.Func{}, used: map[string]bool{}, scope: newScope(nil)}
	s := ""
	if p.accept('(') {
		rets, _ := p.params(fn, nil)
		s = "(" + varList(rets) + ") "
	}
	if t := p.expect(ident, "_"); p.text(t) != "_" {
		p.failAt(t.off, "_ expected, found %s", p.text(t))
	}
	s += "_ ("
	if p.accept('(') {
		params, _ := p.params(fn, nil)
		s += varList(params)
	}
	s += ")"
	for p.acceptDot(".noreturn") {
		s += " .noreturn"
	}
	p.expect(';', "a semicolon")
	return s
}

func varList(list []ir.Var) string {
	s := ""
	for i := range list {
		if i > 0 {
			s += ", "
		}
		s += list[i].String()
	}
	return s
}

// registers reads the rest of a .reg declaration.
func (p *parser) registers(fn *function, space token) {
	v := p.variable(space)
	for ok := true; ok; ok = p.accept(',') {
		t := p.expect(ident, "a register's name")
		switch {
		case p.accept('<'):
			n := p.expect(number, "a number")
			o := p.literal(n)
			if o.Kind != ir.IntOperand || o.Bits > 1<<20 {
				p.failAt(n.off, "%s<%s>: an integer up to 2^20 is expected", p.text(t), p.text(n))
			}
			p.expect('>', ">")
			p.addRange(fn, t, v.Type, v.Vec, int(o.Bits))
		default:
			p.add(fn, t, registerName(p.text(t), v.Type, v.Vec, false))
		}
	}
	p.expect(';', "a semicolon")
}

// localVars reads the rest of a declaration of variables inside a body.
func (p *parser) localVars(fn *function, space token) {
	proto := p.variable(space)
	for ok := true; ok; ok = p.accept(',') {
		v := proto
		t := p.declarator(&v)
		if v.Space == ir.GlobalSpace || v.Space == ir.ConstSpace {
			p.initial(&v)
		}
		if len(v.Dims) > 0 && v.Dims[0] == 0 && v.Space != ir.ParamSpace {
			p.failAt(t.off, "%s needs a size", v.Name)
		}
		if v.Space == ir.GlobalSpace || v.Space == ir.ConstSpace { // lives as long as the module
			v.Name = p.hoisted(fn, v.Name)
			p.add(fn, t, &name{isVar: true, sym: v.Name})
			p.declare(t.off, v.Name, false, true, len(p.module.m.Vars))
			p.module.m.Vars = append(p.module.m.Vars, v)
			continue
		}
		v.Name = p.unique(fn, v.Name)
		p.add(fn, t, &name{isVar: true, sym: v.Name})
		fn.f.Vars = append(fn.f.Vars, v)
	}
	p.expect(';', "a semicolon")
}

// hoisted is a name for a function's variable that moves to the module: one that stands nowhere in the text.
func (p *parser) hoisted(fn *function, want string) string {
	all := map[string]bool{}
	for _, t := range p.toks {
		if t.kind == ident {
			all[p.text(t)] = true
		}
	}
	s := fn.f.Name + "_" + want
	for i := 1; all[s] || p.module.symbols[s] != nil; i++ {
		s = fn.f.Name + "_" + want + "_" + strconv.Itoa(i)
	}
	return s
}
