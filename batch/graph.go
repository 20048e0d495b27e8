package batch

import (
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// graph is a program while its steps are put together. Each step is in a unit, which will be one step; units run in the order of
// their places, which at first are the steps' own.
type graph struct {
	p       *program.Program
	fuser   program.Fuser  // nil: the device knows no expressions
	steps   []program.Step // those of the program, or, changed, what they have become
	changed bool
	units   []unit  // by place; without any step where one has gone into another
	place   []int32 // by step: the place of its unit, through the places that this one went into
	maker   []int32 // by slot: the step that computes it, −1 for none
	first   []int32 // by slot: where in reader those that use it begin
	reader  []int32 // steps
	updater []int32 // by slot: the step that updates it in place, −1 for none
	asked   []bool  // by slot: wanted for itself, see compiler.asked

	// Room for lists: see collect.
	round    int32
	inRound  []int32 // by step: the round that it was a member in
	numbered []int32 // by slot: the round that it got its number in
	number   []int
	operands []program.Slot
	results  []program.Slot
}

// unit is what becomes one step: a step with expressions before and behind it, or only an expression, behind.
type unit struct {
	core   int32 // the step that is no expression, or none
	before []int32
	behind []int32 // steps in their order
	gone   bool    // it went into another

	// For an expression:
	widest program.Slot             // a value of its shape
	ports  [maxBuffers]program.Slot // operands, then results that are wanted outside
	in, io int                      // number of operands, and of both
}

const none = -1

func newGraph(c *compiler, p *program.Program) *graph {
	g := &graph{p: p, steps: p.Steps, units: make([]unit, len(p.Steps)), place: make([]int32, len(p.Steps)),
		maker: make([]int32, len(p.Values)), first: make([]int32, len(p.Values)+1), updater: updated(p), asked: c.asked(p),
		inRound: make([]int32, len(p.Steps)), numbered: make([]int32, len(p.Values)), number: make([]int, len(p.Values))}
	g.fuser, _ = c.device.(program.Fuser)
	for i := range g.maker {
		g.maker[i] = none
	}
	singles := make([]int32, len(g.steps))
	for i := range g.steps {
		s := &g.steps[i]
		g.place[i], singles[i] = int32(i), int32(i)
		g.units[i].core = int32(i)
		if g.elementwise(s) {
			u := &g.units[i]
			*u = unit{core: none, behind: singles[i : i+1 : i+1], widest: s.Out[0]}
			for _, in := range s.In {
				u.use(in)
			}
			u.result(s.Out[0])
		}
		for _, out := range s.Out {
			g.maker[out] = int32(i)
		}
		for _, in := range s.In {
			g.first[in+1]++
		}
	}
	for i := range p.Values {
		g.first[i+1] += g.first[i]
	}
	g.reader = make([]int32, g.first[len(p.Values)])
	at := slices.Clone(g.first)
	for i := range g.steps {
		for _, in := range g.steps[i].In {
			g.reader[at[in]] = int32(i)
			at[in]++
		}
	}
	return g
}

// elementwise reports whether a step can be part of an expression.
func (g *graph) elementwise(s *program.Step) bool {
	if !(s.Entry.Class.Elementwise() && s.Entry.F != nil) && s.Entry != catalogue.BiasActivation || len(s.Out) != 1 {
		return false
	}
	single := func(v program.Slot) bool { return g.p.Values[v].DType != compute.Float32 }
	return !slices.ContainsFunc(s.In, single) && !single(s.Out[0])
}

// at returns the place of the unit that a step is in.
func (g *graph) at(step int32) int32 {
	for g.place[step] != step {
		g.place[step] = g.place[g.place[step]]
		step = g.place[step]
	}
	return step
}

// readers are the steps that use a value.
func (g *graph) readers(v program.Slot) []int32 { return g.reader[g.first[v]:g.first[v+1]] }

// expression reports whether the unit at a place is nothing else.
func (g *graph) expression(at int32) bool { return !g.units[at].gone && g.units[at].core == none }

// only reports whether nothing but the unit at a place uses a value.
func (g *graph) only(v program.Slot, at int32) bool {
	if g.asked[v] {
		return false
	}
	for _, r := range g.readers(v) {
		if g.at(r) != at {
			return false
		}
	}
	return true
}

// use makes a value an operand of an expression, once; result makes it a result. They report whether there is room.
func (u *unit) use(v program.Slot) bool {
	if slices.Contains(u.ports[:u.in], v) {
		return true
	}
	ok := u.result(v)
	u.in = u.io
	return ok
}

func (u *unit) result(v program.Slot) bool {
	if u.io == maxBuffers {
		return false
	}
	u.ports[u.io] = v
	u.io++
	return true
}

func (u *unit) operands() []program.Slot { return u.ports[:u.in] }
func (u *unit) results() []program.Slot  { return u.ports[u.in:u.io] }

// check calls in for what a unit uses and out for what it computes, until one returns false, and reports whether none did.
func (g *graph) check(u *unit, in, out func(v program.Slot) bool) bool {
	all := func(values []program.Slot, ok func(v program.Slot) bool) bool {
		return !slices.ContainsFunc(values, func(v program.Slot) bool { return !ok(v) })
	}
	if u.core == none {
		return all(u.operands(), in) && all(u.results(), out)
	}
	for _, list := range [][]int32{u.before, u.behind, {u.core}} {
		for _, s := range list {
			if !all(g.steps[s].In, in) || !all(g.steps[s].Out, out) {
				return false
			}
		}
	}
	return true
}

// manyReaders bounds the search for one of a value that stands in the way.
const manyReaders = 64

// order returns the place where units at a and b can run as one, if at one of the two: at the later, if none between uses what the
// earlier computes or updates what it uses; at the earlier, if none between computes what the later uses. So every unit comes
// after those whose results it uses, and no cycle can arise.
func (g *graph) order(a, b int32) (int32, bool) {
	a, b = min(a, b), max(a, b)
	between := func(step int32) bool {
		if step == none {
			return false
		}
		at := g.at(step)
		return a < at && at < b
	}
	unread := func(v program.Slot) bool {
		readers := g.readers(v)
		return len(readers) <= manyReaders && !slices.ContainsFunc(readers, between)
	}
	if g.check(&g.units[a], func(v program.Slot) bool { return !between(g.updater[v]) }, unread) {
		return b, true
	}
	return a, g.check(&g.units[b], func(v program.Slot) bool { return !between(g.maker[v]) }, func(program.Slot) bool { return true })
}

// join makes one unit of those at a and b, at one of these places.
func (g *graph) join(a, b, at int32, u unit) {
	gone := a + b - at
	g.place[gone] = at
	g.units[at], g.units[gone] = u, unit{core: none, gone: true}
}

// program returns the program of the units.
func (g *graph) program() *program.Program {
	q := *g.p
	q.Steps = make([]program.Step, 0, len(g.steps))
	for i := range g.units {
		if !g.units[i].gone {
			q.Steps = append(q.Steps, g.build(&g.units[i]))
		}
	}
	return &q
}
