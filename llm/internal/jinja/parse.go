package jinja

import (
	"fmt"
	"slices"
)

// Template is one that has been parsed. It does not change and may be rendered from many goroutines.
type Template struct{ body []statement }

// Parse reads a template. Errors are of type [*Error].
func Parse(src string) (*Template, error) {
	if len(src) > maxSource {
		return nil, &Error{1, fmt.Sprintf("the template has %d bytes, at most %d are read", len(src), maxSource), false}
	}
	tokens, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	defer func() { p.tokens = nil }()
	body := p.statements()
	if p.err == nil && p.peek().kind != endOfFile {
		p.fail("%v is not expected here", p.peek())
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Template{body}, nil
}

// parser keeps the first error; after it, every token is the end.
type parser struct {
	tokens []token
	at     int
	depth  int
	loops  int
	err    error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &Error{Line: p.tokens[p.at].line, Message: fmt.Sprintf(format, args...)}
	}
}

func (p *parser) peek() token {
	if p.err != nil {
		return token{kind: endOfFile}
	}
	return p.tokens[p.at]
}

func (p *parser) next() token {
	t := p.peek()
	if p.err == nil && p.at < len(p.tokens)-1 {
		p.at++
	}
	return t
}

func (p *parser) line() int { return p.tokens[p.at].line }

// is reports whether an operator or a keyword is next.
func (p *parser) is(k kind, s string) bool {
	t := p.peek()
	return t.kind == k && t.text == s
}

// take is is, and takes it.
func (p *parser) take(k kind, s string) bool {
	if p.is(k, s) {
		p.next()
		return true
	}
	return false
}

func (p *parser) want(k kind, s string) {
	if !p.take(k, s) {
		want := s
		if want == "" {
			want = k.String()
		}
		p.fail("%v is not expected here, need %s", p.peek(), want)
	}
}

func (p *parser) name() string {
	t := p.next()
	if t.kind != name {
		p.at = max(p.at-1, 0)
		p.fail("%v is not expected here, need a name", t)
	}
	return t.text
}

// deeper bounds nesting; the result undoes it.
func (p *parser) deeper() func() {
	if p.depth++; p.depth > maxDepth {
		p.fail("nested more than %d deep", maxDepth)
	}
	return func() { p.depth-- }
}

// statements reads up to a tag with one of some names, which is left, or to the end.
func (p *parser) statements(until ...string) []statement {
	defer p.deeper()()
	var all []statement
	for p.err == nil {
		switch t := p.peek(); t.kind {
		case data:
			p.next()
			all = append(all, outputText{t.value.(string)})
		case printBegin:
			p.next()
			all = append(all, output{p.tuple()})
			p.want(printEnd, "")
		case blockBegin:
			if tag := p.tokens[min(p.at+1, len(p.tokens)-1)]; tag.kind == name && slices.Contains(until, tag.text) {
				return all
			}
			p.next()
			all = p.statement(all)
		default:
			if p.err == nil && len(until) > 0 {
				p.fail("%v is missing", until[len(until)-1])
			}
			return all
		}
	}
	return all
}

// end takes a tag that statements has left.
func (p *parser) end(tag string) {
	p.want(blockBegin, "")
	p.want(name, tag)
	p.want(blockEnd, "")
}

