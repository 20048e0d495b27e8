package analyze

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/internal/cost"
	"github.com/wavelane/wavelane/ptx/ir"
)

// memoryUse is what was seen of one instruction's accesses.
type memoryUse struct {
	space    ir.Space
	write    bool
	atomic   bool
	size     int   // bytes per thread
	requests int   // warps that did it with addresses that are known
	sectors  int   // of 32 bytes, or passes over the banks of shared memory
	ideal    int   // the same for addresses without gaps or conflicts
	worst    int   // passes over the banks of one warp, beyond the ideal factor
	unknown  bool  // some addresses were not known
	outside  bool  // an address is certainly outside of what it belongs to
	where    int64 // such an address
	limit    int64
	of       string
	askew    bool // an address is certainly not aligned
	skewed   int64
	declared bool // it is the declared alignment that is too small
	strided  bool // lanes are a distance apart that is a parameter
	bare     bool // some access happens whatever the parameters are
}

// observations are what a walk leaves behind.
type observations struct {
	guards    []branchInfo // of each instruction
	counts    []float64    // times that a thread runs each instruction, summed over threads; loops of unknown length count once
	memory    map[int]*memoryUse
	addresses map[int]*vec // the latest, of the first address that an instruction has
	others    map[int]*vec // of bulk copies: the mbarrier, or the source in shared memory
	races     []race
	raced     map[[3]int]bool
	hazards   map[[2]int]bool // access, copy under way
	uncommit  map[int]bool    // copies that were never committed
	unwaited  map[int]bool    // or never awaited
	maxreg    []int           // by warp
	open      map[int]bool    // loops that were left before their end, or whose length is not known
	partial   map[int]bool    // barriers of some threads, or of a number that is not known
	written   written
	work      int

	incomplete bool // a limit was met: loops turned less often than they could have, or accesses were not compared
}

func newObservations(instrs int) observations {
	return observations{guards: make([]branchInfo, instrs), counts: make([]float64, instrs),
		memory: map[int]*memoryUse{}, addresses: map[int]*vec{}, others: map[int]*vec{}, raced: map[[3]int]bool{},
		hazards:  map[[2]int]bool{},
		uncommit: map[int]bool{}, unwaited: map[int]bool{}, maxreg: make([]int, 32), open: map[int]bool{},
		partial: map[int]bool{},
		written: written{bytes: map[*symbol][]bool{}, open: map[*symbol]bool{}, grew: map[int]*symbol{}}}
}

func (o *observations) race(r race) {
	key := [3]int{r.first, r.second, int(r.kind)}
	if !o.raced[key] {
		o.raced[key] = true
		o.races = append(o.races, r)
	}
}

// endAsync notes copies that are under way where threads end.
func (o *observations) endAsync(st *state) {
	for _, a := range st.async.open {
		o.uncommit[a.instr] = true
	}
	for _, g := range st.async.groups {
		for _, a := range g {
			o.unwaited[a.instr] = true
		}
	}
}

// count notes who runs an instruction.
func (m *machine) count(i int, here []presence) {
	if m.counting > 0 {
		return
	}
	n := 0
	for _, h := range here {
		if h != absent {
			n++
		}
	}
	m.seen.counts[i] += float64(n)
}

