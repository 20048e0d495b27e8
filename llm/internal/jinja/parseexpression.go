package jinja

import "slices"

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
