package rewrite

import (
	"slices"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// groups makes expressions of elementwise steps, greedily in one pass over consumers: each joins the expressions that compute its
// operands, the nearest first, and then one that reads the same operand. That is the producer-consumer and multi-output fusion
// of XLA; see Boehm et al., "On Optimizing Operator Fusion Plans for Large-Scale Machine Learning in SystemML", 2018, for why
// finding the best plan is hard. Every union saves reading at least one value and computes none twice, so that none increases memory
// traffic.
//
// The device is asked about the final expressions. If it refuses one, grouping starts over and asks before each union.
func (g *graph) groups() {
	if g.device == nil {
		return
	}
	parent, units := slices.Clone(g.parent), slices.Clone(g.units)
	g.group(func(*unit) bool { return true })
	for i := range g.units {
		if u := &g.units[i]; g.expression(int32(i)) && len(u.epilogue) > 1 && !g.agrees(u) {
			g.parent, g.units = parent, units
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
		step := g.units[i].epilogue[0]
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

// unite makes one expression of two if that is legal, and returns the index of the one that has b's steps.
func (g *graph) unite(a, b int32, agrees func(*unit) bool) int32 {
	if a == b || len(g.units[a].epilogue)+len(g.units[b].epilogue) > maxNodes || !g.fits(a, b) {
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

// union returns the expression of two, with the shape of the second. It has no results if it would need too many buffers.
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
			outside := g.liveOut[v] || slices.ContainsFunc(g.readers(v), func(r int32) bool { return !inside(r) })
			if outside && !u.result(v) {
				return unit{}
			}
		}
	}
	u.epilogue = merged(g.units[a].epilogue, g.units[b].epilogue)
	return u
}

func (g *graph) shape(at int32) []int { return g.p.Values[g.units[at].widest].Shape }

func (g *graph) sameShape(a, b int32) bool { return program.EqualShape(g.shape(a), g.shape(b)) }

// fits reports whether expression a may become part of expression b: they have the same shape, or a is smaller, used by nothing else
// and cheap enough to be computed for each element of b.
func (g *graph) fits(a, b int32) bool { return g.sameShape(a, b) || g.cheap(a, b, g.shape(b)) }

// cheap reports whether expression a, with b as its only user, may be computed for each element of a shape.
func (g *graph) cheap(a, b int32, shape []int) bool {
	u := &g.units[a]
	if len(u.epilogue) > 1 && program.Len(g.shape(a)) != program.Len(shape) {
		return false
	}
	for _, m := range u.epilogue {
		s := &g.steps[m]
		if program.Len(g.shape(a)) != program.Len(shape) && !trivial[s.Entry] {
			return false
		}
		for _, r := range g.readers(s.Out[0]) {
			if at := g.at(r); at != a && at != b {
				return false
			}
		}
		if g.liveOut[s.Out[0]] {
			return false
		}
	}
	common, err := program.Broadcast(g.shape(a), shape)
	return err == nil && program.EqualShape(common, shape)
}

// trivial are functions of one operand that take an instruction or two.
var trivial = map[*program.Entry]bool{catalogue.Neg: true, catalogue.Abs: true, catalogue.Scale: true, catalogue.Clip: true, catalogue.ReLU: true}

// merged merges two ascending lists. It may append to a, whose spare capacity nobody else uses.
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
