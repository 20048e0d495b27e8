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

// Statements.
type (
	statement  any
	outputText struct{ text string }
	output     struct{ x expression }
	setValue   struct {
		targets []target
		x       expression
	}
	setBlock struct {
		to      target
		filters []call
		body    []statement
	}
	filterBlock struct {
		filters []call
		body    []statement
	}
	with struct {
		names  []string
		values []expression
		body   []statement
	}
	conditional struct {
		cond         expression
		then, orElse []statement
	}
	loop struct {
		line    int
		names   []string
		over    expression
		filter  expression // nil for all
		body    []statement
		nothing []statement // where there was nothing
	}
	macro struct {
		name     string
		params   []string
		defaults []expression // of the last parameters
		body     []statement
	}
	callBlock struct {
		line   int
		call   expression
		params macro
	}
	leave struct{ on bool } // break, or continue
)

// target is a name, or an attribute of a namespace.
type target struct{ name, attr string }

// Expressions.
type (
	expression any
	literal    struct{ v value }
	variable   struct {
		line int
		name string
	}
	attribute struct {
		line int
		x    expression
		name string
	}
	index struct {
		line int
		x, i expression
	}
	slice struct {
		line           int
		x              expression
		from, to, step expression
	}
	call struct {
		line  int
		f     expression // nil for filters and tests, whose operand is the first argument
		name  string     // of filters and tests
		args  []expression
		names []string // of the last arguments
	}
	filter struct {
		x expression
		call
	}
	test struct {
		x expression
		call
		not bool
	}
	binary struct {
		line int
		op   string
		a, b expression
	}
	compare struct {
		line int
		x    expression
		ops  []string
		with []expression
	}
	unary struct {
		line int
		op   string
		x    expression
	}
	choice   struct{ cond, then, orElse expression } // orElse may be nil
	sequence struct {
		items []expression
		tuple bool
	}
	mapping struct {
		line         int
		keys, values []expression
	}
)

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

// tuple is an expression, or several with commas.
func (p *parser) tuple() expression { return p.tupleOf(p.expression) }

func (p *parser) tupleOf(one func() expression) expression {
	x := one()
	if !p.is(operator, ",") {
		return x
	}
	l := sequence{[]expression{x}, true}
	for p.take(operator, ",") {
		if t := p.peek(); t.kind == blockEnd || t.kind == printEnd || p.is(operator, ")") {
			break
		}
		l.items = append(l.items, one())
	}
	return l
}

func (p *parser) expression() expression {
	defer p.deeper()()
	x := p.or()
	if p.take(name, "if") {
		c := choice{cond: p.or(), then: x}
		if p.take(name, "else") {
			c.orElse = p.expression()
		}
		return c
	}
	return x
}

func (p *parser) withoutCondition() expression { return p.or() }

func (p *parser) or() expression {
	x := p.and()
	for p.is(name, "or") {
		line := p.next().line
		x = binary{line, "or", x, p.and()}
	}
	return x
}

func (p *parser) and() expression {
	x := p.not()
	for p.is(name, "and") {
		line := p.next().line
		x = binary{line, "and", x, p.not()}
	}
	return x
}

