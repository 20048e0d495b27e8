package jinja

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// value is nil (none), bool, int64, float64, string, *list, *Dict, *namespace, undefined or a function.
type value any

// undefined is what a name or an attribute that is not there gives. It is false, empty and printed as nothing; all else is an error.
type undefined struct{ what string }

// list is a list or a tuple.
type list struct {
	items []value
	tuple bool
}

// Dict is a mapping that keeps the order of its keys.
type Dict struct {
	keys   []value
	values []value
	at     map[value]int
}

// NewDict returns one with keys and values in turn; keys are texts, and values what [Template.Render] takes.
func NewDict(pairs ...any) *Dict {
	d := &Dict{}
	for i := 0; i+1 < len(pairs); i += 2 {
		d.set(pairs[i], pairs[i+1])
	}
	return d
}

// Set sets the value of a key.
func (d *Dict) Set(key string, v any) { d.set(key, v) }

func (d *Dict) set(key, v value) {
	if d.at == nil {
		d.at = map[value]int{}
	}
	k := keyOf(key)
	if i, ok := d.at[k]; ok {
		d.values[i] = v
		return
	}
	d.at[k] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, v)
}

func (d *Dict) get(key value) (value, bool) {
	if !hashable(key) {
		return nil, false
	}
	i, ok := d.at[keyOf(key)]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// hashable reports what may be a key.
func hashable(v value) bool {
	switch v.(type) {
	case nil, bool, int64, float64, string:
		return true
	}
	return false
}

// keyOf gives equal keys the same form: 1, 1.0 and true are.
func keyOf(v value) value {
	switch x := v.(type) {
	case bool:
		if x {
			return int64(1)
		}
		return int64(0)
	case float64:
		if i := int64(x); float64(i) == x && math.Abs(x) < 1<<62 {
			return i
		}
	}
	return v
}

// namespace is what templates keep values in that outlive a loop.
type namespace struct{ *Dict }

// function is one that a template can call.
type function struct {
	name string
	call func(r *renderer, a *arguments) value
}

// imported makes a value of what a program has: nil, bool, integers, floats, strings, slices, maps with texts as keys (in the order of
// the keys), *Dict, [json.Number].
func imported(v any, depth int) (value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("a value is nested more than %d deep", maxDepth)
	}
	switch x := v.(type) {
	case nil, bool, int64, float64, string, *list, *namespace, *function:
		return x, nil
	case *Dict:
		if x == nil {
			return nil, nil
		}
		out := &Dict{}
		for i, k := range x.keys {
			y, err := imported(x.values[i], depth+1)
			if err != nil {
				return nil, err
			}
			out.set(k, y)
		}
		return out, nil
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return i, nil
		}
		return x.Float64()
	case []any:
		out := &list{}
		for _, y := range x {
			z, err := imported(y, depth+1)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, z)
		}
		return out, nil
	case map[string]any:
		out := &Dict{}
		for _, k := range sortedKeys(x) {
			y, err := imported(x[k], depth+1)
			if err != nil {
				return nil, err
			}
			out.set(k, y)
		}
		return out, nil
	}
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return r.Int(), nil
	case r.CanUint() && r.Uint() <= math.MaxInt64:
		return int64(r.Uint()), nil
	case r.CanFloat():
		return r.Float(), nil
	case r.Kind() == reflect.String:
		return r.String(), nil
	case r.Kind() == reflect.Bool:
		return r.Bool(), nil
	case r.Kind() == reflect.Slice:
		items := make([]any, r.Len())
		for i := range items {
			items[i] = r.Index(i).Interface()
		}
		return imported(items, depth)
	}
	return nil, fmt.Errorf("a value of type %T cannot be given to a template", v)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func truthy(v value) bool {
	switch x := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return x
	case int64:
		return x != 0
	case float64:
		return x != 0
	case string:
		return x != ""
	case *list:
		return len(x.items) > 0
	case *Dict:
		return len(x.keys) > 0
	}
	return true
}

