package jinja

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

type filterFunc func(r *renderer, v value, a *arguments) value

func onText(f func(string) string) filterFunc {
	return func(r *renderer, v value, _ *arguments) value { return r.made(f(r.str(v))) }
}

// filterOf is the filter of a name, or nil.
func filterOf(name string) filterFunc {
	switch name {
	case "length", "count":
		return length
	case "join":
		return join
	case "tojson":
		return tojson
	case "string":
		return func(r *renderer, v value, _ *arguments) value { return r.made(r.str(v)) }
	case "trim":
		return func(r *renderer, v value, a *arguments) value { return strip(r.str(v), true, true)(r, a) }
	case "default", "d":
		return otherwise
	case "dictsort":
		return dictsort
	case "items":
		return items
	case "lower":
		return onText(strings.ToLower)
	case "upper":
		return onText(strings.ToUpper)
	case "title":
		return onText(titledWords)
	case "capitalize":
		return onText(capitalized)
	case "safe":
		return func(_ *renderer, v value, _ *arguments) value { return v }
	case "escape", "e":
		return onText(escaped)
	case "indent":
		return indent
	case "replace":
		return func(r *renderer, v value, a *arguments) value {
			from, to := a.must(r, "old"), a.must(r, "new")
			return r.replaced(r.str(v), from, to, a.int(r, "count", -1))
		}
	case "list":
		return func(r *renderer, v value, _ *arguments) value { return r.listed(slices.Clone(r.iterate(v))) }
	case "first":
		return func(r *renderer, v value, _ *arguments) value { return end(r.iterate(v), 0) }
	case "last":
		return func(r *renderer, v value, _ *arguments) value {
			x := r.iterate(v)
			return end(x, len(x)-1)
		}
	case "reverse":
		return reverse
	case "sort":
		return sorted
	case "unique":
		return unique
	case "map":
		return mapped
	case "select", "reject":
		return func(r *renderer, v value, a *arguments) value { return selected(r, v, a, false, name == "select") }
	case "selectattr", "rejectattr":
		return func(r *renderer, v value, a *arguments) value { return selected(r, v, a, true, name == "selectattr") }
	case "int":
		return toInt
	case "float":
		return toFloat
	case "abs":
		return abs
	case "round":
		return round
	case "sum":
		return sum
	case "min":
		return func(r *renderer, v value, a *arguments) value { return extreme(r, v, a, -1) }
	case "max":
		return func(r *renderer, v value, a *arguments) value { return extreme(r, v, a, 1) }
	case "attr":
		return func(r *renderer, v value, a *arguments) value { return r.attribute(v, a.text(r, "name", "")) }
	}
	return nil
}

type testFunc func(r *renderer, v value, a *arguments) bool

