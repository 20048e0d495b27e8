package grammar

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/compute"
)

// Schema returns the grammar of JSON texts that a JSON schema allows, as models write them: properties in the order of the schema, at most
// one line break between parts. All that the grammar allows is valid, but not all that is valid is allowed. Errors wrap
// [compute.ErrArgument] for what is no schema, and [compute.ErrUnsupported] for keywords that are not understood; they name the keyword
// and where it is.
func Schema(text []byte) (*Grammar, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	s := &schemas{root: root, known: map[string]int{}}
	top := s.rule()
	s.space = s.any(nil, literal(" "), join(literal("\n"), s.repeat([]symbol{bytes(" \t")}, 0, 20)))
	s.define(top, join(s.space, s.value(root, "#", 0)))
	if s.err == nil {
		s.err = s.check()
	}
	if s.err != nil {
		return nil, s.err
	}
	return &s.Grammar, nil
}

// schemas makes rules of schemas.
type schemas struct {
	builder
	root  any
	known map[string]int // rules of what references name, and of "string", "number" and so on
	space []symbol
}

func (s *schemas) wrong(at, format string, args ...any) {
	s.fail(fmt.Errorf("%s: %s: %w", at, fmt.Sprintf(format, args...), compute.ErrArgument))
}

// once is a rule that is made when it is first named.
func (s *schemas) once(name string, make func() []symbol) []symbol {
	r, ok := s.known[name]
	if !ok {
		r = s.rule()
		s.known[name] = r
		s.define(r, make())
	}
	return refer(r)
}

var types = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// notes are keywords that allow nothing else.
var notes = []string{"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment", "$defs", "definitions", "strict"}

// keywords are those that are understood, by the type that they are about.
var keywords = map[string][]string{
	"":       {"type", "enum", "const", "anyOf", "oneOf", "$ref", "nullable"},
	"object": {"properties", "required", "additionalProperties"},
	"array":  {"items", "prefixItems", "minItems", "maxItems"},
	"string": {"minLength", "maxLength"},
}

// value is what a schema allows.
func (s *schemas) value(schema any, at string, depth int) []symbol {
	if s.err != nil {
		return nil
	}
	if depth > mostNested {
		s.wrong(at, "nested deeper than %d", mostNested)
		return nil
	}
	if schema == true {
		return s.anything(types)
	}
	o, ok := schema.(*object)
	if !ok {
		s.wrong(at, "a schema must be an object")
		return nil
	}
	kinds := s.kinds(o, at)
	for _, key := range o.keys {
		if slices.Contains(notes, key) || slices.Contains(keywords[""], key) {
			continue
		}
		about := ""
		for kind, keys := range keywords {
			if slices.Contains(keys, key) {
				about = kind
			}
		}
		if about == "" {
			s.fail(fmt.Errorf("%s: %q is not understood: %w", at, key, compute.ErrUnsupported))
			return nil
		}
	}
	var out []symbol
	forms := 0
	form := func(key string, make func(x any) []symbol) {
		if x, ok := o.values[key]; ok {
			forms++
			out = make(x)
		}
	}
	form("$ref", func(x any) []symbol { return s.reference(x, at, depth) })
	form("const", constant)
	form("enum", func(x any) []symbol {
		return s.each(x, at, "enum", func(x any, _ string) []symbol { return constant(x) })
	})
	for _, key := range []string{"anyOf", "oneOf"} {
		form(key, func(x any) []symbol {
			return s.each(x, at, key, func(x any, at string) []symbol { return s.value(x, at, depth+1) })
		})
	}
	if forms > 1 {
		s.fail(fmt.Errorf("%s: several of $ref, const, enum, anyOf and oneOf: %w", at, compute.ErrUnsupported))
		return nil
	}
	if forms == 0 {
		var alternatives [][]symbol
		for _, kind := range kinds {
			alternatives = append(alternatives, s.ofKind(kind, o, at, depth))
		}
		if out = alternatives[0]; len(alternatives) > 1 {
			out = s.any(alternatives...)
		}
	}
	if o.values["nullable"] == true {
		out = s.any(out, literal("null"))
	}
	return out
}