// measure looks at an access's addresses, warp by warp.
func (m *machine) measure(a *access) {
	u := m.seen.memory[a.instr]
	if a.issued { // the second access of cp.async; its global one has the entry
		u = m.seen.memory[^a.instr]
		if u == nil {
			u = &memoryUse{}
			m.seen.memory[^a.instr] = u
		}
	}
	if u == nil {
		u = &memoryUse{}
		m.seen.memory[a.instr] = u
	}
	u.space, u.write, u.atomic, u.size = a.space, a.write, a.atomic && a.write, a.size
	u.bare = u.bare || len(a.frames) == 0
	m.checkBounds(a, u)
	m.checkAlignment(a, u)
	for w := 0; w < m.threads; w += 32 {
		var lanes []int
		for t := w; t < min(w+32, m.threads); t++ {
			if a.here[t] != absent {
				lanes = append(lanes, t)
			}
		}
		if len(lanes) == 0 {
			continue
		}
		switch a.space {
		case ir.SharedSpace:
			if !warpKnown(a.addr, lanes) {
				u.unknown = true
				continue
			}
			// A common summand turns the banks round and changes nothing: this one leaves no offset below zero.
			var offsets [32]uint64
			mask := uint32(0)
			for _, l := range lanes {
				offsets[l-w] = uint64(at(a.addr.c, l)) + 1<<62
				mask |= 1 << (l - w)
			}
			_, passes, ideal := cost.Banks(&offsets, mask, max(1, a.size))
			u.requests++
			u.sectors += passes
			u.ideal += ideal
			u.worst = max(u.worst, (passes+ideal-1)/ideal)
		case ir.GlobalSpace, ir.NoSpace, ir.ConstSpace:
			sectors, ideal, strided, ok := sectorsOf(a, lanes)
			if !ok {
				u.unknown = true
				continue
			}
			u.requests++
			u.sectors += sectors
			u.ideal += ideal
			u.strided = u.strided || strided
		}
	}
}

// warpKnown tells whether the lanes' addresses are known up to a common summand.
func warpKnown(v *vec, lanes []int) bool {
	for _, t := range v.terms {
		for _, l := range lanes[1:] {
			if at(t.k, l) != at(t.k, lanes[0]) {
				return false
			}
		}
		if t.sym.level == perThread && at(t.k, lanes[0]) != 0 {
			return false
		}
	}
	return true
}

// sectorsOf is how many sectors of 32 bytes a warp touches, and how many at best for as many bytes. Where lanes differ by
// multiples of something unknown, these are taken for large.
func sectorsOf(a *access, lanes []int) (sectors, ideal int, strided, ok bool) {
	type group struct{ off map[int64]bool }
	groups := map[string]*group{}
	bytes := map[string]map[int64]bool{}
	total := 0
	for _, l := range lanes {
		var key []byte
		for _, t := range a.addr.terms {
			k := at(t.k, l)
			if k == 0 {
				continue
			}
			if t.sym.level == perThread {
				return 0, 0, false, false
			}
			key = append(key, itoa(int64(t.sym.id))+"·"+itoa(k)+" "...)
		}
		g := groups[string(key)]
		if g == nil {
			g = &group{map[int64]bool{}}
			groups[string(key)] = g
			bytes[string(key)] = map[int64]bool{}
		}
		off := at(a.addr.c, l)
		for s := floorDiv(off, 32); s*32 < off+int64(a.size); s++ {
			g.off[s] = true
		}
		if !bytes[string(key)][off] {
			bytes[string(key)][off] = true
			total += a.size
		}
	}
	for _, g := range groups {
		sectors += len(g.off)
	}
	return sectors, max(1, (total+31)/32), len(groups) > 2, true
}

// checkBounds compares an access with the size of what it belongs to.
func (m *machine) checkBounds(a *access, u *memoryUse) {
	if a.base == nil || u.outside || !a.firm() {
		return
	}
	limit, ok := m.sizeOf(a.base)
	if !ok {
		return
	}
	for t, h := range a.here {
		if h == absent {
			continue
		}
		off, ok := a.addr.offset(a.base, t)
		if ok && (off < 0 || off+int64(a.size) > limit) {
			if m.swayed(a) {
				return
			}
			u.outside, u.where, u.limit, u.of = true, off, limit, a.base.name
			return
		}
	}
}

