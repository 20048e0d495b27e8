package x86

import "errors"

var tooFew = errors.New("x86: one instruction needs more registers than there are")

// frame is what a function keeps in its stack frame: values that found no register.
type frame struct {
	fixed map[*value]int // slots of invariants, for the whole function
	slots int            // so far, of all sections
}

// allocator assigns registers to a section, instruction by instruction. Whatever has no register is in memory: constants in
// the table, parameters in the arguments, the rest in the frame. Where registers are short, the value goes that is needed
// again last (Belady, "A study of replacement algorithms for virtual-storage computers", 1966), at best one that has a copy in
// memory. Without a writer it only counts.
type allocator struct {
	*lowering
	sec    *section
	out    *writer // nil for a trial
	frame  *frame
	pinned map[*value]bool
	reg    map[*value]int
	file   [2][]*value // what registers hold: vectors, masks
	taken  [2][]bool   // by pinned values and accumulators
	uses   map[*value][]int
	inputs map[*value]*instr // loads of what one multiply-add uses, which takes it from memory
	slot   map[*value]int
	heir   map[*value]*value // of a value after the step, the accumulator that it becomes
	locked map[*value]bool   // operands of the instruction at hand
	spills int               // stores to the frame and loads from it
	loads  int               // of constants and parameters
}

const firstMask = 1 // K0 cannot be a write mask

func newAllocator(l *lowering, sec *section, pins map[*value]int, fr *frame, out *writer) *allocator {
	a := &allocator{
		lowering: l, sec: sec, out: out, frame: fr, pinned: map[*value]bool{}, reg: map[*value]int{},
		file: [2][]*value{make([]*value, l.regs), make([]*value, 8)}, taken: [2][]bool{make([]bool, l.regs), make([]bool, 8)},
		uses: map[*value][]int{}, inputs: map[*value]*instr{}, slot: map[*value]int{}, heir: map[*value]*value{}, locked: map[*value]bool{},
	}
	a.taken[1][0] = true
	for v, r := range pins {
		a.taken[class(v)][r] = true
		if v.kind == home && !contains(sec.accs, v) {
			continue // of a copy that this section does not have
		}
		a.reg[v] = r
		a.file[class(v)][r] = v
		a.pinned[v] = v.kind != home
	}
	for v, s := range fr.fixed {
		a.slot[v] = s
	}
	for i, in := range sec.code {
		for _, v := range in.args {
			a.uses[v] = append(a.uses[v], i)
		}
		if in.op == opTest {
			for _, v := range sec.accs {
				a.uses[v] = append(a.uses[v], i) // they may be the result
			}
		}
	}
	for k, v := range sec.next {
		a.uses[v] = append(a.uses[v], len(sec.code))
		a.heir[v] = sec.accs[k]
	}
	for _, in := range sec.code {
		if in.op == opLoad && a.masks && light(a.body) && sec.mask == nil && len(a.uses[in.dst]) == 1 {
			if u := a.uses[in.dst][0]; u < len(sec.code) && sec.code[u].op == opFMA {
				a.inputs[in.dst] = in
			}
		}
	}
	return a
}

func class(v *value) int {
	if v.mask {
		return 1
	}
	return 0
}

// nextUse is the position of the first use of v after position p, or a large number.
func (a *allocator) nextUse(v *value, p int) int {
	for _, u := range a.uses[v] {
		if u > p {
			return u
		}
	}
	return 1 << 30
}

func (a *allocator) dies(v *value, p int) bool { return !a.pinned[v] && a.nextUse(v, p) == 1<<30 }

func (a *allocator) resident(v *value) bool { _, ok := a.reg[v]; return ok }

// foldable says whether an instruction may take v from memory.
func (a *allocator) foldable(v *value) bool {
	if a.resident(v) || v.mask {
		return false
	}
	_, slot := a.slot[v]
	return v.kind == constant || slot && a.vex || a.inputs[v] != nil
}

func (a *allocator) bind(v *value, r int) {
	a.reg[v] = r
	a.file[class(v)][r] = v
}

func (a *allocator) release(v *value) {
	r, ok := a.reg[v]
	if !ok || a.pinned[v] {
		return
	}
	delete(a.reg, v)
	if a.file[class(v)][r] == v {
		a.file[class(v)][r] = nil
	}
}

