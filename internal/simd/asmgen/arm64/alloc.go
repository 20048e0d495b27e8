package arm64

import "slices"

// Registers. Vector registers are the allocator's but for two in kernels that need them.
const (
	storeReg = 0 // pointer to the result
	inputReg = 1 // pointers to the inputs from here on
	countReg = 8 // elements left
	tableReg = 9 // constants
	tempReg  = 10
	lanesReg = 11

	scratch  = 31 // where the guards of several vectors come together
	tailMask = 30 // ones in the lanes of the tail's elements
)

// where is the location of an item.
type where struct {
	reg  int // -1: not in a register
	slot int // of the stack frame; -1: in none
}

// allocator turns a sequence of events into instructions. Code is straight, so that the uses ahead are known: where a
// register is missing it takes that of a constant, which can be loaded again, else of the value whose next use is farthest
// (L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", 1966).
type allocator struct {
	f      *function
	t      *text
	mode   mode
	copies int
	events []event
	uses   map[item][]int // positions of the events that use an item, ascending
	now    int
	at     map[item]*where
	owner  [32]*item // what a register holds; nil: free
	locked [32]bool  // not to be taken: reserved, or in use by the present event
	fixed  [32]bool  // reserved for the whole function
	slots  []bool    // of the frame: in use
}

// tooFew is the panic of an allocator that has fewer registers than an operation needs.
type tooFew struct{ kernel string }

func newAllocator(f *function, t *text, m mode, copies int) *allocator {
	a := &allocator{f: f, t: t, mode: m, copies: copies, uses: map[item][]int{}, at: map[item]*where{}}
	a.fixed = f.fixed
	a.locked = f.fixed
	for it, reg := range f.pinned {
		a.at[it] = &where{reg, -1}
	}
	a.sequence()
	return a
}

// nextUse is the position of an item's next use from a position on; beyond all if there is none.
func (a *allocator) nextUse(it item, from int) int {
	u := a.uses[it]
	if i, _ := slices.BinarySearch(u, from); i < len(u) {
		return u[i]
	}
	return len(a.events)
}

// dies tells whether the present event is the last that uses an item.
func (a *allocator) dies(it item) bool { return a.nextUse(it, a.now+1) == len(a.events) }

// run writes the body.
func (a *allocator) run() {
	for a.now = range a.events {
		e := a.events[a.now]
		switch e.kind {
		case compute:
			a.compute(e.items[0])
		case load:
			a.load(e)
		case store:
			var regs []int
			for _, it := range e.items {
				regs = append(regs, a.need(it))
			}
			a.f.y.move(a.t, false, a.first(e), regs...)
		case guard:
			a.guard(e)
		case finish:
			a.finish(e)
		}
		a.release()
	}
}

// first is the number of the vector of a step that an event of loads or stores begins with.
func (a *allocator) first(e event) int {
	if e.items[0].v.shared() { // a constant is stored: all items are the same
		k := 0
		for i := a.now - 1; i >= 0 && a.events[i].kind == store; i-- {
			k += len(a.events[i].items)
		}
		return k
	}
	return e.items[0].copy
}

// release frees the registers and slots of items that are used no more, and unlocks those of the present event.
func (a *allocator) release() {
	a.locked = a.fixed
	for it, w := range a.at {
		if a.pinned(it) || a.nextUse(it, a.now+1) < len(a.events) {
			continue
		}
		if w.reg >= 0 {
			a.owner[w.reg] = nil
		}
		if w.slot >= 0 {
			a.slots[w.slot] = false
		}
		delete(a.at, it)
	}
}

func (a *allocator) pinned(it item) bool {
	_, ok := a.f.pinned[it]
	return ok
}

// take finds a register for an item and locks it.
func (a *allocator) take(it item) int {
	best, far := -1, -1
	for r := range 32 {
		if a.locked[r] {
			continue
		}
		o := a.owner[r]
		if o == nil {
			best = r
			break
		}
		score := a.nextUse(*o, a.now)
		if o.v.shared() || a.at[*o].slot >= 0 { // nothing to save
			score += len(a.events)
		}
		if score > far {
			best, far = r, score
		}
	}
	if best < 0 {
		panic(tooFew{a.f.k.Name})
	}
	if o := a.owner[best]; o != nil {
		w := a.at[*o]
		if !o.v.shared() && w.slot < 0 {
			w.slot = a.slot()
			a.t.ins("FMOVQ F%d, %d(RSP)", best, slotOffset(w.slot))
		}
		w.reg = -1
	}
	a.give(it, best)
	return best
}

