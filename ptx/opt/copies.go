package opt

import "github.com/wavelane/wavelane/ptx/ir"

// isCopy tells whether the instruction does nothing but copy one register to another.
func (u *unit) isCopy(in *ir.Instr) bool {
	return in.Op == "mov" && len(in.Args) == 2 && in.Args[0].Kind == ir.RegOperand && in.Args[1].Kind == ir.RegOperand &&
		!in.Args[1].Not && u.bits(in.Args[0].Reg) == u.bits(in.Args[1].Reg)
}

// copies lets readers of a copy read the original where that still holds the same value. Copies that nobody reads any more go.
func (u *unit) copies() int {
	f := u.facts()
	v := f.versions()
	type copied struct {
		from               ir.Reg
		version, toVersion int
	}
	table := map[ir.Reg]copied{}
	n := 0
	find := func(r ir.Reg) ir.Reg {
		if c, ok := table[r]; ok && v.of(r) == c.toVersion && v.of(c.from) == c.version && u.stands(c.from, r) {
			n++
			return c.from
		}
		return r
	}
	replace := func(i int) {
		in := &u.f.Body[i]
		if in.Kind() == ir.Wgmma {
			return
		}
		in.Guard.Reg = find(in.Guard.Reg)
		for j := range in.Args {
			if in.Role(j) == ir.Read || in.Args[j].Kind == ir.AddrOperand {
				mapOperand(&in.Args[j], find)
			}
		}
	}
	for _, b := range f.g.RPO {
		v.enter()
		for i := f.g.Blocks[b].Start; i < f.g.Blocks[b].End; i++ {
			replace(i)
			v.pass(i)
			in := &u.f.Body[i]
			if in.Guard.Reg != 0 || !u.isCopy(in) {
				continue
			}
			to, from := in.Args[0].Reg, in.Args[1].Reg
			if to == from {
				in.Op = gone
				n++
				continue
			}
			table[to] = copied{from, v.of(from), v.of(to)}
		}
	}
	u.sweep()
	return n + u.unreadCopies()
}

// unreadCopies deletes copies whose results are not read.
func (u *unit) unreadCopies() int {
	f, pin := u.facts(), u.pinned()
	for i := range u.f.Body {
		if in := &u.f.Body[i]; u.isCopy(in) && f.reads[in.Args[0].Reg] == 0 && !pin[in.Args[0].Reg] {
			in.Op = gone
		}
	}
	return u.sweep()
}
