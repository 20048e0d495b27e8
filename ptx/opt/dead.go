package opt

import (
	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

// dead deletes what control cannot come to, and instructions whose only effect is a result that nothing with an effect needs:
// also those in circles, such as a counter that nothing but itself reads.
func (u *unit) dead() int {
	n := u.unreachable()
	g := flow.New(u.f)
	reach := g.Reaching()
	pin := u.pinned()
	needed := make([]bool, len(u.f.Body))
	var work []int
	need := func(i int) {
		if i >= 0 && !needed[i] {
			needed[i] = true
			work = append(work, i)
		}
	}
	for i := range u.f.Body {
		if !u.removable(i, g, pin) {
			need(i)
		}
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		g.Reads(i, func(r ir.Reg) {
			for _, d := range reach.Defs(i, r) {
				need(d)
			}
		})
	}
	for i := range u.f.Body {
		if !needed[i] {
			u.f.Body[i].Op = gone
		}
	}
	return n + u.sweep()
}

// removable tells whether an instruction has no effect but on the registers that it writes.
func (u *unit) removable(i int, g *flow.Graph, pin []bool) bool {
	in := &u.f.Body[i]
	if !pure(in) && in.Kind() != ir.Move && !(in.Kind() == ir.Load && weak(in)) {
		return false
	}
	writes, ok := false, true
	g.Writes(i, func(r ir.Reg) {
		writes = true
		ok = ok && !pin[r]
	})
	return ok && writes
}

// unreachable deletes blocks that control cannot come to, but for the lists that branches and calls name.
func (u *unit) unreachable() int {
	g := flow.New(u.f)
	for b := range g.Blocks {
		if g.Reachable(b) {
			continue
		}
		for i := g.Blocks[b].Start; i < g.Blocks[b].End; i++ {
			in := &u.f.Body[i]
			isTable := namesTable(in)
			if !isTable && !(in.Op == ir.OpLabel && i+1 < len(u.f.Body) && namesTable(&u.f.Body[i+1])) {
				in.Op = gone
			}
		}
	}
	return u.sweep()
}

func namesTable(in *ir.Instr) bool {
	return in.Op == ir.OpBranchTargets || in.Op == ir.OpCallPrototype || in.Op == ir.OpCallTargets
}
