package parse

import (
	"slices"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

// instruction reads an instruction whose first token is t.
func (p *parser) instruction(fn *function, t token) {
	in := ir.Instr{Pos: p.pos(t.off)}
	fn.guard = ir.Guard{}
	if t.kind == '@' {
		in.Guard.Not = p.accept('!')
		g := p.expect(ident, "a predicate")
		o := p.named(fn, g)
		if o.Kind != ir.RegOperand || o.Part != "" || fn.f.Regs[o.Reg].Type != ir.Pred {
			p.failAt(g.off, "%s guards an instruction, but is no predicate register", p.text(g))
		}
		in.Guard.Reg = o.Reg
		fn.guard = in.Guard
		t = p.next()
	}
	if t.kind != ident {
		p.failAt(t.off, "an instruction expected, found %s", p.describe(t))
	}
	var code strings.Builder
	code.WriteString(p.text(t))
	for p.peek().kind == dot {
		code.WriteString(p.text(p.next()))
	}
	op, mods, ok := ir.SplitOpcode(code.String())
	if reason := ir.Unsupported(op); reason != "" {
		p.unsupportedAt(t.off, "%s: %s", code.String(), reason)
	}
	if !ok {
		p.unknown(t, code.String())
	}
	ordered, ok := p.orders[code.String()]
	if !ok {
		ordered = ir.InOrder(op, mods)
		p.orders[code.String()] = ordered
	}
	in.Op, in.Mods = op, slices.Clone(ordered)
	switch {
	case op == "call":
		p.callArgs(fn, &in)
	case p.peek().kind != ';':
		for first := true; first || p.accept(','); first = false {
			isLabel := op == "bra" && len(in.Args) == 0 || op == "brx.idx" && len(in.Args) == 1
			if n := p.peek(); isLabel && n.kind == ident {
				p.next()
				in.Args = append(in.Args, p.jump(fn, n, len(in.Args)))
				continue
			}
			in.Args = append(in.Args, p.operand(fn))
		}
	}
	end := p.next()
	if end.kind != ';' {
		p.failAt(end.off, "a comma or semicolon expected in %s, found %s", code.String(), p.describe(end))
	}
	if op == "mov" && in.Width() > 1 {
		p.moveVector(fn, t, &in)
		return
	}
	p.emit(fn, in)
}

// moveVector puts a mov for each element in place of one of vectors.
func (p *parser) moveVector(fn *function, t token, in *ir.Instr) {
	n := in.Width()
	fn.added = true
	if len(in.Args) != 2 || in.Args[0].Kind != ir.VecOperand || in.Args[1].Kind != ir.VecOperand ||
		len(in.Args[0].Elems) != n || len(in.Args[1].Elems) != n {
		p.failAt(t.off, "%s takes two vectors of %d", in.Opcode(), n)
	}
	move := func(to, from ir.Operand) {
		p.emit(fn, ir.Instr{Pos: in.Pos, Guard: in.Guard, Op: "mov", Mods: []ir.Mod{in.Type(0).Mod()}, Args: []ir.Operand{to, from}})
	}
	to, from := in.Args[0].Elems, in.Args[1].Elems
	for i := range from {
		if r := from[i].Reg; r != 0 && slices.ContainsFunc(to[:i], func(o ir.Operand) bool { return o.Reg == r }) { // overwritten before
			saved := p.temporary(fn, fn.f.Regs[r].Type)
			move(saved, from[i])
			from[i] = saved
		}
	}
	for i := range to {
		if to[i].Kind != ir.SinkOperand {
			move(to[i], from[i])
		}
	}
}

// temporary is a register that the text does not have.
func (p *parser) temporary(fn *function, typ ir.Type) ir.Operand {
	return ir.R(p.number(fn, &register{text: "%temporary", typ: typ}))
}

// sum is a register with a constant after it, which an add before the instruction computes.
func (p *parser) sum(fn *function, t token, r ir.Reg) ir.Operand {
	fn.added = true
	typ := fn.f.Regs[r].Type
	off := p.offset()
	if typ.IsFloat() || typ.Bits() < 16 || typ.Bits() > 64 {
		p.failAt(t.off, "%s of type .%s with an offset; only integers take one", p.text(t), typ)
	}
	u := map[int]ir.Type{16: ir.U16, 32: ir.U32, 64: ir.U64}[typ.Bits()]
	o := p.temporary(fn, typ)
	p.emit(fn, ir.Instr{Pos: p.pos(t.off), Guard: fn.guard, Op: "add", Mods: []ir.Mod{u.Mod()}, Args: []ir.Operand{o, ir.R(r), ir.Int(off)}})
	return o
}

// unknown fails because of an opcode whose root there is not. Where its first word begins roots of several words, such as bar.sync, the
// second one is to blame too.
func (p *parser) unknown(t token, code string) {
	words := strings.SplitN(code, ".", 3)
	name := words[0]
	roots := func(f func(string)) {
		ir.Ops(func(op ir.Op, info ir.OpInfo) {
			if info.Kind != ir.Directive {
				f(string(op))
			}
		})
	}
	roots(func(root string) {
		if first, _, several := strings.Cut(root, "."); several && first == words[0] && len(words) > 1 {
			name = words[0] + "." + words[1]
		}
	})
	p.failAt(t.off, "there is no instruction %s%s", name, nearest(name, roots))
}

// jump is a label as the next instruction's argument, to be completed when its scope is known.
func (p *parser) jump(fn *function, t token, arg int) ir.Operand {
	fn.scope.jumps = append(fn.scope.jumps, jump{mention{t.off, p.text(t)}, len(fn.f.Body), arg})
	return ir.LabelOf(p.text(t))
}

// callArgs reads "(results), function, (arguments), prototype", of which only the function has to be there.
func (p *parser) callArgs(fn *function, in *ir.Instr) {
	if p.peek().kind == '(' {
		in.Args = append(in.Args, p.list(fn))
		p.expect(',', "a comma")
	}
	t := p.expect(ident, "a function or the register that holds its address")
	in.Args = append(in.Args, p.named(fn, t))
	if !p.accept(',') {
		return
	}
	if p.peek().kind == '(' {
		in.Args = append(in.Args, p.list(fn))
		if !p.accept(',') {
			return
		}
	}
	t = p.expect(ident, "the label of a .callprototype")
	in.Args = append(in.Args, p.jump(fn, t, len(in.Args)))
}

// operand reads any operand but labels and lists.
func (p *parser) operand(fn *function) ir.Operand {
	switch p.peek().kind {
	case '[':
		return p.address(fn)
	case '{':
		return p.vector(fn)
	}
	o := p.scalar(fn)
	if (o.Kind == ir.RegOperand || o.Kind == ir.SinkOperand) && p.accept('|') {
		return ir.Operand{Kind: ir.PairOperand, Elems: []ir.Operand{o, p.part(fn, ir.PairOperand)}}
	}
	return o
}

// part reads an operand inside another one, which can be a vector register in the lists of calls only.
func (p *parser) part(fn *function, inside ir.OperandKind) ir.Operand {
	t := p.peek()
	o := p.scalar(fn)
	if o.Kind == ir.VecOperand && inside != ir.ListOperand {
		p.failAt(t.off, "a vector inside another operand")
	}
	return o
}

func (p *parser) vector(fn *function) ir.Operand { return p.enclosed(fn, ir.VecOperand, '}') }

func (p *parser) list(fn *function) ir.Operand { return p.enclosed(fn, ir.ListOperand, ')') }

// enclosed reads operands in braces or parentheses.
func (p *parser) enclosed(fn *function, as ir.OperandKind, end kind) ir.Operand {
	p.next()
	o := ir.Operand{Kind: as}
	for p.peek().kind != end {
		if len(o.Elems) > 0 {
			p.expect(',', "a comma or "+string(rune(end)))
		}
		if e := p.part(fn, as); e.Kind == ir.VecOperand {
			o.Elems = append(o.Elems, e.Elems...)
		} else {
			o.Elems = append(o.Elems, e)
		}
	}
	p.next()
	return o
}

// scalar reads a register, constant, symbol with offset, or _.
func (p *parser) scalar(fn *function) ir.Operand {
	t := p.peek()
	switch {
	case t.kind == ident && p.text(t) != "WARP_SZ":
		p.next()
		o := p.named(fn, t)
		switch next := p.peek().kind; {
		case o.Kind == ir.SymOperand:
			o.Off = p.offset()
		case o.Kind == ir.RegOperand && o.Part == "" && (next == '+' || next == '-'):
			return p.sum(fn, t, o.Reg)
		}
		return o
	case t.kind == '!' && p.at(1).kind == ident && p.text(p.at(1)) != "WARP_SZ":
		p.next()
		r := p.next()
		o := p.named(fn, r)
		if o.Kind != ir.RegOperand {
			p.failAt(r.off, "! belongs before predicates")
		}
		o.Not = true
		return o
	case t.kind == '-' && p.at(1).kind == ident && p.text(p.at(1)) != "WARP_SZ":
		p.next()
		r := p.next()
		o := p.named(fn, r)
		if o.Kind != ir.RegOperand {
			p.failAt(t.off, "- belongs before registers and constants")
		}
		o.Neg = true
		return o
	case t.kind == number && strings.HasPrefix(strings.ToLower(p.text(t)), "0f"):
		p.next()
		return p.literal(t)
	case t.kind == number || t.kind == ident || t.kind > 0 && strings.ContainsRune("-+~!(", rune(t.kind)):
		v := p.constant()
		if v.float {
			return ir.Operand{Kind: ir.F64Operand, Bits: v.bits}
		}
		return ir.Operand{Kind: ir.IntOperand, Bits: v.bits}
	}
	p.failAt(t.off, "an operand expected, found %s", p.describe(t))
	return ir.Operand{}
}

// address reads [base + offset, more…].
func (p *parser) address(fn *function) ir.Operand {
	p.next()
	o := ir.Operand{Kind: ir.AddrOperand}
	if t := p.peek(); t.kind == ident && p.text(t) != "WARP_SZ" {
		p.next()
		base := p.named(fn, t)
		switch {
		case base.Kind == ir.RegOperand && base.Part == "":
			o.Reg = base.Reg
		case base.Kind == ir.SymOperand:
			o.Sym = base.Sym
		default:
			p.failAt(t.off, "%s cannot be an address", p.text(t))
		}
		o.Off = p.offset()
	} else {
		v := p.constant()
		if v.float {
			p.failAt(t.off, "a floating-point number as address")
		}
		o.Off = int64(v.bits)
	}
	for p.accept(',') {
		if p.peek().kind == '{' {
			o.Elems = append(o.Elems, p.vector(fn))
		} else {
			o.Elems = append(o.Elems, p.part(fn, ir.AddrOperand))
		}
	}
	p.expect(']', "the ] of the address")
	return o
}

// components are the names of a vector's elements.
const components = "xyzwrgba"

// named is the register, special register, variable or function that the identifier, with the component after it, names.
func (p *parser) named(fn *function, t token) ir.Operand {
	text := p.text(t)
	if text == "_" {
		return ir.Operand{Kind: ir.SinkOperand}
	}
	component := ""
	if c := p.peek(); c.kind == dot && c.off == t.end {
		p.next()
		component = p.text(c)[1:]
	}
	if n := fn.lookup(text); n != nil {
		return p.ofFunction(fn, t, n, component)
	}
	whole := text
	if component != "" {
		whole += "." + component
	}
	if _, ok := ir.Special(whole); ok {
		return ir.Operand{Kind: ir.SpecialOperand, Sym: whole}
	}
	if isVectorSpecial(text) {
		p.failAt(t.off, "%s has the components .x, .y and .z; one of them is to be named", text)
	}
	if p.module.symbols[text] != nil && component == "" {
		return ir.Operand{Kind: ir.SymOperand, Sym: text}
	}
	p.failAt(t.off, "%s is not declared%s", whole, nearest(text, func(f func(string)) {
		for s := fn.scope; s != nil; s = s.outer {
			for name := range s.names {
				f(name)
			}
		}
		p.moduleNames(f)
		ir.Specials(func(name string, _ ir.SpecialInfo) { f(name) })
	}))
	return ir.Operand{}
}

// ofFunction is the operand for a name of the function.
func (p *parser) ofFunction(fn *function, t token, n *name, component string) ir.Operand {
	switch {
	case n.isVar && component == "":
		return ir.Operand{Kind: ir.SymOperand, Sym: n.sym}
	case n.reg != nil && component == "":
		return ir.R(p.number(fn, n.reg))
	case n.vector != nil && component == "":
		o := ir.Operand{Kind: ir.VecOperand}
		for _, r := range n.vector {
			o.Elems = append(o.Elems, ir.R(p.number(fn, r)))
		}
		return o
	case n.vector != nil:
		if i := strings.Index(components, component) % 4; len(component) == 1 && i >= 0 && i < len(n.vector) {
			return ir.R(p.number(fn, n.vector[i]))
		}
	case n.reg != nil && ir.IsPart(component):
		o := ir.R(p.number(fn, n.reg))
		o.Part = component
		return o
	}
	p.failAt(t.off, "%s has no part .%s", p.text(t), component)
	return ir.Operand{}
}