// testOf is the test of a name, or nil.
func testOf(name string) testFunc {
	is := func(class func(v value) bool) testFunc {
		return func(_ *renderer, v value, _ *arguments) bool { return class(v) }
	}
	comparing := func(op string) testFunc {
		return func(r *renderer, v value, a *arguments) bool {
			x, ok := a.take("other")
			if !ok {
				r.fail("test %q needs an argument", a.name)
			}
			return truthy(r.compare(compare{r.line, literal{v}, []string{op}, []expression{literal{x}}}))
		}
	}
	switch name {
	case "defined":
		return is(func(v value) bool { return !isUndefined(v) })
	case "undefined":
		return is(isUndefined)
	case "none":
		return is(func(v value) bool { return v == nil })
	case "string":
		return is(func(v value) bool { _, ok := v.(string); return ok })
	case "mapping":
		return is(func(v value) bool { _, ok := v.(*Dict); return ok })
	case "number":
		return is(func(v value) bool { _, ok := asFloat(v); return ok })
	case "integer":
		return is(func(v value) bool { _, ok := v.(int64); return ok })
	case "float":
		return is(func(v value) bool { _, ok := v.(float64); return ok })
	case "boolean":
		return is(func(v value) bool { _, ok := v.(bool); return ok })
	case "true":
		return is(func(v value) bool { return v == true })
	case "false":
		return is(func(v value) bool { return v == false })
	case "callable":
		return is(func(v value) bool { _, ok := v.(*function); return ok })
	case "iterable":
		return is(iterable)
	case "sequence":
		return is(func(v value) bool { return iterable(v) && !isUndefined(v) })
	case "odd":
		return is(func(v value) bool { i, ok := integer(v); return ok && i%2 != 0 })
	case "even":
		return is(func(v value) bool { i, ok := integer(v); return ok && i%2 == 0 })
	case "divisibleby":
		return func(r *renderer, v value, a *arguments) bool {
			i, ok := integer(v)
			by := a.int(r, "num", 0)
			if !ok || by == 0 {
				r.fail("divisibleby of %s and %d", typeName(v), by)
			}
			return by == -1 || i%by == 0
		}
	case "lower":
		return is(func(v value) bool {
			s, ok := v.(string)
			return ok && s == strings.ToLower(s) && s != strings.ToUpper(s)
		})
	case "upper":
		return is(func(v value) bool {
			s, ok := v.(string)
			return ok && s == strings.ToUpper(s) && s != strings.ToLower(s)
		})
	case "equalto", "eq", "sameas":
		return comparing("==")
	case "ne":
		return comparing("!=")
	case "lt", "lessthan":
		return comparing("<")
	case "le":
		return comparing("<=")
	case "gt", "greaterthan":
		return comparing(">")
	case "ge":
		return comparing(">=")
	case "in":
		return comparing("in")
	}
	return nil
}

func isUndefined(v value) bool {
	_, ok := v.(undefined)
	return ok
}

func iterable(v value) bool {
	switch v.(type) {
	case undefined, string, *list, *Dict:
		return true
	}
	return false
}

func (r *renderer) listed(items []value) *list {
	r.spendItems(len(items))
	return &list{items: items}
}

func length(r *renderer, v value, _ *arguments) value {
	switch x := v.(type) {
	case string:
		return int64(utf8.RuneCountInString(x))
	case *list, *Dict, undefined:
		return int64(len(r.iterate(v)))
	}
	r.fail("length of %s", typeName(v))
	return nil
}

func join(r *renderer, v value, a *arguments) value {
	between := a.text(r, "d", "")
	parts := r.iterate(v)
	if by, ok := a.take("attribute"); ok {
		parts = slices.Clone(parts)
		for i, p := range parts {
			parts[i] = r.path(p, by)
		}
	}
	return r.joined(parts, between, false)
}

// path is an attribute of an attribute …, with points between the names; parts that are numbers are indices.
func (r *renderer) path(v value, by value) value {
	if i, ok := integer(by); ok {
		return r.index(v, i)
	}
	s, ok := by.(string)
	if !ok {
		r.fail("an attribute is %s, must be a string", typeName(by))
	}
	for part := range strings.SplitSeq(s, ".") {
		r.step()
		if i, err := strconv.ParseInt(part, 10, 64); err == nil {
			v = r.index(v, i)
			continue
		}
		if _, lacking := v.(undefined); lacking {
			return v
		}
		v = r.index(v, part)
	}
	return v
}

func otherwise(r *renderer, v value, a *arguments) value {
	other, ok := a.take("default_value")
	if !ok {
		other = ""
	}
	alsoFalse, _ := a.take("boolean")
	if _, lacking := v.(undefined); lacking || truthy(alsoFalse) && !truthy(v) {
		return other
	}
	return v
}

func end(items []value, i int) value {
	if len(items) == 0 {
		return undefined{"an element of an empty sequence"}
	}
	return items[i]
}

func reverse(r *renderer, v value, _ *arguments) value {
	items := slices.Clone(r.iterate(v))
	slices.Reverse(items)
	if _, ok := v.(string); ok {
		return r.joined(items, "", true)
	}
	return r.listed(items)
}

func items(r *renderer, v value, _ *arguments) value {
	switch x := v.(type) {
	case undefined:
		return &list{}
	case *Dict:
		return r.items(x)
	}
	r.fail("items of %s", typeName(v))
	return nil
}

