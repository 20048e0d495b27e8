package x86

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// function is a kernel's function for a set.
type function struct {
	*lowering
	kernel *ir.Kernel
	homes  []*value // of accumulators, all of a copy together
	pins   map[*value]int
	frame  frame
	copies int // of the body in a step of the main loop
	group  int // that advance in lockstep
	hoist  []*value
}

// signature is that of the Go function. With AVX-512 numbers are passed as their bits. A loop that stores a line a cycle leaves the
// processor no store for anything else: a number that is stored before the call and loaded into a vector comes only after all that the
// call before stored. What goes from one general register to another the processor renames instead, and axpy of 1,024 elements on Emerald
// Rapids takes 0.84 of the time.
func (f *function) signature() string {
	var args, results []string
	if f.lanesOut() {
		args = append(args, fmt.Sprintf("lanes *[%d]float32", len(f.body.Accumulators)*ir.Lanes))
	}
	if f.body.Store != nil {
		args = append(args, "y *float32")
	}
	for _, name := range f.kernel.Inputs {
		args = append(args, name+" *float32")
	}
	args = append(args, "n int")
	number := " float32"
	if f.masks {
		number = " uint64"
	}
	for _, name := range f.kernel.Params {
		args = append(args, name+number)
	}
	if f.body.Guard != nil {
		results = append(results, "done int")
	}
	if !f.lanesOut() {
		for k := range f.body.Accumulators {
			results = append(results, fmt.Sprintf("r%d float32", k))
		}
	}
	return fmt.Sprintf("func(%s) (%s)", strings.Join(args, ", "), strings.Join(results, ", "))
}

func (f *function) lanesOut() bool {
	return len(f.body.Accumulators) > 0 && f.body.Accumulators[0].Merge == ir.MergeNone
}

// write writes the function.
//
// A main loop takes several vectors a step, another single ones; a masked step takes what is left. Where a guard holds, the
// number of elements becomes that of those done, and the function ends as if there were no more.
func (f *function) write(w *writer) {
	k := f.kernel
	w.c.Function(k.Func(f.name))
	w.c.Pragma("noescape")
	w.c.SignatureExpr(f.signature())
	w.params = nil
	for _, name := range k.Params {
		m, err := w.c.Param(name).Resolve()
		if err != nil {
			panic(err)
		}
		w.params = append(w.params, m.Addr)
	}
	// A trial writing finds out how many slots the frame needs.
	w.frame = operand.NewStackAddr(0)
	sections := f.sections()
	slots := f.frame.slots
	for _, s := range sections {
		fr := f.frame
		assign(f.lowering, s.section, s.pins, &fr, nil)
		slots = max(slots, fr.slots)
	}
	if slots > 0 {
		w.c.AllocLocal(slots * f.bytes())
	}
	if slots*f.bytes() <= 256 {
		w.c.Attributes(attr.NOSPLIT)
	}
	if f.body.Store != nil {
		w.c.Load(w.c.Param("y"), gpY)
	}
	for i, name := range k.Inputs {
		w.c.Load(w.c.Param(name), gpIn[i])
	}
	w.c.Load(w.c.Param("n"), gpN)
	w.c.XORL(gpIndex.As32(), gpIndex.As32())
	main, single, tail, prologue := sections[0], sections[1], sections[2], sections[3]
	for _, v := range f.values {
		if r, ok := f.pins[v]; ok && v.kind == parameter {
			w.argument(v, r)
		}
	}
	f.allocate(w, prologue)
	count := len(f.body.Accumulators)
	f.start(w, f.homes[:count])
	for _, v := range f.flagHomes() {
		if r := f.pins[v]; v.mask {
			w.c.KXNORW(kreg(r), kreg(r), kreg(r))
		} else {
			w.constant(0, r)
		}
	}
	f.peel(w)
	w.c.Label("loops")
	f.loop(w, main, f.copies)
	if f.copies > 1 {
		f.mergeCopies(w)
		w.c.Label("single")
		f.loop(w, single, 1)
	}
	w.c.Label("tail")
	w.c.MOVQ(gpN, gpLimit)
	w.c.SUBQ(gpIndex, gpLimit)
	w.c.JLE(operand.LabelRef("done"))
	w.c.Label("masked")
	w.stop = "tailStop"
	needMask := f.vex || f.body.Guard != nil || count > 0
	if needMask {
		w.leftMask(7)
	}
	f.allocate(w, tail)
	if f.peels() {
		w.c.ADDQ(gpLimit, gpIndex)
		w.c.CMPQ(gpIndex, gpN)
		w.c.JLT(operand.LabelRef("peeled"))
	}
	w.c.Label("done")
	f.finish(w)
	w.c.RET()
	if f.streams() {
		f.stream(w, main)
	}
	if f.body.Guard != nil {
		stops := []string{"mainStop", "singleStop", "tailStop"}
		ends := []string{"mainEnd", "tail", "done"}
		for i := range stops {
			if i == 1 && f.copies == 1 {
				continue
			}
			w.c.Label(stops[i])
			w.c.MOVQ(gpIndex, gpN)
			w.c.JMP(operand.LabelRef(ends[i]))
		}
	}
}