// swayed tells whether data decide on the way to an access and, in iterations of a loop before, on its address: a stack's pointer in an
// interpreter. Then the two may go together always, whatever this way makes of them.
func (m *machine) swayed(a *access) bool {
	loop := m.g.Blocks[m.g.BlockOf(a.instr)].Loop
	if loop < 0 || !slices.ContainsFunc(a.frames, func(f frame) bool { return f.side != 0 && f.cond.data }) {
		return false
	}
	l, reaching := &m.g.Loops[loop], m.g.Reaching()
	seen := map[int]bool{}
	var from func(i int) bool
	from = func(i int) (found bool) {
		m.g.Reads(i, func(r ir.Reg) {
			for _, d := range reaching.Defs(i, r) {
				if found || d == flow.Entry || seen[d] || !l.Has(m.g.BlockOf(d)) {
					continue
				}
				seen[d] = true
				always := !slices.ContainsFunc(l.Latches, func(b int) bool { return !m.g.Dominates(m.g.BlockOf(d), b) })
				found = !always && !m.g.Dominates(m.g.BlockOf(d), m.g.BlockOf(i)) || from(d)
			}
		})
		return found
	}
	return from(a.instr)
}

// sizeOf is the number of bytes after a base.
func (m *machine) sizeOf(s *symbol) (int64, bool) {
	switch {
	case s.kind == paramSymbol && s.name == s.v.Name:
		n, ok := m.o.Buffers[s.name]
		return int64(n), ok
	case s.kind != addressSymbol || s.v == nil:
		return 0, false
	case s.v.Size() > 0:
		return int64(s.v.Size()), true
	case s.space == ir.SharedSpace && m.o.Shared > 0:
		return int64(m.o.Shared), true
	}
	return 0, false
}

// checkAlignment looks for vectors and words that do not lie at multiples of their size.
func (m *machine) checkAlignment(a *access, u *memoryUse) {
	if a.base == nil || u.askew || a.size <= 1 {
		return
	}
	n := int64(a.size)
	if in := &m.f.Body[a.instr]; in.Kind() == ir.Matrix {
		n = 16
	}
	if n&(n-1) != 0 {
		return
	}
	if a.addr.aligned()%n != 0 {
		if len(a.addr.terms) == 1 && a.base.kind == addressSymbol && a.base.align < n {
			u.askew, u.declared, u.skewed, u.of = true, true, a.base.align, a.base.name
		}
		return
	}
	for t, h := range a.here {
		if h != absent && at(a.addr.c, t)%n != 0 {
			u.askew, u.skewed, u.of = true, at(a.addr.c, t), a.base.name
			return
		}
	}
}

// pointers are the parameters of 64 bits that are used as addresses.
func (m *machine) pointers() map[string]bool {
	if m.pointerSet != nil {
		return m.pointerSet
	}
	m.pointerSet = map[string]bool{}
	from := map[ir.Reg]map[string]bool{}
	flowTo := func(to ir.Reg, names map[string]bool) bool {
		grew := false
		for n := range names {
			if from[to] == nil {
				from[to] = map[string]bool{}
			}
			grew = grew || !from[to][n]
			from[to][n] = true
		}
		return grew
	}
	for changed := true; changed; {
		changed = false
		for i := range m.f.Body {
			in := &m.f.Body[i]
			switch {
			case in.Op == "ld" && in.Space() == ir.ParamSpace && in.Args[0].Kind == ir.RegOperand && in.Args[1].Sym != "":
				changed = flowTo(in.Args[0].Reg, map[string]bool{in.Args[1].Sym: true}) || changed
			case in.Op == "mov" || in.Op == "cvta" || in.Op == "add" || in.Op == "mad" || in.Op == "sub" || in.Op == "selp":
				if in.Args[0].Kind != ir.RegOperand {
					continue
				}
				args := in.Args[1:]
				if in.Op == "mad" && len(args) == 3 {
					args = args[2:]
				}
				for k := range args {
					if args[k].Kind == ir.RegOperand && m.f.Regs[args[k].Reg].Type.Bits() == 64 {
						changed = flowTo(in.Args[0].Reg, from[args[k].Reg]) || changed
					}
				}
			}
			for k := range in.Args {
				if o := &in.Args[k]; o.Kind == ir.AddrOperand && in.Space() != ir.ParamSpace {
					for n := range from[o.Reg] {
						m.pointerSet[n] = true
					}
				}
			}
		}
	}
	return m.pointerSet
}