// free returns a register for the instruction at position p.
func (a *allocator) free(c, p int) int {
	for r, v := range a.file[c] {
		if v == nil && !a.taken[c][r] {
			return r
		}
	}
	var victim *value
	better := func(v, w *value) bool {
		if w == nil {
			return true
		}
		if cv, cw := a.clean(v), a.clean(w); cv != cw {
			return cv
		}
		return a.nextUse(v, p-1) > a.nextUse(w, p-1)
	}
	for r, v := range a.file[c] {
		if v != nil && !a.taken[c][r] && !a.locked[v] && better(v, victim) {
			victim = v
		}
	}
	if victim == nil {
		panic(tooFew)
	}
	r := a.reg[victim]
	if !a.clean(victim) {
		a.spill(victim)
	}
	a.release(victim)
	return r
}

// clean says whether v can be had again from memory.
func (a *allocator) clean(v *value) bool {
	_, slot := a.slot[v]
	return slot || v.kind == constant || v.kind == parameter || v.kind == tailMask && !v.mask
}

func (a *allocator) spill(v *value) {
	s := len(a.slot)
	a.slot[v] = s
	a.frame.slots = max(a.frame.slots, s+1)
	a.spills++
	if a.out != nil {
		a.out.store(v.mask, a.reg[v], s)
	}
}

// fetch loads v into register r without binding it.
func (a *allocator) fetch(v *value, r int) {
	_, slot := a.slot[v]
	switch {
	case slot:
		a.spills++
	case a.inputs[v] == nil:
		a.loads++
	}
	if a.out != nil {
		a.out.fetch(a, v, r)
	}
}

// need makes v resident.
func (a *allocator) need(v *value, p int) {
	a.locked[v] = true
	if a.resident(v) {
		return
	}
	r := a.free(class(v), p)
	a.fetch(v, r)
	a.bind(v, r)
}

// result assigns a register to what the instruction at position p computes, whose operands are released where they die: that
// of the accumulator that it becomes, if nothing needs that any more, or any.
func (a *allocator) result(in *instr, p int) int {
	if h := a.inherits(in.dst, p); h != nil {
		r := a.reg[h]
		a.bind(in.dst, r)
		return r
	}
	if r, ok := a.reg[in.dst]; ok {
		return r // a pinned invariant
	}
	r := a.free(class(in.dst), p)
	a.bind(in.dst, r)
	return r
}

// inherits returns the accumulator whose register v may take over at position p, nil for none.
func (a *allocator) inherits(v *value, p int) *value {
	if h := a.heir[v]; h != nil && a.dies(h, p) {
		return h
	}
	return nil
}

// run assigns registers to all instructions.
func (a *allocator) run() {
	for p, in := range a.sec.code {
		clear(a.locked)
		a.step(in, p)
		if in.dst != nil && in.dst.kind == invariant && !a.pinned[in.dst] {
			a.spills++
			if a.out != nil {
				a.out.store(in.dst.mask, a.reg[in.dst], a.frame.fixed[in.dst])
			}
		}
		if in.dst != nil && a.dies(in.dst, p) {
			a.release(in.dst)
		}
	}
	clear(a.locked)
	for k, v := range a.sec.next {
		to := a.reg[a.sec.accs[k]]
		if from, ok := a.reg[v]; !ok {
			a.fetch(v, to)
		} else if from != to && a.out != nil {
			a.out.move(v.mask, from, to)
		}
	}
}

// place is an operand's location.
type place struct {
	v   *value
	reg int // -1: in memory
}

// step assigns registers to the instruction at position p.
func (a *allocator) step(in *instr, p int) {
	args := append([]*value(nil), in.args...)
	for _, v := range args {
		a.locked[v] = a.resident(v)
	}
	switch in.op {
	case opLoad:
		if a.inputs[in.dst] != nil {
			return
		}
		if a.sec.mask != nil && a.vex {
			a.need(a.sec.mask, p)
		}
		r := a.result(in, p)
		if a.out != nil {
			a.out.load(a, in, r)
		}
		return
	case opStore, opTest:
		for _, v := range args {
			if v.kind != tailMask || a.vex || in.op == opTest {
				a.need(v, p)
			}
		}
		if a.out != nil {
			if in.op == opStore {
				a.out.save(a, in)
			} else {
				a.out.test(a, in)
			}
		}
		a.releaseDead(args, p)
		return
	case opFMA, opFNMA:
		a.multiplyAdd(in, args, p)
		return
	}
	_, f := a.form(in.op)
	imm := in.imm
	if in.commutes {
		// What is in memory comes last; what is replaced is best something not needed any more.
		m0, m1 := a.foldable(args[0]), a.foldable(args[1])
		if m0 && !m1 || m0 == m1 && f.tied == 0 && !a.replaceable(args[0], in, p) && a.replaceable(args[1], in, p) {
			args[0], args[1] = args[1], args[0]
			imm = in.swapped
		}
	}
	memory := -1
	if f.mem >= 0 && a.foldable(args[f.mem]) && count(args, args[f.mem]) == 1 {
		memory = f.mem
	}
	for i, v := range args {
		if i != memory && i != f.tied {
			a.need(v, p)
		}
	}
	places := a.places(args)
	var r int
	if f.tied >= 0 {
		r = a.replace(args[f.tied], in, args, p)
		places[f.tied].reg = r
		a.releaseDead(args, p)
	} else {
		a.releaseDead(args, p)
		r = a.result(in, p)
	}
	if a.out != nil {
		a.out.plain(a, in.op, imm, places, r)
	}
}

