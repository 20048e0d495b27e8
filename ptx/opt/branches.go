package opt

import (
	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

// branches decides branches whose guards are constant, lets branches to branches go to the end of the way, takes out those to
// what comes next anyway and labels that nothing mentions, and turns a guard where that saves a branch.
func (u *unit) branches() int {
	n := u.decide()
	for {
		k := u.thread() + u.turn() + u.shorten() + u.labels()
		n += k
		if k == 0 {
			return n
		}
	}
}

// decide looks at guards that are written by a mov of a literal.
func (u *unit) decide() int {
	g := flow.New(u.f)
	reach := g.Reaching()
	n := 0
	for i := range u.f.Body {
		in := &u.f.Body[i]
		if k := in.Kind(); k != ir.Branch && k != ir.Leave || in.Guard.Reg == 0 || !g.Reachable(g.BlockOf(i)) {
			continue
		}
		value, ok := u.literalAt(reach, i, in.Guard.Reg)
		if !ok {
			continue
		}
		n++
		if value == in.Guard.Not {
			in.Op = gone
		} else {
			in.Guard = ir.Guard{}
		}
	}
	u.sweep()
	return n
}

// literalAt is the truth that all writes of a predicate that may reach instruction i agree on, where all are movs of literals.
func (u *unit) literalAt(reach *flow.Reaching, i int, p ir.Reg) (value, ok bool) {
	for k, d := range reach.Defs(i, p) {
		if d == flow.Entry {
			return false, false
		}
		in := &u.f.Body[d]
		if in.Op != "mov" || len(in.Args) != 2 || in.Args[1].Kind != ir.IntOperand {
			return false, false
		}
		v := in.Args[1].Bits != 0
		if k > 0 && v != value {
			return false, false
		}
		value, ok = v, true
	}
	return value, ok
}

// place is the first instruction at or after i that is no directive.
func (u *unit) place(i int) int {
	for i < len(u.f.Body) && u.f.Body[i].Kind() == ir.Directive {
		i++
	}
	return i
}

// thread follows branches to unguarded branches.
func (u *unit) thread() int {
	at := map[string]int{}
	for i := range u.f.Body {
		if in := &u.f.Body[i]; in.Op == ir.OpLabel && len(in.Args) == 1 {
			at[in.Args[0].Sym] = i
		}
	}
	n := 0
	follow := func(o *ir.Operand) {
		seen := map[string]bool{}
		for to := o.Sym; !seen[to]; {
			seen[to] = true
			i, ok := at[to]
			if !ok {
				return
			}
			i = u.place(i)
			if i == len(u.f.Body) || u.f.Body[i].Op != "bra" || u.f.Body[i].Guard.Reg != 0 || len(u.f.Body[i].Args) != 1 {
				if to != o.Sym {
					n++
					o.Sym = to
				}
				return
			}
			to = u.f.Body[i].Args[0].Sym
		}
	}
	for i := range u.f.Body {
		switch in := &u.f.Body[i]; in.Op {
		case "bra":
			if len(in.Args) == 1 {
				follow(&in.Args[0])
			}
		case ir.OpBranchTargets:
			for j := range in.Args {
				follow(&in.Args[j])
			}
		}
	}
	return n
}

// turn makes "@!p bra B" of "@p bra A; bra B; A:".
func (u *unit) turn() int {
	n := 0
	for i := range u.f.Body {
		in := &u.f.Body[i]
		if in.Op != "bra" || in.Guard.Reg == 0 || len(in.Args) != 1 || i+1 >= len(u.f.Body) {
			continue
		}
		next := &u.f.Body[i+1]
		if next.Op != "bra" || next.Guard.Reg != 0 || len(next.Args) != 1 || !u.leadsTo(i+2, in.Args[0].Sym) {
			continue
		}
		in.Guard.Not = !in.Guard.Not
		in.Args[0].Sym = next.Args[0].Sym
		next.Op = gone
		n++
	}
	u.sweep()
	return n
}

// leadsTo tells whether the label stands at i, or after other labels there.
func (u *unit) leadsTo(i int, name string) bool {
	for ; i < len(u.f.Body) && u.f.Body[i].Kind() == ir.Directive; i++ {
		if in := &u.f.Body[i]; in.Op == ir.OpLabel && len(in.Args) == 1 && in.Args[0].Sym == name {
			return true
		}
	}
	return false
}

// shorten deletes branches to the next instruction.
func (u *unit) shorten() int {
	for i := range u.f.Body {
		if in := &u.f.Body[i]; in.Op == "bra" && len(in.Args) == 1 && u.leadsTo(i+1, in.Args[0].Sym) {
			in.Op = gone
		}
	}
	return u.sweep()
}

// labels deletes those that no instruction names, and requests about loops that are none any more: those without a label
// before them.
func (u *unit) labels() int {
	named := map[string]bool{}
	for i := range u.f.Body {
		if in := &u.f.Body[i]; in.Op != ir.OpLabel {
			for j := range in.Args {
				named[in.Args[j].Sym] = true
			}
		}
	}
	after := false // after a label, with nothing but directives between
	for i := range u.f.Body {
		switch in := &u.f.Body[i]; {
		case in.Op == ir.OpLabel && len(in.Args) == 1 && !named[in.Args[0].Sym]:
			in.Op = gone
		case in.Op == ir.OpLabel:
			after = true
		case request(in) != 0 && !after:
			in.Op = gone
		case in.Kind() != ir.Directive:
			after = false
		}
	}
	return u.sweep()
}
