package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind int

const (
	endOfFile kind = iota
	data           // text between tags
	blockBegin
	blockEnd
	printBegin
	printEnd
	name
	number // an int64 or a float64
	text
	operator
)

func (k kind) String() string {
	return [...]string{"the end of the template", "text", "{%", "%}", "{{", "}}", "a name", "a number", "a string", "an operator"}[k]
}

type token struct {
	kind  kind
	text  string // of names and operators
	value any    // of numbers, texts and data
	line  int
}

func (t token) String() string {
	switch t.kind {
	case name, operator:
		return strconv.Quote(t.text)
	}
	return t.kind.String()
}

// lexer cuts a template into tokens.
type lexer struct {
	src    string
	at     int
	line   int
	tokens []token
}

func (l *lexer) fail(format string, args ...any) error {
	return &Error{Line: l.line, Message: fmt.Sprintf(format, args...)}
}

func (l *lexer) add(k kind, s string, v any) { l.tokens = append(l.tokens, token{k, s, v, l.line}) }

// advance goes on by n bytes.
func (l *lexer) advance(n int) {
	l.line += strings.Count(l.src[l.at:l.at+n], "\n")
	l.at += n
}

func lex(src string) ([]token, error) {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	src = strings.TrimSuffix(src, "\n") // one line break at the end is not part of the template
	l := &lexer{src: src, line: 1}
	strip := false // the white space before the next text is stripped: after "-%}" and the like
	trim := false  // the line break is: after any tag of a block
	for {
		rest := l.src[l.at:]
		begin := nextTag(rest)
		body := rest[:begin]
		left := body
		switch {
		case strip:
			left = strings.TrimLeftFunc(left, unicode.IsSpace)
		case trim:
			left = strings.TrimPrefix(left, "\n")
		}
		if begin == len(rest) {
			l.add(data, "", left)
			l.advance(len(rest))
			l.add(endOfFile, "", nil)
			return l.tokens, nil
		}
		mark := rest[begin+1]
		sign := byte(0)
		if begin+2 < len(rest) {
			sign = rest[begin+2]
		}
		switch {
		case sign == '-':
			left = strings.TrimRightFunc(left, unicode.IsSpace)
		case mark != '{' && sign != '+': // white space between the beginning of a line and a tag
			if i := strings.TrimRight(left, " \t"); i == "" && (l.at == 0 || strings.HasSuffix(l.src[:l.at+begin-len(left)], "\n")) || strings.HasSuffix(i, "\n") {
				left = i
			}
		}
		if left != "" {
			l.add(data, "", left)
		}
		l.advance(begin + 2)
		if sign == '-' || sign == '+' && mark != '{' {
			l.advance(1)
		}
		var err error
		switch mark {
		case '#':
			strip, trim, err = l.comment()
		case '%':
			if n := rawTag(l.src[l.at:]); n > 0 {
				strip, trim, err = l.raw(n)
				break
			}
			l.add(blockBegin, "", nil)
			strip, trim, err = l.inside("%}", blockEnd)
		default:
			l.add(printBegin, "", nil)
			strip, trim, err = l.inside("}}", printEnd)
		}
		if err != nil {
			return nil, err
		}
	}
}

// nextTag is where the next tag begins, or the length of the text.
func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '{' || s[i+1] == '%' || s[i+1] == '#') {
			return i
		}
	}
	return len(s)
}

func (l *lexer) comment() (strip, trim bool, err error) {
	n := strings.Index(l.src[l.at:], "#}")
	if n < 0 {
		return false, false, l.fail("a comment does not end")
	}
	body := l.src[l.at : l.at+n]
	l.advance(n + 2)
	return strings.HasSuffix(body, "-"), !strings.HasSuffix(body, "+"), nil
}

// rawTag is the length of what is left of a tag "raw", 0 if it is none.
func rawTag(s string) int {
	rest, ok := strings.CutPrefix(strings.TrimLeftFunc(s, unicode.IsSpace), "raw")
	if !ok {
		return 0
	}
	rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	for _, end := range []string{"-%}", "+%}", "%}"} {
		if after, ok := strings.CutPrefix(rest, end); ok {
			return len(s) - len(after)
		}
	}
	return 0
}

// raw takes what is between raw and endraw as it is.
func (l *lexer) raw(tag int) (strip, trim bool, err error) {
	left := strings.HasSuffix(l.src[l.at:l.at+tag], "-%}")
	l.advance(tag)
	for from := l.at; ; {
		n := strings.Index(l.src[from:], "{%")
		if n < 0 {
			return false, false, l.fail("raw does not end")
		}
		end := from + n
		rest := strings.TrimLeft(l.src[end+2:], "-+")
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		rest, ok := strings.CutPrefix(rest, "endraw")
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		stripped := strings.HasPrefix(rest, "-%}")
		rest = strings.TrimLeft(rest, "-+")
		if !ok || !strings.HasPrefix(rest, "%}") {
			from = end + 2
			continue
		}
		body := l.src[l.at:end]
		if left {
			body = strings.TrimLeftFunc(body, unicode.IsSpace)
		} else {
			body = strings.TrimPrefix(body, "\n")
		}
		if strings.HasPrefix(l.src[end+2:], "-") {
			body = strings.TrimRightFunc(body, unicode.IsSpace)
		}
		l.add(data, "", body)
		l.advance(len(l.src) - len(rest) + 2 - l.at)
		return stripped, true, nil
	}
}