// kinds are the types that a schema names, or those that its keywords are about, or all.
func (s *schemas) kinds(o *object, at string) []string {
	var kinds []string
	switch x := o.values["type"].(type) {
	case string:
		kinds = []string{x}
	case []any:
		for _, k := range x {
			name, _ := k.(string)
			kinds = append(kinds, name)
		}
	case nil:
		for _, kind := range []string{"object", "array", "string"} {
			if slices.ContainsFunc(keywords[kind], func(key string) bool { _, ok := o.values[key]; return ok }) {
				kinds = append(kinds, kind)
			}
		}
		if kinds == nil {
			return types
		}
	}
	if len(kinds) == 0 || slices.ContainsFunc(kinds, func(k string) bool { return !slices.Contains(types, k) }) {
		s.wrong(at, "the type must be of %s", strings.Join(types, ", "))
		return types
	}
	return kinds
}

// each is one of a list.
func (s *schemas) each(list any, at, key string, f func(x any, at string) []symbol) []symbol {
	all, _ := list.([]any)
	if len(all) == 0 {
		s.wrong(at, "%s must be a list", key)
		return nil
	}
	var alternatives [][]symbol
	for i, x := range all {
		alternatives = append(alternatives, f(x, fmt.Sprintf("%s/%s/%d", at, key, i)))
	}
	return s.any(alternatives...)
}

func constant(x any) []symbol { return literal(string(write(nil, x))) }

