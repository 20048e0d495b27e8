package jinja

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// tojson is Python's json.dumps, with characters as they are unless ensure_ascii is true.
func tojson(r *renderer, v value, a *arguments) value {
	j := &jsonWriter{r: r, item: ", ", key: ": "}
	ascii, _ := a.takeNamed("ensure_ascii")
	sorting, _ := a.takeNamed("sort_keys")
	j.ascii, j.sorted = truthy(ascii), truthy(sorting)
	if in, ok := a.take("indent"); ok && in != nil {
		j.item = ","
		j.lines = true
		if n, ok := integer(in); ok {
			j.indent = r.repeated(" ", n)
		} else if j.indent, ok = in.(string); !ok {
			r.fail("indent of tojson is %s", typeName(in))
		}
	}
	if s, ok := a.takeNamed("separators"); ok && s != nil {
		pair, ok := s.(*list)
		if !ok || len(pair.items) != 2 {
			r.fail("separators of tojson are %s, must be two strings", typeName(s))
		}
		j.item, j.key = r.str(pair.items[0]), r.str(pair.items[1])
	}
	j.write(v, 0)
	return j.out.String()
}

func (a *arguments) takeNamed(name string) (value, bool) {
	rest := a.rest
	a.rest = nil
	v, ok := a.take(name)
	a.rest = rest
	return v, ok
}

type jsonWriter struct {
	r             *renderer
	out           strings.Builder
	item, key     string // separators
	indent        string
	lines         bool
	ascii, sorted bool
}

func (j *jsonWriter) text(s string) {
	j.r.spend(len(s))
	j.out.WriteString(s)
}

func (j *jsonWriter) line(depth int) {
	if j.lines {
		j.text("\n" + j.r.repeated(j.indent, int64(depth)))
	}
}

func (j *jsonWriter) write(v value, depth int) {
	j.r.step()
	if depth > maxDepth {
		j.r.fail("a value is nested more than %d deep", maxDepth)
	}
	switch x := v.(type) {
	case nil:
		j.text("null")
	case bool:
		j.text(strconv.FormatBool(x))
	case int64:
		j.text(strconv.FormatInt(x, 10))
	case float64:
		switch {
		case math.IsNaN(x):
			j.text("NaN")
		case math.IsInf(x, 0):
			j.text(strings.Replace(floatText(x), "inf", "Infinity", 1))
		default:
			j.text(floatText(x))
		}
	case string:
		j.text(j.quoted(x))
	case *list:
		j.sequence("[", "]", len(x.items), depth, func(i int) { j.write(x.items[i], depth+1) })
	case *namespace:
		j.write(x.Dict, depth)
	case *Dict:
		at := make([]value, len(x.keys))
		for i := range at {
			at[i] = int64(i)
		}
		if j.sorted {
			at = j.r.sortBy(at, x.keys, false)
		}
		j.sequence("{", "}", len(at), depth, func(i int) {
			n := at[i].(int64)
			switch k := x.keys[n].(type) {
			case string:
				j.text(j.quoted(k))
			default:
				j.text(`"`)
				j.write(k, depth+1)
				j.text(`"`)
			}
			j.text(j.key)
			j.write(x.values[n], depth+1)
		})
	default:
		j.r.fail("tojson of %s", typeName(v))
	}
}

func (j *jsonWriter) sequence(begin, end string, n, depth int, each func(i int)) {
	j.text(begin)
	for i := range n {
		if i > 0 {
			j.text(j.item)
		}
		j.line(depth + 1)
		each(i)
	}
	if n > 0 {
		j.line(depth)
	}
	j.text(end)
}

func (j *jsonWriter) quoted(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteRune(c)
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\r':
			out.WriteString(`\r`)
		case c == '\t':
			out.WriteString(`\t`)
		case c == '\b':
			out.WriteString(`\b`)
		case c == '\f':
			out.WriteString(`\f`)
		case c < ' ' || j.ascii && c > 0x7e && c < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, c)
		case j.ascii && c > 0x7e:
			c -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+(c>>10), 0xdc00+(c&0x3ff))
		default:
			out.WriteRune(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// Decode reads JSON, keeping the order of keys: what [Template.Render] takes.
func Decode(data []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	v, err := decode(d, 0)
	if err == nil && d.More() {
		err = fmt.Errorf("there is something after the value")
	}
	return v, err
}

func decode(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("a value is nested more than %d deep", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		out := []any{}
		for d.More() {
			v, err := decode(d, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err := d.Token()
		return out, err
	case json.Delim('{'):
		out := &Dict{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decode(d, depth+1)
			if err != nil {
				return nil, err
			}
			out.Set(key.(string), v)
		}
		_, err := d.Token()
		return out, err
	}
	return t, nil
}