// peels says whether long loops first take the few elements up to a multiple of a vector's size. Vectors cross lines of the
// cache otherwise, those of 64 bytes every time, which up to halves the rate where memory is what counts. Sums do not: their
// order of additions, and with it their last bits, would depend on where in memory the elements lie.
func (f *function) peels() bool {
	return f.vex && len(f.body.Nodes) <= lightNodes && !slices.ContainsFunc(f.body.Accumulators, func(a ir.Accumulator) bool {
		return a.Merge == ir.MergeAdd || a.Merge == ir.MergeNone
	})
}

const (
	lightNodes  = 16  // of a body that is bound by loads and stores
	peelMinimum = 256 // elements
	// streamMinimum is the number of elements from which a result and an operand fill a cache of 4 MiB.
	streamMinimum = 1 << 19
)

// peel goes to the masked step for the elements before the first aligned one of y, or of the first input.
func (f *function) peel(w *writer) {
	if !f.peels() {
		return
	}
	w.c.CMPQ(gpN, operand.U32(peelMinimum))
	w.c.JLT(operand.LabelRef("loops"))
	if f.body.Store != nil {
		w.c.MOVQ(gpY, gpLimit)
	} else {
		w.c.MOVQ(gpIn[0], gpLimit)
	}
	w.c.NEGQ(gpLimit)
	w.c.SHRQ(operand.Imm(2), gpLimit)
	w.c.ANDQ(operand.Imm(uint64(f.lanes-1)), gpLimit)
	w.c.JNE(operand.LabelRef("masked"))
	w.c.Label("peeled")
	if f.streams() {
		w.c.CMPQ(gpN, operand.U32(streamMinimum))
		w.c.JGE(operand.LabelRef("stream"))
	}
}

// streams says whether there is a loop for results that are larger than caches. It stores around them, so that memory need not
// be read before it is overwritten, and asks for what it reads earlier than the processor would by itself.
func (f *function) streams() bool {
	return f.peels() && f.body.Store != nil && f.body.Guard == nil && len(f.body.Accumulators) == 0
}

// stream writes that loop. It is not for a result that overwrites an operand or overlaps its beginning, which is in the cache
// by then.
func (f *function) stream(w *writer, main placed) {
	w.c.Label("stream")
	for i := range f.kernel.Inputs {
		w.c.MOVQ(gpIn[i], gpTmp)
		w.c.SUBQ(gpY, gpTmp)
		w.c.SHRQ(operand.Imm(2), gpTmp)
		w.c.CMPQ(gpTmp, gpN)
		w.c.JCS(operand.LabelRef("loops"))
	}
	w.streaming = true
	f.steps(w, main, f.copies, "stream", "loops")
	w.streaming = false
	w.c.SFENCE()
	next := "tail"
	if f.copies > 1 {
		next = "single"
	}
	w.c.JMP(operand.LabelRef(next))
}

func assign(l *lowering, s *section, pins map[*value]int, fr *frame, w *writer) *allocator {
	a := newAllocator(l, s, pins, fr, w)
	a.run()
	return a
}

// placed is a section with what is pinned in it.
type placed struct {
	*section
	pins map[*value]int
}

// sections are the steps of the main loop, of the loop of single vectors, and of the tail; and what comes before them.
func (f *function) sections() [4]placed {
	main := maps.Clone(f.pins)
	room := f.room()
	for i, v := range f.hoist {
		main[v] = room[i]
	}
	mask := f.new(tailMask, true)
	tail := maps.Clone(f.pins)
	if f.masks {
		tail[mask] = 7
	}
	count := len(f.body.Accumulators)
	return [4]placed{
		{f.section(f.copies, f.group, f.homes, nil), main},
		{f.section(1, 1, f.homes[:count], nil), f.pins},
		{f.section(1, 1, f.homes[:count], mask), tail},
		{&section{code: f.prologue, guard: -1}, f.pins},
	}
}

func (f *function) allocate(w *writer, s placed) {
	fr := f.frame
	assign(f.lowering, s.section, s.pins, &fr, w)
}

// start sets accumulators to their start.
func (f *function) start(w *writer, homes []*value) {
	for i, v := range homes {
		w.constant(f.body.Accumulators[i%len(f.body.Accumulators)].Init, f.pins[v])
	}
}

// loop writes a loop over steps of that many copies.
func (f *function) loop(w *writer, s placed, copies int) {
	name, end := "main", "single"
	if copies == 1 {
		name, end = "single", "tail"
	}
	if f.copies == 1 {
		name = "main"
	}
	w.stop = name + "Stop"
	f.steps(w, s, copies, name, end)
	if name == "main" && f.body.Guard != nil {
		w.c.Label("mainEnd")
	}
}

