// Package symbolic computes with integers that are sums of products of names, as dimensions of a model are.
//
// Nil is an integer that is not known, and so is what is made of it, or has become too long to be read.
package symbolic

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Int is an integer: a sum of terms. It is not changed once it is made.
type Int struct{ terms []term } // sorted by key; none for 0

// term is a number times factors.
type term struct {
	number  int64
	factors []factor // sorted by text
}

// factor is a name, or the quotient of an integer and a number, rounded down.
type factor struct {
	text string
	of   *Int // nil for a name
	by   int64
}

// Bounds of what is kept.
const (
	mostTerms   = 8
	mostFactors = 8
	mostText    = 120
	mostNumber  = 1 << 40
)

func (t term) key() string {
	parts := make([]string, len(t.factors))
	for i, f := range t.factors {
		parts[i] = f.text
	}
	return strings.Join(parts, "*")
}

// sum makes an integer of terms, those of the same factors together.
func sum(terms []term) *Int {
	out := &Int{}
	for _, t := range terms {
		key := t.key()
		i, found := slices.BinarySearchFunc(out.terms, key, func(t term, key string) int { return strings.Compare(t.key(), key) })
		if found {
			out.terms[i].number += t.number
		} else {
			out.terms = slices.Insert(out.terms, i, t)
		}
	}
	out.terms = slices.DeleteFunc(out.terms, func(t term) bool { return t.number == 0 })
	if len(out.terms) > mostTerms {
		return nil
	}
	for _, t := range out.terms {
		if len(t.factors) > mostFactors || t.number > mostNumber || t.number < -mostNumber {
			return nil
		}
	}
	if len(out.String()) > mostText {
		return nil
	}
	return out
}

// Of is a number.
func Of(n int64) *Int { return sum([]term{{number: n}}) }

// Named is a name.
func Named(name string) *Int { return sum([]term{{1, []factor{{text: name}}}}) }

// Number returns the number that x is, if it has no names.
func (x *Int) Number() (n int64, ok bool) {
	switch {
	case x == nil:
		return 0, false
	case len(x.terms) == 0:
		return 0, true
	case len(x.terms) == 1 && len(x.terms[0].factors) == 0:
		return x.terms[0].number, true
	}
	return 0, false
}

// Is reports whether x is known to be n.
func (x *Int) Is(n int64) bool {
	v, ok := x.Number()
	return ok && v == n
}

// Same reports whether both are known to be equal.
func (x *Int) Same(y *Int) bool { return x.Minus(y).Is(0) }

// Plus returns x + y.
func (x *Int) Plus(y *Int) *Int {
	if x == nil || y == nil {
		return nil
	}
	return sum(append(slices.Clone(x.terms), y.terms...))
}

// Minus returns x − y.
func (x *Int) Minus(y *Int) *Int { return x.Plus(y.Times(Of(-1))) }

// Times returns x·y.
func (x *Int) Times(y *Int) *Int {
	if x == nil || y == nil {
		return nil
	}
	var terms []term
	for _, a := range x.terms {
		for _, b := range y.terms {
			high, low := bits.Mul64(uint64(max(a.number, -a.number)), uint64(max(b.number, -b.number)))
			if high != 0 || low > mostNumber {
				return nil
			}
			f := append(slices.Clone(a.factors), b.factors...)
			slices.SortFunc(f, func(a, b factor) int { return strings.Compare(a.text, b.text) })
			terms = append(terms, term{a.number * b.number, f})
		}
	}
	return sum(terms)
}

