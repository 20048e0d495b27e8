package x86

import (
	"maps"
	"slices"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// section is the code of one step of a loop.
type section struct {
	code  []*instr
	accs  []*value // values of accumulators before the step, all of a copy together
	next  []*value // and after it
	guard int      // position of opTest, -1 for none
	mask  *value   // the tail's, nil outside it
}

// section makes a step of several copies of the body, of which group at a time advance in lockstep. Homes are the values of
// accumulators before the step. A mask makes it the tail: what it excludes changes no accumulator and holds no guard.
func (l *lowering) section(copies, group int, homes []*value, mask *value) *section {
	s := &section{accs: append(homes[:len(homes):len(homes)], l.flagHomes()...), guard: -1, mask: mask}
	flags, ordered := maps.Clone(l.flags), map[int]*value{}
	pieces := make([]*piece, copies)
	for c := range pieces {
		n := len(l.body.Accumulators)
		pieces[c] = &piece{lowering: l, copy: c, of: map[*ir.Node]*value{}, accs: homes[c*n : (c+1)*n]}
	}
	weave := func() {
		for first := 0; first < copies; first += group {
			for i, more := 0, true; more; i++ {
				more = false
				for _, p := range pieces[first : first+group] {
					if i < len(p.code) {
						s.code = append(s.code, p.code[i])
						more = true
					}
				}
			}
		}
		for _, p := range pieces {
			p.code = nil
		}
	}
	if l.body.Guard != nil {
		held := make([]*value, copies)
		for c, p := range pieces {
			p.nodes(true)
			held[c] = p.value(l.body.Guard)
			if mask != nil {
				held[c] = p.and(held[c], mask)
			}
		}
		weave()
		p := pieces[0]
		for len(held) > 1 {
			for i := 0; i+1 < len(held); i++ {
				held[i] = p.or(held[i], held[i+1])
				held = append(held[:i+1], held[i+2:]...)
			}
		}
		p.emit(instr{op: opTest, args: held})
		s.code = append(s.code, p.code...)
		p.code = nil
		s.guard = len(s.code) - 1
	}
	for _, p := range pieces {
		p.nodes(false)
		p.finish(s, mask)
		switch other := pieces[max(p.copy-1, 0)]; {
		case p.masks && p.copy%2 == 1:
			p.chainOrdered(ordered, other)
		case p.masks && copies == 1:
			p.flagOrdered(flags, mask)
		case p.copy%2 == 1 || copies == 1:
			p.flagNaN(flags, other, mask)
		}
	}
	weave()
	for _, k := range slices.Sorted(maps.Keys(ordered)) {
		p := pieces[0]
		flags[k] = p.and(ordered[k], flags[k])
		s.code = append(s.code, p.code...)
		p.code = nil
	}
	for k := range l.body.Accumulators {
		if flags[k] != nil {
			s.next = append(s.next, flags[k])
		}
	}
	return s
}

// nodes computes the guard and what it depends on, or all else. Inputs are loaded where they are first used.
func (p *piece) nodes(cone bool) {
	for _, n := range p.body.Nodes {
		lazy := p.isFlagged(n) || leaf(n) || n.Op == ir.OpInput || n.Op == ir.OpAcc || isCast(n)
		if !lazy && !p.invariant[n] && !p.absorbed[n] && p.cone[n] == cone && !p.swallowed(n) {
			p.value(n)
		}
	}
}

// isFlagged says whether a node updates an accumulator with a flag.
func (p *piece) isFlagged(n *ir.Node) bool {
	for k, a := range p.body.Accumulators {
		if p.flags[k] != nil && a.Next == n {
			return true
		}
	}
	return false
}

// swallowed says whether a node is a negation that its users do without.
func (p *piece) swallowed(n *ir.Node) bool {
	if n.Op != ir.OpMaskNot || n == p.body.Guard {
		return false
	}
	for _, u := range p.users[n] {
		if u.Op != ir.OpSelect {
			return false
		}
	}
	return true
}

// finish stores the result and updates the accumulators.
func (p *piece) finish(s *section, mask *value) {
	if p.body.Store != nil {
		args := []*value{p.value(p.body.Store)}
		if mask != nil {
			args = append(args, mask)
		}
		p.emit(instr{op: opStore, args: args})
	}
	for k, a := range p.body.Accumulators {
		v := p.next(k, a)
		if mask != nil {
			v = p.blend(mask, v, p.accs[k])
		}
		if v.kind != temporary || len(s.next) > 0 && contains(s.next, v) {
			v = p.do(opMove, v)
		}
		s.next = append(s.next, v)
	}
}

// next is the value of an accumulator after the step. One with a flag need not care for NaN itself.
func (p *piece) next(k int, a ir.Accumulator) *value {
	switch x := p.flagged(k); {
	case x == nil:
		return p.value(a.Next)
	case a.Next.Op == ir.OpMaxNaN:
		return p.do2(opMax, p.value(x), p.accs[k])
	default:
		return p.do2(opMin, p.value(x), p.accs[k])
	}
}

// flagged returns what an accumulator with a flag is compared with, nil for one without.
func (p *piece) flagged(k int) *ir.Node {
	if p.flags[k] == nil {
		return nil
	}
	next := p.body.Accumulators[k].Next
	if resolve(next.Args[0]).Op == ir.OpAcc {
		return next.Args[1]
	}
	return next.Args[0]
}

// flagNaN updates flags with the elements of this copy and another, which one instruction compares.
func (p *piece) flagNaN(flags map[int]*value, other *piece, mask *value) {
	for k := range p.body.Accumulators {
		if x := p.flagged(k); x != nil {
			nan := p.cmp(cmpUnord, other.value(x), p.value(x))
			if mask != nil {
				nan = p.and(nan, mask)
			}
			flags[k] = p.or(nan, flags[k])
		}
	}
}

// chainOrdered is flagNaN with k registers, where a comparison under a mask takes no other instruction to join those before: what is
// ordered in this step, which meets the flag at its end lest it have to wait for the step before.
func (p *piece) chainOrdered(ordered map[int]*value, other *piece) {
	for k := range p.body.Accumulators {
		x := p.flagged(k)
		switch {
		case x == nil:
		case ordered[k] == nil:
			ordered[k] = p.cmp(cmpOrd, other.value(x), p.value(x))
		default:
			ordered[k] = p.maskedCmp(cmpOrd, other.value(x), p.value(x), ordered[k])
		}
	}
}

// flagOrdered is the same for a step of one vector.
func (p *piece) flagOrdered(flags map[int]*value, mask *value) {
	for k := range p.body.Accumulators {
		x := p.flagged(k)
		switch {
		case x == nil:
		case mask == nil:
			flags[k] = p.maskedCmp(cmpOrd, p.value(x), p.value(x), flags[k])
		default:
			flags[k] = p.do(opKAndNot, p.maskedCmp(cmpUnord, p.value(x), p.value(x), mask), flags[k])
		}
	}
}

// findFlags gives a flag to maxima and minima: a mask of the lanes that have met a NaN, or have not if it is in a k register. All copies share it. Otherwise each
// needs several instructions, one after the other; what accumulators hold where the flag is set does not matter.
func (l *lowering) findFlags() {
	if l.body.Guard != nil {
		return // the vectors of a step that it stops must leave no trace
	}
	for k, a := range l.body.Accumulators {
		if a.Merge != ir.MergeMax && a.Merge != ir.MergeMin || a.Next.Op != ir.OpMaxNaN && a.Next.Op != ir.OpMinNaN {
			continue
		}
		x, y := resolve(a.Next.Args[0]), resolve(a.Next.Args[1])
		if y.Op == ir.OpAcc {
			x, y = y, x
		}
		if x.Op == ir.OpAcc && int(x.Imm) == k && y.Op != ir.OpAcc && len(l.users[a.Next]) == 0 && len(l.users[x]) == 1 {
			l.flags[k] = l.new(home, true)
		}
	}
}

// flagHomes are the flags in order.
func (l *lowering) flagHomes() []*value {
	var list []*value
	for k := range l.body.Accumulators {
		if l.flags[k] != nil {
			list = append(list, l.flags[k])
		}
	}
	return list
}

func contains(list []*value, v *value) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}
