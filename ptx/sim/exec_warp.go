package sim

import (
	"math"
	"math/bits"
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/lanes"
)

const (
	warpSize = 32
	full     = ^uint32(0)
)

// step executes an instruction for the lanes in m, which is not 0 unless the instruction is one of control flow. It ends the
// launch by [warp.fault].
type step func(w *warp, m uint32)

// inst is a compiled instruction.
type inst struct {
	step  step
	in    *ir.Instr
	fn    *function
	guard int32  // slot of the predicate, -1 if there is none
	not   uint32 // full if the guard is negated
	// flow: the step is called even if no lane executes it, and says itself where all lanes of the group go on, by next, jump,
	// wait or together. Other instructions go on after themselves.
	flow bool
	cost instrCost
	// Of an instruction that may be part of a stretch: its step without what the checks ask for, and what vector operation it is, if any.
	raw     step
	op      lanes.Op
	stretch *stretch // that begins here
	label   string   // its text and class, once statistics have needed them
	class   string
}

func (i *inst) text() string { return i.fn.ir.InstrString(i.in) }

// warp is 32 lanes with a program counter each. At any time one group of them runs: those in act, at instruction at. Those
// that could run but are not in the group have their place in pcs; those that wait are in blocked.
type warp struct {
	block *block
	prog  *program
	index int // in the block

	// Registers, by slot. Constants and special registers that do not change are slots too.
	r32 [][warpSize]uint32
	r64 [][warpSize]uint64
	p   []uint32 // predicates: a mask of lanes each
	// def says in which lanes the slots of r32, r64 and p have a value; nil unless initialisation is checked.
	def    *[3][]uint32
	preset bool   // constants and special registers have been written
	cc     uint32 // the carry flag of add.cc and the like

	at, stop int32  // the group's instruction; at or beyond stop it has to be chosen anew
	act      uint32 // lanes of the group
	live     uint32 // lanes that have not exited
	exists   uint32 // lanes that there are: the last warp of a block may have fewer than 32
	blocked  uint32 // lanes that wait
	pcs      [warpSize]int32
	waiters  []waiter
	lanes    [warpSize]lane
	sync     clusterBarrier

	// Between the wrapper of checked mode and accesses to memory: lanes in which element i of what is stored has no value, or in
	// which what was loaded has none.
	poison [8]uint32

	// Lanes' addresses, for whoever executes an instruction. (As local variables they would be allocated each time when a
	// monitor is to see them.)
	places [2][warpSize]uint64

	idle  bool // something else may as well run
	stale bool // the lanes have been apart for a whole quantum: others than the lowest have a turn

	work    *worker
	mon     monitor // of the GPU; nil when nothing is checked
	async   warpAsync
	watched warpWatch // the monitor's
}

// lane is what a thread has beside registers.
type lane struct {
	local  segment // frames of the functions active
	frame  int     // offset of the current function's frame in local
	calls  []call  // from the first
	active []int32 // by function: how many calls are active; nil if functions cannot recurse
}

// waiter is some lanes that wait at one instruction.
type waiter struct {
	lanes uint32
	pc    int32
	why   string             // "bar.sync 0", for reports
	ready func() bool        // asked now and then; nil: until somebody calls release
	then  func(lanes uint32) // called as they go on; may be nil
	// A meeting: all live lanes of named must come, then do is executed for all. strict: none may exit instead, else fault.
	named  uint32
	do     step
	strict FaultKind
}

func first(m uint32) int { return bits.TrailingZeros32(m) }

// thread is the index of a lane's thread in its block.
func (w *warp) thread(lane int) Dim3 { return w.block.grid.threadAt(w.index*warpSize + lane) }

// next sends the whole group to the following instruction.
func (w *warp) next() { w.at++ }

// jump sends the lanes in m to the target and the rest of the group to the following instruction.
func (w *warp) jump(m uint32, target int32) {
	switch m {
	case w.act:
		w.at = target
	case 0:
		w.at++
	default:
		w.place(m, target)
		w.place(w.act&^m, w.at+1)
		w.scatter()
	}
}

// place notes where lanes go on.
func (w *warp) place(m uint32, pc int32) {
	for ; m != 0; m &= m - 1 {
		w.pcs[first(m)] = pc
	}
}

