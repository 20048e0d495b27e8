package x86

import "github.com/wavelane/wavelane/simd/internal/asmgen/ir"

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
	s := &section{accs: homes[:copies*len(l.body.Accumulators)], guard: -1, mask: mask}
	pieces := make([]*piece, copies)
	for c := range pieces {
		n := len(l.body.Accumulators)
		pieces[c] = &piece{lowering: l, copy: c, of: map[*ir.Node]*value{}, accs: homes[c*n : (c+1)*n]}
	}
	weave := func() {
		for first := 0; first < copies; first += group {
			for i := range pieces[first].code {
				for c := first; c < first+group; c++ {
					s.code = append(s.code, pieces[c].code[i])
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
	}
	weave()
	return s
}

// nodes computes the guard and what it depends on, or all else. Inputs are loaded where they are first used.
func (p *piece) nodes(cone bool) {
	for _, n := range p.body.Nodes {
		lazy := leaf(n) || n.Op == ir.OpInput || n.Op == ir.OpAcc || n.Op == ir.OpBits || n.Op == ir.OpFloat
		if !lazy && !p.invariant[n] && !p.absorbed[n] && p.cone[n] == cone && !p.swallowed(n) {
			p.value(n)
		}
	}
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
		v := p.value(a.Next)
		if mask != nil {
			v = p.blend(mask, v, p.accs[k])
		}
		if v.kind != temporary || len(s.next) > 0 && contains(s.next, v) {
			v = p.do(opMove, v)
		}
		s.next = append(s.next, v)
	}
}

func contains(list []*value, v *value) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}
