package jinja

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Render makes the text. Variables are nil, booleans, numbers, strings, slices and maps of such, or [*Dict]. Errors are of type
// [*Error], except for variables of other types.
func (t *Template) Render(variables map[string]any) (out string, err error) {
	r := &renderer{now: time.Now}
	globals := &scope{names: map[string]value{}}
	for _, f := range globalFunctions() {
		globals.names[f.name] = f
	}
	for name, v := range variables {
		if globals.names[name], err = imported(v, 0); err != nil {
			return "", fmt.Errorf("variable %q: %w", name, err)
		}
	}
	r.scope = &scope{up: globals, names: map[string]value{}}
	defer func() {
		if x := recover(); x != nil {
			stopped, ok := x.(*Error)
			if !ok {
				panic(x)
			}
			out, err = "", stopped
		}
	}()
	r.run(t.body)
	return r.out.String(), nil
}

// renderer is one rendering. The first error ends it: fail panics with an *Error, which Render recovers.
type renderer struct {
	scope *scope
	out   strings.Builder
	line  int
	steps int
	spent int
	depth int
	now   func() time.Time
}

type scope struct {
	up    *scope
	names map[string]value
}

func (s *scope) lookup(name string) (value, bool) {
	for ; s != nil; s = s.up {
		if v, ok := s.names[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (r *renderer) fail(format string, args ...any) {
	panic(&Error{Line: r.line, Message: fmt.Sprintf(format, args...)})
}

func (r *renderer) step() {
	if r.steps++; r.steps > maxSteps {
		r.fail("the template takes more than %d steps", maxSteps)
	}
}

// scan counts the work of looking through so many bytes.
func (r *renderer) scan(n int) {
	r.steps += n / 64
	r.step()
}

// made counts a text that was made.
func (r *renderer) made(s string) string {
	r.spend(len(s))
	return s
}

// spend counts bytes or elements that are made, before or after.
func (r *renderer) spend(n int) {
	if r.spent += n; n < 0 || n > maxMade || r.spent > maxMade {
		r.fail("the template makes more than %d bytes", maxMade)
	}
}

// spendItems counts elements of lists.
func (r *renderer) spendItems(n int) { r.spend(16 * n) }

func (r *renderer) write(s string) { r.out.WriteString(r.made(s)) }

// nested runs f in a scope of its own.
func (r *renderer) nested(up *scope, f func()) {
	outer := r.scope
	r.scope = &scope{up: up, names: map[string]value{}}
	f()
	r.scope = outer
}

// captured is what f writes.
func (r *renderer) captured(f func()) string {
	outer := r.out
	r.out = strings.Builder{}
	f()
	s := r.out.String()
	r.out = outer
	return s
}

func (r *renderer) deeper() {
	if r.depth++; r.depth > 5*maxDepth {
		r.fail("nested more than %d deep", 5*maxDepth)
	}
}

// flow is how statements end: as usual, or by a tag of a loop.
type flow int

const (
	onward flow = iota
	broken
	continued
)

func (r *renderer) run(body []statement) flow {
	r.deeper()
	defer func() { r.depth-- }()
	for _, s := range body {
		r.step()
		switch x := s.(type) {
		case outputText:
			r.write(x.text)
		case output:
			r.write(r.str(r.eval(x.x)))
		case setValue:
			r.set(x)
		case setBlock:
			text := value(r.captured(func() { r.nested(r.scope, func() { r.run(x.body) }) }))
			r.assign(x.to, r.filtered(x.filters, text))
		case filterBlock:
			text := value(r.captured(func() { r.nested(r.scope, func() { r.run(x.body) }) }))
			r.write(r.str(r.filtered(x.filters, text)))
		case with:
			values := make([]value, len(x.values))
			for i, v := range x.values {
				values[i] = r.eval(v)
			}
			f := onward
			r.nested(r.scope, func() {
				for i, name := range x.names {
					r.scope.names[name] = values[i]
				}
				f = r.run(x.body)
			})
			if f != onward {
				return f
			}
		case conditional:
			branch := x.orElse
			if truthy(r.eval(x.cond)) {
				branch = x.then
			}
			if f := r.run(branch); f != onward {
				return f
			}
		case loop:
			r.loop(&x)
		case macro:
			r.scope.names[x.name] = r.macro(x)
		case callBlock:
			c := x.call.(call)
			r.line = x.line
			r.write(r.str(r.call(c, r.macro(x.params))))
		case leave:
			if x.on {
				return continued
			}
			return broken
		}
	}
	return onward
}

func (r *renderer) filtered(list []call, v value) value {
	for _, f := range list {
		v = r.apply(f, v)
	}
	return v
}

func (r *renderer) set(s setValue) {
	v := r.eval(s.x)
	if len(s.targets) == 1 {
		r.assign(s.targets[0], v)
		return
	}
	items := r.iterate(v)
	if len(items) != len(s.targets) {
		r.fail("%d values for %d names", len(items), len(s.targets))
	}
	for i, t := range s.targets {
		r.assign(t, items[i])
	}
}

func (r *renderer) assign(t target, v value) {
	if t.attr == "" {
		r.scope.names[t.name] = v
		return
	}
	n, _ := r.scope.lookup(t.name)
	space, ok := n.(*namespace)
	if !ok {
		r.fail("%s.%s is set, but %s is no namespace", t.name, t.attr, t.name)
	}
	r.spend(1)
	space.set(t.attr, v)
}

func (r *renderer) loop(l *loop) {
	r.line = l.line
	items := r.iterate(r.eval(l.over))
	if l.filter != nil {
		var kept []value
		for _, v := range items {
			r.step()
			r.nested(r.scope, func() {
				r.bind(l.names, v)
				if truthy(r.eval(l.filter)) {
					kept = append(kept, v)
				}
			})
		}
		items = kept
	}
	if len(items) == 0 {
		r.nested(r.scope, func() { r.run(l.nothing) })
		return
	}
	// What loop says is of the iteration under way.
	at := 0
	about := &loopState{items: items, at: &at}
	for i, v := range items {
		r.step()
		at = i
		f := onward
		r.nested(r.scope, func() {
			r.scope.names["loop"] = about
			r.bind(l.names, v)
			f = r.run(l.body)
		})
		if f == broken {
			break
		}
	}
}

// loopState is the variable loop.
type loopState struct {
	items []value
	at    *int
}

func (l *loopState) get(name string) (value, bool) {
	n, i := int64(len(l.items)), int64(*l.at)
	switch name {
	case "index":
		return i + 1, true
	case "index0":
		return i, true
	case "revindex":
		return n - i, true
	case "revindex0":
		return n - i - 1, true
	case "first":
		return i == 0, true
	case "last":
		return i == n-1, true
	case "length":
		return n, true
	case "depth":
		return int64(1), true
	case "depth0":
		return int64(0), true
	case "previtem":
		if i > 0 {
			return l.items[i-1], true
		}
		return undefined{"loop.previtem"}, true
	case "nextitem":
		if i+1 < n {
			return l.items[i+1], true
		}
		return undefined{"loop.nextitem"}, true
	case "cycle":
		return &function{"cycle", func(r *renderer, a *arguments) value {
			if len(a.rest) == 0 {
				r.fail("cycle needs values")
			}
			return a.rest[i%int64(len(a.rest))]
		}}, true
	}
	return nil, false
}

// bind gives names the elements of a value, or one name all of it.
func (r *renderer) bind(names []string, v value) {
	if len(names) == 1 {
		r.scope.names[names[0]] = v
		return
	}
	items := r.iterate(v)
	if len(items) != len(names) {
		r.fail("%d values for %d names", len(items), len(names))
	}
	for i, name := range names {
		r.scope.names[name] = items[i]
	}
}

// macro is a function that renders statements.
func (r *renderer) macro(m macro) *function {
	at := r.scope
	return &function{m.name, func(r *renderer, a *arguments) value {
		return r.captured(func() {
			r.nested(at, func() {
				first := len(m.params) - len(m.defaults)
				for i, name := range m.params {
					v, ok := a.take(name)
					if !ok && i >= first {
						v = r.eval(m.defaults[i-first])
					} else if !ok {
						v = undefined{name}
					}
					r.scope.names[name] = v
				}
				if a.caller != nil {
					r.scope.names["caller"] = a.caller
				}
				a.done(r)
				r.run(m.body)
			})
		})
	}}
}

// iterate is what a loop goes over.
func (r *renderer) iterate(v value) []value {
	switch x := v.(type) {
	case undefined:
		return nil
	case string:
		r.spendItems(utf8.RuneCountInString(x))
		return runes(x)
	case *list:
		return x.items
	case *Dict:
		return x.keys
	}
	r.fail("%s is no sequence", typeName(v))
	return nil
}
