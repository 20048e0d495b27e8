package parse

import (
	"errors"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Module reads PTX text. name stands for the file in positions. Errors are of type [*Error]; the first one is returned.
func Module(name string, src []byte) (m *ir.Module, err error) {
	p := &parser{file: name, src: src, orders: map[string][]ir.Mod{}}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case bail:
			m, err = nil, e.err
		default:
			panic(e)
		}
	}()
	p.lex()
	p.module = &module{m: &ir.Module{AddressSize: 64}, symbols: map[string]*symbol{}, alias: map[string]string{}}
	p.outside()
	p.header()
	for p.peek().kind != eof {
		p.topLevel()
	}
	p.finish()
	p.validate()
	p.sourceLines()
	return p.module.m, nil
}

// validate fails with the first instruction that is none.
func (p *parser) validate() {
	err := ir.Validate(p.module.m)
	if e, ok := errors.AsType[*ir.Error](err); ok {
		sentinel := compute.ErrArgument
		if errors.Is(err, compute.ErrUnsupported) {
			sentinel = compute.ErrUnsupported
		}
		panic(bail{&Error{e.Pos, e.Opcode + ": " + e.Msg, sentinel}})
	}
}

// module is what is known while a module is read.
type module struct {
	m       *ir.Module
	symbols map[string]*symbol // variables and functions declared so far
	names   map[string]bool    // all that is mentioned outside of functions
	inits   []mention          // symbols in initial values, which may be functions that come later
	alias   map[string]string
	aliased []mention
}

// symbol is a variable or function of the module.
type symbol struct {
	off     int
	fn      bool
	defined bool // not only declared
	index   int  // in Vars or Funcs
}

// mention is a name in the text that is looked up later.
type mention struct {
	off  int
	name string
}

// outside collects the names that stand outside of functions and parameter lists: those that the functions' own names avoid.
func (p *parser) outside() {
	p.module.names = map[string]bool{}
	depth := 0
	for _, t := range p.toks {
		switch t.kind {
		case '{', '(':
			depth++
		case '}', ')':
			depth--
		case ident:
			if depth == 0 {
				p.module.names[p.text(t)] = true
			}
		}
	}
}

// header reads .version, .target and .address_size. Without the last one addresses have 64 bits, as they have to ptxas.
func (p *parser) header() {
	m := p.module.m
	t := p.peek()
	if !p.acceptDot(".version") {
		p.failAt(t.off, ".version expected as the first line, found %s", p.describe(t))
	}
	t = p.expect(number, "a version such as 8.0")
	major, minor, ok := strings.Cut(p.text(t), ".")
	var err1, err2 error
	m.Version.Major, err1 = strconv.Atoi(major)
	m.Version.Minor, err2 = strconv.Atoi(minor)
	if !ok || err1 != nil || err2 != nil || len(major) > 2 || len(minor) > 2 {
		p.failAt(t.off, "%s is no version such as 8.0", p.text(t))
	}
	t = p.peek()
	if !p.acceptDot(".target") {
		p.failAt(t.off, ".target expected after .version, found %s", p.describe(t))
	}
	for first := true; first || p.accept(','); first = false {
		t = p.expect(ident, "a target such as sm_80")
		switch s := p.text(t); {
		case strings.HasPrefix(s, "sm_"):
			if m.Target.SM != 0 {
				p.failAt(t.off, "a second target")
			}
			digits := strings.TrimRight(s[3:], "af")
			n, err := strconv.Atoi(digits)
			if m.Target.Suffix = s[3+len(digits):]; err != nil || n < 10 || n > 999 || len(m.Target.Suffix) > 1 {
				p.failAt(t.off, "%s is no target such as sm_80 or sm_90a", s)
			}
			m.Target.SM = n
		case s != "debug": // asks for the line information that is dropped
			m.Options = append(m.Options, s)
		}
	}
	if m.Target.SM == 0 {
		p.failAt(t.off, ".target names no architecture such as sm_80")
	}
	if p.acceptDot(".address_size") {
		t = p.expect(number, "32 or 64")
		switch p.text(t) {
		case "32":
			m.AddressSize = 32
		case "64":
		default:
			p.failAt(t.off, ".address_size has to be 32 or 64")
		}
	}
}

var linkage = map[string]ir.Linkage{".visible": ir.Visible, ".extern": ir.Extern, ".weak": ir.WeakLinkage, ".common": ir.Common}

