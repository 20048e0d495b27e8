package rewrite

import (
	"slices"

	"github.com/wavelane/wavelane/internal/program"
)

// epilogues makes expressions of the shape of a result, which is used by nothing else, epilogues of the step that computes it.
func (g *graph) epilogues() {
	for i := range g.units {
		at := int32(i)
		for at != none {
			at = g.epilogue(at)
		}
	}
}

// epilogue adds an expression to the epilogue of a unit, and returns the index that the unit has then, or none if there is nothing to
// add.
func (g *graph) epilogue(at int32) int32 {
	u := &g.units[at]
	if g.device == nil || u.gone || u.core == none || !g.steps[u.core].Entry.TakesEpilogue() || len(g.steps[u.core].Out) != 1 {
		return none
	}
	result := g.steps[u.core].Out[0]
	if len(u.epilogue) > 0 {
		_, out := g.collect(u.epilogue)
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
	next.epilogue = merged(u.epilogue, g.units[b].epilogue)
	if !g.agrees(&next) {
		return none
	}
	g.join(at, b, to, next)
	return to
}

// prologues makes expressions that only the first operand of one step uses prologues of that step.
func (g *graph) prologues() {
	for i := range g.units {
		at := int32(i)
		for at != none {
			at = g.prologue(at)
		}
	}
}

// prologue adds an expression to the prologue of a unit, and returns the index that the unit has then, or none if there is nothing to
// add.
func (g *graph) prologue(at int32) int32 {
	u := &g.units[at]
	if g.device == nil || u.gone || u.core == none || !g.steps[u.core].Entry.TakesPrologue() {
		return none
	}
	x := g.steps[u.core].In[0]
	operands := []program.Slot{x}
	if len(u.prologue) > 0 {
		in, _ := g.collect(u.prologue)
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
		next.prologue = merged(g.units[a].epilogue, u.prologue)
		if !g.agrees(&next) {
			continue
		}
		g.join(a, at, to, next)
		return to
	}
	return none
}

// enters reports whether a unit uses a value only as an operand of its prologue, or, if it has no prologue, as the first operand of its
// core.
func (g *graph) enters(v program.Slot, u *unit) bool {
	in := g.steps[u.core].In
	if slices.Contains(in[1:], v) || len(u.prologue) > 0 && in[0] == v {
		return false
	}
	return !slices.ContainsFunc(u.epilogue, func(m int32) bool { return slices.Contains(g.steps[m].In, v) })
}
