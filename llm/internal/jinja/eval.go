package jinja

import (
	"fmt"
	"math"
	"strings"
)

func (r *renderer) eval(e expression) value {
	r.step()
	r.deeper()
	defer func() { r.depth-- }()
	switch x := e.(type) {
	case literal:
		return x.v
	case variable:
		if v, ok := r.scope.lookup(x.name); ok {
			return v
		}
		return undefined{x.name}
	case attribute:
		v := r.eval(x.x)
		r.line = x.line
		return r.attribute(v, x.name)
	case index:
		v, i := r.eval(x.x), r.eval(x.i)
		r.line = x.line
		return r.index(v, i)
	case slice:
		return r.slice(x)
	case call:
		return r.call(x, nil)
	case filter:
		return r.apply(x.call, r.eval(x.x))
	case test:
		return r.test(x)
	case binary:
		return r.binary(x)
	case compare:
		return r.compare(x)
	case unary:
		v := r.eval(x.x)
		r.line = x.line
		switch i, whole := integer(v); {
		case x.op == "not":
			return !truthy(v)
		case whole && x.op == "+":
			return i
		case whole && i != math.MinInt64:
			return -i
		}
		if f, ok := v.(float64); ok {
			if x.op == "-" {
				return -f
			}
			return f
		}
		r.fail("%s of %s", x.op, typeName(v))
	case choice:
		if truthy(r.eval(x.cond)) {
			return r.eval(x.then)
		}
		if x.orElse == nil {
			return undefined{"the value of an if without else"}
		}
		return r.eval(x.orElse)
	case sequence:
		out := &list{tuple: x.tuple}
		for _, y := range x.items {
			out.items = append(out.items, r.eval(y))
		}
		r.spendItems(len(out.items))
		return out
	case mapping:
		out := &Dict{}
		for i, k := range x.keys {
			key := r.eval(k)
			r.line = x.line
			if !hashable(key) {
				r.fail("%s is no key of a mapping", typeName(key))
			}
			out.set(key, r.eval(x.values[i]))
		}
		r.spendItems(len(out.keys))
		return out
	}
	panic(fmt.Sprintf("jinja: expression of type %T", e)) // the parser makes no others
}

// attribute is v.name.
func (r *renderer) attribute(v value, name string) value {
	switch x := v.(type) {
	case undefined:
		r.fail("%s is undefined and has no %q", x.what, name)
	case *loopState:
		if y, ok := x.get(name); ok {
			return y
		}
		r.fail("loop.%s is not understood", name)
	case *Dict:
		if m := r.method(v, name); m != nil {
			return m
		}
		if y, ok := x.get(name); ok {
			return y
		}
		return undefined{name}
	case *namespace:
		if y, ok := x.get(name); ok {
			return y
		}
		return undefined{name}
	}
	if m := r.method(v, name); m != nil {
		return m
	}
	return undefined{name}
}

// index is v[i].
func (r *renderer) index(v, i value) value {
	switch x := v.(type) {
	case undefined:
		r.fail("%s is undefined and has no elements", x.what)
	case *Dict:
		if y, ok := x.get(i); ok {
			return y
		}
	case *namespace:
		if y, ok := x.get(i); ok {
			return y
		}
	case *list:
		if n, ok := integer(i); ok {
			if n < 0 {
				n += int64(len(x.items))
			}
			if n < 0 || n >= int64(len(x.items)) {
				return undefined{fmt.Sprintf("element %v", i)}
			}
			return x.items[n]
		}
	case string:
		if n, ok := integer(i); ok {
			all := runes(x)
			r.spendItems(len(all))
			if n < 0 {
				n += int64(len(all))
			}
			if n < 0 || n >= int64(len(all)) {
				return undefined{fmt.Sprintf("character %v", i)}
			}
			return all[n]
		}
	}
	if s, ok := i.(string); ok {
		if _, mapping := v.(*Dict); !mapping || r.method(v, s) != nil {
			return r.attribute(v, s)
		}
		return undefined{s}
	}
	return undefined{"an element"}
}

// slice is x[from:to:step] as Python has it.
func (r *renderer) slice(s slice) value {
	v := r.eval(s.x)
	bound := func(e expression) (int64, bool) {
		if e == nil {
			return 0, false
		}
		y := r.eval(e)
		r.line = s.line
		if y == nil {
			return 0, false
		}
		i, ok := integer(y)
		if !ok {
			r.fail("an index is %s, must be a whole number", typeName(y))
		}
		return i, true
	}
	from, hasFrom := bound(s.from)
	to, hasTo := bound(s.to)
	step, hasStep := bound(s.step)
	r.line = s.line
	if !hasStep {
		step = 1
	}
	if step == 0 {
		r.fail("the step of a slice is 0")
	}
	var items []value
	switch x := v.(type) {
	case string, *list:
		items = r.iterate(v)
	case undefined:
		r.fail("%s is undefined and has no elements", x.what)
	default:
		r.fail("%s has no slices", typeName(v))
	}
	n := int64(len(items))
	low, high := int64(0), n
	if step < 0 {
		low, high = -1, n-1
	}
	limit := func(i int64, given bool, otherwise int64) int64 {
		switch {
		case !given:
			return otherwise
		case i < 0:
			i += n
		}
		return min(max(i, low), high)
	}
	out := []value{}
	if step > 0 {
		from, to = limit(from, hasFrom, 0), limit(to, hasTo, n)
		for i := from; i < to; {
			out = append(out, items[i])
			if step > n {
				break
			}
			i += step
		}
	} else {
		from, to = limit(from, hasFrom, n-1), limit(to, hasTo, -1)
		for i := from; i > to; {
			out = append(out, items[i])
			if step < -n {
				break
			}
			i += step
		}
	}
	r.spendItems(len(out))
	if x, ok := v.(*list); ok {
		return &list{out, x.tuple}
	}
	var text strings.Builder
	for _, c := range out {
		text.WriteString(c.(string))
	}
	return text.String()
}
