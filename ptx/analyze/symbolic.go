package analyze

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// product is a·b or a·b + c.
func (m *machine) product(in *ir.Instr, a []*vec) *vec {
	if in.Has(ir.Hi) {
		return nil
	}
	var p *vec
	switch {
	case a[1].isConst():
		p = scale(a[0], a[1].c)
	case a[0].isConst():
		p = scale(a[1], a[0].c)
	case a[0].level() == perBlock && a[1].level() == perBlock:
		p = m.opaque("·", a[0], a[1])
	default:
		// (c + s)·(d + r) where only one factor differs from thread to thread: c·(d + r) + s·(d + r), with s·r as a symbol.
		x, y := a[0], a[1]
		if x.level() == perBlock {
			x, y = y, x
		}
		if y.level() > perBlock {
			return nil
		}
		p = scale(y, x.c)
		for _, t := range x.terms {
			if t.sym.level != perBlock {
				return nil
			}
			p = combine(p, scale(m.opaque("·", of(t.sym), y), t.k), 1, 1)
		}
	}
	if len(a) == 3 {
		p = combine(p, a[2], 1, 1)
	}
	return p
}

// quotient is a/n where all symbols' factors are multiples of n.
func (m *machine) quotient(a *vec, n int64) *vec {
	out := &vec{c: zip(a.c, []int64{n}, func(x, n int64) int64 { return (x - ((x%n)+n)%n) / n })}
	for _, t := range a.terms {
		for _, k := range t.k {
			if k%n != 0 {
				return nil
			}
		}
		out.terms = append(out.terms, term{t.sym, zip(t.k, []int64{n}, func(x, n int64) int64 { return x / n })})
	}
	return out
}

// lowBits is a mod n, a power of two, where all symbols' factors are multiples of it.
func lowBits(a *vec, n int64) *vec {
	if a.aligned()%n != 0 {
		return nil
	}
	return &vec{c: zip(a.c, []int64{n - 1}, func(x, y int64) int64 { return x & y })}
}

// bitwise is a bit operation of a sum of symbols and a number whose bits lie below what the symbols are multiples of.
func bitwise(op ir.Op, a, b *vec) *vec {
	if a.isConst() {
		a, b = b, a
	}
	if !b.isConst() {
		return nil
	}
	low := a.aligned() - 1
	if op == "and" {
		keep, ok := b.scalar()
		switch {
		case !ok:
			for _, x := range b.c {
				if x&^low != 0 {
					return nil
				}
			}
			return &vec{c: zip(a.c, b.c, func(x, y int64) int64 { return x & y })}
		case keep >= 0 && keep&^low == 0:
			return &vec{c: zip(a.c, b.c, func(x, y int64) int64 { return x & y })}
		case keep < 0 && ^keep&^low == 0: // clears low bits
			return &vec{terms: a.terms, c: zip(a.c, b.c, func(x, y int64) int64 { return x & y }), generic: a.generic}
		case keep > 0 && wholeIndex(keep|low) && slices.Min(a.c) >= 0: // clears low bits, and high ones that a shift has cleared
			return &vec{terms: a.terms, c: zip(a.c, b.c, func(x, y int64) int64 { return x & y }), generic: a.generic}
		}
		return nil
	}
	for _, x := range b.c {
		if x&^low != 0 {
			return nil
		}
	}
	f := func(x, y int64) int64 { return x ^ y }
	if op == "or" {
		f = func(x, y int64) int64 { return x | y }
	}
	return &vec{terms: a.terms, c: zip(a.c, b.c, f), generic: a.generic}
}

// wholeIndex tells whether a mask keeps all that an index has: compilers make (i >> 5) << 4 to i >> 1 & 0x7ffffff0.
func wholeIndex(mask int64) bool { return mask&(mask+1) == 0 && mask >= 1<<24-1 }

