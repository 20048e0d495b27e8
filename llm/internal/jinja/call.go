package jinja

import "slices"

func (r *renderer) arguments(c call) *arguments {
	a := &arguments{name: c.name}
	positional := len(c.args) - len(c.names)
	for i, x := range c.args {
		v := r.eval(x)
		if i < positional {
			a.rest = append(a.rest, v)
		} else {
			a.named = append(a.named, namedValue{c.names[i-positional], v})
		}
	}
	r.line = c.line
	return a
}

func (r *renderer) call(c call, caller *function) value {
	f := r.eval(c.f)
	a := r.arguments(c)
	switch x := f.(type) {
	case *function:
		a.name, a.caller = x.name, caller
		return x.call(r, a)
	case undefined:
		r.fail("function %q is not understood", x.what)
	}
	r.fail("%s is called, but is no function", typeName(f))
	return nil
}

// apply is a filter of a value.
func (r *renderer) apply(c call, v value) value {
	a := r.arguments(c)
	if s, ok := v.(string); ok {
		r.scan(len(s))
	}
	f := filterOf(c.name)
	if f == nil {
		r.fail("filter %q is not understood", c.name)
	}
	out := f(r, v, a)
	a.done(r)
	return out
}

func (r *renderer) test(t test) value {
	v := r.eval(t.x)
	a := r.arguments(t.call)
	f := testOf(t.name)
	if f == nil {
		r.fail("test %q is not understood", t.name)
	}
	ok := f(r, v, a)
	a.done(r)
	return ok != t.not
}

// arguments are those of a call that nobody has taken yet.
type arguments struct {
	name   string
	rest   []value
	named  []namedValue
	caller *function
}

type namedValue struct {
	name string
	v    value
}

// take is the next argument, or one with a name.
func (a *arguments) take(name string) (value, bool) {
	if len(a.rest) > 0 {
		v := a.rest[0]
		a.rest = a.rest[1:]
		return v, true
	}
	for i, n := range a.named {
		if n.name == name {
			a.named = slices.Delete(a.named, i, i+1)
			return n.v, true
		}
	}
	return nil, false
}

// done reports arguments that are left.
func (a *arguments) done(r *renderer) {
	if len(a.rest) > 0 {
		r.fail("%s has too many arguments", a.name)
	}
	if len(a.named) > 0 {
		r.fail("argument %q of %s is not understood", a.named[0].name, a.name)
	}
}

func (a *arguments) text(r *renderer, name, otherwise string) string {
	v, ok := a.take(name)
	if !ok {
		return otherwise
	}
	s, ok := v.(string)
	if !ok {
		r.fail("argument %q of %s is %s, must be a string", name, a.name, typeName(v))
	}
	return s
}

// must is text that has to be given.
func (a *arguments) must(r *renderer, name string) string {
	if len(a.rest) == 0 && !slices.ContainsFunc(a.named, func(n namedValue) bool { return n.name == name }) {
		r.fail("%s needs the argument %q", a.name, name)
	}
	return a.text(r, name, "")
}

func (a *arguments) int(r *renderer, name string, otherwise int64) int64 {
	v, ok := a.take(name)
	if !ok || v == nil {
		return otherwise
	}
	i, ok := integer(v)
	if !ok {
		r.fail("argument %q of %s is %s, must be a whole number", name, a.name, typeName(v))
	}
	return i
}