func (p *parser) not() expression {
	if p.is(name, "not") {
		defer p.deeper()()
		line := p.next().line
		return unary{line, "not", p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() expression {
	c := compare{line: p.line(), x: p.sum()}
	for {
		t := p.peek()
		switch {
		case t.kind == operator && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text), p.is(name, "in"):
			p.next()
			c.ops = append(c.ops, t.text)
		case p.is(name, "not") && p.tokens[p.at+1].kind == name && p.tokens[p.at+1].text == "in":
			p.next()
			p.next()
			c.ops = append(c.ops, "not in")
		case len(c.ops) == 0:
			return c.x
		default:
			return c
		}
		c.with = append(c.with, p.sum())
	}
}

// chain is operators of one rank, from left to right.
func (p *parser) chain(operand func() expression, ops ...string) expression {
	x := operand()
	for {
		t := p.peek()
		if t.kind != operator || !slices.Contains(ops, t.text) {
			return x
		}
		p.next()
		x = binary{t.line, t.text, x, operand()}
	}
}

func (p *parser) sum() expression    { return p.chain(p.concat, "+", "-") }
func (p *parser) concat() expression { return p.chain(p.product, "~") }
func (p *parser) product() expression {
	return p.chain(p.power, "*", "/", "//", "%")
}
func (p *parser) power() expression { return p.chain(func() expression { return p.unary(true) }, "**") }

func (p *parser) unary(filters bool) expression {
	t := p.peek()
	var x expression
	if t.kind == operator && (t.text == "-" || t.text == "+") {
		defer p.deeper()()
		p.next()
		x = unary{t.line, t.text, p.unary(false)}
	} else {
		x = p.primary()
	}
	x = p.postfix(x)
	if filters {
		x = p.filters(x)
	}
	return x
}

func (p *parser) primary() expression {
	defer p.deeper()()
	t := p.next()
	switch t.kind {
	case name:
		switch t.text {
		case "true", "True":
			return literal{true}
		case "false", "False":
			return literal{false}
		case "none", "None":
			return literal{nil}
		}
		return variable{t.line, t.text}
	case number:
		return literal{t.value}
	case text:
		s := t.value.(string)
		for p.peek().kind == text {
			s += p.next().value.(string)
		}
		return literal{s}
	case operator:
		switch t.text {
		case "(":
			if p.take(operator, ")") {
				return sequence{nil, true}
			}
			x := p.tuple()
			p.want(operator, ")")
			return x
		case "[":
			l := sequence{}
			for !p.is(operator, "]") && p.err == nil {
				l.items = append(l.items, p.expression())
				if !p.take(operator, ",") {
					break
				}
			}
			p.want(operator, "]")
			return l
		case "{":
			d := mapping{line: t.line}
			for !p.is(operator, "}") && p.err == nil {
				d.keys = append(d.keys, p.expression())
				p.want(operator, ":")
				d.values = append(d.values, p.expression())
				if !p.take(operator, ",") {
					break
				}
			}
			p.want(operator, "}")
			return d
		}
	}
	if p.err == nil {
		p.at = max(p.at-1, 0)
		p.fail("%v is not expected here, need an expression", t)
	}
	return literal{nil}
}

// postfix reads attributes, indices and calls.
func (p *parser) postfix(x expression) expression {
	for {
		line := p.line()
		switch {
		case p.take(operator, "."):
			if t := p.peek(); t.kind == number {
				p.next()
				x = index{line, x, literal{t.value}}
				continue
			}
			x = attribute{line, x, p.name()}
		case p.take(operator, "["):
			x = p.subscript(line, x)
		case p.is(operator, "("):
			c := call{line: line, f: x}
			p.arguments(&c)
			x = c
		default:
			return x
		}
	}
}

func (p *parser) subscript(line int, x expression) expression {
	var parts [3]expression
	n := 0
	for ; n < 3; n++ {
		if !p.is(operator, ":") && !p.is(operator, "]") {
			parts[n] = p.expression()
		}
		if !p.take(operator, ":") {
			break
		}
	}
	p.want(operator, "]")
	if n == 0 {
		if parts[0] == nil {
			p.fail("an index is missing")
		}
		return index{line, x, parts[0]}
	}
	return slice{line, x, parts[0], parts[1], parts[2]}
}

func (p *parser) arguments(c *call) {
	p.want(operator, "(")
	for !p.is(operator, ")") && p.err == nil {
		if t := p.peek(); t.kind == operator && (t.text == "*" || t.text == "**") {
			p.fail("%s before an argument is not understood", t.text)
		}
		if t := p.peek(); t.kind == name && p.tokens[p.at+1].kind == operator && p.tokens[p.at+1].text == "=" {
			p.next()
			p.next()
			if slices.Contains(c.names, t.text) {
				p.fail("argument %q is given twice", t.text)
			}
			c.names = append(c.names, t.text)
		} else if len(c.names) > 0 {
			p.fail("an argument without name after one with")
		}
		c.args = append(c.args, p.expression())
		if !p.take(operator, ",") {
			break
		}
	}
	p.want(operator, ")")
}

// filters reads filters, tests and calls of what they give.
func (p *parser) filters(x expression) expression {
	for {
		switch {
		case p.take(operator, "|"):
			x = filter{x, p.filterCall()}
		case p.is(name, "is"):
			x = p.test(x)
		case p.is(operator, "("):
			c := call{line: p.line(), f: x}
			p.arguments(&c)
			x = c
		default:
			return x
		}
	}
}

// filterCall is the name of a filter and its arguments without the operand.
func (p *parser) filterCall() call {
	c := call{line: p.line(), name: p.name()}
	if p.is(operator, "(") {
		p.arguments(&c)
	}
	return c
}

func (p *parser) test(x expression) expression {
	line := p.next().line
	t := test{x: x, not: p.take(name, "not")}
	t.call = call{line: line, name: p.name()}
	next := p.peek()
	switch {
	case p.is(operator, "("):
		p.arguments(&t.call)
	case next.kind == name && !slices.Contains([]string{"else", "or", "and", "if", "is", "not", "in"}, next.text), next.kind == number,
		next.kind == text, p.is(operator, "["), p.is(operator, "{"):
		t.args = append(t.args, p.postfix(p.primary()))
	}
	return t
}