// logic is an operation on predicates.
func (m *machine) logic(in *ir.Instr, a []*vec) *vec {
	if in.Op == "not" && len(a) == 1 {
		return combine(constant(1), a[0], 1, -1)
	}
	if len(a) != 2 {
		return nil
	}
	return m.both(in.Op, a)
}

// both is and, or, xor of two predicates. Where one is known, in some threads, the result is known or the other.
func (m *machine) both(op ir.Op, a []*vec) *vec {
	for n := range 2 {
		if !a[n].isConst() {
			continue
		}
		yes := make([]bool, m.threads)
		for t := range yes {
			yes[t] = at(a[n].c, t) != 0
		}
		switch op {
		case "and":
			return pick(yes, a[1-n], constant(0))
		case "or":
			return pick(yes, constant(1), a[1-n])
		case "xor":
			return pick(yes, combine(constant(1), a[1-n], 1, -1), a[1-n])
		}
	}
	v := m.opaque(string(op), a...)
	if by, strict := m.decision(a[0]); by != 0 && op != "xor" {
		if other, strict2 := m.decision(a[1]); other == by {
			v.only().decides, v.only().strict = by, strict || strict2
		}
	}
	for _, x := range a {
		if s := x.only(); s != nil && op == "and" {
			v.only().few = v.only().few || s.few
		}
	}
	return v
}

// comparisons are those of setp, as one of three with a sign.
var comparisons = map[ir.Mod]struct {
	name string
	not  bool
}{"lt": {"<", false}, "lo": {"<", false}, "ge": {"<", true}, "hs": {"<", true}, "le": {"<=", false}, "ls": {"<=", false},
	"gt": {"<=", true}, "hi": {"<=", true}, "eq": {"=", false}, "ne": {"=", true}}

// compared is setp of integers, with a third operand or without.
func (m *machine) compared(in *ir.Instr, a []*vec) *vec {
	v := m.compare(in, a[0], a[1])
	if v == nil {
		v = m.opaque(in.Opcode(), a[:2]...)
	}
	m.noteDecision(v, a[0], a[1], in.First("eq", "ne", "equ", "neu") != "")
	if len(a) == 2 {
		return v
	}
	return m.both(ir.Op(in.First("and", "or", "xor")), []*vec{v, a[2]})
}

// compare is a comparison of integers.
func (m *machine) compare(in *ir.Instr, a, b *vec) *vec {
	c, ok := comparisons[in.First("lt", "lo", "ge", "hs", "le", "ls", "gt", "hi", "eq", "ne")]
	if !ok {
		return nil
	}
	if in.Type(0).IsFloat() {
		if c.name != "=" {
			return nil
		}
		v := m.opaque("=f", a, b)
		v.only().few = v.level() > perBlock
		if c.not {
			return combine(constant(1), v, 1, -1)
		}
		return v
	}
	if n, known := b.scalar(); known && a.truth != nil && c.name == "=" && (a.yes == n || a.no == n) { // a predicate again
		if (a.yes == n) != c.not {
			return a.truth
		}
		return combine(constant(1), a.truth, 1, -1)
	}
	d := combine(a, b, 1, -1)
	if d.isConst() {
		test := map[string]func(x, _ int64) int64{
			"<": func(x, _ int64) int64 { return bit(x < 0) }, "<=": func(x, _ int64) int64 { return bit(x <= 0) },
			"=": func(x, _ int64) int64 { return bit(x == 0) }}[c.name]
		v := &vec{c: zip(d.c, zero, test)}
		if c.not {
			return combine(constant(1), v, 1, -1)
		}
		return v
	}
	if in.Op == "setp" && in.Type(0).Class() == ir.Unsigned && c.name == "<" {
		if n, known := b.scalar(); known && n == 0 {
			return constant(bit(c.not)) // nothing is less than 0
		}
	}
	v := m.opaque(c.name, d)
	s := v.only()
	s.few = s.few || c.name == "=" && d.level() > perBlock
	if c.not {
		return combine(constant(1), v, 1, -1)
	}
	return v
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
