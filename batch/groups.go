package batch

import (
	"slices"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// groups makes expressions of elementwise steps, greedily in one pass over consumers: each joins the expressions that compute its
// operands, the nearest first, and then one that reads the same operand. That is the producer-consumer and multi-output fusion
// of XLA; see Boehm et al., "On Optimizing Operator Fusion Plans for Large-Scale Machine Learning in SystemML", 2018, for why
// finding the best plan is hard. Every joining saves reading one value at least, and no value is computed again, so that none
// makes traffic worse.
//
// The device is asked when all is done. If it refuses an expression, all is done again with a question for each joining.
func (g *graph) groups() {
	if g.fuser == nil {
		return
	}
	place, units := slices.Clone(g.place), slices.Clone(g.units)
	g.group(func(*unit) bool { return true })
	for i := range g.units {
		if u := &g.units[i]; g.expression(int32(i)) && len(u.behind) > 1 && !g.agrees(u) {
			g.place, g.units = place, units
			g.group(g.agrees)
			return
		}
	}
}

func (g *graph) group(agrees func(*unit) bool) {
	latest := make([]int32, len(g.p.Values)) // by slot: the last elementwise step that read it
	for i := range latest {
		latest[i] = none
	}
	for i := range g.units {
		if !g.expression(int32(i)) {
			continue
		}
		step := g.units[i].behind[0]
		at := int32(i)
		var from [3]int32
		makers := from[:0]
		for _, in := range g.steps[step].In {
			if m := g.maker[in]; m != none && g.expression(g.at(m)) && !slices.Contains(makers, g.at(m)) {
				makers = append(makers, g.at(m))
			}
		}
		slices.SortFunc(makers, func(a, b int32) int { return int(b - a) })
		for _, m := range makers {
			at = g.unite(g.at(m), at, agrees)
		}
		for _, in := range g.steps[step].In {
			if r := latest[in]; r != none && g.expression(g.at(r)) && g.sameShape(g.at(r), at) {
				at = g.unite(g.at(r), at, agrees)
			}
			latest[in] = step
		}
	}
}

// unite makes one expression of two if that is legal, and returns the place of b's.
func (g *graph) unite(a, b int32, agrees func(*unit) bool) int32 {
	if a == b || len(g.units[a].behind)+len(g.units[b].behind) > maxNodes || !g.fits(a, b) {
		return b
	}
	at, ok := g.order(a, b)
	if !ok {
		return b
	}
	u := g.union(a, b)
	if u.io == 0 || !agrees(&u) {
		return b
	}
	g.join(a, b, at, u)
	return at
}

// union is the expression of two in which the first may lose its shape; without results where it has too many operands.
func (g *graph) union(a, b int32) unit {
	u := unit{core: none, widest: g.units[b].widest}
	inside := func(step int32) bool {
		if step == none {
			return false
		}
		at := g.at(step)
		return at == a || at == b
	}
	for _, part := range []int32{a, b} {
		for _, v := range g.units[part].operands() {
			if !inside(g.maker[v]) && !u.use(v) {
				return unit{}
			}
		}
	}
	for _, part := range []int32{a, b} {
		for _, v := range g.units[part].results() {
			outside := g.asked[v] || slices.ContainsFunc(g.readers(v), func(r int32) bool { return !inside(r) })
			if outside && !u.result(v) {
				return unit{}
			}
		}
	}
	u.behind = merged(g.units[a].behind, g.units[b].behind)
	return u
}

func (g *graph) shape(at int32) []int { return g.p.Values[g.units[at].widest].Shape }

func (g *graph) sameShape(a, b int32) bool { return program.EqualShape(g.shape(a), g.shape(b)) }

// fits reports whether the expression at a, of which the one at b uses a value, may become part of it: they have one shape, or
// a's is a smaller one that nobody else needs and that costs next to nothing to be computed for each element of b's.
func (g *graph) fits(a, b int32) bool { return g.sameShape(a, b) || g.cheap(a, b, g.shape(b)) }

// cheap reports whether the expression at a is one that may be computed again for each element of a shape, by the unit at b, which
// is its only user.
func (g *graph) cheap(a, b int32, shape []int) bool {
	u := &g.units[a]
	if len(u.behind) > 1 && program.Len(g.shape(a)) != program.Len(shape) {
		return false
	}
	for _, m := range u.behind {
		s := &g.steps[m]
		if program.Len(g.shape(a)) != program.Len(shape) && !trivial[s.Entry] {
			return false
		}
		for _, r := range g.readers(s.Out[0]) {
			if at := g.at(r); at != a && at != b {
				return false
			}
		}
		if g.asked[s.Out[0]] {
			return false
		}
	}
	common, err := program.Broadcast(g.shape(a), shape)
	return err == nil && program.EqualShape(common, shape)
}

// trivial are functions of one operand that take an instruction or two.
var trivial = map[*program.Entry]bool{catalogue.Neg: true, catalogue.Abs: true, catalogue.Scale: true, catalogue.Clip: true, catalogue.ReLU: true}

// merged merges two ascending lists; the room behind a is nobody else's.
func merged(a, b []int32) []int32 {
	if len(a) > 0 && len(b) > 0 && a[len(a)-1] < b[0] {
		return append(a, b...)
	}
	out := make([]int32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}