// reference is what another part of the schema allows.
func (s *schemas) reference(to any, at string, depth int) []symbol {
	name, _ := to.(string)
	path, local := strings.CutPrefix(name, "#")
	if !local {
		s.fail(fmt.Errorf("%s: $ref %q, need one that begins with #: %w", at, name, compute.ErrUnsupported))
		return nil
	}
	x := s.root
	for i, step := range strings.Split(path, "/") {
		if i == 0 && step == "" {
			continue
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch of := x.(type) {
		case *object:
			x = of.values[step]
		case []any:
			x = nil
			if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(of) {
				x = of[n]
			}
		default:
			x = nil
		}
	}
	if x == nil {
		s.wrong(at, "$ref %q leads nowhere", name)
		return nil
	}
	return s.once(name, func() []symbol { return s.value(x, name, depth+1) })
}

// ofKind is a value of a type.
func (s *schemas) ofKind(kind string, o *object, at string, depth int) []symbol {
	switch kind {
	case "object":
		return s.object(o, at, depth)
	case "array":
		return s.array(o, at, depth)
	case "string":
		least, most := s.bounds(o, "minLength", "maxLength", at)
		if least == 0 && most < 0 {
			return s.text()
		}
		return join(literal(`"`), s.repeat(s.character(), least, most), literal(`"`))
	}
	return s.anything([]string{kind})
}

// bounds are two numbers of a schema, 0 and −1 without them.
func (s *schemas) bounds(o *object, low, high, at string) (least, most int) {
	get := func(key string, otherwise int) int {
		x, ok := o.values[key]
		if !ok {
			return otherwise
		}
		n, _ := x.(number)
		i, err := strconv.Atoi(string(n))
		if err != nil || i < 0 {
			s.wrong(at, "%s must be a whole number", key)
		}
		return i
	}
	least, most = get(low, 0), get(high, -1)
	if most >= 0 && most < least {
		s.wrong(at, "%s is above %s", low, high)
	}
	return least, most
}

// array has the first elements by themselves, and the others alike.
func (s *schemas) array(o *object, at string, depth int) []symbol {
	least, most := s.bounds(o, "minItems", "maxItems", at)
	first, ok := o.values["prefixItems"].([]any)
	if _, given := o.values["prefixItems"]; given && !ok {
		s.wrong(at, "prefixItems must be a list")
	}
	rest, given := o.values["items"]
	if !given {
		rest = true
	}
	if rest == false {
		if most < 0 || most > len(first) {
			most = len(first)
		}
		if least > most {
			s.wrong(at, "minItems is above the number of items")
		}
	}
	comma := join(literal(","), s.space)
	n := len(first)
	if most >= 0 {
		n = min(n, most)
	}
	var tail []symbol // what may follow the first elements, each with its comma
	if rest != false {
		item := s.value(rest, at+"/items", depth+1)
		more := most
		if most >= 0 {
			more = max(0, most-n)
		}
		tail = s.repeat(join(comma, item), max(0, least-n), more)
		if n == 0 {
			if most == 0 {
				tail = nil
			} else {
				some := join(item, s.repeat(join(comma, item), max(0, least-1), max(-1, most-1)))
				if tail = some; least == 0 {
					tail = s.any(nil, some)
				}
			}
		}
	}
	for i := n - 1; i >= 0; i-- {
		x := s.value(first[i], fmt.Sprintf("%s/prefixItems/%d", at, i), depth+1)
		if i > 0 {
			x = join(comma, x)
		}
		if tail = join(x, tail); i >= least {
			tail = s.any(nil, tail)
		}
	}
	return join(literal("["), s.space, tail, s.space, literal("]"))
}

// object has its properties in order, and then others if the schema allows them.
func (s *schemas) object(o *object, at string, depth int) []symbol {
	properties, ok := o.values["properties"].(*object)
	if _, given := o.values["properties"]; given && !ok {
		s.wrong(at, "properties must be an object")
		return nil
	}
	if properties == nil {
		properties = &object{}
	}
	required := map[string]bool{}
	list, ok := o.values["required"].([]any)
	if _, given := o.values["required"]; given && !ok {
		s.wrong(at, "required must be a list")
	}
	for _, x := range list {
		name, ok := x.(string)
		if _, known := properties.values[name]; !ok || !known {
			s.wrong(at, "required names %v, which is no property", x)
		}
		required[name] = true
	}
	comma, colon := join(literal(","), s.space), join(s.space, literal(":"), s.space)
	more, given := o.values["additionalProperties"]
	if !given {
		more = len(properties.keys) == 0
	}
	// After each property, tails with and without one before.
	var after [2][]symbol
	if more != false {
		other := join(s.text(), colon, s.value(more, at+"/additionalProperties", depth+1))
		after[1] = s.repeat(join(comma, other), 0, -1)
		after[0] = s.any(nil, join(other, after[1]))
	}
	for i := len(properties.keys) - 1; i >= 0; i-- {
		name := properties.keys[i]
		x := join(constant(name), colon, s.value(properties.values[name], at+"/properties/"+name, depth+1))
		with := [2][]symbol{join(x, after[1]), join(comma, x, after[1])}
		for k := range after {
			if required[name] {
				after[k] = s.any(with[k])
			} else {
				after[k] = s.any(with[k], after[k])
			}
		}
	}
	return join(literal("{"), s.space, after[0], s.space, literal("}"))
}

// anything is any value of some types.
func (s *schemas) anything(kinds []string) []symbol {
	var alternatives [][]symbol
	for _, kind := range kinds {
		alternatives = append(alternatives, s.once(kind, func() []symbol {
			switch kind {
			case "object", "array":
				return s.ofKind(kind, &object{}, "#", 0)
			case "string":
				return s.text()
			case "boolean":
				return s.any(literal("true"), literal("false"))
			case "null":
				return literal("null")
			}
			digit := []symbol{span('0', '9')}
			digits := join(s.repeat(literal("-"), 0, 1), s.any(literal("0"), join([]symbol{span('1', '9')}, s.repeat(digit, 0, 15))))
			if kind == "number" {
				digits = join(digits, s.repeat(join(literal("."), s.repeat(digit, 1, 16)), 0, 1),
					s.repeat(join([]symbol{bytes("eE")}, s.repeat([]symbol{bytes("+-")}, 0, 1), s.repeat(digit, 1, 3)), 0, 1))
			}
			return digits
		}))
	}
	if len(alternatives) == 1 {
		return alternatives[0]
	}
	return s.once("any "+strings.Join(kinds, " "), func() []symbol { return s.any(alternatives...) })
}

func (s *schemas) text() []symbol {
	return s.once("string", func() []symbol { return join(literal(`"`), s.repeat(s.character(), 0, -1), literal(`"`)) })
}

// character is one of a string: in UTF-8, or written with a backslash.
func (s *schemas) character() []symbol {
	return s.once("character", func() []symbol {
		plain := &set{}
		plain.add(0x20, 0x7F)
		plain[0] &^= 1 << '"'
		plain['\\'/64] &^= 1 << ('\\' % 64)
		next := span(0x80, 0xBF)
		hex := bytes("0123456789abcdefABCDEF")
		return s.any([]symbol{{kind: class, class: plain}}, []symbol{span(0xC2, 0xDF), next},
			[]symbol{span(0xE0, 0xE0), span(0xA0, 0xBF), next}, []symbol{span(0xE1, 0xEC), next, next}, []symbol{span(0xED, 0xED), span(0x80, 0x9F), next},
			[]symbol{span(0xEE, 0xEF), next, next}, []symbol{span(0xF0, 0xF0), span(0x90, 0xBF), next, next}, []symbol{span(0xF1, 0xF3), next, next, next},
			[]symbol{span(0xF4, 0xF4), span(0x80, 0x8F), next, next},
			[]symbol{bytes(`\`), bytes(`"\/bfnrt`)}, []symbol{bytes(`\`), bytes("u"), hex, hex, hex, hex})
	})
}