// topLevel reads one declaration of the module.
func (p *parser) topLevel() {
	t := p.next()
	if t.kind == ';' {
		return
	}
	if t.kind != dot {
		p.failAt(t.off, "a declaration such as .entry or .global expected, found %s", p.describe(t))
	}
	link := ir.Internal
	if l, ok := linkage[p.text(t)]; ok {
		link = l
		t = p.next()
	}
	switch word := p.text(t); word {
	case ".entry", ".func":
		p.function(t, word == ".entry", link)
	case ".global", ".const", ".shared":
		p.moduleVars(t, link)
	case ".pragma":
		for t = p.next(); t.kind != ';'; t = p.next() {
			if t.kind == eof {
				p.failAt(t.off, ".pragma without ;")
			}
		}
	case ".section":
		p.skipSection()
	case ".alias":
		a, b := p.expect(ident, "the alias"), token{}
		p.expect(',', "a comma")
		b = p.expect(ident, "the function's name")
		p.expect(';', "a semicolon")
		p.module.alias[p.text(a)] = p.text(b)
		p.module.aliased = append(p.module.aliased, mention{a.off, p.text(a)}, mention{b.off, p.text(b)})
		p.module.m.Aliases = append(p.module.m.Aliases, ir.Alias{Name: p.text(a), Of: p.text(b)})
	case ".tex": // the old way to write .global .texref
		p.oldTexture(link)
	default:
		p.failAt(t.off, "%s is no declaration%s", p.describe(t), nearest(word, func(f func(string)) {
			for _, w := range []string{".entry", ".func", ".global", ".const", ".shared", ".visible", ".extern", ".weak", ".common"} {
				f(w)
			}
		}))
	}
}

func (p *parser) skipSection() {
	for depth := 0; ; {
		switch t := p.next(); t.kind {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return
			}
		case eof:
			p.failAt(t.off, "this .section has no end")
		}
	}
}

// finish resolves what could be mentioned before its declaration, and drops declarations that definitions made superfluous.
func (p *parser) finish() {
	md := p.module
	for i, a := range md.aliased {
		s := md.symbols[a.name]
		if s == nil || !s.fn || i%2 == 1 && !s.defined || i%2 == 0 && s.defined {
			p.failAt(a.off, ".alias takes the name of a declared function and that of a defined one; %s is not such a one", a.name)
		}
	}
	m := md.m
	for _, n := range md.inits {
		if md.symbols[n.name] == nil {
			p.failAt(n.off, "%s is not declared%s", n.name, nearest(n.name, p.moduleNames))
		}
	}
	for i := range m.Vars {
		for j := range m.Vars[i].Init {
			if to, ok := md.alias[m.Vars[i].Init[j].Sym]; ok {
				m.Vars[i].Init[j].Sym = to
			}
		}
	}
	funcs, vars := m.Funcs[:0:0], m.Vars[:0:0]
	for i, f := range m.Funcs {
		if md.symbols[f.Name].index != i {
			continue
		}
		if len(md.alias) > 0 {
			for j := range f.Body {
				followAlias(f.Body[j].Args, md.alias)
			}
		}
		funcs = append(funcs, f)
	}
	for i, v := range m.Vars {
		if md.symbols[v.Name].index == i {
			vars = append(vars, v)
		}
	}
	m.Funcs, m.Vars = funcs, vars
}

func followAlias(args []ir.Operand, alias map[string]string) {
	for i := range args {
		if to, ok := alias[args[i].Sym]; ok && args[i].Kind == ir.SymOperand {
			args[i].Sym = to
		}
		followAlias(args[i].Elems, alias)
	}
}

func (p *parser) moduleNames(f func(string)) {
	for name := range p.module.symbols {
		f(name)
	}
}

// declare enters a name of the module. A definition may follow declarations, and declarations may repeat.
func (p *parser) declare(off int, name string, fn, defined bool, index int) {
	s := p.module.symbols[name]
	switch {
	case s == nil:
		p.module.symbols[name] = &symbol{off, fn, defined, index}
	case s.fn != fn || s.defined && defined:
		p.failAt(off, "%s is declared a second time; the first time was at %s", name, p.pos(s.off))
	case defined || !s.defined: // otherwise a declaration after the definition
		*s = symbol{off, fn, defined, index}
	}
}
