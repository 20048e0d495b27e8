package x86

import (
	"fmt"
	"reflect"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Registers with a fixed use.
var (
	gpY     = reg.RDI
	gpIn    = []reg.GPPhysical{reg.RSI, reg.RDX, reg.RBX, reg.R11}
	gpN     = reg.RCX
	gpIndex = reg.RAX // elements done
	gpLimit = reg.R8  // where a loop ends; in the tail the number of elements left
	gpTmp   = reg.R9
	gpMask  = reg.R10 // the tail's mask in the table
)

// table is the read-only data of a file: constants, each repeated over a vector, or once where operands in memory broadcast.
type table struct {
	*set
	bits  []uint32
	index map[uint32]int
}

const tableName = "constants"

func (t *table) entry() int {
	if t.masks {
		return 4
	}
	return t.bytes()
}

// maskSize is the size of what the table begins with where tails have their mask in memory: a vector of ones, then of zeros.
func (t *table) maskSize() int {
	if t.masks {
		return 0
	}
	return 2 * t.bytes()
}

func (t *table) at(offset int) operand.Mem {
	return operand.NewDataAddr(operand.NewStaticSymbol(tableName), offset)
}

func (t *table) constant(bits uint32) operand.Mem {
	if _, ok := t.index[bits]; !ok {
		t.index[bits] = len(t.bits)
		t.bits = append(t.bits, bits)
	}
	return t.at(t.maskSize() + t.entry()*t.index[bits])
}

func (t *table) write(c *build.Context) {
	c.StaticGlobal(tableName)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for range t.maskSize() / 16 {
		c.AppendDatum(operand.U64(1<<64 - 1))
	}
	for range t.maskSize() / 16 {
		c.AppendDatum(operand.U64(0))
	}
	for _, b := range t.bits {
		if t.masks {
			c.AppendDatum(operand.U32(b))
			continue
		}
		for range t.entry() / 8 {
			c.AppendDatum(operand.U64(uint64(b)<<32 | uint64(b)))
		}
	}
}

// writer writes instructions whose registers are known.
type writer struct {
	c *build.Context // embedded, it would add thousands of methods to each type, which take most of a minute to compile
	*set
	table  *table
	params []operand.Mem
	frame  operand.Mem
	stop   string // label to leave a loop to when the guard holds
	labels int
	// streaming says that elements come from memory and go there rather than from and to caches.
	streaming bool
}

// do writes an instruction by the name of its method.
func (w *writer) do(name string, operands ...operand.Op) {
	m := reflect.ValueOf(w.c).MethodByName(name)
	if !m.IsValid() {
		panic("x86: avo has no " + name)
	}
	args := make([]reflect.Value, len(operands))
	for i, o := range operands {
		args[i] = reflect.ValueOf(o)
	}
	m.Call(args)
}

// label returns a label that the function does not have yet.
func (w *writer) label(name string) string {
	w.labels++
	return fmt.Sprintf("%s%d", name, w.labels)
}

// align begins a loop where the processor fetches well.
func (w *writer) align() {
	w.c.Instruction(&ir.Instruction{Opcode: "PCALIGN", Operands: []operand.Op{operand.Imm(32)}})
}

func (w *writer) vec(r int) reg.Register { return reg.Vector.Lookup(reg.Index(r), w.spec) }

func xreg(r int) reg.Register { return reg.Vector.Lookup(reg.Index(r), reg.S128) }

func yreg(r int) reg.Register { return reg.Vector.Lookup(reg.Index(r), reg.S256) }

func kreg(r int) reg.Register { return reg.Opmask.Lookup(reg.Index(r), reg.S64) }

func (w *writer) register(mask bool, r int) reg.Register {
	if mask {
		return kreg(r)
	}
	return w.vec(r)
}

// name is the set's name of an instruction that SSE has without the V.
func (w *writer) v(name string) string {
	if w.vex {
		return "V" + name
	}
	return name
}

func (w *writer) slot(i int) operand.Mem { return w.frame.Offset(i * w.bytes()) }

func (w *writer) store(mask bool, r, slot int) {
	if mask {
		w.c.KMOVW(kreg(r), w.slot(slot))
		return
	}
	w.do(w.v("MOVUPS"), w.vec(r), w.slot(slot))
}

func (w *writer) move(mask bool, from, to int) {
	if mask {
		w.c.KMOVW(kreg(from), kreg(to))
		return
	}
	w.do(w.v("MOVAPS"), w.vec(from), w.vec(to))
}

// fetch loads a value that is in memory.
func (w *writer) fetch(a *allocator, v *value, r int) {
	s, slot := a.slot[v]
	in := a.inputs[v]
	switch {
	case in != nil:
		w.load(a, in, r)
	case slot && v.mask:
		w.c.KMOVW(w.slot(s), kreg(r))
	case slot:
		w.do(w.v("MOVUPS"), w.slot(s), w.vec(r))
	case v.kind == tailMask:
		w.do(w.v("MOVUPS"), operand.Mem{Base: gpMask}, w.vec(r))
	case v.kind == parameter:
		w.argument(v, r)
	default:
		w.constant(v.bits, r)
	}
}

// argument loads a parameter of the Go function; see signature.
func (w *writer) argument(v *value, r int) {
	if !w.masks {
		w.broadcast(w.params[v.index], r)
		return
	}
	w.c.MOVQ(w.params[v.index], gpTmp)
	w.c.VPBROADCASTD(gpTmp.As32(), w.vec(r))
}

func (w *writer) broadcast(m operand.Mem, r int) {
	if w.vex {
		w.c.VBROADCASTSS(m, w.vec(r))
		return
	}
	w.c.MOVSS(m, xreg(r))
	w.c.SHUFPS(operand.Imm(0), xreg(r), xreg(r))
}

func (w *writer) constant(bits uint32, r int) {
	switch {
	case bits == 0 && w.masks:
		w.c.VPXORD(w.vec(r), w.vec(r), w.vec(r))
	case bits == 0 && w.vex:
		w.c.VXORPS(xreg(r), xreg(r), xreg(r))
	case bits == 0:
		w.c.XORPS(xreg(r), xreg(r))
	case w.masks:
		w.c.VBROADCASTSS(w.table.constant(bits), w.vec(r))
	default:
		w.do(w.v("MOVAPS"), w.table.constant(bits), w.vec(r))
	}
}

// plain writes an instruction with its result in register r.
func (w *writer) plain(a *allocator, o op, imm int, args []place, r int) {
	name, f := w.form(o)
	var operands []operand.Op
	broadcast := false
	for i := len(args) - 1; i >= 0; i-- {
		if o == opLogic && i == f.tied || !w.vex && i == f.tied {
			continue // the result itself
		}
		x, b := w.place(a, args[i])
		operands = append(operands, x)
		broadcast = broadcast || b
	}
	if w.masks && f.masked && o != opKeep { // mask, second, first: the mask belongs before the result
		operands = append(operands[1:], operands[0])
	} else if o == opKeep {
		operands = []operand.Op{operands[1], operands[0]}
	}
	dst := w.register(w.masks && o.givesMask(), r)
	i := operand.Imm(uint64(imm))
	switch {
	case f.imm && !w.vex && o == opCmp:
		operands = append(operands, dst, i)
	case f.imm && !w.vex:
		operands = []operand.Op{i, dst}
	case f.imm:
		operands = append([]operand.Op{i}, append(operands, dst)...)
	default:
		operands = append(operands, dst)
	}
	if broadcast {
		name += "_BCST"
	}
	w.do(name, operands...)
}

// place is a register or, broadcast if the second result says so, memory.
func (w *writer) place(a *allocator, p place) (operand.Op, bool) {
	if p.reg >= 0 {
		return w.register(p.v.mask, p.reg), false
	}
	if s, ok := a.slot[p.v]; ok {
		return w.slot(s), false
	}
	if in := a.inputs[p.v]; in != nil {
		return w.input(in), false
	}
	return w.table.constant(p.v.bits), w.masks
}

// fused writes a fused multiplication and addition onto register r.
func (w *writer) fused(a *allocator, name string, rest []place, r int) {
	first, broadcast := w.place(a, rest[0])
	second, _ := w.place(a, rest[1])
	if broadcast {
		name += "_BCST"
	}
	w.do(name, first, second, w.vec(r))
}

// element is the address of a vector of an input or of the result.
func (w *writer) element(base reg.Register, copy int) operand.Mem {
	return operand.Mem{Base: base, Index: gpIndex, Scale: 4, Disp: copy * w.bytes()}
}

// input is the address of a vector of an input, which streaming loops ask for before they need it.
func (w *writer) input(in *instr) operand.Mem {
	const line, ahead = 64, 2048
	m := w.element(gpIn[in.input], in.copy)
	if w.streaming && in.copy*w.bytes()%line == 0 {
		w.c.PREFETCHT1(m.Offset(ahead))
	}
	return m
}

func (w *writer) load(a *allocator, in *instr, r int) {
	m := w.input(in)
	mask := a.sec.mask
	switch {
	case mask == nil:
		w.do(w.v("MOVUPS"), m, w.vec(r))
	case w.masks:
		w.c.VMOVUPS_Z(m, kreg(a.reg[mask]), w.vec(r))
	case w.vex:
		w.c.VMASKMOVPS(m, w.vec(a.reg[mask]), w.vec(r))
	default:
		x, one, two, end := xreg(r), w.label("load"), w.label("load"), w.label("load")
		w.c.CMPQ(gpLimit, operand.Imm(2))
		w.c.JLT(operand.LabelRef(one))
		w.c.JEQ(operand.LabelRef(two))
		w.c.MOVSS(m.Offset(8), x)
		w.c.MOVLHPS(x, x)
		w.c.MOVLPS(m, x)
		w.c.JMP(operand.LabelRef(end))
		w.c.Label(two)
		w.c.MOVSD(m, x)
		w.c.JMP(operand.LabelRef(end))
		w.c.Label(one)
		w.c.MOVSS(m, x)
		w.c.Label(end)
	}
}

// save stores a vector of the result.
func (w *writer) save(a *allocator, in *instr) {
	m := w.element(gpY, in.copy)
	r := a.reg[in.args[0]]
	mask := a.sec.mask
	switch {
	case mask == nil && w.streaming:
		w.c.VMOVNTPS(w.vec(r), m)
	case mask == nil:
		w.do(w.v("MOVUPS"), w.vec(r), m)
	case w.masks:
		w.c.VMOVUPS(w.vec(r), kreg(a.reg[mask]), m)
	case w.vex:
		w.c.VMASKMOVPS(w.vec(r), w.vec(a.reg[mask]), m)
	default:
		x, one, end := xreg(r), w.label("store"), w.label("store")
		swapHalves := operand.Imm(0b01001110)
		w.c.CMPQ(gpLimit, operand.Imm(2))
		w.c.JLT(operand.LabelRef(one))
		w.c.MOVLPS(x, m)
		w.c.JEQ(operand.LabelRef(end))
		w.c.SHUFPS(swapHalves, x, x)
		w.c.MOVSS(x, m.Offset(8))
		w.c.SHUFPS(swapHalves, x, x) // others may need it yet
		w.c.JMP(operand.LabelRef(end))
		w.c.Label(one)
		w.c.MOVSS(x, m)
		w.c.Label(end)
	}
}

// test leaves the loop if the mask is true in any lane.
func (w *writer) test(a *allocator, in *instr) {
	m := w.register(in.args[0].mask, a.reg[in.args[0]])
	if w.masks {
		w.c.KORTESTW(m, m)
	} else {
		w.do(w.v("MOVMSKPS"), m, gpTmp.As32())
		w.c.TESTL(gpTmp.As32(), gpTmp.As32())
	}
	w.c.JNE(operand.LabelRef(w.stop))
}

// leftMask makes the mask of the tail, whose number of elements is in gpLimit.
func (w *writer) leftMask(r int) {
	if w.masks {
		w.c.MOVL(operand.U32(1<<32-1), gpTmp.As32())
		w.c.BZHIL(gpLimit.As32(), gpTmp.As32(), gpTmp.As32())
		w.c.KMOVW(gpTmp.As32(), kreg(r))
		return
	}
	w.c.LEAQ(w.table.at(w.bytes()), gpMask)
	w.c.MOVQ(gpLimit, gpTmp)
	w.c.NEGQ(gpTmp)
	w.c.LEAQ(operand.Mem{Base: gpMask, Index: gpTmp, Scale: 4}, gpMask)
}

// merge folds register s into d, both of a size that vec gives.
func (w *writer) merge(how merge, vec func(int) reg.Register, s, d, spare int) {
	x, y, t := vec(s), vec(d), vec(spare)
	unordered := operand.Imm(cmpUnord)
	fold := func() {
		if w.vex {
			w.do("V"+how.name, x, y, y)
		} else {
			w.do(how.name, x, y)
		}
	}
	switch { // the instruction gives the second operand if either is NaN; care for the first
	case !how.nan:
		fold()
	case y.Size() == 64:
		w.c.VCMPPS(unordered, y, y, kreg(firstMask))
		w.c.VMOVAPS(y, t)
		fold()
		w.c.VMOVAPS(t, kreg(firstMask), y)
	case w.vex:
		w.c.VCMPPS(unordered, y, y, t)
		fold()
		w.c.VORPS(t, y, y)
	default:
		w.c.MOVAPS(y, t)
		w.c.CMPPS(t, t, unordered)
		fold()
		w.c.ORPS(t, y)
	}
}
