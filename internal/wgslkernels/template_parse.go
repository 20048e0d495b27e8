package wgslkernels

import (
	"fmt"
	"strconv"
	"strings"
)

// A list is a parsed template: strings, pipes, branches, loops and inclusions, in order.
type list []any

// A pipe computes a value, which becomes that of variables, or is written if there are none.
type pipe struct {
	names  []string
	assign bool // to variables that exist
	value  term
}

type branch struct {
	pipe
	then, otherwise list
}

type loop struct {
	pipe
	body list
}

type inclusion struct {
	name string
	data term
}

// A term is a constant, a path, a call, or nil.
type term any

type constant struct{ value any }

// A path is fields of fields of an expression, of a variable, or else of the dot.
type path struct {
	of       term
	variable string
	fields   []string
}

type invocation struct {
	function string
	args     []term
}

// parse adds the template in text, and those that it defines. It panics where the language of text/template is another one or goes
// further: pipelines, "with", "else" of a range.
func (t templates) parse(name, text string) {
	p := &parser{templates: t, name: name, text: text}
	root, end := p.list()
	if end != "" {
		p.fail("unexpected " + end)
	}
	t[name] = root
}

// parser holds what is left of a template's text, and of the action in it that is being parsed.
type parser struct {
	templates  templates
	name, text string
	tokens     []string
}

func (p *parser) fail(what string) {
	panic(fmt.Sprintf("%s: %s, before %.40q", p.name, what, p.text))
}

const blanks = " \t\r\n"

// list parses up to the end of the text, or to an action that ends or divides a list, whose keyword it returns.
func (p *parser) list() (nodes list, end string) {
	for {
		text, rest, found := strings.Cut(p.text, "{{")
		p.text = rest
		if found && strings.HasPrefix(rest, "- ") {
			text, p.text = strings.TrimRight(text, blanks), rest[2:]
		}
		if text != "" {
			nodes = append(nodes, text)
		}
		if !found {
			return nodes, ""
		}
		p.scan()
		if len(p.tokens) == 0 { // a comment
			continue
		}
		switch p.tokens[0] {
		case "end", "else":
			return nodes, p.next()
		case "if":
			p.next()
			nodes = append(nodes, p.branch())
		case "range":
			p.next()
			n := &loop{pipe: p.pipe()}
			n.body = p.body()
			nodes = append(nodes, n)
		case "define":
			p.next()
			name := p.quoted()
			p.templates[name] = p.body()
		case "template":
			p.next()
			n := inclusion{name: p.quoted()}
			if len(p.tokens) > 0 {
				n.data = p.term()
			}
			nodes = append(nodes, n)
		default:
			nodes = append(nodes, p.pipe())
		}
		if len(p.tokens) > 0 {
			p.fail("too much in an action: " + p.tokens[0])
		}
	}
}

// body parses a list that ends with "end".
func (p *parser) body() list {
	nodes, end := p.list()
	if end != "end" {
		p.fail("no end")
	}
	return nodes
}

// branch parses what follows an "if", to its end.
func (p *parser) branch() *branch {
	b := &branch{pipe: p.pipe()}
	var end string
	if b.then, end = p.list(); end == "else" {
		if len(p.tokens) > 0 && p.tokens[0] == "if" {
			p.next()
			b.otherwise = list{p.branch()}
			return b
		}
		b.otherwise, end = p.list()
	}
	if end != "end" {
		p.fail("no end")
	}
	return b
}

// scan splits the rest of an action into tokens, and the white space that it trims from the text after it.
func (p *parser) scan() {
	p.tokens = p.tokens[:0]
	for {
		p.text = strings.TrimLeft(p.text, blanks)
		n := 1
		switch {
		case p.text == "":
			p.fail("an action without end")
		case strings.HasPrefix(p.text, "}}"):
			p.text = p.text[2:]
			return
		case strings.HasPrefix(p.text, "-}}"):
			p.text = strings.TrimLeft(p.text[3:], blanks)
			return
		case strings.HasPrefix(p.text, "/*"):
			_, p.text, _ = strings.Cut(p.text, "*/")
			continue
		case strings.HasPrefix(p.text, ":="):
			n = 2
		case p.text[0] == '"' || p.text[0] == '`':
			quoted, err := strconv.QuotedPrefix(p.text)
			if err != nil {
				p.fail("a string without end")
			}
			n = len(quoted)
		case p.text[0] != '(' && p.text[0] != '=' && p.text[0] != ',': // a name, a path, a number, or ")" with fields of what it ends
			for n < len(p.text) && (isWord(p.text[n]) || p.text[n] == '.') {
				n++
			}
		}
		p.tokens, p.text = append(p.tokens, p.text[:n]), p.text[n:]
	}
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// next takes a token.
func (p *parser) next() string {
	if len(p.tokens) == 0 {
		p.fail("an action ends too early")
	}
	token := p.tokens[0]
	p.tokens = p.tokens[1:]
	return token
}

func (p *parser) quoted() string {
	s, err := strconv.Unquote(p.next())
	if err != nil {
		p.fail("no name in quotes")
	}
	return s
}

func (p *parser) pipe() (n pipe) {
	for len(p.tokens) > 1 && p.tokens[0][0] == '$' {
		op := p.tokens[1]
		if op != "," && op != ":=" && op != "=" {
			break
		}
		n.names = append(n.names, p.next())
		if p.next(); op != "," {
			n.assign = op == "="
			break
		}
	}
	n.value = p.term()
	return n
}

// term parses a call or an operand.
func (p *parser) term() term {
	token := p.next()
	if c := token[0]; !isWord(c) || c <= '9' {
		return p.operand(token)
	}
	c := invocation{function: token}
	for len(p.tokens) > 0 && p.tokens[0][0] != ')' {
		c.args = append(c.args, p.operand(p.next()))
	}
	return c
}

// operand parses what begins with a token.
func (p *parser) operand(token string) term {
	switch token[0] {
	case '(':
		x := p.term()
		if token = p.next(); token[0] != ')' {
			p.fail("no )")
		}
		return path{of: x, fields: fields(token)}
	case '.', '$':
		variable, _, _ := strings.Cut(token, ".")
		return path{variable: variable, fields: fields(token)}
	case '"', '`':
		s, _ := strconv.Unquote(token) // scan has seen that it is a string
		return constant{s}
	}
	n, err := strconv.Atoi(token)
	if err != nil {
		p.fail("no operand: " + token)
	}
	return constant{n}
}

// fields are the names after the points of a path.
func fields(path string) []string {
	var names []string
	for _, name := range strings.Split(path, ".")[1:] {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}
