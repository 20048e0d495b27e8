package flow

import (
	"math/bits"
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Set is a set of small numbers, here registers.
type Set []uint64

func newSet(n int) Set { return make(Set, (n+63)/64) }

// Has tells whether the set has n.
func (s Set) Has(n ir.Reg) bool { return n >= 0 && int(n)/64 < len(s) && s[n/64]>>(n%64)&1 != 0 }

// Add puts n into the set; numbers beyond those it was made for are left out.
func (s Set) Add(n ir.Reg) {
	if n >= 0 && int(n)/64 < len(s) {
		s[n/64] |= 1 << (n % 64)
	}
}

// Remove takes n out.
func (s Set) Remove(n ir.Reg) {
	if s.Has(n) {
		s[n/64] &^= 1 << (n % 64)
	}
}

// Each calls f for every member, ascending.
func (s Set) Each(f func(ir.Reg)) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			f(ir.Reg(i*64 + bits.TrailingZeros64(w)))
		}
	}
}

// Len is the number of members.
func (s Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// or adds the members of t and tells whether any was new.
func (s Set) or(t Set) bool {
	grew := false
	for i, w := range t {
		grew = grew || w&^s[i] != 0
		s[i] |= w
	}
	return grew
}

// mention collects what each instruction reads and writes.
func (g *Graph) mention() {
	body := g.Func.Body
	g.reads, g.writes = make([][]ir.Reg, len(body)), make([][]ir.Reg, len(body))
	rets := registersOf(g.Func, g.Func.Rets)
	var all []ir.Reg // the slices are parts of it
	since := func(start int) []ir.Reg { return all[start:len(all):len(all)] }
	add := func(start int, r ir.Reg) {
		if r > 0 && !slices.Contains(all[start:], r) {
			all = append(all, r)
			g.regs = max(g.regs, int(r)+1)
		}
	}
	for i := range body {
		start, reading := len(all), true
		body[i].Regs(func(r ir.Reg, role ir.Role) { // reads come first
			if role == ir.Write && reading {
				g.reads[i] = since(start)
				start, reading = len(all), false
			}
			add(start, r)
		})
		if !reading {
			g.writes[i] = since(start)
			continue
		}
		if body[i].Op == "ret" {
			for _, r := range rets {
				add(start, r)
			}
		}
		g.reads[i] = since(start)
	}
}

// Reads calls f with every register that the instruction reads, each once; for a ret, these are the function's return values
// too.
func (g *Graph) Reads(i int, f func(ir.Reg)) {
	for _, r := range g.reads[i] {
		f(r)
	}
}

// Writes calls f with every register that the instruction may write, each once.
func (g *Graph) Writes(i int, f func(ir.Reg)) {
	for _, r := range g.writes[i] {
		f(r)
	}
}

// registersOf are the registers of those variables that are registers: parameters and return values of a .func.
func registersOf(f *ir.Func, list []ir.Var) []ir.Reg {
	var out []ir.Reg
	for i := range list {
		if list[i].Space != ir.RegSpace {
			continue
		}
		for r := 1; r < len(f.Regs); r++ {
			if f.Regs[r].Name == list[i].Name {
				out = append(out, ir.Reg(r))
			}
		}
	}
	return out
}

// Liveness is, for every instruction, the registers whose values may still be read. A register is not counted where none of its
// writes can have happened yet: one written under a guard, first, does not live from the function's entry.
type Liveness struct {
	g       *Graph
	in, out []Set // of blocks, live and possibly written
	written []Set // possibly written before each block
}

// Liveness computes it. In blocks that cannot be reached nothing is live.
func (g *Graph) Liveness() *Liveness {
	n := len(g.Blocks)
	l := &Liveness{g: g, in: make([]Set, n), out: make([]Set, n), written: make([]Set, n)}
	kill, gen := make([]Set, n), make([]Set, n)
	for b := range g.Blocks {
		l.in[b], l.out[b], l.written[b] = newSet(g.regs), newSet(g.regs), newSet(g.regs)
		kill[b], gen[b] = newSet(g.regs), newSet(g.regs)
	}
	for _, b := range g.RPO {
		for i := g.Blocks[b].End - 1; i >= g.Blocks[b].Start; i-- {
			if g.Func.Body[i].Guard.Reg == 0 {
				g.Writes(i, func(r ir.Reg) { kill[b].Add(r); gen[b].Remove(r) })
			}
			g.Reads(i, gen[b].Add)
		}
	}
	rets := registersOf(g.Func, g.Func.Rets)
	if last := n - 1; g.order[last] >= 0 && g.Blocks[last].Leaves && !g.endsInLeave(last) {
		for _, r := range rets {
			l.out[last].Add(r)
		}
	}
	for changed := true; changed; {
		changed = false
		for k := len(g.RPO) - 1; k >= 0; k-- {
			b := g.RPO[k]
			for _, s := range g.Blocks[b].Succs {
				l.out[b].or(l.in[s])
			}
			for w := range l.in[b] {
				v := gen[b][w] | l.out[b][w]&^kill[b][w]
				changed = changed || v != l.in[b][w]
				l.in[b][w] = v
			}
		}
	}
	l.findWritten()
	return l
}

// endsInLeave tells whether the block's last instruction is an unguarded ret or the like.
func (g *Graph) endsInLeave(b int) bool {
	blk := &g.Blocks[b]
	return blk.End > blk.Start && g.Func.Body[blk.End-1].Kind() == ir.Leave && g.Func.Body[blk.End-1].Guard.Reg == 0
}

// findWritten finds what may have been written before each block, and takes everything else out of what is live there.
func (l *Liveness) findWritten() {
	g := l.g
	after := make([]Set, len(g.Blocks))
	for _, b := range g.RPO {
		after[b] = newSet(g.regs)
		for i := g.Blocks[b].Start; i < g.Blocks[b].End; i++ {
			g.Writes(i, after[b].Add)
		}
	}
	for _, r := range registersOf(g.Func, g.Func.Params) {
		l.written[0].Add(r)
	}
	for changed := true; changed; {
		changed = false
		for _, b := range g.RPO {
			for _, p := range g.Blocks[b].Preds {
				if g.order[p] >= 0 {
					changed = l.written[b].or(after[p]) || changed
				}
			}
			after[b].or(l.written[b])
		}
	}
	for _, b := range g.RPO {
		for w := range l.in[b] {
			l.in[b][w] &= l.written[b][w]
			l.out[b][w] &= after[b][w]
		}
	}
}

// In is what is live where the block begins.
func (l *Liveness) In(block int) Set { return l.in[block] }

// Out is what is live where the block ends.
func (l *Liveness) Out(block int) Set { return l.out[block] }

// Walk calls f for each instruction of a block, last one first, with what is live before and after it. The sets are used
// anew for the next instruction.
func (l *Liveness) Walk(block int, f func(i int, before, after Set)) {
	g := l.g
	blk := &g.Blocks[block]
	if g.order[block] < 0 {
		empty := newSet(g.regs)
		for i := blk.End - 1; i >= blk.Start; i-- {
			f(i, empty, empty)
		}
		return
	}
	// What may have been written at each place, needed from the end on: counts of writes in the block before it.
	counts := make(map[ir.Reg]int)
	for i := blk.Start; i < blk.End; i++ {
		g.Writes(i, func(r ir.Reg) { counts[r]++ })
	}
	before, after := newSet(g.regs), newSet(g.regs)
	copy(after, l.out[block])
	for i := blk.End - 1; i >= blk.Start; i-- {
		copy(before, after)
		guarded := g.Func.Body[i].Guard.Reg != 0
		g.Writes(i, func(r ir.Reg) {
			counts[r]--
			if !guarded || counts[r] == 0 && !l.written[block].Has(r) {
				before.Remove(r)
			}
		})
		g.Reads(i, func(r ir.Reg) {
			if counts[r] > 0 || l.written[block].Has(r) {
				before.Add(r)
			}
		})
		f(i, before, after)
		copy(after, before)
	}
}

// Live is what is live at every instruction: In[i] before it, Out[i] after it. It takes a bit per instruction and register;
// Walk does without.
func (l *Liveness) Live() (in, out []Set) {
	in, out = make([]Set, len(l.g.Func.Body)), make([]Set, len(l.g.Func.Body))
	for b := range l.g.Blocks {
		l.Walk(b, func(i int, before, after Set) {
			in[i], out[i] = append(Set(nil), before...), append(Set(nil), after...)
		})
	}
	return in, out
}
