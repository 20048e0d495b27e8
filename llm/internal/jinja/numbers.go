package jinja

import (
	"math"
	"strconv"
	"strings"
)

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
