package arm64

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

const lanes = 4 // float32 in a vector

var features = ir.Features{FMA: true, Round: true}

// function is a kernel on its way to assembly.
type function struct {
	k      *ir.Kernel
	ir     *ir.Body
	body   *body
	table  *constants
	unroll int
	pinned map[item]int // what has a register for the whole function: accumulators, parameters, some constants
	fixed  [32]bool     // those registers and reserved ones
	slots  int          // of the frame
	y      *memory
	inputs map[uint32]*memory
	args   arguments
	reads  bool    // the table of constants
	vector float64 // instructions per vector in the main loop
}

// arguments are the offsets in the argument frame.
type arguments struct {
	lanes, y int // -1: not there
	inputs   []int
	n        int
	params   []int
	done     int
	accs     []int
	size     int
}

func unmerged(b *ir.Body) bool {
	return len(b.Accumulators) > 0 && b.Accumulators[0].Merge == ir.MergeNone
}

func layout(k *ir.Kernel, b *ir.Body) arguments {
	a := arguments{lanes: -1, y: -1, done: -1}
	word := func() int { a.size += 8; return a.size - 8 }
	float := func() int { a.size += 4; return a.size - 4 }
	if unmerged(b) {
		a.lanes = word()
	}
	if b.Store != nil {
		a.y = word()
	}
	for range k.Inputs {
		a.inputs = append(a.inputs, word())
	}
	a.n = word()
	for range k.Params {
		a.params = append(a.params, float())
	}
	if b.Guard != nil || len(b.Accumulators) > 0 && !unmerged(b) { // results begin at a word
		a.size = (a.size + 7) &^ 7
	}
	if b.Guard != nil {
		a.done = word()
	}
	if !unmerged(b) {
		for range b.Accumulators {
			a.accs = append(a.accs, float())
		}
	}
	return a
}

// newFunction prepares a kernel with a number of copies of its body and of constants in registers; nil if there are too few
// registers for that.
func newFunction(k *ir.Kernel, table *constants, unroll, hoisted int) *function {
	b := k.Build(features)
	f := &function{k: k, ir: b, body: lower(b), table: table, unroll: unroll, pinned: map[item]int{}}
	f.args = layout(k, b)
	next := 0
	pin := func(it item) {
		f.pinned[it] = next
		next++
	}
	if b.Guard != nil {
		f.fixed[scratch] = true
	}
	if b.Guard != nil || len(b.Accumulators) > 0 {
		f.fixed[tailMask] = true
	}
	for _, acc := range f.body.acc {
		for c := range unroll {
			pin(item{acc, c})
		}
	}
	consts, params := f.shared()
	for _, v := range params {
		pin(item{v, 0})
	}
	if hoisted > len(consts) {
		return nil
	}
	for _, v := range consts[:hoisted] {
		pin(item{v, 0})
	}
	const working = 6 // registers that bodies need at least
	if next > 30-working {
		return nil
	}
	for _, r := range f.pinned {
		f.fixed[r] = true
	}
	return f
}

// shared lists constants, those first that gain most by a register, and parameters.
func (f *function) shared() (consts, params []*value) {
	gain := map[*value]int{}
	for _, v := range f.body.values {
		for i, a := range v.args {
			switch {
			case a.name == param && !slices.Contains(params, a):
				params = append(params, a)
			case a.name == constant:
				if !slices.Contains(consts, a) {
					consts = append(consts, a)
				}
				// What is overwritten must be copied from a register or loaded: the same.
				if i > 0 || v.name != "fmla" && v.name != "fmls" {
					gain[a]++
				}
			}
		}
	}
	for _, v := range append([]*value{f.body.store}, f.body.next...) {
		if v != nil && v.name == param && !slices.Contains(params, v) {
			params = append(params, v)
		}
	}
	slices.SortStableFunc(consts, func(a, b *value) int { return cmp.Compare(gain[b], gain[a]) })
	return consts, params
}

// translate finds the shortest main loop.
func translate(k *ir.Kernel, table *constants) (*function, *text) {
	var best *function
	var bestUnroll, bestHoisted int
	// There are registers for two copies of what takes many. Folds of little work gain by more chains than others: a
	// sum waits for its last addition, and up to four are finished in a cycle.
	most := max(k.Unroll, 2)
	if most == 4 && k.Build(features).Store == nil {
		most = 8
	}
	for unroll := most; unroll > 0; unroll /= 2 {
		for hoisted := 0; ; hoisted++ {
			f := newFunction(k, &constants{}, unroll, hoisted)
			if f == nil {
				break
			}
			if f.fits() && (best == nil || f.vector < best.vector) {
				best, bestUnroll, bestHoisted = f, unroll, hoisted
			}
		}
	}
	if best == nil {
		panic(k.Name + ": accumulators and parameters leave too few registers")
	}
	f := newFunction(k, table, bestUnroll, bestHoisted)
	return f, f.write()
}

