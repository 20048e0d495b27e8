package rewrite

import (
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// graph is a program while its steps are joined. Each step is in a unit, which will become one step. Units run in the order of their
// indices; at first every step is the unit of its own index.
type graph struct {
	p       *program.Program
	device  program.Executor // nil: there are no expressions
	steps   []program.Step   // those of the program until changed is set, then a copy
	changed bool
	units   []unit
	parent  []int32 // by step: union-find parent of its unit
	maker   []int32 // by slot: the step that computes it, or none
	first   []int32 // by slot: where its readers begin in reader
	reader  []int32 // steps
	updater []int32 // by slot: the step that updates it in place, or none
	liveOut []bool  // by slot: see liveOut

	// Buffers of collect.
	round    int32
	inRound  []int32 // by step: the last round in which it was a member
	numbered []int32 // by slot: the last round in which it got a number
	number   []int
	operands []program.Slot
	results  []program.Slot
}

// unit is a set of steps that becomes one step: a core with an expression before it and one after it, or one expression alone. The
// latter has no core and its steps are in epilogue.
type unit struct {
	core     int32   // the step that is in no expression, or none
	prologue []int32 // steps in order
	epilogue []int32
	gone     bool // joined another unit

	// For an expression:
	widest program.Slot             // a value of its shape
	ports  [maxBuffers]program.Slot // operands, then results that are wanted outside
	in, io int                      // number of operands, and of both
}

const none = -1

func newGraph(p *program.Program, device program.Executor) *graph {
	g := &graph{p: p, device: device, steps: p.Steps, units: make([]unit, len(p.Steps)), parent: make([]int32, len(p.Steps)),
		maker: make([]int32, len(p.Values)), first: make([]int32, len(p.Values)+1), updater: updated(p), liveOut: liveOut(p),
		inRound: make([]int32, len(p.Steps)), numbered: make([]int32, len(p.Values)), number: make([]int, len(p.Values))}
	for i := range g.maker {
		g.maker[i] = none
	}
	singles := make([]int32, len(g.steps))
	for i := range g.steps {
		s := &g.steps[i]
		g.parent[i], singles[i] = int32(i), int32(i)
		g.units[i].core = int32(i)
		if g.elementwise(s) {
			u := &g.units[i]
			*u = unit{core: none, epilogue: singles[i : i+1 : i+1], widest: s.Out[0]}
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

// at returns the index of the unit that a step is in.
func (g *graph) at(step int32) int32 {
	for g.parent[step] != step {
		g.parent[step] = g.parent[g.parent[step]]
		step = g.parent[step]
	}
	return step
}

// readers returns the steps that use a value.
func (g *graph) readers(v program.Slot) []int32 { return g.reader[g.first[v]:g.first[v+1]] }

// expression reports whether a unit is one expression alone.
func (g *graph) expression(at int32) bool { return !g.units[at].gone && g.units[at].core == none }

// only reports whether a value is used by one unit and by nothing else.
func (g *graph) only(v program.Slot, at int32) bool {
	if g.liveOut[v] {
		return false
	}
	for _, r := range g.readers(v) {
		if g.at(r) != at {
			return false
		}
	}
	return true
}

// use adds an operand to an expression unless it has it, and result adds a result. They report whether maxBuffers permits it.
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

// check reports whether in holds for all values that a unit uses, and out for all that it computes.
func (g *graph) check(u *unit, in, out func(v program.Slot) bool) bool {
	all := func(values []program.Slot, ok func(v program.Slot) bool) bool {
		return !slices.ContainsFunc(values, func(v program.Slot) bool { return !ok(v) })
	}
	if u.core == none {
		return all(u.operands(), in) && all(u.results(), out)
	}
	for _, list := range [][]int32{u.prologue, u.epilogue, {u.core}} {
		for _, s := range list {
			if !all(g.steps[s].In, in) || !all(g.steps[s].Out, out) {
				return false
			}
		}
	}
	return true
}

// manyReaders is the number of readers of a value above which order does not search them.
const manyReaders = 64

// order returns the index at which units a and b can run as one: the later one if no unit between them uses what the earlier computes
// or updates what it uses, else the earlier one if no unit between them computes what the later uses. So every unit stays after those
// whose results it uses, and no cycle can arise.
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

// join replaces units a and b by u, which gets the index at, one of theirs.
func (g *graph) join(a, b, at int32, u unit) {
	gone := a + b - at
	g.parent[gone] = at
	g.units[at], g.units[gone] = u, unit{core: none, gone: true}
}

// program returns the program with one step for each unit.
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
