package jinja

import (
	"math"
	"slices"
	"strings"
)

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
