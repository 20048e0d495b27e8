package parse

import (
	"bytes"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

// kind says what a token is. Punctuation has the kind of its character, or one of the two-character kinds.
type kind int

const (
	eof    kind = -iota - 1
	ident       // name, %reg, $L
	dot         // .word, .2d, .L1::evict_last
	number      // 1, 0x1F, 0f3F800000, 1.5
	text        // "…"
	shl         // <<
	shr         // >>
	leq         // <=
	geq         // >=
	eql         // ==
	neq         // !=
	land        // &&
	lor         // ||
)

var pairs = map[string]kind{"<<": shl, ">>": shr, "<=": leq, ">=": geq, "==": eql, "!=": neq, "&&": land, "||": lor}

// token is src[off:end].
type token struct {
	kind     kind
	off, end int
}

// lex cuts the source into tokens, the last one eof. Comments and the lines of .loc, .file and @@DWARF are left out; the first two are kept
// for [parser.sourceLines].
func (p *parser) lex() {
	src := p.src
	p.lines = []int{0}
	for i, c := range src {
		if c == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
	i := 0
	endOfLine := func() {
		if n := bytes.IndexByte(src[i:], '\n'); n >= 0 {
			i += n
		} else {
			i = len(src)
		}
	}
	for i < len(src) {
		start, c := i, src[i]
		next := byte(0)
		if i+1 < len(src) {
			next = src[i+1]
		}
		k := kind(c)
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			i++
			continue
		case c == '/' && next == '/':
			endOfLine()
			continue
		case c == '/' && next == '*':
			n := bytes.Index(src[i+2:], []byte("*/"))
			if n < 0 {
				p.failAt(i, "this comment has no end (*/)")
			}
			i += n + 4
			continue
		case c == '@' && next == '@':
			endOfLine()
			continue
		case c == '.' && isWord(next):
			k = dot
			i++
			for i < len(src) && (isWord(src[i]) || bytes.HasPrefix(src[i:], []byte("::"))) {
				if src[i] == ':' {
					i++
				}
				i++
			}
			if w := string(src[start:i]); w == ".loc" || w == ".file" {
				endOfLine()
				p.located = append(p.located, token{k, start, i})
				continue
			}
		case isLetter(c) || c == '_' || c == '$' || c == '%' && isWord(next):
			k = ident
			for i++; i < len(src) && isWord(src[i]); i++ {
			}
		case isDigit(c):
			k = number
			i = p.lexNumber(i)
		case c == '"':
			k = text
			i = p.lexText(i)
		case strings.IndexByte("{}()[]<>,;:@!|+-*/%&^~?=", c) >= 0:
			i++
			if two, ok := pairs[string([]byte{c, next})]; ok {
				k = two
				i++
			}
		default:
			p.failAt(i, "%q does not belong into PTX", rune(c))
		}
		p.toks = append(p.toks, token{k, start, i})
	}
	p.toks = append(p.toks, token{eof, len(src), len(src)})
}

func (p *parser) lexText(i int) int {
	start := i
	for i++; i < len(p.src) && p.src[i] != '\n'; i++ {
		switch p.src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	p.failAt(start, "this text has no closing quote on its line")
	return 0
}

func (p *parser) lexNumber(i int) int {
	src, start := p.src, i
	for i < len(src) && isWord(src[i]) && src[i] != '$' && src[i] != '_' { // digits, prefix, U, exponent
		i++
	}
	if word := src[start:i]; len(word) > 1 && word[0] == '0' && bytes.IndexByte([]byte("xXfFdDbB"), word[1]) >= 0 {
		return i
	}
	if i < len(src) && src[i] == '.' && (i+1 == len(src) || !isLetter(src[i+1]) || src[i+1] == 'e' || src[i+1] == 'E') {
		for i++; i < len(src) && (isDigit(src[i]) || isLetter(src[i])); i++ {
		}
	}
	if last := src[i-1]; i < len(src) && (last == 'e' || last == 'E') && (src[i] == '+' || src[i] == '-') {
		for i++; i < len(src) && isDigit(src[i]); i++ {
		}
	}
	return i
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) || c == '_' || c == '$' }

// parser reads tokens and fills m. Errors leave it as a panic of type bail.
type parser struct {
	file    string
	src     []byte
	lines   []int // offsets of their first bytes
	toks    []token
	i       int     // of the next token
	located []token // the lines of .loc and .file
	module  *module
	orders  map[string][]ir.Mod // parts of opcodes in their order, by what was written
}

func (p *parser) peek() token { return p.toks[p.i] }

// at returns the token n after the next one.
func (p *parser) at(n int) token { return p.toks[min(p.i+n, len(p.toks)-1)] }

func (p *parser) next() token {
	t := p.toks[p.i]
	if t.kind != eof {
		p.i++
	}
	return t
}

func (p *parser) text(t token) string { return string(p.src[t.off:t.end]) }

// accept consumes the next token if it is of the kind.
func (p *parser) accept(k kind) bool {
	if p.peek().kind == k {
		p.i++
		return true
	}
	return false
}

// acceptDot consumes the next token if it is the word, given with its dot.
func (p *parser) acceptDot(word string) bool {
	if t := p.peek(); t.kind == dot && p.text(t) == word {
		p.i++
		return true
	}
	return false
}

// expect consumes a token of the kind or fails; what says for what it is needed.
func (p *parser) expect(k kind, what string) token {
	t := p.next()
	if t.kind != k {
		p.failAt(t.off, "%s expected, found %s", what, p.describe(t))
	}
	return t
}

func (p *parser) describe(t token) string {
	if t.kind == eof {
		return "the end of the file; it seems cut off"
	}
	return p.text(t)
}
