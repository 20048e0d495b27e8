package jinja

import (
	"slices"
	"strings"
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