// fits tells whether the function can be written.
func (f *function) fits() (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, few := r.(tooFew); !few {
				panic(r)
			}
		}
	}()
	f.write()
	return true
}

// write gives the function's text.
func (f *function) write() *text {
	t := &text{}
	f.enter(t)
	main := 0
	if f.unroll > 1 {
		t.ins("SUBS $%d, R%d, R%d", lanes*f.unroll, countReg, countReg)
		t.ins("BLT single")
		t.loop("unrolled")
		before := t.count
		f.step(t, whole, f.unroll)
		t.ins("SUBS $%d, R%d, R%d", lanes*f.unroll, countReg, countReg)
		t.ins("BGE unrolled")
		main = t.count - before
		t.line("")
		t.label("single")
		t.ins("ADDS $%d, R%d, R%d", lanes*(f.unroll-1), countReg, countReg)
	} else {
		t.ins("SUBS $%d, R%d, R%d", lanes, countReg, countReg)
	}
	t.ins("BLT few")
	t.loop("vector")
	before := t.count
	f.step(t, whole, 1)
	t.ins("SUBS $%d, R%d, R%d", lanes, countReg, countReg)
	t.ins("BGE vector")
	if f.unroll == 1 {
		main = t.count - before
	}
	f.vector = float64(main) / float64(f.unroll)
	t.line("")
	t.label("few")
	t.ins("ADDS $%d, R%d, R%d", lanes, countReg, countReg)
	t.ins("BEQ done")
	if f.fixed[tailMask] {
		t.ins("MOVD $%s<>(SB), R%d", maskTable, tempReg)
		t.ins("ADD R%d<<4, R%d, R%d", countReg, tempReg, tempReg)
		t.ins("FMOVQ -16(R%d), F%d", tempReg, tailMask)
	}
	f.step(t, tail, 1)
	f.leave(t)

	head := &text{}
	frame := 0
	if f.slots > 0 {
		frame = 16*f.slots + 8
	}
	head.line("// %s", declaration(f.k, f.ir))
	head.line("TEXT ·%s(SB), NOSPLIT, $%d-%d", f.k.Func(suffix), frame, f.args.size)
	if f.reads {
		head.ins("MOVD $%s<>(SB), R%d", constTable, tableReg)
	}
	head.b.WriteString(t.b.String())
	return head
}

// step writes the body once for some copies.
func (f *function) step(t *text, m mode, copies int) {
	f.y = &memory{reg: storeReg, step: 16 * copies}
	f.inputs = map[uint32]*memory{}
	for i := range f.k.Inputs {
		f.inputs[uint32(i)] = &memory{reg: inputReg + i, step: 16 * copies}
	}
	newAllocator(f, t, m, copies).run()
}

// used lists the inputs that the body reads.
func (f *function) used() []uint32 {
	var ks []uint32
	for _, v := range f.body.values {
		if v.name == input {
			ks = append(ks, v.imm)
		}
	}
	return ks
}

// enter loads arguments and what stays in registers.
func (f *function) enter(t *text) {
	if f.args.y >= 0 {
		t.ins("MOVD y+%d(FP), R%d", f.args.y, storeReg)
	}
	for _, i := range f.used() {
		t.ins("MOVD %s+%d(FP), R%d", f.k.Inputs[i], f.args.inputs[i], inputReg+int(i))
	}
	t.ins("MOVD n+%d(FP), R%d", f.args.n, countReg)
	pinned := make([]item, 32)
	for it, r := range f.pinned {
		pinned[r] = it
	}
	for r, it := range pinned {
		if it.v == nil {
			continue
		}
		switch it.v.name {
		case param:
			t.ins("FMOVS %s+%d(FP), F%d", f.k.Params[it.v.imm], f.args.params[it.v.imm], r)
			t.vec("dup", r, r)
		case constant:
			f.constant(t, it.v.imm, r)
		case oldAcc:
			bits := f.ir.Accumulators[it.v.imm].Init
			switch {
			case it.copy > 0:
				t.vec("mov", r, r-it.copy)
			case bits == 0:
				t.vec("zero", r)
			default:
				f.constant(t, bits, r)
			}
		}
	}
}