// steps writes the loop proper.
func (f *function) steps(w *writer, s placed, copies int, name, end string) {
	step := copies * f.lanes
	w.c.LEAQ(operand.Mem{Base: gpN, Disp: -step}, gpLimit)
	w.c.CMPQ(gpIndex, gpLimit)
	w.c.JGT(operand.LabelRef(end))
	if name != "single" {
		for _, v := range f.hoist {
			w.constant(v.bits, s.pins[v])
		}
		f.start(w, f.homes[len(f.body.Accumulators):])
	}
	w.align()
	w.c.Label(name + "Loop")
	f.allocate(w, s)
	w.c.ADDQ(operand.Imm(uint64(step)), gpIndex)
	w.c.CMPQ(gpIndex, gpLimit)
	w.c.JLE(operand.LabelRef(name + "Loop"))
}

// mergeCopies folds the accumulators of all copies into those of the first, or hands them out.
func (f *function) mergeCopies(w *writer) {
	count := len(f.body.Accumulators)
	if count == 0 {
		return
	}
	if f.lanesOut() {
		w.c.Load(w.c.Param("lanes"), gpTmp)
		for c := 1; c < f.copies; c++ {
			f.handOut(w, c)
		}
		return
	}
	for k, a := range f.body.Accumulators {
		how := mergeOf(a.Merge)
		how.nan = how.nan && f.flags[k] == nil
		for half := f.copies / 2; half > 0; half /= 2 {
			for c := range half {
				w.merge(how, w.vec, f.pins[f.homes[(c+half)*count+k]], f.pins[f.homes[c*count+k]], 0)
			}
		}
	}
}

// handOut stores the accumulators of a copy where gpTmp points to.
func (f *function) handOut(w *writer, c int) {
	count := len(f.body.Accumulators)
	for k := range count {
		m := operand.Mem{Base: gpTmp, Disp: 4*k*ir.Lanes + c*f.bytes()}
		w.do(w.v("MOVUPS"), w.vec(f.pins[f.homes[c*count+k]]), m)
	}
}

// merge is how two registers become one.
type merge struct {
	name string
	nan  bool // takes care that NaN stays NaN
}

func mergeOf(m ir.Merge) merge {
	return map[ir.Merge]merge{ir.MergeAdd: {"ADDPS", false}, ir.MergeMax: {"MAXPS", true}, ir.MergeMin: {"MINPS", true}}[m]
}

// finish writes the results.
func (f *function) finish(w *writer) {
	if f.lanesOut() {
		w.c.Load(w.c.Param("lanes"), gpTmp)
		f.handOut(w, 0)
	}
	for k, a := range f.body.Accumulators {
		if f.lanesOut() {
			break
		}
		r := f.pins[f.homes[k]]
		switch flag := f.flags[k]; {
		case flag == nil:
		case flag.mask:
			w.c.KNOTW(kreg(f.pins[flag]), kreg(f.pins[flag]))
			w.c.VBROADCASTSS(w.table.constant(math.Float32bits(float32(math.NaN()))), kreg(f.pins[flag]), w.vec(r))
		default:
			w.merge(merge{name: "ORPS"}, w.vec, f.pins[flag], r, 0)
		}
		f.horizontal(w, mergeOf(a.Merge), r)
		m, err := w.c.Return(fmt.Sprintf("r%d", k)).Resolve()
		if err != nil {
			panic(err)
		}
		w.do(w.v("MOVSS"), xreg(0), m.Addr)
	}
	if f.body.Guard != nil {
		w.c.Store(gpN, w.c.Return("done"))
	}
	if f.vex {
		w.c.VZEROUPPER()
	}
}

// horizontal folds the lanes of an accumulator into lane 0 of register 0. The first three registers are spare at the end of a
// function, accumulators having the last ones.
func (f *function) horizontal(w *writer, how merge, r int) {
	half := operand.Imm(1)
	w.move(false, r, 0)
	if f.masks {
		w.c.VEXTRACTF64X4(half, w.vec(0), yreg(1))
		w.merge(how, yreg, 1, 0, 2)
	}
	if f.vex {
		w.c.VEXTRACTF128(half, yreg(0), xreg(1))
		w.merge(how, xreg, 1, 0, 2)
	}
	for _, shuffle := range []uint64{0b01001110, 0b10110001} { // halves, then neighbours
		if f.vex {
			w.c.VPERMILPS(operand.Imm(shuffle), xreg(0), xreg(1))
		} else {
			w.c.MOVAPS(xreg(0), xreg(1))
			w.c.SHUFPS(operand.Imm(shuffle), xreg(1), xreg(1))
		}
		w.merge(how, xreg, 1, 0, 2)
	}
}
