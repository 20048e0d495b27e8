package jinja

import "strings"

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