// folded is a value by which others are sorted: texts in lower case, unless case matters.
func folded(v value, cased bool) value {
	if s, ok := v.(string); ok && !cased {
		return strings.ToLower(s)
	}
	return v
}

// sortBy sorts items by keys, stably.
func (r *renderer) sortBy(items, keys []value, descending bool) []value {
	at := make([]int, len(items))
	for i := range at {
		at[i] = i
	}
	sort.SliceStable(at, func(i, j int) bool {
		r.step()
		if descending {
			i, j = j, i
		}
		d := r.order(keys[at[i]], keys[at[j]])
		return d < 0
	})
	out := make([]value, len(items))
	for i, j := range at {
		out[i] = items[j]
	}
	return out
}

func dictsort(r *renderer, v value, a *arguments) value {
	d, ok := v.(*Dict)
	if !ok {
		r.fail("dictsort of %s", typeName(v))
	}
	cased, _ := a.take("case_sensitive")
	by := a.text(r, "by", "key")
	descending, _ := a.take("reverse")
	keys := slices.Clone(d.keys)
	if by == "value" {
		keys = slices.Clone(d.values)
	} else if by != "key" {
		r.fail("dictsort by %q, need key or value", by)
	}
	for i, k := range keys {
		keys[i] = folded(k, truthy(cased))
	}
	return r.listed(r.sortBy(r.items(d).items, keys, truthy(descending)))
}

func sorted(r *renderer, v value, a *arguments) value {
	descending, _ := a.take("reverse")
	cased, _ := a.take("case_sensitive")
	by, _ := a.take("attribute")
	items := r.iterate(v)
	keys := slices.Clone(items)
	for i, k := range keys {
		if by != nil {
			k = r.path(k, by)
		}
		keys[i] = folded(k, truthy(cased))
	}
	return r.listed(r.sortBy(items, keys, truthy(descending)))
}

func unique(r *renderer, v value, a *arguments) value {
	cased, _ := a.take("case_sensitive")
	by, _ := a.take("attribute")
	seen := &Dict{}
	var out, others []value
	for _, x := range r.iterate(v) {
		r.step()
		key := x
		if by != nil {
			key = r.path(x, by)
		}
		key = folded(key, truthy(cased))
		if !hashable(key) {
			if slices.ContainsFunc(others, func(o value) bool { return r.equal(o, key, 0) }) {
				continue
			}
			others = append(others, key)
		} else if _, twice := seen.get(key); twice {
			continue
		} else {
			seen.set(key, nil)
		}
		out = append(out, x)
	}
	return r.listed(out)
}

// some is what a filter of elements goes over: nothing where a value is empty or none.
func (r *renderer) some(v value) []value {
	if !truthy(v) {
		return nil
	}
	return r.iterate(v)
}

func mapped(r *renderer, v value, a *arguments) value {
	by, attribute := value(nil), false
	if len(a.rest) == 0 {
		by, attribute = a.take("attribute")
	}
	var out []value
	if attribute {
		other, hasOther := a.take("default")
		for _, x := range r.some(v) {
			y := r.path(x, by)
			if _, lacking := y.(undefined); lacking && hasOther {
				y = other
			}
			out = append(out, y)
		}
		return r.listed(out)
	}
	name := a.text(r, "filter", "")
	f := filterOf(name)
	if f == nil {
		r.fail("filter %q is not understood", name)
	}
	for _, x := range r.some(v) {
		r.step()
		each := &arguments{name: name, rest: slices.Clone(a.rest), named: slices.Clone(a.named)}
		out = append(out, f(r, x, each))
		each.done(r)
	}
	a.rest, a.named = nil, nil
	return r.listed(out)
}

