package flow

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Entry stands, in place of an instruction, for what a register held on entry: a parameter, or nothing.
const Entry = -1

// Reaching is which writes may have made the value that an instruction reads.
type Reaching struct {
	g     *Graph
	defs  []def   // first those of Entry, by register from 1; then in the order of the body
	first []int   // of each instruction, its first one in defs
	of    [][]int // defs of each register
	in    []Set
	reads [][]Use // of each definition
	from  map[Use][]int
}

type def struct {
	instr int
	reg   ir.Reg
}

// Use is a place at which a value is read.
type Use struct {
	Instr int
	Reg   ir.Reg
}

// Reaching computes reaching definitions. A write kills those before it unless it has a guard.
func (g *Graph) Reaching() *Reaching {
	n := len(g.Func.Body)
	r := &Reaching{g: g, of: make([][]int, max(1, g.regs)), in: make([]Set, len(g.Blocks)),
		first: make([]int, n+1), from: map[Use][]int{}}
	add := func(instr int, reg ir.Reg) {
		r.of[reg] = append(r.of[reg], len(r.defs))
		r.defs = append(r.defs, def{instr, reg})
	}
	for reg := ir.Reg(1); int(reg) < g.regs; reg++ {
		add(Entry, reg)
	}
	for i := range n {
		r.first[i] = len(r.defs)
		for _, reg := range g.writes[i] {
			add(i, reg)
		}
	}
	r.first[n] = len(r.defs)
	out := make([]Set, len(g.Blocks))
	for b := range g.Blocks {
		r.in[b], out[b] = newSet(len(r.defs)), newSet(len(r.defs))
	}
	for d := range g.regs - 1 {
		r.in[0].Add(ir.Reg(d))
	}
	scratch := newSet(len(r.defs))
	for changed := true; changed; {
		changed = false
		for _, b := range g.RPO {
			for _, p := range g.Blocks[b].Preds {
				r.in[b].or(out[p])
			}
			copy(scratch, r.in[b])
			for i := g.Blocks[b].Start; i < g.Blocks[b].End; i++ {
				r.pass(scratch, i)
			}
			if !slices.Equal(scratch, out[b]) {
				copy(out[b], scratch)
				changed = true
			}
		}
	}
	r.link()
	return r
}

// pass takes the set of definitions from before instruction i to after it.
func (r *Reaching) pass(s Set, i int) {
	guarded := r.g.Func.Body[i].Guard.Reg != 0
	for k, reg := range r.g.writes[i] {
		if !guarded {
			for _, d := range r.of[reg] {
				s.Remove(ir.Reg(d))
			}
		}
		s.Add(ir.Reg(r.first[i] + k))
	}
}

// link finds the reads of every definition.
func (r *Reaching) link() {
	r.reads = make([][]Use, len(r.defs))
	s := newSet(len(r.defs))
	for b := range r.g.Blocks {
		copy(s, r.in[b])
		for i := r.g.Blocks[b].Start; i < r.g.Blocks[b].End; i++ {
			for _, reg := range r.g.reads[i] {
				u := Use{i, reg}
				for _, d := range r.of[reg] {
					if s.Has(ir.Reg(d)) {
						r.reads[d] = append(r.reads[d], u)
						r.from[u] = append(r.from[u], r.defs[d].instr)
					}
				}
			}
			r.pass(s, i)
		}
	}
}

// Defs are the instructions whose writes of reg instruction i, which reads it, may see, ascending; [Entry] comes first if
// there is a way to it on which reg has not certainly been written.
func (r *Reaching) Defs(i int, reg ir.Reg) []int { return r.from[Use{i, reg}] }

// Uses are the places that may read what instruction i (or [Entry]) leaves in reg, ascending.
func (r *Reaching) Uses(i int, reg ir.Reg) []Use {
	if int(reg) >= len(r.of) || reg <= 0 {
		return nil
	}
	for _, d := range r.of[reg] {
		if r.defs[d].instr == i {
			return r.reads[d]
		}
	}
	return nil
}