// scatter dissolves the group, all of whose lanes have been placed.
func (w *warp) scatter() { w.act, w.stop = 0, -1 }

// leave takes the lanes in m out of the group; the rest goes on after the instruction.
func (w *warp) leave(m uint32) {
	w.act &^= m
	w.at++
	if w.act == 0 {
		w.stop = -1
	}
}

// wait parks the lanes in m at the current instruction until ready says that they may go on, then calls then with them; the
// rest of the group goes on. If ready is true at once, nothing waits. ready nil: until [warp.release].
func (w *warp) wait(m uint32, why string, ready func() bool, then func(lanes uint32)) {
	if m != 0 && (ready == nil || !ready()) {
		w.enlist(waiter{lanes: m, why: why, ready: ready, then: then})
		w.leave(m)
		return
	}
	if m != 0 && then != nil {
		then(m)
	}
	w.next()
}

// enlist notes that lanes wait at the current instruction. They still have to leave.
func (w *warp) enlist(p waiter) {
	p.pc = w.at
	w.waiters = append(w.waiters, p)
	w.blocked |= p.lanes
}

// release lets lanes that were parked without a condition go on after their instruction.
func (w *warp) release(m uint32) {
	for i := 0; i < len(w.waiters); i++ {
		p := &w.waiters[i]
		if p.ready == nil && p.named == 0 && p.lanes&m != 0 {
			free, pc, then := p.lanes&m, p.pc, p.then
			p.lanes &^= free
			if p.lanes == 0 {
				w.waiters = slices.Delete(w.waiters, i, i+1)
				i--
			}
			w.resume(free, pc, then)
		}
	}
}

// resume makes lanes runnable after the instruction at which they waited.
func (w *warp) resume(m uint32, pc int32, then func(uint32)) {
	if then != nil {
		w.from(pc, func() { then(m) })
	}
	w.blocked &^= m
	w.place(m, pc+1)
	w.repick()
}

// repick makes the running group stand back before its next instruction, so that all runnable lanes are looked at.
func (w *warp) repick() { w.stop = -1 }

// from executes f as if the current instruction were the one at pc, so that faults name it.
func (w *warp) from(pc int32, f func()) {
	at := w.at
	w.at = pc
	f()
	w.at = at
}

// poll lets waiters go on whose condition holds by now, and tells whether any lane can run.
func (w *warp) poll() bool {
	for i := 0; i < len(w.waiters); i++ {
		p := w.waiters[i]
		if p.ready != nil && p.ready() {
			w.waiters = slices.Delete(w.waiters, i, i+1)
			i--
			w.resume(p.lanes, p.pc, p.then)
		}
	}
	return w.live&^w.blocked != 0
}

// together executes do once all live lanes of named have arrived at the current instruction; until then those in m wait.
// Lanes of the group outside m go on. m must be part of named. do is a step of control flow: it ends with [warp.next] or the
// like. If strict is a kind of fault, lanes of named that have exited are one, otherwise nobody waits for them.
func (w *warp) together(m, named uint32, strict FaultKind, do step) {
	if m == 0 {
		w.next()
		return
	}
	if strict != 0 && named&^w.live != 0 {
		w.missing(m, named, strict)
	}
	if named&w.live&^m == 0 {
		do(w, m)
		return
	}
	w.enlist(waiter{lanes: m, named: named, do: do, strict: strict, why: "other lanes of its warp"})
	w.leave(m)
	w.settle()
}

func (w *warp) missing(m, named uint32, kind FaultKind) {
	w.fault(kind, first(m), 0, 0, "executed by lanes %#08x; lanes %#08x have exited, but the whole warp has to execute it",
		m, named&^w.live)
}

// settle executes the meetings for which all have come. It is called when lanes wait or exit.
func (w *warp) settle() {
	for i := 0; i < len(w.waiters); i++ {
		p := w.waiters[i]
		if p.named == 0 {
			continue
		}
		if p.strict != 0 && p.named&^w.live != 0 {
			w.from(p.pc, func() { w.missing(p.lanes, p.named, p.strict) })
		}
		same := func(q waiter) bool { return q.named == p.named && q.pc == p.pc }
		here := uint32(0)
		for _, q := range w.waiters {
			if same(q) {
				here |= q.lanes
			}
		}
		if p.named&w.live&^here != 0 {
			continue
		}
		w.waiters = slices.DeleteFunc(w.waiters, same)
		w.blocked &^= here
		w.place(w.act, w.at)
		w.act, w.at = here, p.pc
		p.do(w, here)
		w.repick()
		i = -1
	}
}