func (p *parser) statement(all []statement) []statement {
	line := p.line()
	switch tag := p.name(); tag {
	case "if":
		all = append(all, p.conditional())
	case "for":
		all = append(all, p.loop(line))
	case "set":
		all = append(all, p.set())
	case "macro":
		m := macro{name: p.name()}
		p.parameters(&m)
		p.want(blockEnd, "")
		m.body = p.detached("endmacro")
		all = append(all, m)
	case "call":
		c := callBlock{line: line, params: macro{name: "caller"}}
		if p.is(operator, "(") {
			p.parameters(&c.params)
		}
		c.call = p.expression()
		p.want(blockEnd, "")
		c.params.body = p.detached("endcall")
		if x, ok := c.call.(call); !ok || x.f == nil {
			p.fail("call needs a macro that is called")
		}
		all = append(all, c)
	case "filter":
		f := filterBlock{}
		f.filters = append(f.filters, p.filterCall())
		for p.take(operator, "|") {
			f.filters = append(f.filters, p.filterCall())
		}
		p.want(blockEnd, "")
		f.body = p.statements("endfilter")
		p.end("endfilter")
		all = append(all, f)
	case "with":
		w := with{}
		for !p.is(blockEnd, "") && p.err == nil {
			w.names = append(w.names, p.name())
			p.want(operator, "=")
			w.values = append(w.values, p.expression())
			if !p.take(operator, ",") {
				break
			}
		}
		p.want(blockEnd, "")
		w.body = p.statements("endwith")
		p.end("endwith")
		all = append(all, w)
	case "generation": // marks what a model has said, for training
		p.want(blockEnd, "")
		all = append(all, p.statements("endgeneration")...)
		p.end("endgeneration")
	case "break", "continue":
		if p.loops == 0 {
			p.fail("%s outside of a loop", tag)
		}
		p.want(blockEnd, "")
		all = append(all, leave{tag == "continue"})
	default:
		p.at = max(p.at-1, 0)
		p.fail("tag %q is not understood", tag)
	}
	return all
}

// detached are statements that run elsewhere: loops around them are none of theirs.
func (p *parser) detached(end string) []statement {
	loops := p.loops
	p.loops = 0
	body := p.statements(end)
	p.loops = loops
	p.end(end)
	return body
}

func (p *parser) conditional() statement {
	c := conditional{cond: p.expression()}
	p.want(blockEnd, "")
	c.then = p.statements("elif", "else", "endif")
	p.want(blockBegin, "")
	switch tag := p.name(); tag {
	case "elif":
		defer p.deeper()()
		c.orElse = []statement{p.conditional()}
		return c
	case "else":
		p.want(blockEnd, "")
		c.orElse = p.statements("endif")
		p.end("endif")
		return c
	}
	p.want(blockEnd, "")
	return c
}

func (p *parser) loop(line int) statement {
	l := loop{line: line}
	bracket := p.take(operator, "(")
	l.names = append(l.names, p.name())
	for p.take(operator, ",") {
		l.names = append(l.names, p.name())
	}
	if bracket {
		p.want(operator, ")")
	}
	p.want(name, "in")
	l.over = p.tupleOf(p.withoutCondition)
	if p.take(name, "if") {
		l.filter = p.expression()
	}
	if p.is(name, "recursive") {
		p.fail("recursive loops are not understood")
	}
	p.want(blockEnd, "")
	p.loops++
	l.body = p.statements("else", "endfor")
	p.loops--
	p.want(blockBegin, "")
	if p.take(name, "else") {
		p.want(blockEnd, "")
		l.nothing = p.statements("endfor")
		p.want(blockBegin, "")
	}
	p.want(name, "endfor")
	p.want(blockEnd, "")
	return l
}

func (p *parser) target() target {
	t := target{name: p.name()}
	if p.take(operator, ".") {
		t.attr = p.name()
	}
	return t
}

func (p *parser) set() statement {
	bracket := p.take(operator, "(")
	targets := []target{p.target()}
	for p.take(operator, ",") {
		targets = append(targets, p.target())
	}
	if bracket {
		p.want(operator, ")")
	}
	if p.take(operator, "=") {
		x := p.tuple()
		p.want(blockEnd, "")
		return setValue{targets, x}
	}
	s := setBlock{to: targets[0]}
	if len(targets) > 1 {
		p.fail("set of several names needs =")
	}
	for p.take(operator, "|") {
		s.filters = append(s.filters, p.filterCall())
	}
	p.want(blockEnd, "")
	s.body = p.statements("endset")
	p.end("endset")
	return s
}

func (p *parser) parameters(m *macro) {
	p.want(operator, "(")
	for !p.is(operator, ")") && p.err == nil {
		m.params = append(m.params, p.name())
		if p.take(operator, "=") {
			m.defaults = append(m.defaults, p.expression())
		} else if len(m.defaults) > 0 {
			p.fail("a parameter without default after one with")
		}
		if !p.take(operator, ",") {
			break
		}
	}
	p.want(operator, ")")
}