// give makes a register an item's.
func (a *allocator) give(it item, reg int) {
	a.owner[reg] = &it
	a.locked[reg] = true
	if a.at[it] == nil {
		a.at[it] = &where{-1, -1}
	}
	a.at[it].reg = reg
}

func (a *allocator) slot() int {
	for i, used := range a.slots {
		if !used {
			a.slots[i] = true
			return i
		}
	}
	a.slots = append(a.slots, true)
	a.f.slots = max(a.f.slots, len(a.slots))
	return len(a.slots) - 1
}

// slotOffset is a slot's offset from RSP, above the saved link register.
func slotOffset(slot int) int { return 16 + 16*slot }

// need brings an item into a register and locks it.
func (a *allocator) need(it item) int {
	w := a.at[it]
	if w != nil && w.reg >= 0 {
		a.locked[w.reg] = true
		return w.reg
	}
	reg := a.take(it)
	a.fetch(it, reg)
	return reg
}

// fetch writes the load of an item that is in no register.
func (a *allocator) fetch(it item, reg int) {
	if it.v.name == constant {
		a.f.constant(a.t, it.v.imm, reg)
		return
	}
	a.t.ins("FMOVQ %d(RSP), F%d", slotOffset(a.at[it].slot), reg)
}

func (a *allocator) load(e event) {
	var regs []int
	for _, it := range e.items {
		regs = append(regs, a.take(it))
	}
	if a.mode == whole {
		a.f.inputs[e.items[0].v.imm].move(a.t, true, e.items[0].copy, regs...)
		return
	}
	// In the tail all loads are neighbours, and the last one writes them: one path for each number of elements.
	if next := a.events[a.now+1]; next.kind == load {
		return
	}
	a.f.loadTail(a.t, func(k uint32) (int, bool) {
		for it, w := range a.at {
			if it.v.name == input && it.v.imm == k {
				return w.reg, true
			}
		}
		return 0, false
	})
}

// target is the register that a result should be in: that of the accumulator whose next value it is, if the old one is used
// no more; else -1.
func (a *allocator) target(it item) int {
	if a.mode == tail {
		return -1
	}
	for k, v := range a.f.body.next {
		old := item{a.f.body.acc[k], it.copy}
		if v == it.v && a.dies(old) && a.owner[a.f.pinned[old]] == nil {
			return a.f.pinned[old]
		}
	}
	return -1
}

// result finds the register of a result, after the operands.
func (a *allocator) result(it item) int {
	if r := a.target(it); r >= 0 {
		a.give(it, r)
		return r
	}
	return a.take(it)
}

func (a *allocator) compute(it item) {
	v := it.v
	if v.name == selection {
		a.selection(it)
		return
	}
	if v.name == "fmla" || v.name == "fmls" {
		a.tied(it, v.name, 0, 1, 2)
		return
	}
	var operands []int
	for _, arg := range v.args {
		operands = append(operands, a.need(argument(arg, it.copy)))
	}
	a.free(it)
	reg := a.result(it)
	operands = append([]int{reg}, operands...)
	switch v.name {
	case "shl", "ushr", "sshr":
		operands = append(operands, int(v.imm))
	}
	a.t.vec(v.name, operands...)
}

// free gives up the registers of operands that die in the present event, so that the result may take one.
func (a *allocator) free(it item) {
	for _, arg := range it.v.args {
		o := argument(arg, it.copy)
		if w := a.at[o]; w != nil && w.reg >= 0 && !a.pinned(o) && a.dies(o) {
			a.owner[w.reg] = nil
			a.locked[w.reg] = a.fixed[w.reg]
			w.reg = -1
		}
	}
}

