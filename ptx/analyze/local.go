package analyze

import (
	"maps"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Unoptimised code keeps its variables in local memory. Values stored there at places that are the same in all threads are
// followed like registers; a store to any other place makes all of it unknown.

// place is a place in local memory.
type place struct {
	base   *symbol
	offset int64
}

// kept is what lies there.
type kept struct {
	size int
	v    *vec
}

// localPlace is the place that an address means, if it is one in local memory; known tells whether it is the same for all
// threads.
func localPlace(a *vec) (p place, local, known bool) {
	b := a.base()
	if b == nil || b.space != ir.LocalSpace {
		return place{}, false, false
	}
	return place{b, a.c[0]}, true, len(a.c) == 1 && len(a.terms) == 1
}

// keep stores in local memory.
func (m *machine) keep(st *state, in *ir.Instr, guard *vec) {
	a := m.address(st, in)
	if in.Op != "st" || a == nil {
		return
	}
	p, local, known := localPlace(a)
	if !local {
		return
	}
	if !known {
		st.local = nil
		return
	}
	size := in.Type(0).Size()
	value := in.Args[len(in.Args)-1]
	parts := []ir.Operand{value}
	if value.Kind == ir.VecOperand {
		parts = value.Elems
	}
	st.local = maps.Clone(st.local)
	if st.local == nil {
		st.local = map[place]kept{}
	}
	for i := range parts {
		at := place{p.base, p.offset + int64(i*size)}
		old, had := st.local[at]
		for q, k := range st.local { // what overlaps is gone
			if q.base == at.base && q.offset < at.offset+int64(size) && at.offset < q.offset+int64(k.size) {
				delete(st.local, q)
			}
		}
		v := m.operand(st, &parts[i], in.Type(0))
		if guard != nil {
			if !had || old.size != size {
				continue
			}
			v = m.guarded(guard, v, old.v)
		}
		st.local[at] = kept{size, v}
	}
}

// recall is what a load from local memory gives; nil if that is not known.
func (m *machine) recall(st *state, in *ir.Instr, a *vec, part int) *vec {
	p, _, known := localPlace(a)
	size := in.Type(0).Size()
	k, ok := st.local[place{p.base, p.offset + int64(part*size)}]
	if !known || !ok || k.size != size {
		return nil
	}
	if size >= 4 || !k.v.isConst() {
		return k.v
	}
	return &vec{c: zip(k.v.c, zero, func(x, _ int64) int64 {
		if in.Type(0).IsSigned() {
			return signExtend(uint64(x), size*8)
		}
		return x & (1<<(size*8) - 1)
	})}
}

// localEscapes tells whether others may have an address in the function's local memory: whether a register that was computed from one is
// stored, or passed to a function. Otherwise a call leaves local memory as it is.
func (m *machine) localEscapes() bool { return m.escapes() }

func (m *machine) findEscapes() bool {
	from := map[ir.Reg]bool{} // registers computed from an address in local memory
	local := func(o *ir.Operand) (yes bool) {
		o.Regs(func(r ir.Reg) { yes = yes || from[r] })
		for _, e := range append([]ir.Operand{*o}, o.Elems...) {
			v := m.vars[e.Sym]
			yes = yes || v != nil && v.Space == ir.LocalSpace
		}
		return yes
	}
	for more := true; more; {
		more = false
		for i := range m.f.Body {
			in := &m.f.Body[i]
			kind := in.Kind()
			for a := range in.Args {
				o := &in.Args[a]
				switch {
				case in.Role(a) == ir.Write && o.Kind != ir.AddrOperand || !local(o):
					continue
				case o.Kind == ir.AddrOperand && (kind == ir.Load || kind == ir.Store || kind == ir.Fetch):
					continue // what lies there is no address in local memory, or that was stored
				case kind != ir.Arithmetic && kind != ir.Carry && kind != ir.Move && kind != ir.SetPred:
					return true
				}
				in.Regs(func(r ir.Reg, role ir.Role) {
					if role != ir.Read && !from[r] {
						from[r], more = true, true
					}
				})
			}
		}
	}
	return false
}

// mergeLocal is what both states know of local memory.
func (m *machine) mergeLocal(a, b *state, onlyA []bool, split level) map[place]kept {
	out := map[place]kept{}
	for p, x := range a.local {
		if y, ok := b.local[p]; ok && x.size == y.size {
			out[p] = kept{x.size, m.joined(a, b, x.v, y.v, onlyA, split)}
		}
	}
	return out
}