func count(list []*value, v *value) int {
	n := 0
	for _, x := range list {
		if x == v {
			n++
		}
	}
	return n
}

func (a *allocator) places(args []*value) []place {
	list := make([]place, len(args))
	for i, v := range args {
		list[i] = place{v, -1}
		if r, ok := a.reg[v]; ok {
			list[i].reg = r
		}
	}
	return list
}

func (a *allocator) releaseDead(args []*value, p int) {
	for _, v := range args {
		if v.kind != home && a.dies(v, p) {
			a.release(v)
		}
	}
}

// replaceable says whether an instruction may leave its result in the register of v.
func (a *allocator) replaceable(v *value, in *instr, p int) bool {
	if pinned, ok := a.reg[in.dst]; ok {
		return a.reg[v] == pinned
	}
	return a.resident(v) && a.dies(v, p) && (v.kind != home || a.heir[in.dst] == v)
}

// replace returns the register of the result of an instruction that replaces v: v's own if that may be, else another one that v
// is copied to.
func (a *allocator) replace(v *value, in *instr, args []*value, p int) int {
	if a.replaceable(v, in, p) {
		r := a.reg[v]
		if v.kind != home {
			a.release(v)
		}
		a.bind(in.dst, r)
		return r
	}
	r, pinned := a.reg[in.dst]
	if !pinned {
		if h := a.inherits(in.dst, p); h != nil && count(args, h) == 0 {
			r = a.reg[h]
		} else {
			r = a.free(class(in.dst), p)
		}
		a.bind(in.dst, r)
	}
	if from, ok := a.reg[v]; !ok {
		a.fetch(v, r)
	} else if a.out != nil {
		a.out.move(v.mask, from, r)
	}
	return r
}

// multiplyAdd assigns registers to args[0]·args[1] + args[2], of which one is replaced and another may be in memory.
func (a *allocator) multiplyAdd(in *instr, args []*value, p int) {
	foldable := func(i int) bool { return a.foldable(args[i]) && count(args, args[i]) == 1 }
	tied, memory := -1, -1
	for _, i := range []int{2, 0, 1} {
		if tied < 0 && a.replaceable(args[i], in, p) {
			tied = i
		}
	}
	for _, i := range []int{2, 1, 0} {
		switch {
		case i == tied || !foldable(i):
		case tied < 0:
			tied = i // loaded into the register of the result
		case memory < 0:
			memory = i
		}
	}
	if tied < 0 {
		tied = 0
	}
	if tied == 1 {
		args[0], args[1] = args[1], args[0]
		tied = 0
		if memory == 0 {
			memory = 1
		}
	}
	if tied == 2 && memory == 0 {
		args[0], args[1] = args[1], args[0]
		memory = 1
	}
	for i, v := range args {
		if i != tied && i != memory {
			a.need(v, p)
		}
	}
	places := a.places(args)
	r := a.replace(args[tied], in, args, p)
	a.releaseDead(args, p)
	places[tied].reg = r
	if a.out == nil {
		return
	}
	order, rest := "213", []place{places[2], places[1]}
	if tied == 2 {
		order, rest = "231", []place{places[1], places[0]}
	} else if memory == 1 {
		order, rest = "132", []place{places[1], places[2]}
	}
	name := "VFMADD"
	if in.op == opFNMA {
		name = "VFNMADD"
	}
	a.out.fused(a, name+order+"PS", rest, r)
}
