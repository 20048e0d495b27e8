package grammar

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/wavelane/wavelane/compute"
)

// JSON is read here rather than by package encoding/json, which has no order of properties, and would be 180 KB of what a page loads.

// object is a JSON object in the order of its text. Values are objects, []any, strings, numbers, booleans and nil.
type object struct {
	keys   []string
	values map[string]any
}

// number is one as it is written.
type number string

const mostNested = 64

// parse reads JSON.
func parse(text []byte) (any, error) {
	p := &parser{text: string(text)}
	x, err := p.value(0)
	if err == nil {
		if p.space(); p.at < len(p.text) {
			err = errors.New("something follows it")
		}
	}
	if err == nil && !utf8.Valid(text) {
		err = errors.New("not UTF-8")
	}
	if err != nil {
		return nil, fmt.Errorf("the schema is no JSON: byte %d: %w: %w", p.at, err, compute.ErrArgument)
	}
	return x, nil
}

type parser struct {
	text string
	at   int
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take passes over a text, after white space, and reports whether it is there.
func (p *parser) take(s string) bool {
	p.space()
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

func (p *parser) value(depth int) (any, error) {
	switch {
	case depth > mostNested:
		return nil, fmt.Errorf("nested deeper than %d", mostNested)
	case p.take("{"):
		return p.object(depth)
	case p.take("["):
		list := []any{}
		for first := true; !p.take("]"); first = false {
			if !first && !p.take(",") {
				return nil, errors.New("need , or ]")
			}
			x, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
		return list, nil
	case p.take(`"`):
		return p.string()
	case p.take("true"):
		return true, nil
	case p.take("false"):
		return false, nil
	case p.take("null"):
		return nil, nil
	}
	return p.number()
}

func (p *parser) object(depth int) (any, error) {
	o := &object{values: map[string]any{}}
	for first := true; !p.take("}"); first = false {
		if !first && !p.take(",") || !p.take(`"`) {
			return nil, errors.New("need a property")
		}
		name, err := p.string()
		if err != nil {
			return nil, err
		}
		if _, twice := o.values[name]; twice {
			return nil, fmt.Errorf("%q is there twice", name)
		}
		if !p.take(":") {
			return nil, errors.New("need :")
		}
		if o.values[name], err = p.value(depth + 1); err != nil {
			return nil, err
		}
		o.keys = append(o.keys, name)
	}
	return o, nil
}

// string reads what follows a quotation mark.
func (p *parser) string() (string, error) {
	var out []byte
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch {
		case c == '"':
			return string(out), nil
		case c < ' ':
			return "", errors.New("a control character in a string")
		case c != '\\':
			out = append(out, c)
		default:
			r, err := p.escaped()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		}
	}
	return "", errors.New("a string without an end")
}

// escaped reads what follows a backslash.
func (p *parser) escaped() (rune, error) {
	const names, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if p.at < len(p.text) {
		if i := strings.IndexByte(names, p.text[p.at]); i >= 0 {
			p.at++
			return rune(meanings[i]), nil
		}
	}
	r, ok := p.unit()
	if !ok {
		return 0, errors.New(`a wrong \ in a string`)
	}
	if utf16.IsSurrogate(r) && strings.HasPrefix(p.text[p.at:], `\u`) {
		p.at++
		if second, ok := p.unit(); ok {
			return utf16.DecodeRune(r, second), nil
		}
	}
	return r, nil // half of a pair becomes U+FFFD
}

// unit reads u and four digits.
func (p *parser) unit() (rune, bool) {
	if p.at+5 > len(p.text) || p.text[p.at] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(p.text[p.at+1:p.at+5], 16, 16)
	p.at += 5
	return rune(n), err == nil
}

func (p *parser) number() (any, error) {
	start := p.at
	digits := func() bool {
		from := p.at
		for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
			p.at++
		}
		return p.at > from
	}
	sign := func(of string) {
		if p.at < len(p.text) && strings.IndexByte(of, p.text[p.at]) >= 0 {
			p.at++
		}
	}
	has := func(of string) bool {
		before := p.at
		sign(of)
		return p.at > before
	}
	sign("-")
	first := p.at
	ok := digits() && (p.text[first] != '0' || p.at == first+1)
	if ok && has(".") {
		ok = digits()
	}
	if ok && has("eE") {
		sign("+-")
		ok = digits()
	}
	if !ok {
		return nil, errors.New("no value")
	}
	return number(p.text[start:p.at]), nil
}

// write is a value as JSON without white space.
func write(out []byte, x any) []byte {
	switch x := x.(type) {
	case *object:
		for i, key := range x.keys {
			out = append(out, "{,"[min(i, 1)])
			out = write(append(write(out, key), ':'), x.values[key])
		}
		if len(x.keys) == 0 {
			out = append(out, '{')
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, y := range x {
			if i > 0 {
				out = append(out, ',')
			}
			out = write(out, y)
		}
		return append(out, ']')
	case string:
		out = append(out, '"')
		for _, c := range []byte(x) {
			switch {
			case c == '"' || c == '\\':
				out = append(out, '\\', c)
			case c < ' ':
				out = fmt.Appendf(out, `\u%04x`, c)
			default:
				out = append(out, c)
			}
		}
		return append(out, '"')
	case number:
		return append(out, x...)
	case bool:
		return strconv.AppendBool(out, x)
	}
	return append(out, "null"...)
}