// selection writes the instruction that overwrites an operand which dies.
func (a *allocator) selection(it item) {
	const mask, yes, no = 0, 1, 2
	best := mask
	for _, k := range []int{mask, yes, no} {
		if a.cheap(it, it.v.args[k]) {
			best = k
		}
	}
	switch best {
	case mask:
		a.tied(it, "bsl", mask, yes, no)
	case yes:
		a.tied(it, "bif", yes, no, mask)
	case no:
		a.tied(it, "bit", no, yes, mask)
	}
}

// cheap tells whether overwriting an operand costs no copy: its old value is not needed, or it must be loaded anyway.
func (a *allocator) cheap(it item, arg *value) bool {
	o := argument(arg, it.copy)
	w := a.at[o]
	if w == nil || w.reg < 0 {
		return true
	}
	if a.pinned(o) {
		return w.reg == a.target(it)
	}
	return a.dies(o)
}

// tied writes an instruction whose first operand, args[d], is overwritten.
func (a *allocator) tied(it item, name string, d, n, m int) {
	args := it.v.args
	rn := a.need(argument(args[n], it.copy))
	rm := a.need(argument(args[m], it.copy))
	old := argument(args[d], it.copy)
	w := a.at[old]
	if w != nil && w.reg >= 0 {
		a.locked[w.reg] = true
	}
	reg := a.target(it)
	takesOver := w != nil && w.reg >= 0 && !a.pinned(old) && a.dies(old)
	switch {
	case reg >= 0 && (reg == rn || reg == rm) && !(w != nil && reg == w.reg):
		reg = -1 // the accumulator is a factor itself
		fallthrough
	case reg < 0:
		if takesOver {
			reg = w.reg
			w.reg = -1
			a.give(it, reg)
			break
		}
		reg = a.take(it)
	default:
		a.give(it, reg)
	}
	switch {
	case takesOver && w.reg < 0, w != nil && w.reg == reg:
	case w != nil && w.reg >= 0:
		a.t.vec("mov", reg, w.reg)
	default:
		a.fetch(old, reg)
	}
	a.t.vec(name, reg, rn, rm)
}

// guard leaves the loop if the mask holds anywhere.
func (a *allocator) guard(e event) {
	reg := a.need(e.items[0])
	join, inTail := "orr", "and"
	if a.f.body.passes {
		join, inTail = "and", "bic"
	}
	for _, it := range e.items[1:] {
		a.t.vec(join, scratch, reg, a.need(it))
		a.locked = a.fixed // the masks so far are used up
		reg = scratch
	}
	switch {
	case a.mode == tail:
		a.t.vec(inTail, scratch, tailMask, reg)
		reg = scratch
	case a.f.body.passes:
		a.t.vec("mvn", scratch, reg)
		reg = scratch
	}
	a.t.vec("umaxp", scratch, reg, reg)
	a.t.ins("FMOVD F%d, R%d", scratch, tempReg)
	a.t.ins("CBNZ R%d, %s", tempReg, a.f.stop(a.mode, a.copies))
}

// finish brings the next values of accumulators where the next step expects them, and stores the tail.
func (a *allocator) finish(e event) {
	type move struct{ to, from int }
	var moves []move
	for k, v := range a.f.body.next {
		for c := range a.copies {
			to := a.f.pinned[item{a.f.body.acc[k], c}]
			if from := a.need(argument(v, c)); from != to {
				moves = append(moves, move{to, from})
			}
		}
	}
	for len(moves) > 0 {
		i := slices.IndexFunc(moves, func(m move) bool { // one whose target nobody else is waiting for
			return !slices.ContainsFunc(moves, func(o move) bool { return o != m && o.from == m.to })
		})
		if i < 0 {
			panic(a.f.k.Name + ": accumulators take each other's values in a circle")
		}
		if m := moves[i]; a.mode == tail {
			a.t.vec("bit", m.to, m.from, tailMask)
		} else {
			a.t.vec("mov", m.to, m.from)
		}
		moves = slices.Delete(moves, i, i+1)
	}
	if a.mode == tail && a.f.body.store != nil {
		a.f.storeTail(a.t, a.need(argument(a.f.body.store, 0)))
	}
}