// stuck faults when all lanes wait for each other, whatever the rest of the block does.
func (w *warp) stuck() {
	if w.live == 0 || w.live&^w.blocked != 0 {
		return
	}
	for _, p := range w.waiters {
		if p.named == 0 {
			return
		}
	}
	p := w.waiters[0]
	if i := slices.IndexFunc(w.waiters, func(q waiter) bool { return q.strict == BarrierDivergence }); i >= 0 {
		p = w.waiters[i]
	}
	kind := WarpSync
	if p.strict != 0 {
		kind = p.strict
	}
	w.at = p.pc
	w.fault(kind, first(p.lanes), 0, 0, "lanes %#08x wait here for lanes %#08x, which cannot come:\n%s",
		p.lanes, p.named&w.live&^p.lanes, w.waiting())
}

// run executes up to n instructions, fewer if all lanes wait or have exited. It returns how many it executed.
func (w *warp) run(n int) int {
	w.repick()
	code, count, active := w.prog.code, w.work.count, w.work.lanes
	for i := 0; i < n; i++ {
		if w.at >= w.stop && !w.pick() {
			w.stuck()
			return i
		}
		pc := w.at
		in := &code[pc]
		if s := in.stretch; s != nil && w.starts(s, n-i) {
			w.work.stretches[pc]++
			w.work.stretchLanes[pc] += uint64(bits.OnesCount32(w.act))
			w.stretch(s)
			i += int(s.n) - 1
			continue
		}
		m := w.act
		if in.guard >= 0 {
			if w.def != nil && m&^w.def[bankP][in.guard] != 0 {
				w.undefinedGuard(in)
			}
			m &= w.p[in.guard] ^ in.not
		}
		count[pc]++
		active[pc] += uint64(bits.OnesCount32(m))
		switch {
		case in.flow:
			in.step(w, m)
		case m != 0:
			in.step(w, m)
			fallthrough
		default:
			w.at = pc + 1
			if w.idle {
				w.idle = false
				return i + 1
			}
		}
	}
	return n
}

func (w *warp) undefinedGuard(in *inst) {
	w.demand(ref{bank: bankP, bits: 1, i: in.guard}, w.act, "the guard")
}

// pick chooses the group that runs next: the runnable lanes at the lowest instruction or, with a seed, now and then at
// another one. It returns false if no lane can run.
func (w *warp) pick() bool {
	run := w.live &^ w.blocked
	if run == w.act && run != 0 && w.work.rng == nil { // none is elsewhere
		w.stop, w.stale = math.MaxInt32, false
		return true
	}
	w.place(w.act, w.at)
	w.act, w.stop = 0, math.MaxInt32
	if run == 0 {
		w.stop = -1
		return false
	}
	low, above := int32(math.MaxInt32), int32(math.MaxInt32)
	for m := run; m != 0; m &= m - 1 {
		pc := w.pcs[first(m)]
		low = min(low, pc)
		if pc > w.at {
			above = min(above, pc)
		}
	}
	switch {
	case w.work.rng != nil && w.work.rng.IntN(4) == 0:
		low = w.pcs[w.work.laneOf(run)]
	case w.stale && above < math.MaxInt32:
		low = above
	}
	w.stale = false
	w.at = low
	for m := run; m != 0; m &= m - 1 {
		l := first(m)
		switch pc := w.pcs[l]; {
		case pc == low:
			w.act |= 1 << l
		case pc > low:
			w.stop = min(w.stop, pc)
		}
	}
	return true
}

// exit ends the lanes in m; the rest of the group goes on.
func (w *warp) exit(m uint32) {
	if m == 0 {
		w.next()
		return
	}
	if w.mon != nil {
		w.mon.exit(w, m)
	}
	w.live &^= m
	w.leave(m)
	w.settle()
	w.block.exited(bits.OnesCount32(m))
	w.async.exit(w, m)
}
