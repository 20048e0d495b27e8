package analyze

import "slices"

// raceKind says in which order two accesses clash.
type raceKind uint8

const (
	readAfterWrite raceKind = iota
	writeAfterRead
	writeAfterWrite
)

// race is a pair of accesses to one place by two threads, at least one of them a write, with nothing between that orders them.
type race struct {
	first, second int // instructions
	kind          raceKind
	threads       [2]int
	base          string
	offset        int64
	warp          bool // both threads in one warp
	anywhere      bool // the offset is not known
}

// maxRaceWork limits how many cells are looked at in a walk.
const maxRaceWork = 60_000_000

// toucher is one of those that touched a cell.
type toucher struct {
	a *access
	t int32
}

// checkRaces compares all accesses since the last barrier.
func (m *machine) checkRaces(st *state) {
	groups := map[*symbol][]*access{}
	written := map[*symbol]bool{}
	var order []*symbol
	for e := st.log; e != nil; e = e.prev {
		b := e.a.base
		if groups[b] == nil {
			order = append(order, b)
		}
		groups[b] = append(groups[b], e.pending())
		written[b] = written[b] || e.a.write
	}
	slices.Reverse(order)
	for _, b := range order {
		if written[b] {
			list := groups[b]
			slices.Reverse(list)
			m.compareAccesses(b, list)
		}
	}
}

func (m *machine) compareAccesses(base *symbol, list []*access) {
	unit := int64(4)
	work := 0
	for _, a := range list {
		if a.size%4 != 0 {
			unit = 1
		}
		for _, c := range a.addr.c {
			if c%4 != 0 {
				unit = 1
			}
		}
		work += a.size * m.threads
	}
	m.seen.work += work / int(unit)
	if m.seen.work > maxRaceWork {
		m.seen.incomplete = true
		return
	}
	m.compareWild(base, list)
	cells := map[cell][]toucher{}
	var dense [][]toucher // for the cells of one array whose size is known
	var plain uint64
	if base.v != nil && base.kind == addressSymbol && base.v.Size() > 0 {
		dense = make([][]toucher, int64(base.v.Size())/unit+1)
		plain, _ = of(base).signature(0)
	}
	for _, a := range list {
		if a.weak() {
			continue
		}
		for t, h := range a.here {
			if h == absent {
				continue
			}
			a.unitsOf(t, unit, func(c cell) {
				if dense != nil && c.signature == plain && c.unit >= 0 && c.unit < int64(len(dense)) {
					dense[c.unit] = m.meet(dense[c.unit], a, t, base, c.unit*unit)
					return
				}
				cells[c] = m.meet(cells[c], a, t, base, c.unit*unit)
			})
		}
	}
}

// wild tells whether an access goes to a place in its array that memory tells, any place as far as can be seen: nothing but the
// loaded value makes the difference between threads.
func (a *access) wild() bool {
	loaded := false
	for _, t := range a.addr.terms {
		if varies(t.k) > perBlock || t.sym.level > perBlock && !t.sym.data {
			return false
		}
		loaded = loaded || t.sym.level == perThread && t.sym.data
	}
	return loaded && len(a.addr.c) == 1
}

// compareWild looks for accesses to any place of an array among those to known places, with no barrier between: threads will
// meet.
func (m *machine) compareWild(base *symbol, list []*access) {
	if base.kind != addressSymbol {
		return
	}
	for i, a := range list {
		if a.weak() {
			continue
		}
		for _, b := range list[i+1:] {
			if b.weak() || a.wild() == b.wild() || !a.write && !b.write || a.atomic && b.atomic {
				continue
			}
			if known := map[bool]*access{true: b, false: a}[a.wild()]; known.addr.level() == perBlock || !within(known, base) {
				continue
			}
			if t, u, ok := m.strangers(a, b); ok {
				m.seen.race(race{first: a.instr, second: b.instr, kind: kindOf(a, b), threads: [2]int{t, u}, base: base.name,
					anywhere: true})
			}
		}
	}
}

// within tells whether an access is at known offsets from its base.
func within(a *access, base *symbol) bool {
	for _, t := range a.addr.terms {
		if t.sym != base {
			return false
		}
	}
	return true
}

// strangers are threads of different warps that make the two accesses.
func (m *machine) strangers(a, b *access) (t, u int, ok bool) {
	for t, h := range a.here {
		if h == absent {
			continue
		}
		for u := (t + 32) % max(1, m.threads); u != t; u = (u + 32) % m.threads {
			if u/32 == t/32 {
				break
			}
			if b.here[u] != absent && together(a, t, b, u) {
				return t, u, true
			}
		}
		return 0, 0, false
	}
	return 0, 0, false
}

// meet compares an access with those before it to the same cell, and adds it to them. Of one instruction's threads two suffice,
// of different warps if there are.
func (m *machine) meet(list []toucher, a *access, t int, base *symbol, offset int64) []toucher {
	same, sameWarp := 0, false
	for _, o := range list {
		if o.a == a {
			same++
			sameWarp = sameWarp || int(o.t)/32 == t/32
		}
		if !a.write && !o.a.write || a.atomic && o.a.atomic || int(o.t) == t {
			continue
		}
		warp := int(o.t)/32 == t/32
		switch {
		case warp && o.a.epoch != a.epoch && o.a != a:
		case o.a.instr == a.instr && a.write && agree(o.a, int(o.t), a, t): // all write the same
		case o.a.issued && !a.write || a.landed && !o.a.write: // that is a copy under way, see checkPending
		case !together(o.a, int(o.t), a, t):
		default:
			m.seen.race(race{first: o.a.instr, second: a.instr, kind: kindOf(o.a, a), threads: [2]int{int(o.t), t}, base: base.name,
				offset: offset, warp: warp})
		}
	}
	if same >= 2 || same == 1 && sameWarp && len(list) > 8 {
		return list
	}
	return append(list, toucher{a, int32(t)})
}

func kindOf(a, b *access) raceKind {
	switch {
	case !b.write:
		return readAfterWrite
	case !a.write:
		return writeAfterRead
	}
	return writeAfterWrite
}
