package analyze

import (
	"github.com/wavelane/wavelane/ptx/ir"
)

// written is which bytes of the shared arrays anything in the kernel may write, whenever. Nobody else can: shared memory begins empty.
type written struct {
	bytes map[*symbol][]bool
	open  map[*symbol]bool // something may write elsewhere
	grew  map[int]*symbol  // stores whose last execution wrote new bytes
	reads []*access
}

// noteWritten notes an access to shared memory.
func (m *machine) noteWritten(a *access) {
	w := &m.seen.written
	b := a.base
	if b.kind != addressSymbol || b.v == nil || b.v.Size() == 0 || a.landed {
		return
	}
	if !a.write {
		if a.firm() && !a.weak() {
			w.reads = append(w.reads, a)
		}
		return
	}
	if w.bytes[b] == nil {
		w.bytes[b] = make([]bool, b.v.Size())
	}
	delete(w.grew, a.instr)
	for t, h := range a.here {
		if h == absent {
			continue
		}
		off, ok := a.addr.offset(b, t)
		if !ok {
			w.open[b] = true
			return
		}
		for i := max(0, off); i < min(int64(len(w.bytes[b])), off+int64(a.size)); i++ {
			if !w.bytes[b][i] {
				w.bytes[b][i] = true
				w.grew[a.instr] = b
			}
		}
	}
}

// neverWritten calls f with reads of bytes that nothing writes.
func (k *kernel) neverWritten(m *machine, f func(instr int, of *symbol, offset int64)) {
	w := &m.seen.written
	other := false
	k.each(func(_ int, in *ir.Instr) { // what writes, or may write, by other ways
		switch in.Kind() {
		case ir.Call, ir.Mbarrier, ir.Wgmma:
			other = true
		}
		switch in.Op {
		case "wmma.store.d", "cp.async.bulk", "cp.async.bulk.tensor", "st.async", "st.bulk", "multimem.st", "mapa", "red.async":
			other = true
		}
		if v := in.Space(); in.Kind() == ir.Store && (v == ir.NoSpace || v == ir.SharedClusterSpace) {
			other = true
		}
	})
	if other || m.seen.incomplete {
		return
	}
	for i, b := range w.grew { // in a loop that goes on, it may write more
		for l := k.g.Blocks[k.g.BlockOf(i)].Loop; l >= 0; l = k.g.Loops[l].Parent {
			w.open[b] = w.open[b] || m.seen.open[k.g.Loops[l].Header]
		}
	}
	for i, v := range m.seen.addresses { // stores to what is not known at all
		if b := v.base(); b == nil && k.f.Body[i].Kind() != ir.Load && spaceOf(&k.f.Body[i]) == ir.SharedSpace {
			return
		}
	}
	for _, a := range w.reads {
		for t, h := range a.here {
			off, ok := a.addr.offset(a.base, t)
			if h == absent || !ok || w.open[a.base] || off < 0 || off+int64(a.size) > int64(a.base.v.Size()) {
				continue
			}
			for i := range int64(a.size) {
				if w.bytes[a.base] == nil || !w.bytes[a.base][off+i] {
					f(a.instr, a.base, off+i)
					break
				}
			}
		}
	}
}
