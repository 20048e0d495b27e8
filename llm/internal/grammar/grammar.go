// Package grammar says which tokens may come next in a text that has a form, such as that of a JSON schema.
//
// A [Grammar] is rules over bytes, which [Schema] makes. A [Matcher] follows one text: its state is the set of places in the rules where
// the text may be, each with the rules to return to. States are made when a text first comes to them and kept with their successors, so
// that to look at all tokens of a vocabulary takes one step in a table for each byte.
package grammar

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

// symbol is a part of an alternative of a rule.
type symbol struct {
	kind  kind
	rule  int  // of a reference
	class *set // of a byte
}

type kind uint8

const (
	end kind = iota // of an alternative
	reference
	class
)

// set is a set of bytes.
type set [4]uint64

func (s *set) add(from, to byte) {
	for b := int(from); b <= int(to); b++ {
		s[b/64] |= 1 << (b % 64)
	}
}

func (s *set) has(b byte) bool { return s[b/64]>>(b%64)&1 == 1 }

// Grammar is rules over bytes. It is not changed once it is made.
type Grammar struct {
	symbols []symbol
	rules   [][]int // where the alternatives of each begin; the first rule is that of a text
}

const mostSymbols = 1 << 17 // a limit to what a schema from a stranger may take

var errTooLarge = fmt.Errorf("the schema takes more than %d symbols: %w", mostSymbols, compute.ErrTooLarge)

// builder adds rules to a grammar. Its methods return sequences of symbols.
type builder struct {
	Grammar
	err error
}

func (b *builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// rule makes room for a rule, whose alternatives are set later.
func (b *builder) rule() int {
	b.rules = append(b.rules, nil)
	return len(b.rules) - 1
}

func (b *builder) define(rule int, alternatives ...[]symbol) {
	for _, a := range alternatives {
		if len(b.symbols)+len(a) >= mostSymbols {
			b.fail(errTooLarge)
			return
		}
		b.rules[rule] = append(b.rules[rule], len(b.symbols))
		b.symbols = append(append(b.symbols, a...), symbol{})
	}
}

func refer(rule int) []symbol { return []symbol{{kind: reference, rule: rule}} }

// any is one of some alternatives.
func (b *builder) any(alternatives ...[]symbol) []symbol {
	r := b.rule()
	b.define(r, alternatives...)
	return refer(r)
}

func literal(text string) []symbol {
	out := make([]symbol, len(text))
	for i := range out {
		out[i] = bytes(text[i : i+1])
	}
	return out
}

// bytes is one of some bytes.
func bytes(of string) symbol {
	s := &set{}
	for i := range len(of) {
		s.add(of[i], of[i])
	}
	return symbol{kind: class, class: s}
}

// span is a byte from one to another.
func span(from, to byte) symbol {
	s := &set{}
	s.add(from, to)
	return symbol{kind: class, class: s}
}

func join(parts ...[]symbol) []symbol {
	var out []symbol
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// repeat is x from least to most times, or without limit if most is negative.
func (b *builder) repeat(x []symbol, least, most int) []symbol {
	if least > mostSymbols || most > mostSymbols || len(x)*max(least, most, 1) > mostSymbols {
		b.fail(errTooLarge)
		return nil
	}
	var out []symbol
	for range least {
		out = append(out, x...)
	}
	if most < 0 {
		r := b.rule()
		b.define(r, nil, join(x, refer(r)))
		return append(out, refer(r)...)
	}
	var rest []symbol
	for range most - least {
		rest = b.any(nil, join(x, rest))
	}
	return append(out, rest...)
}

// check reports a rule that begins with itself, which no text would end.
func (g *Grammar) check() error {
	empty := make([]bool, len(g.rules))
	for changed := true; changed; {
		changed = false
		for r := range g.rules {
			if !empty[r] && g.leads(r, empty, func(int) {}) {
				empty[r], changed = true, true
			}
		}
	}
	const begun, done = 1, 2
	seen := make([]int, len(g.rules))
	var visit func(r int) error
	visit = func(r int) (err error) {
		seen[r] = begun
		g.leads(r, empty, func(to int) {
			switch {
			case err != nil || seen[to] == done:
			case seen[to] == begun:
				err = fmt.Errorf("a reference leads to itself: %w", compute.ErrArgument)
			default:
				err = visit(to)
			}
		})
		seen[r] = done
		return err
	}
	for r := range g.rules {
		if seen[r] == 0 {
			if err := visit(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// leads calls f with the rules that a rule may begin with, and reports whether it may be empty.
func (g *Grammar) leads(rule int, empty []bool, f func(rule int)) bool {
	may := false
	for _, at := range g.rules[rule] {
		for ; g.symbols[at].kind == reference; at++ {
			f(g.symbols[at].rule)
			if !empty[g.symbols[at].rule] {
				break
			}
		}
		may = may || g.symbols[at].kind == end
	}
	return may
}
