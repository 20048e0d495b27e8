package jinja

import "strings"

// globalFunctions are what templates find by name.
func globalFunctions() []*function {
	return []*function{
		{"raise_exception", func(r *renderer, a *arguments) value {
			v, _ := a.take("message")
			panic(&Error{Line: r.line, Message: r.str(v), Raised: true})
		}},
		{"namespace", func(r *renderer, a *arguments) value { return &namespace{a.dict(r)} }},
		{"dict", func(r *renderer, a *arguments) value { return a.dict(r) }},
		{"range", func(r *renderer, a *arguments) value {
			from, step := int64(0), int64(1)
			to := a.int(r, "stop", 0)
			if len(a.rest) > 0 {
				from, to = to, a.int(r, "stop", 0)
				step = a.int(r, "step", 1)
			}
			a.done(r)
			if step == 0 {
				r.fail("the step of a range is 0")
			}
			out := &list{}
			for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
				if out.items = append(out.items, i); len(out.items) > 1<<20 {
					r.fail("a range of more than %d numbers", 1<<20)
				}
				if next := i + step; (next > i) != (step > 0) {
					break // beyond 64 bits
				}
			}
			r.spendItems(len(out.items))
			return out
		}},
		{"strftime_now", func(r *renderer, a *arguments) value {
			format := a.text(r, "format", "")
			a.done(r)
			return r.made(r.strftime(format))
		}},
	}
}

// dict is a mapping of what is left: a mapping, and named values.
func (a *arguments) dict(r *renderer) *Dict {
	d := &Dict{}
	if len(a.rest) > 0 {
		v, _ := a.take("")
		from, ok := v.(*Dict)
		if !ok {
			r.fail("%s of %s, must be a mapping", a.name, typeName(v))
		}
		for i, k := range from.keys {
			d.set(k, from.values[i])
		}
	}
	for _, n := range a.named {
		d.set(n.name, n.v)
	}
	a.named = nil
	a.done(r)
	r.spendItems(len(d.keys))
	return d
}

// dateLayout is a directive of strftime as package time writes it; empty for those that are not known.
func dateLayout(directive byte) string {
	switch directive {
	case 'Y':
		return "2006"
	case 'y':
		return "06"
	case 'm':
		return "01"
	case 'd':
		return "02"
	case 'e':
		return "_2"
	case 'b':
		return "Jan"
	case 'B':
		return "January"
	case 'a':
		return "Mon"
	case 'A':
		return "Monday"
	case 'H':
		return "15"
	case 'I':
		return "03"
	case 'M':
		return "04"
	case 'S':
		return "05"
	case 'p':
		return "PM"
	case 'F':
		return "2006-01-02"
	case 'T':
		return "15:04:05"
	case 'j':
		return "002"
	}
	return ""
}

func (r *renderer) strftime(format string) string {
	var out strings.Builder
	now := r.now()
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			out.WriteByte(format[i])
			continue
		}
		i++
		unpadded := format[i] == '-' && i+1 < len(format)
		if unpadded {
			i++
		}
		layout := dateLayout(format[i])
		switch {
		case format[i] == '%':
			out.WriteByte('%')
		case layout == "":
			r.fail("%%%c of strftime_now is not understood", format[i])
		case unpadded:
			s := strings.TrimLeft(now.Format(layout), "0 ")
			if s == "" {
				s = "0"
			}
			out.WriteString(s)
		default:
			out.WriteString(now.Format(layout))
		}
	}
	return out.String()
}

// method is a method of a value, or nil. What Python has and this does not is an error when it is called.
func (r *renderer) method(v value, name string) *function {
	var f func(r *renderer, a *arguments) value
	switch x := v.(type) {
	case string:
		f = stringMethod(x, name)
	case *Dict:
		f = dictMethod(x, name)
	case *list:
		if name == "index" || name == "count" {
			f = listMethod(x, name)
		} else if name == "append" || name == "pop" || name == "extend" || name == "insert" || name == "remove" || name == "reverse" || name == "sort" {
			f = func(r *renderer, _ *arguments) value {
				r.fail("a list cannot be changed: method %q is not understood", name)
				return nil
			}
		}
	}
	if f == nil {
		return nil
	}
	return &function{name, func(r *renderer, a *arguments) value {
		if s, ok := v.(string); ok {
			r.scan(len(s))
		}
		out := f(r, a)
		a.done(r)
		return out
	}}
}

func dictMethod(d *Dict, name string) func(r *renderer, a *arguments) value {
	switch name {
	case "items":
		return func(r *renderer, _ *arguments) value { return r.items(d) }
	case "keys":
		return func(*renderer, *arguments) value { return &list{items: d.keys} }
	case "values":
		return func(*renderer, *arguments) value { return &list{items: d.values} }
	case "get":
		return func(r *renderer, a *arguments) value {
			key, _ := a.take("key")
			otherwise, _ := a.take("default")
			if v, ok := d.get(key); ok {
				return v
			}
			return otherwise
		}
	case "pop", "update", "setdefault", "clear", "popitem":
		return func(r *renderer, _ *arguments) value {
			r.fail("a mapping cannot be changed: method %q is not understood", name)
			return nil
		}
	}
	return nil
}

func (r *renderer) items(d *Dict) *list {
	out := &list{}
	for i, k := range d.keys {
		out.items = append(out.items, &list{[]value{k, d.values[i]}, true})
	}
	r.spendItems(3 * len(out.items))
	return out
}

func listMethod(l *list, name string) func(r *renderer, a *arguments) value {
	return func(r *renderer, a *arguments) value {
		x, _ := a.take("value")
		n := int64(0)
		for i, v := range l.items {
			r.step()
			if r.equal(v, x, 0) {
				if name == "index" {
					return int64(i)
				}
				n++
			}
		}
		if name == "index" {
			r.fail("a list does not have the value whose index is wanted")
		}
		return n
	}
}
