package jinja

import (
	"fmt"
	"math"
	"slices"
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

func (r *renderer) binary(b binary) value {
	x := r.eval(b.a)
	switch b.op { // which may not need the other operand
	case "and":
		if !truthy(x) {
			return x
		}
		return r.eval(b.b)
	case "or":
		if truthy(x) {
			return x
		}
		return r.eval(b.b)
	}
	y := r.eval(b.b)
	r.line = b.line
	if b.op == "~" {
		return r.made(r.str(x) + r.str(y))
	}
	switch p := x.(type) {
	case string:
		switch q := y.(type) {
		case string:
			if b.op == "+" {
				r.spend(len(p) + len(q))
				return p + q
			}
		case int64:
			if b.op == "*" {
				return r.repeated(p, q)
			}
		}
	case *list:
		if q, ok := y.(*list); ok && b.op == "+" && p.tuple == q.tuple {
			r.spendItems(len(p.items) + len(q.items))
			return &list{slices.Concat(p.items, q.items), p.tuple}
		}
	case int64:
		if q, ok := y.(string); ok && b.op == "*" {
			return r.repeated(q, p)
		}
	}
	if i, ok := integer(x); ok {
		if j, ok := integer(y); ok {
			return r.integers(b.op, i, j)
		}
	}
	p, ok := asFloat(x)
	q, also := asFloat(y)
	if !ok || !also {
		r.fail("%s of %s and %s", b.op, typeName(x), typeName(y))
	}
	return r.floats(b.op, p, q)
}

func (r *renderer) repeated(s string, n int64) string {
	if n <= 0 || s == "" {
		return ""
	}
	if n > maxMade {
		n = maxMade + 1
	}
	r.spend(int(min(n*int64(len(s)), maxMade+1)))
	return strings.Repeat(s, int(n))
}

func (r *renderer) integers(op string, i, j int64) value {
	var k int64
	ok := true
	switch op {
	case "+":
		k = i + j
		ok = (k > i) == (j > 0)
	case "-":
		k = i - j
		ok = (k < i) == (j > 0)
	case "*":
		k = i * j
		ok = i == 0 || k/i == j && !(i == -1 && j == math.MinInt64)
	case "//", "%":
		if j == 0 {
			r.fail("division by zero")
		}
		if j == -1 {
			if op == "%" {
				return int64(0)
			}
			return r.integers("-", 0, i)
		}
		k = i / j
		rest := i % j
		if rest != 0 && (rest < 0) != (j < 0) { // as Python rounds
			k, rest = k-1, rest+j
		}
		if op == "%" {
			return rest
		}
	case "**":
		if j < 0 {
			return r.floats(op, float64(i), float64(j))
		}
		k = 1
		for ; j > 0 && ok; j-- {
			r.step()
			next := k * i
			ok = i == 0 || next/i == k
			if k = next; i == 0 || i == 1 {
				break
			}
		}
	default:
		return r.floats(op, float64(i), float64(j))
	}
	if !ok {
		r.fail("%s of numbers is beyond 64 bits", op)
	}
	return k
}

func (r *renderer) floats(op string, p, q float64) value {
	if q == 0 && (op == "/" || op == "//" || op == "%") {
		r.fail("division by zero")
	}
	switch op {
	case "+":
		return p + q
	case "-":
		return p - q
	case "*":
		return p * q
	case "/":
		return p / q
	case "//":
		return math.Floor(p / q)
	case "%":
		rest := math.Mod(p, q)
		if rest != 0 && (rest < 0) != (q < 0) {
			rest += q
		}
		return rest
	}
	return math.Pow(p, q)
}

func (r *renderer) compare(c compare) value {
	x := r.eval(c.x)
	for i, op := range c.ops {
		y := r.eval(c.with[i])
		r.line = c.line
		ok := false
		switch op {
		case "==":
			ok = r.equal(x, y, 0)
		case "!=":
			ok = !r.equal(x, y, 0)
		case "in":
			ok = r.contains(y, x)
		case "not in":
			ok = !r.contains(y, x)
		default:
			d := r.order(x, y)
			ok = op == "<" && d < 0 || op == "<=" && d <= 0 || op == ">" && d > 0 || op == ">=" && d >= 0
			if d == unordered {
				ok = false
			}
		}
		if !ok {
			return false
		}
		x = y
	}
	return true
}

const unordered = 2 // NaN and anything

// order is negative, 0 or positive, as x is less than, equal to or greater than y.
func (r *renderer) order(x, y value) int {
	if p, ok := asFloat(x); ok {
		if q, ok := asFloat(y); ok {
			switch {
			case p < q:
				return -1
			case p > q:
				return 1
			case p == q:
				return 0
			}
			return unordered
		}
	}
	if p, ok := x.(string); ok {
		if q, ok := y.(string); ok {
			r.scan(len(p))
			return strings.Compare(p, q)
		}
	}
	if p, ok := x.(*list); ok {
		if q, ok := y.(*list); ok && p.tuple == q.tuple {
			r.deeper()
			defer func() { r.depth-- }()
			for i := range min(len(p.items), len(q.items)) {
				r.step()
				if !r.equal(p.items[i], q.items[i], 0) {
					return r.order(p.items[i], q.items[i])
				}
			}
			return len(p.items) - len(q.items)
		}
	}
	r.fail("%s and %s have no order", typeName(x), typeName(y))
	return 0
}

func (r *renderer) contains(in, x value) bool {
	switch y := in.(type) {
	case string:
		s, ok := x.(string)
		if !ok {
			r.fail("%s in a string", typeName(x))
		}
		r.scan(len(y))
		return strings.Contains(y, s)
	case *Dict:
		_, ok := y.get(x)
		return ok
	case *namespace:
		_, ok := y.get(x)
		return ok
	}
	for _, v := range r.iterate(in) {
		r.step()
		if r.equal(v, x, 0) {
			return true
		}
	}
	return false
}

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
