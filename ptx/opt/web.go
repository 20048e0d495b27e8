package opt

import (
	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

// splitWebs gives a register that holds unrelated values one after the other a name for each: writes belong together that a
// common read may see. It makes registers that are written once of most of those that are not. Only names change.
func (u *unit) splitWebs() {
	if u.o.Passes == 0 {
		return
	}
	pin := u.pinned()
	writes := make([]int, len(u.f.Regs))
	again := false
	g := flow.New(u.f)
	for i := range u.f.Body {
		g.Writes(i, func(r ir.Reg) {
			writes[r]++
			again = again || writes[r] > 1 && !pin[r]
		})
	}
	if !again {
		return
	}
	reach := g.Reaching()
	// The sets of writes, by union and find. A write is its instruction and register; Entry is one too.
	parent := map[flow.Use]flow.Use{}
	var find func(flow.Use) flow.Use
	find = func(d flow.Use) flow.Use {
		p, ok := parent[d]
		if !ok || p == d {
			return d
		}
		p = find(p)
		parent[d] = p
		return p
	}
	for i := range u.f.Body {
		g.Reads(i, func(r ir.Reg) {
			defs := reach.Defs(i, r)
			for _, d := range defs[min(1, len(defs)):] {
				// The earliest write stands for the set.
				a, b := find(flow.Use{Instr: defs[0], Reg: r}), find(flow.Use{Instr: d, Reg: r})
				if b.Instr < a.Instr {
					a, b = b, a
				}
				parent[b] = a
			}
		})
	}
	// The first set of a register keeps its name. What nothing reads makes a set of its own.
	name := map[flow.Use]ir.Reg{}
	taken := make([]bool, len(u.f.Regs))
	of := func(i int, r ir.Reg) ir.Reg {
		if writes[r] < 2 || pin[r] {
			return r
		}
		set := find(flow.Use{Instr: i, Reg: r})
		n, ok := name[set]
		switch {
		case ok:
		case !taken[r]:
			n, taken[r] = r, true
			name[set] = n
		default:
			n = u.newReg(u.f.Regs[r].Type, r)
			name[set] = n
		}
		return n
	}
	for r := ir.Reg(1); int(r) < len(taken); r++ {
		if len(reach.Uses(flow.Entry, r)) > 0 {
			of(flow.Entry, r)
		}
	}
	for i := range u.f.Body {
		in := &u.f.Body[i]
		if !g.Reachable(g.BlockOf(i)) {
			continue
		}
		read := func(r ir.Reg) ir.Reg {
			if defs := reach.Defs(i, r); len(defs) > 0 {
				return of(defs[0], r)
			}
			return r
		}
		if in.Guard.Reg != 0 {
			in.Guard.Reg = read(in.Guard.Reg)
		}
		for j := range in.Args {
			o := &in.Args[j]
			if in.Role(j) == ir.Write && o.Kind != ir.AddrOperand {
				mapOperand(o, func(r ir.Reg) ir.Reg { return of(i, r) })
			} else {
				mapOperand(o, read)
			}
		}
	}
}

// mapOperand replaces the registers in an operand.
func mapOperand(o *ir.Operand, to func(ir.Reg) ir.Reg) {
	if o.Reg != 0 {
		o.Reg = to(o.Reg)
	}
	for i := range o.Elems {
		mapOperand(&o.Elems[i], to)
	}
}
