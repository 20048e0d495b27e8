package batch

import (
	"slices"

	"github.com/wavelane/wavelane/internal/program"
)

// epilogues puts expressions behind the steps whose result they alone use, in its shape.
func (g *graph) epilogues() {
	for i := range g.units {
		at := int32(i)
		for at != none {
			at = g.epilogue(at)
		}
	}
}

// epilogue lengthens the epilogue of the unit at a place, and returns the place of what it has become; none if it stays.
func (g *graph) epilogue(at int32) int32 {
	u := &g.units[at]
	if g.fuser == nil || u.gone || u.core == none || !g.steps[u.core].Entry.TakesEpilogue() || len(g.steps[u.core].Out) != 1 {
		return none
	}
	result := g.steps[u.core].Out[0]
	if len(u.behind) > 0 {
		_, out := g.collect(u.behind)
		result = out[0]
	}
	readers := g.readers(result)
	if len(readers) == 0 || !g.single(result) {
		return none
	}
	b := g.at(readers[0])
	if b == at || !g.expression(b) || !g.only(result, b) || !program.EqualShape(g.shape(b), g.p.Values[result].Shape) {
		return none
	}
	out := g.units[b].results()
	if len(out) != 1 || !program.EqualShape(g.p.Values[out[0]].Shape, g.shape(b)) {
		return none
	}
	to, ok := g.order(at, b)
	if !ok {
		return none
	}
	next := *u
	next.behind = merged(u.behind, g.units[b].behind)
	if !g.agrees(&next) {
		return none
	}
	g.join(at, b, to, next)
	return to
}

// prologues puts expressions before the row and reduce steps that alone use what they compute, as their first operand.
func (g *graph) prologues() {
	for i := range g.units {
		at := int32(i)
		for at != none {
			at = g.prologue(at)
		}
	}
}

// prologue lengthens the prologue of the unit at a place, and returns the place of what it has become; none if it stays.
func (g *graph) prologue(at int32) int32 {
	u := &g.units[at]
	if g.fuser == nil || u.gone || u.core == none || !g.steps[u.core].Entry.TakesPrologue() {
		return none
	}
	x := g.steps[u.core].In[0]
	operands := []program.Slot{x}
	if len(u.before) > 0 {
		in, _ := g.collect(u.before)
		operands = slices.Clone(in)
	}
	for _, v := range operands {
		if g.maker[v] == none {
			continue
		}
		a := g.at(g.maker[v])
		if a == at || !g.expression(a) || !g.only(v, at) || !g.enters(v, u) {
			continue
		}
		if shape := g.p.Values[x].Shape; !program.EqualShape(g.shape(a), shape) && !g.cheap(a, at, shape) {
			continue
		}
		if len(g.units[a].results()) != 1 {
			continue
		}
		to, ok := g.order(a, at)
		if !ok {
			continue
		}
		next := *u
		next.before = merged(g.units[a].behind, u.before)
		if !g.agrees(&next) {
			continue
		}
		g.join(a, at, to, next)
		return to
	}
	return none
}

// enters reports whether a unit uses a value only as an operand of its prologue, or as the first operand of its step where that
// has none.
func (g *graph) enters(v program.Slot, u *unit) bool {
	in := g.steps[u.core].In
	if slices.Contains(in[1:], v) || len(u.before) > 0 && in[0] == v {
		return false
	}
	return !slices.ContainsFunc(u.behind, func(m int32) bool { return slices.Contains(g.steps[m].In, v) })
}
