package jinja

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
