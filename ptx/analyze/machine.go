package analyze

import (
	"maps"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

// The abstract machine walks through a kernel with all threads of one block at once. Registers hold values of type vec: known
// numbers per thread, and sums of symbols where parameters, block indices or memory come in. A branch whose condition is known
// splits the threads; one that is not known is taken both ways, and the ways are joined after it. Loops run one iteration after another:
// while their conditions are known to the end (up to a limit), else for a few iterations. In each memory access every thread's
// address is thereby known up to symbols, swizzles included.

// Limits of one walk.
const (
	maxIterations = 256     // of a loop with known conditions
	maxVisits     = 400_000 // of instructions by warps: after these, loops run two iterations
)

// presence says whether a thread is at a place.
type presence uint8

const (
	absent presence = iota
	may             // under a condition that is not known
	must
)

// frame is an unknown condition under which a state is.
type frame struct {
	cond  *symbol
	side  int8 // 1: the condition holds, -1: it does not, 0: both ways are joined in the state
	join  int  // the block at which both ways have met for certain
	again bool // it decides whether a loop runs once more, beyond the first iteration
	here  []presence
}

// state is what is true at a place.
type state struct {
	regs   []*vec // nil: not written
	here   []presence
	frames []frame // in the order in which the conditions were met
	log    *entry  // memory accesses since the last barrier, latest first
	epoch  int     // number of bar.warp.sync since then
	async  asyncState
	maxreg []int // what setmaxnreg last set, per warp; 0: nothing
	local  map[place]kept
}

func (s *state) clone() *state {
	c := *s
	c.regs = slices.Clone(s.regs)
	c.here = slices.Clone(s.here)
	c.frames = slices.Clone(s.frames)
	c.async = s.async.clone()
	c.maxreg = slices.Clone(s.maxreg)
	return &c
}

// branchInfo is what was seen of a branch, or of another instruction with a guard.
type branchInfo struct {
	visits int
	split  level // perBlock: all threads went the same way, perWarp: all of each warp did
	taken  bool  // some thread may have had a true condition
	plain  bool  // the condition was a number known without thread indices each time
}

// machine is one walk.
type machine struct {
	mod     *ir.Module
	f       *ir.Func
	g       *flow.Graph
	o       *Options
	dims    [3]int
	threads int
	symbols map[string]*symbol
	next    int
	visits  int
	// pending is what waits to be walked at each block; inner ones are those of the loops that are being walked.
	pending    []map[int]*state
	counting   int // > 0: in a further iteration of a loop of unknown length
	unknown    bool
	vars       map[string]*ir.Var
	seen       observations
	done       bool // walked to the end
	pointerSet map[string]bool
	escapes    func() bool // see localEscapes
}

func newMachine(mod *ir.Module, f *ir.Func, g *flow.Graph, o *Options, dims [3]int) *machine {
	m := &machine{mod: mod, f: f, g: g, o: o, dims: dims, threads: dims[0] * dims[1] * dims[2], symbols: map[string]*symbol{},
		vars: map[string]*ir.Var{}}
	m.escapes = sync.OnceValue(m.findEscapes)
	m.seen = newObservations(len(f.Body))
	for _, list := range [][]ir.Var{mod.Vars, f.Vars} {
		for i := range list {
			v := &list[i]
			m.vars[v.Name] = v
		}
	}
	return m
}

// symbol returns the one with the key, making it if there is none. An empty key always makes one.
func (m *machine) symbol(key string, make func(s *symbol)) *symbol {
	if s := m.symbols[key]; s != nil && key != "" {
		return s
	}
	m.next++
	s := &symbol{id: m.next, name: key, align: 1}
	make(s)
	if key != "" {
		m.symbols[key] = s
	}
	return s
}

// fresh is a value of which nothing is known but this.
func (m *machine) fresh(l level, data, block bool) *vec {
	return of(m.symbol("", func(s *symbol) { s.level, s.data, s.block = l, data, block }))
}

// run walks the kernel. It does nothing for loops with several entries.
func (m *machine) run() {
	if len(m.g.Irreducible) > 0 || m.threads == 0 || len(m.f.Body) == 0 {
		return
	}
	start := &state{regs: make([]*vec, len(m.f.Regs)), here: make([]presence, m.threads), maxreg: make([]int, (m.threads+31)/32)}
	for t := range start.here {
		start.here[t] = must
	}
	m.pending = []map[int]*state{{0: start}}
	m.region(-1)
	m.done = true
}

// region walks the blocks of a loop once, or with -1 the whole function, and leaves in the pending states of this level what
// goes on elsewhere: after the loop, or at its header for the next iteration.
func (m *machine) region(loop int) {
	for _, b := range m.g.RPO {
		if loop >= 0 && !m.g.Loops[loop].Has(b) {
			continue
		}
		top := m.pending[len(m.pending)-1]
		st := top[b]
		if st == nil {
			continue
		}
		inner := m.innermost(b, loop)
		if inner >= 0 && m.g.Loops[inner].Header == b {
			delete(top, b)
			m.loop(inner, st)
			continue
		}
		delete(top, b)
		m.block(b, st)
	}
}

// innermost is the loop around b that is directly inside loop, -1 if b is in none.
func (m *machine) innermost(b, loop int) int {
	for l := m.g.Blocks[b].Loop; l >= 0 && l != loop; l = m.g.Loops[l].Parent {
		if m.g.Loops[l].Parent == loop {
			return l
		}
	}
	return -1
}

// loop walks the iterations of a loop. States that leave it end up among the pending ones around it.
func (m *machine) loop(l int, st *state) {
	header := m.g.Loops[l].Header
	outside := m.pending[len(m.pending)-1]
	exits := map[int]*state{}
	outer, counted := m.unknown, m.counting
	m.unknown = false
	cut := false
	for iteration := 1; ; iteration++ {
		m.pending = append(m.pending, map[int]*state{header: st})
		m.region(l)
		here := m.pending[len(m.pending)-1]
		m.pending = m.pending[:len(m.pending)-1]
		st = here[header]
		delete(here, header)
		for _, b := range slices.Sorted(maps.Keys(here)) {
			exits[b] = m.merge(exits[b], here[b])
		}
		if m.unknown && m.counting == counted {
			m.counting++ // only the first iteration counts
		}
		if st == nil {
			break
		}
		limit := maxIterations
		switch {
		case m.visits > maxVisits:
			limit = 2
			m.seen.incomplete = true
		case m.unknown:
			limit = m.o.iterations()
		}
		if iteration >= limit {
			cut = true
			if len(exits) == 0 || !m.unknown {
				m.leave(l, st, exits)
			}
			m.widen(l, exits)
			break
		}
	}
	m.seen.open[header] = m.seen.open[header] || m.unknown || cut
	m.counting = counted
	m.unknown = outer
	for _, b := range slices.Sorted(maps.Keys(exits)) {
		outside[b] = m.merge(outside[b], exits[b])
	}
}

// leave forces a state out of a loop, on all its ways out.
func (m *machine) leave(l int, st *state, exits map[int]*state) {
	for _, e := range m.g.Loops[l].Exits {
		if e.To != m.g.Exit {
			exits[e.To] = m.merge(exits[e.To], st.clone())
		}
	}
}

// widen forgets what changes in the loop, in states that leave a loop before its end.
func (m *machine) widen(l int, exits map[int]*state) {
	k := &kernel{f: m.f, g: m.g}
	writes := k.writesIn(&m.g.Loops[l])
	maps.DeleteFunc(writes, func(r ir.Reg, _ []int) bool { return k.invariant(writes, r) })
	for _, b := range slices.Sorted(maps.Keys(exits)) {
		s := exits[b]
		for _, r := range slices.Sorted(maps.Keys(writes)) {
			if v := s.regs[r]; v != nil {
				data, block := v.from()
				s.regs[r] = m.fresh(v.level(), data, block)
			}
		}
		local := map[place]kept{}
		for p, k := range s.local { // in no order: only the symbols' numbers depend on it
			data, block := k.v.from()
			local[p] = kept{k.size, m.fresh(k.v.level(), data, block)}
		}
		s.local = local
	}
}

// push hands a state on to a block.
func (m *machine) push(b int, st *state) {
	top := m.pending[len(m.pending)-1]
	top[b] = m.merge(top[b], st)
}

// block walks the instructions of a block.
func (m *machine) block(b int, st *state) {
	m.rejoin(b, st)
	blk := &m.g.Blocks[b]
	for i := blk.Start; i < blk.End; i++ {
		in := &m.f.Body[i]
		if in.Kind() == ir.Directive {
			continue
		}
		m.visits += (m.threads + 31) / 32
		if k := in.Kind(); k == ir.Branch || k == ir.Leave {
			m.count(i, st.here)
			m.branch(b, i, st)
			return
		}
		m.step(st, i)
	}
	if b+1 < len(m.g.Blocks) {
		m.push(b+1, st)
	} else {
		m.finish(st)
	}
}

// rejoin drops the conditions that no longer decide whether a thread is here.
func (m *machine) rejoin(b int, st *state) {
	for i, f := range st.frames {
		if f.join != b {
			continue
		}
		copy(st.here, f.here)
		kept := st.frames[:i:i]
		for _, g := range st.frames[i+1:] {
			if g.join != b {
				kept = append(kept, g)
			}
		}
		st.frames = kept
		return
	}
}

// finish ends the threads of a state.
func (m *machine) finish(st *state) {
	m.checkRaces(st)
	m.seen.endAsync(st)
	for w, r := range st.maxreg {
		if r > 0 {
			m.seen.maxreg[w] = max(m.seen.maxreg[w], r)
		}
	}
}