// constant writes the load of a constant.
func (f *function) constant(t *text, bits uint32, reg int) {
	f.reads = true
	t.ins("FMOVQ %d(R%d), F%d", f.table.offset(bits), tableReg, reg)
}

// loadTail writes the loads of the one to three last elements.
func (f *function) loadTail(t *text, reg func(input uint32) (int, bool)) {
	inputs := f.used()
	each := func(write func(pointer, vector int)) {
		for _, k := range inputs {
			r, ok := reg(k)
			if !ok {
				panic("an input of the tail has no register")
			}
			write(inputReg+int(k), r)
		}
	}
	t.ins("TBZ $1, R%d, load1", countReg)
	each(func(p, v int) { t.ins("FMOVD (R%d), F%d", p, v) })
	t.ins("TBZ $0, R%d, loaded", countReg)
	each(func(p, v int) {
		t.ins("ADD $8, R%d, R%d", p, tempReg)
		t.ins("VLD1 (R%d), V%d.S[2]", tempReg, v)
	})
	t.ins("B loaded")
	t.label("load1")
	each(func(p, v int) { t.ins("FMOVS (R%d), F%d", p, v) })
	t.label("loaded")
}

// storeTail writes the stores of the one to three last elements.
func (f *function) storeTail(t *text, vector int) {
	t.ins("TBZ $1, R%d, store1", countReg)
	t.ins("FMOVD F%d, (R%d)", vector, storeReg)
	t.ins("TBZ $0, R%d, stored", countReg)
	t.ins("ADD $8, R%d, R%d", storeReg, tempReg)
	t.ins("VST1 V%d.S[2], (R%d)", vector, tempReg)
	t.ins("B stored")
	t.label("store1")
	t.ins("FMOVS F%d, (R%d)", vector, storeReg)
	t.label("stored")
}

// stop is the label to which a guard leaves a step.
func (f *function) stop(m mode, copies int) string {
	switch {
	case m == tail:
		return "stopped"
	case copies > 1:
		return "stopUnrolled"
	}
	return "stopVector"
}

// leave merges accumulators and writes results.
func (f *function) leave(t *text) {
	if f.ir.Guard != nil { // elements left: none, or those from the step on that was stopped
		t.ins("MOVD $0, R%d", countReg)
		t.ins("B done")
		if f.unroll > 1 {
			t.label("stopUnrolled")
			t.ins("ADD $%d, R%d, R%d", lanes*f.unroll, countReg, countReg)
			t.ins("B done")
		}
		t.label("stopVector")
		t.ins("ADD $%d, R%d, R%d", lanes, countReg, countReg)
		t.label("stopped")
	}
	t.line("")
	t.label("done")
	if f.ir.Guard != nil {
		t.ins("MOVD n+%d(FP), R%d", f.args.n, tempReg)
		t.ins("SUB R%d, R%d, R%d", countReg, tempReg, tempReg)
		t.ins("MOVD R%d, done+%d(FP)", tempReg, f.args.done)
	}
	if unmerged(f.ir) {
		t.ins("MOVD lanes+%d(FP), R%d", f.args.lanes, lanesReg)
	}
	for k, acc := range f.ir.Accumulators {
		first := f.pinned[item{f.body.acc[k], 0}]
		if acc.Merge == ir.MergeNone {
			for c := range f.unroll {
				t.ins("FMOVQ F%d, %d(R%d)", first+c, 4*(k*ir.Lanes+lanes*c), lanesReg)
			}
			continue
		}
		merge := map[ir.Merge]string{ir.MergeAdd: "fadd", ir.MergeMax: "fmax", ir.MergeMin: "fmin"}[acc.Merge]
		for half := f.unroll / 2; half > 0; half /= 2 {
			for c := range half {
				t.vec(merge, first+c, first+c, first+c+half)
			}
		}
		if acc.Merge == ir.MergeAdd {
			t.vec("faddp", first, first, first)
			t.vec("faddp.s", first, first)
		} else {
			t.vec(merge+"v", first, first)
		}
		t.ins("FMOVS F%d, %s+%d(FP)", first, resultName(k), f.args.accs[k])
	}
	t.ins("RET")
}

func resultName(k int) string { return fmt.Sprintf("acc%d", k) }