func selected(r *renderer, v value, a *arguments, attribute, want bool) value {
	var by value
	if attribute {
		by, _ = a.take("attribute")
	}
	name := a.text(r, "test", "")
	t := testOf(name)
	if name != "" && t == nil {
		r.fail("test %q is not understood", name)
	}
	var out []value
	for _, x := range r.some(v) {
		r.step()
		y := x
		if attribute {
			y = r.path(x, by)
		}
		ok := truthy(y)
		if t != nil {
			each := &arguments{name: name, rest: slices.Clone(a.rest), named: slices.Clone(a.named)}
			ok = t(r, y, each)
			each.done(r)
		}
		if ok == want {
			out = append(out, x)
		}
	}
	a.rest, a.named = nil, nil
	return r.listed(out)
}

func toInt(r *renderer, v value, a *arguments) value {
	other := a.int(r, "default", 0)
	switch x := v.(type) {
	case int64, bool:
		i, _ := integer(x)
		return i
	case float64:
		if math.Abs(x) < 1<<63 {
			return int64(x)
		}
	case string:
		x = strings.ReplaceAll(strings.TrimSpace(x), "_", "")
		if i, err := strconv.ParseInt(x, 10, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(x, 64); err == nil && math.Abs(f) < 1<<63 {
			return int64(f)
		}
	}
	return other
}

func toFloat(r *renderer, v value, a *arguments) value {
	other, ok := a.take("default")
	if !ok {
		other = 0.0
	}
	if f, ok := asFloat(v); ok {
		return f
	}
	if s, ok := v.(string); ok {
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return f
		}
	}
	return other
}

func abs(r *renderer, v value, _ *arguments) value {
	if i, ok := integer(v); ok {
		if i < 0 {
			return r.integers("-", 0, i)
		}
		return i
	}
	f, ok := v.(float64)
	if !ok {
		r.fail("abs of %s", typeName(v))
	}
	return math.Abs(f)
}

func round(r *renderer, v value, a *arguments) value {
	places := a.int(r, "precision", 0)
	method := a.text(r, "method", "common")
	if _, whole := integer(v); whole && method == "common" && places >= 0 {
		return v
	}
	f, ok := asFloat(v)
	if !ok || places < -300 || places > 300 {
		r.fail("round of %s to %d places", typeName(v), places)
	}
	scale := math.Pow(10, float64(places))
	switch method {
	case "common":
		return math.RoundToEven(f*scale) / scale
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	}
	r.fail("round by %q is not understood", method)
	return nil
}

func sum(r *renderer, v value, a *arguments) value {
	by, _ := a.take("attribute")
	start, ok := a.take("start")
	if !ok {
		start = int64(0)
	}
	for _, x := range r.iterate(v) {
		r.step()
		if by != nil {
			x = r.path(x, by)
		}
		start = r.binary(binary{r.line, "+", literal{start}, literal{x}})
	}
	return start
}

// extreme is the least or the largest of some values.
func extreme(r *renderer, v value, a *arguments, sign int) value {
	cased, _ := a.take("case_sensitive")
	by, _ := a.take("attribute")
	all := r.iterate(v)
	if len(all) == 0 {
		return undefined{"an element of an empty sequence"}
	}
	key := func(x value) value {
		if by != nil {
			x = r.path(x, by)
		}
		return folded(x, truthy(cased))
	}
	best := all[0]
	for _, x := range all[1:] {
		r.step()
		if d := r.order(key(x), key(best)); d != unordered && sign*d > 0 {
			best = x
		}
	}
	return best
}

func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(s)
}

// indent puts spaces, or a text, before all lines but the first, and before that too if asked. Lines without text stay so.
func indent(r *renderer, v value, a *arguments) value {
	s := r.str(v)
	by := "    "
	if w, ok := a.take("width"); ok {
		if n, ok := integer(w); ok {
			by = r.repeated(" ", n)
		} else if by, ok = w.(string); !ok {
			r.fail("indent by %s", typeName(w))
		}
	}
	first, _ := a.take("first")
	blank, _ := a.take("blank")
	lines := strings.Split(s, "\n")
	r.spend(len(s))
	for i, line := range lines {
		if (i > 0 || truthy(first)) && (line != "" || truthy(blank)) {
			r.spend(len(by))
			lines[i] = by + line
		}
	}
	return strings.Join(lines, "\n")
}

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