// operators, the longest first.
var operators = [...]string{"//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "|", "(", ")", "[", "]", "{", "}",
	",", ".", ":"}

// inside cuts an expression or a statement, to the end of its tag.
func (l *lexer) inside(end string, k kind) (strip, trim bool, err error) {
	depth := 0 // of brackets: a dictionary may end in }}
	for {
		s := l.src[l.at:]
		if n := len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace)); n > 0 {
			l.advance(n)
			continue
		}
		if s == "" {
			return false, false, l.fail("a tag does not end: %s is missing", end)
		}
		if depth == 0 {
			sign := strings.HasPrefix(s, "-"+end)
			plus := strings.HasPrefix(s, "+"+end) && k == blockEnd
			if sign || plus || strings.HasPrefix(s, end) {
				l.add(k, "", nil)
				if sign || plus {
					l.advance(1)
				}
				l.advance(len(end))
				return sign, k == blockEnd && !plus, nil
			}
		}
		switch c := s[0]; {
		case c == '"' || c == '\'':
			if err := l.quoted(s); err != nil {
				return false, false, err
			}
			continue
		case '0' <= c && c <= '9':
			if err := l.number(s); err != nil {
				return false, false, err
			}
			continue
		case c == '_' || unicode.IsLetter(first(s)):
			n := strings.IndexFunc(s, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			if n < 0 {
				n = len(s)
			}
			l.add(name, s[:n], nil)
			l.advance(n)
			continue
		}
		found := false
		for _, op := range operators {
			if strings.HasPrefix(s, op) {
				switch op {
				case "(", "[", "{":
					depth++
				case ")", "]", "}":
					depth--
				}
				l.add(operator, op, nil)
				l.advance(len(op))
				found = true
				break
			}
		}
		if !found {
			return false, false, l.fail("character %q is not understood", first(s))
		}
	}
}

func first(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func (l *lexer) number(s string) error {
	n := strings.IndexFunc(s, func(r rune) bool { return r != '_' && (r < '0' || r > '9') })
	if n < 0 {
		n = len(s)
	}
	float := false
	if n+1 < len(s) && s[n] == '.' && '0' <= s[n+1] && s[n+1] <= '9' {
		float = true
		m := strings.IndexFunc(s[n+1:], func(r rune) bool { return r != '_' && (r < '0' || r > '9') })
		if n += 1 + m; m < 0 {
			n = len(s)
		}
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		m := n + 1
		if m < len(s) && (s[m] == '+' || s[m] == '-') {
			m++
		}
		from := m
		for m < len(s) && '0' <= s[m] && s[m] <= '9' {
			m++
		}
		if m > from {
			float, n = true, m
		}
	}
	digits := strings.ReplaceAll(s[:n], "_", "")
	var v any
	var err error
	if float {
		v, err = strconv.ParseFloat(digits, 64)
	} else {
		v, err = strconv.ParseInt(digits, 10, 64)
	}
	if err != nil {
		return l.fail("number %s is out of range", s[:n])
	}
	l.add(number, "", v)
	l.advance(n)
	return nil
}

// quoted reads a string with the escapes of Python.
func (l *lexer) quoted(s string) error {
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case s[0]:
			l.add(text, "", out.String())
			l.advance(i + 1)
			return nil
		case '\\':
			i++
			if i == len(s) {
				return l.fail("a string does not end")
			}
			n, err := l.escape(&out, s[i:])
			if err != nil {
				return err
			}
			i += n - 1
		default:
			out.WriteByte(s[i])
		}
	}
	return l.fail("a string does not end")
}

// escape writes what an escape stands for, and returns its length after the backslash.
func (l *lexer) escape(out *strings.Builder, s string) (int, error) {
	if i := strings.IndexByte("ntrabfv0\\'\"\n", s[0]); i >= 0 {
		if s[0] != '\n' {
			out.WriteByte("\n\t\r\a\b\f\v\x00\\'\""[i])
		}
		return 1, nil
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]
	if digits == 0 {
		out.WriteByte('\\') // other escapes are not escapes
		out.WriteByte(s[0])
		return 1, nil
	}
	if len(s) <= digits {
		return 0, l.fail("an escape in a string does not end")
	}
	r, err := strconv.ParseUint(s[1:1+digits], 16, 32)
	if err != nil || r > unicode.MaxRune {
		return 0, l.fail("\\%s is no character", s[:1+digits])
	}
	out.WriteRune(rune(r))
	return 1 + digits, nil
}