// Over returns x / n, rounded down, for n > 0.
func (x *Int) Over(n int64) *Int {
	if x == nil || n <= 0 {
		return nil
	}
	whole, rest := &Int{}, &Int{}
	for _, t := range x.terms {
		q := floor(t.number, n)
		if len(t.factors) > 0 && t.number%n != 0 {
			q = 0 // h/2 + h/2 is clearer than h + (−h)/2
		}
		whole.terms = append(whole.terms, term{q, t.factors})
		rest.terms = append(rest.terms, term{t.number - q*n, t.factors})
	}
	whole, rest = sum(whole.terms), sum(rest.terms)
	if whole == nil || rest == nil {
		return nil
	}
	if _, ok := rest.Number(); ok { // of 0 ≤ rest < n
		return whole
	}
	// The floor of (ga + c)/gb is that of (a + ⌊c/g⌋)/b.
	g := n
	for _, t := range rest.terms {
		if len(t.factors) > 0 {
			g = gcd(g, t.number)
		}
	}
	if g > 1 {
		return whole.Plus(rest.Over(g).Over(n / g))
	}
	// The floor of (⌊a/b⌋ + c)/n is that of (a + bc)/(bn).
	if last := len(rest.terms) - 1; last == 0 || last == 1 && len(rest.terms[0].factors) == 0 {
		t := rest.terms[last]
		if len(t.factors) == 1 && t.number == 1 && t.factors[0].of != nil && t.factors[0].by <= mostNumber/n {
			f := t.factors[0]
			return whole.Plus(f.of.Plus(rest.Minus(sum([]term{t})).Times(Of(f.by))).Over(f.by * n))
		}
	}
	text := rest.String()
	if len(rest.terms) > 1 {
		text = "(" + text + ")"
	}
	return whole.Plus(sum([]term{{1, []factor{{fmt.Sprintf("floor(%s/%d)", text, n), rest, n}}}}))
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// OverExact returns x / y where y is known to divide x and, but for a number, each term of x.
func (x *Int) OverExact(y *Int) *Int {
	if x == nil || y == nil || len(y.terms) != 1 {
		return nil
	}
	d := y.terms[0]
	var terms []term
	for _, t := range x.terms {
		left := slices.Clone(t.factors)
		for _, f := range d.factors {
			i := slices.IndexFunc(left, func(g factor) bool { return g.text == f.text })
			if i < 0 {
				return nil
			}
			left = slices.Delete(left, i, i+1)
		}
		terms = append(terms, term{t.number, left})
	}
	return sum(terms).Over(d.number)
}

// At returns the number that x is where names are numbers. It is for tests: x must be known, and small numbers do not overflow.
func (x *Int) At(names map[string]int64) int64 {
	n := int64(0)
	for _, t := range x.terms {
		p := t.number
		for _, f := range t.factors {
			if f.of == nil {
				p *= names[f.text]
			} else {
				p *= floor(f.of.At(names), f.by)
			}
		}
		n += p
	}
	return n
}

// floor is a / n, rounded down, for n > 0.
func floor(a, n int64) int64 {
	q := a / n
	if a%n < 0 {
		q--
	}
	return q
}

// String writes sums with + and -, products with * and quotients with floor(x/n); what is not known is "?".
func (x *Int) String() string {
	if x == nil {
		return "?"
	}
	var b strings.Builder
	terms := slices.Clone(x.terms)
	if len(terms) > 1 && len(terms[0].factors) == 0 { // numbers last
		terms = append(terms[1:], terms[0])
	}
	for i, t := range terms {
		n := t.number
		switch {
		case i > 0 && n < 0:
			b.WriteString(" - ")
			n = -n
		case i > 0:
			b.WriteString(" + ")
		case n == -1 && len(t.factors) > 0:
			b.WriteString("-")
			n = 1
		}
		if n != 1 || len(t.factors) == 0 {
			fmt.Fprint(&b, n)
			if len(t.factors) > 0 {
				b.WriteByte('*')
			}
		}
		for k, f := range t.factors {
			if k > 0 {
				b.WriteByte('*')
			}
			if f.of == nil && (len(terms) > 1 || len(t.factors) > 1 || n != 1) && strings.ContainsAny(f.text, "+-*/() ") {
				fmt.Fprintf(&b, "(%s)", f.text)
			} else {
				b.WriteString(f.text)
			}
		}
	}
	if len(terms) == 0 {
		return "0"
	}
	return b.String()
}