// typeName is what a value is called in errors.
func typeName(v value) string {
	switch x := v.(type) {
	case nil:
		return "none"
	case undefined:
		return "undefined " + x.what
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case string:
		return "a string"
	case *list:
		return "a list"
	case *Dict:
		return "a mapping"
	case *namespace:
		return "a namespace"
	}
	return "a function"
}

func (r *renderer) equal(a, b value, depth int) bool {
	r.step()
	if depth > maxDepth {
		return false
	}
	switch x := a.(type) {
	case *list:
		y, ok := b.(*list)
		if !ok || x.tuple != y.tuple || len(x.items) != len(y.items) {
			return false
		}
		for i := range x.items {
			if !r.equal(x.items[i], y.items[i], depth+1) {
				return false
			}
		}
		return true
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || len(x.keys) != len(y.keys) {
			return false
		}
		for i, k := range x.keys {
			z, ok := y.get(k)
			if !ok || !r.equal(x.values[i], z, depth+1) {
				return false
			}
		}
		return true
	case undefined:
		_, ok := b.(undefined)
		return ok
	}
	if s, ok := a.(string); ok {
		r.scan(len(s))
	}
	if p, ok := asFloat(a); ok {
		if q, ok := asFloat(b); ok {
			return p == q
		}
		return false
	}
	switch b.(type) {
	case undefined:
		return false
	}
	return a == b
}

// asFloat is a number as a float; booleans are numbers, as in Python.
func asFloat(v value) (float64, bool) {
	switch x := v.(type) {
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	case int64:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}

// integer is a whole number, or a boolean.
func integer(v value) (int64, bool) {
	switch x := v.(type) {
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	case int64:
		return x, true
	}
	return 0, false
}

// str is how a value is printed.
func (r *renderer) str(v value) string {
	switch x := v.(type) {
	case string:
		return x
	case undefined:
		return ""
	}
	return r.repr(v, 0)
}

// repr is how Python writes a value.
func (r *renderer) repr(v value, depth int) string {
	r.step()
	if depth > maxDepth {
		r.fail("a value is nested more than %d deep", maxDepth)
		return ""
	}
	switch x := v.(type) {
	case nil:
		return "None"
	case bool:
		if x {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return floatText(x)
	case string:
		return r.made(quoted(x))
	case undefined:
		return "Undefined"
	case *list:
		var parts []string
		for _, y := range x.items {
			parts = append(parts, r.repr(y, depth+1))
		}
		s := strings.Join(parts, ", ")
		switch {
		case !x.tuple:
			return r.made("[" + s + "]")
		case len(x.items) == 1:
			s += ","
		}
		return r.made("(" + s + ")")
	case *Dict:
		var parts []string
		for i, k := range x.keys {
			parts = append(parts, r.repr(k, depth+1)+": "+r.repr(x.values[i], depth+1))
		}
		return r.made("{" + strings.Join(parts, ", ") + "}")
	}
	r.fail("%s cannot be printed", typeName(v))
	return ""
}

// floatText is how Python prints a float.
func floatText(x float64) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	format := byte('f')
	if a := math.Abs(x); a != 0 && (a < 1e-4 || a >= 1e16) {
		format = 'e'
	}
	s := strconv.FormatFloat(x, format, -1, 64)
	if format == 'f' && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quoted is how Python writes a string.
func quoted(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var out strings.Builder
	out.WriteRune(quote)
	for _, c := range s {
		switch {
		case c == quote || c == '\\':
			out.WriteByte('\\')
			out.WriteRune(c)
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\r':
			out.WriteString(`\r`)
		case c == '\t':
			out.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&out, `\x%02x`, c)
		case c == ' ' || unicode.IsGraphic(c) && !unicode.IsSpace(c):
			out.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(&out, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, c)
		default:
			fmt.Fprintf(&out, `\U%08x`, c)
		}
	}
	out.WriteRune(quote)
	return out.String()
}

// runes are the characters of a text, each as a text.
func runes(s string) []value {
	out := make([]value, 0, utf8.RuneCountInString(s))
	for _, c := range s {
		out = append(out, string(c))
	}
	return out
}
