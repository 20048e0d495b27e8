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
	defs  []def            // in the order of the body, first those of Entry
	of    map[ir.Reg][]int // defs of each register
	in    []Set
	reads [][]Use // of each definition
	from  map[Use][]int
	index map[[2]int]int
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
	r := &Reaching{g: g, of: map[ir.Reg][]int{}, in: make([]Set, len(g.Blocks)), index: map[[2]int]int{},
		from: map[Use][]int{}}
	add := func(instr int, reg ir.Reg) {
		key := [2]int{instr, int(reg)}
		if _, ok := r.index[key]; ok {
			return // twice in one instruction
		}
		r.index[key] = len(r.defs)
		r.of[reg] = append(r.of[reg], len(r.defs))
		r.defs = append(r.defs, def{instr, reg})
	}
	for reg := ir.Reg(1); int(reg) < g.regs; reg++ {
		add(Entry, reg)
	}
	for i := range g.Func.Body {
		g.Writes(i, func(reg ir.Reg) { add(i, reg) })
	}
	out := make([]Set, len(g.Blocks))
	for b := range g.Blocks {
		r.in[b], out[b] = newSet(len(r.defs)), newSet(len(r.defs))
	}
	for reg := ir.Reg(1); int(reg) < g.regs; reg++ {
		r.in[0].Add(ir.Reg(r.index[[2]int{Entry, int(reg)}]))
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

// pass takes the set of definitions from before instruction i to behind it.
func (r *Reaching) pass(s Set, i int) {
	guarded := r.g.Func.Body[i].Guard.Reg != 0
	r.g.Writes(i, func(reg ir.Reg) {
		if !guarded {
			for _, d := range r.of[reg] {
				if r.defs[d].instr != i {
					s.Remove(ir.Reg(d))
				}
			}
		}
		s.Add(ir.Reg(r.index[[2]int{i, int(reg)}]))
	})
}

// link finds the reads of every definition.
func (r *Reaching) link() {
	r.reads = make([][]Use, len(r.defs))
	s := newSet(len(r.defs))
	for b := range r.g.Blocks {
		copy(s, r.in[b])
		for i := r.g.Blocks[b].Start; i < r.g.Blocks[b].End; i++ {
			r.g.Reads(i, func(reg ir.Reg) {
				u := Use{i, reg}
				if r.from[u] != nil {
					return // read twice
				}
				for _, d := range r.of[reg] {
					if s.Has(ir.Reg(d)) {
						r.reads[d] = append(r.reads[d], u)
						r.from[u] = append(r.from[u], r.defs[d].instr)
					}
				}
			})
			r.pass(s, i)
		}
	}
}

// Defs are the instructions whose writes of reg instruction i, which reads it, may see, ascending; [Entry] comes first if there is a
// way to it on which reg has not certainly been written.
func (r *Reaching) Defs(i int, reg ir.Reg) []int { return r.from[Use{i, reg}] }

// Uses are the places that may read what instruction i (or [Entry]) leaves in reg, ascending.
func (r *Reaching) Uses(i int, reg ir.Reg) []Use {
	d, ok := r.index[[2]int{i, int(reg)}]
	if !ok {
		return nil
	}
	return r.reads[d]
}
