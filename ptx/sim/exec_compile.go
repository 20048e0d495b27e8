package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

// The banks of registers: up to 32 bits, 64 bits (two slots for 128), predicates.
const (
	bank32 = iota
	bank64
	bankP
)

// ref is a register, constant or fixed special register of a program.
type ref struct {
	bank uint8
	bits uint8 // width of the register: what is written is cut to it
	i    int32 // slot in the bank; -1: none, reads as 0, writes are dropped
}

var none = ref{bank: bank64, bits: 64, i: -1}

// get reads a lane's register, zero-extended.
func (w *warp) get(r ref, lane int) uint64 {
	switch {
	case r.i < 0:
		return 0
	case r.bank == bank32:
		return uint64(w.r32[r.i][lane])
	case r.bank == bank64:
		return w.r64[r.i][lane]
	}
	return uint64(w.p[r.i] >> lane & 1)
}

// set writes a lane's register.
func (w *warp) set(r ref, lane int, v uint64) {
	switch {
	case r.i < 0:
	case r.bank == bank32:
		w.r32[r.i][lane] = uint32(v) & (1<<r.bits - 1)
	case r.bank == bank64:
		w.r64[r.i][lane] = v
	case v&1 != 0:
		w.p[r.i] |= 1 << lane
	default:
		w.p[r.i] &^= 1 << lane
	}
}

// uniform reads a register that is the same in all lanes of m, which must not be 0; ok is false if it is not the same.
func (w *warp) uniform(r ref, m uint32) (v uint64, ok bool) {
	v = w.get(r, first(m))
	if m == full && r.bank == bank32 && r.i >= 0 {
		differ := uint32(0)
		for _, x := range w.r32[r.i] {
			differ |= x ^ uint32(v)
		}
		return v, differ == 0
	}
	for m &= m - 1; m != 0; m &= m - 1 {
		if w.get(r, first(m)) != v {
			return v, false
		}
	}
	return v, true
}

// function is a function of a program.
type function struct {
	ir       *ir.Func
	index    int // among the module's
	entry    int32
	end      int32
	regs     []ref            // by ir.Reg
	labels   map[string]int32 // pc
	frame    frame
	products map[ir.Reg]bool // registers of asynchronous products: see productRegs
}

// program is a kernel with all that it may call, compiled.
type program struct {
	name    string
	module  *Module
	kernel  *ir.Func
	code    []inst
	funcs   []*function // those compiled, callees first
	byIndex map[int]*function
	slots   [3]int // of each bank
	caches  int32  // of segments
	consts  []constant
	special map[string]ref // special registers that are fixed for a warp
	// variable are the runs of slots that are neither constants nor special registers, by bank: first, and after the last.
	variable [3][][2]int
	perBlock []blockSpecial
	shared   sharedLayout
	local    bool // frames are needed
	strong   bool // there are accesses that blocks may synchronise by
	heap     bool // malloc and free are called: one goroutine runs all blocks
	recurse  bool // functions may be active more than once
	async    bool // asynchronous operations are to be checked: see compiler.tracks
}

// blockSpecial is the slot, of 32 bits, of a special register that is another one in each block.
type blockSpecial struct {
	slot int32
	read func(w *warp, lane int) uint64
}

// sort tells apart the slots that each block finds zero, those that it finds changed, and those that stay as they are.
func (p *program) sort() {
	var fixed [3]map[int32]bool
	for i := range fixed {
		fixed[i] = map[int32]bool{}
	}
	for _, k := range p.consts {
		fixed[k.ref.bank][k.ref.i] = true
	}
	for name, r := range p.special {
		fixed[r.bank][r.i] = true
		if perBlock[name] {
			p.perBlock = append(p.perBlock, blockSpecial{r.i, specials()[name].read})
		}
	}
	for bank, n := range p.slots {
		for i := 0; i < n; i++ {
			first := i
			for i < n && !fixed[bank][int32(i)] {
				i++
			}
			if i > first {
				p.variable[bank] = append(p.variable[bank], [2]int{first, i})
			}
		}
	}
}

// constant is a slot with the same value in all lanes.
type constant struct {
	ref ref
	v   uint64
}

// compiler makes a program. What it offers handlers: operands ([compiler.src], [compiler.dst], [compiler.addr]), accesses to
// memory ([compiler.memOp]), and to say what the instruction is ([compiler.flow], [compiler.aligned], [compiler.cost]).
type compiler struct {
	prog   *program
	checks bool
	cfg    *Config
	rng    *rand.Rand // of approximations that err
	fn     *function
	in     *inst // the instruction being compiled
	// wrapped: its step is checked and counted inside another one
	wrapped bool
	param   bool // it loads a parameter, as fastParam does
	consts  map[constant]ref
}

// errorf is an error about the instruction being compiled.
func (c *compiler) errorf(in *ir.Instr, sentinel error, format string, args ...any) error {
	return fmt.Errorf("sim: %s: %s: %s: %w", in.Pos, c.fn.ir.InstrString(in), fmt.Sprintf(format, args...), sentinel)
}

func (c *compiler) unsupported(in *ir.Instr) error {
	return c.errorf(in, compute.ErrUnsupported, "the software GPU does not execute this instruction")
}

// flow marks the instruction as one that says itself where its lanes go on; see [inst].
func (c *compiler) flow() { c.in.flow = true }

// aligned makes a step that all 32 lanes of the warp execute together, wherever they come from: mma.sync.aligned and its like.
// Lanes that have exited or that cannot come are a WarpSync fault.
func (c *compiler) aligned(s step) step {
	c.flow()
	s = c.inside(s)
	do := func(w *warp, m uint32) { s(w, m); w.next() }
	return func(w *warp, m uint32) { w.together(m, w.exists, WarpSync, do) }
}

// slot makes a new register.
func (c *compiler) slot(t ir.Type) ref {
	r := ref{bank: bank32, bits: uint8(min(t.Bits(), 64))}
	switch {
	case t == ir.Pred:
		r.bank = bankP
	case t.Bits() > 32:
		r.bank = bank64
	}
	r.i = int32(c.prog.slots[r.bank])
	c.prog.slots[r.bank] += max(1, t.Bits()/64)
	return r
}

// constant returns a register that always has a value.
func (c *compiler) constant(t ir.Type, v uint64) ref {
	if t.Bits() <= 8 && t != ir.Pred {
		t = ir.B32
	}
	k := constant{ref{bits: uint8(min(t.Bits(), 64))}, v}
	if t == ir.Pred {
		k.v &= 1
	}
	if r, ok := c.consts[k]; ok {
		return r
	}
	r := c.slot(t)
	c.consts[k] = r
	c.prog.consts = append(c.prog.consts, constant{r, v})
	return r
}

// src is an operand that is read as type t: a register, an immediate, a special register or the address of a variable.
// Negated predicates are for the caller to look at. A vector or list is an error.
func (c *compiler) src(in *ir.Instr, o *ir.Operand, t ir.Type) (ref, error) {
	switch o.Kind {
	case ir.RegOperand:
		return c.fn.regs[o.Reg], nil
	case ir.IntOperand, ir.F32Operand, ir.F64Operand:
		if t == ir.NoType {
			t = ir.B64
		}
		return c.constant(t, eval.Immediate(*o, t)), nil
	case ir.SpecialOperand:
		return c.specialReg(in, o.Sym)
	case ir.SymOperand:
		v, err := c.symbol(in, o.Sym, o.Off)
		if t.Bits() <= 32 && t != ir.NoType {
			return c.constant(ir.B32, v), err
		}
		return c.constant(ir.B64, v), err
	case ir.SinkOperand, ir.NoOperand:
		return none, nil
	}
	return none, c.errorf(in, compute.ErrArgument, "an operand of an unexpected kind")
}

// arg is src of the i-th argument, none if there are fewer.
func (c *compiler) arg(in *ir.Instr, i int, t ir.Type) (ref, error) {
	if i >= len(in.Args) {
		return none, nil
	}
	return c.src(in, &in.Args[i], t)
}

// dst is an operand that is written; _ gives a ref that drops what is written.
func (c *compiler) dst(in *ir.Instr, o *ir.Operand) (ref, error) {
	switch o.Kind {
	case ir.RegOperand:
		return c.fn.regs[o.Reg], nil
	case ir.SinkOperand:
		return none, nil
	}
	return none, c.errorf(in, compute.ErrArgument, "the destination is no register")
}

// list is the registers of a vector, list or pair, or the one of a single operand, for reading as t.
func (c *compiler) list(in *ir.Instr, o *ir.Operand, t ir.Type) ([]ref, error) {
	elems := o.Elems
	if o.Kind != ir.VecOperand && o.Kind != ir.PairOperand && o.Kind != ir.ListOperand {
		elems = []ir.Operand{*o}
	}
	refs := make([]ref, len(elems))
	for i := range elems {
		r, err := c.src(in, &elems[i], t)
		if err != nil {
			return nil, err
		}
		refs[i] = r
	}
	return refs, nil
}

// address is where an address operand points: base + off. frame: relative to the frame of the current function.
type address struct {
	base  ref
	off   uint64
	frame bool
}

// of is a lane's address.
func (a *address) of(w *warp, lane int) uint64 {
	v := a.off
	if a.frame {
		v += uint64(w.lanes[lane].frame)
	}
	if a.base.i >= 0 {
		v += w.get(a.base, lane)
	}
	return v
}

// all computes the addresses of all lanes, relative to base.
func (a *address) all(w *warp, base uint64, out *[warpSize]uint64) {
	off := a.off - base
	switch r := a.base; {
	case a.frame:
		for l := range out {
			out[l] = a.of(w, l) - base
		}
	case r.i < 0:
		for l := range out {
			out[l] = off
		}
	case r.bank == bank64:
		x := &w.r64[r.i]
		for l := range out {
			out[l] = x[l] + off
		}
	default:
		x := &w.r32[r.i]
		for l := range out {
			out[l] = uint64(x[l]) + off
		}
	}
}

// addr is an address operand. The coordinates after a comma, in Elems, are for the caller.
func (c *compiler) addr(in *ir.Instr, o *ir.Operand) (address, error) {
	switch {
	case o.Kind != ir.AddrOperand:
		return address{}, c.errorf(in, compute.ErrArgument, "an address in brackets is missing")
	case o.Reg != 0:
		return address{base: c.fn.regs[o.Reg], off: uint64(o.Off)}, nil
	case o.Sym == "":
		return address{base: none, off: uint64(o.Off)}, nil
	}
	if off, ok := c.fn.frame.at[o.Sym]; ok {
		return address{base: none, off: uint64(off) + uint64(o.Off), frame: true}, nil
	}
	v, err := c.symbol(in, o.Sym, o.Off)
	switch in.Op {
	case "ld", "st", "atom", "red":
		if in.Space() == ir.NoSpace && c.variable(o.Sym) != nil { // ptxas takes the space of the variable
			v = generic(c.variable(o.Sym).Space, v)
		}
	}
	return address{base: none, off: v}, err
}

// memOp is how an instruction accesses memory: from its opcode, with size bytes per access.
func (c *compiler) memOp(in *ir.Instr, size int, write bool) *memOp {
	op := &memOp{space: in.Space(), size: size, write: write, atomic: in.Kind() == ir.Atomic, slot: c.prog.caches}
	c.prog.caches++
	op.sem = in.First(ir.Volatile, ir.Weak, ir.Relaxed, ir.Acquire, ir.Release, ir.AcqRel, ir.SC, "mmio")
	op.scope = in.First(ir.ScopeCTA, ir.ScopeCluster, ir.ScopeGPU, ir.ScopeSys)
	if op.atomic && op.sem == "" {
		op.sem = ir.Relaxed
	}
	if op.strong() && op.scope == "" {
		op.scope = ir.ScopeGPU
		if op.sem == ir.Volatile {
			op.scope = ir.ScopeSys
		}
	}
	if op.strong() && op.space != ir.SharedSpace && op.space != ir.LocalSpace {
		c.prog.strong = true
	}
	return op
}

// function compiles a function's body after the code that there is.
func (c *compiler) function(f *function) error {
	c.fn = f
	f.entry = int32(len(c.prog.code))
	c.layoutFrame(f)
	f.regs = make([]ref, len(f.ir.Regs))
	for i, d := range f.ir.Regs {
		if i > 0 {
			if d.Type.Bits() == 0 {
				return fmt.Errorf("sim: %s: register %s of type %s: %w", f.ir.Pos, d.Name, d.Type, compute.ErrUnsupported)
			}
			f.regs[i] = c.slot(d.Type)
		}
	}
	f.labels = map[string]int32{}
	pc := f.entry
	for i := range f.ir.Body {
		switch in := &f.ir.Body[i]; {
		case in.Op == ir.OpLabel:
			f.labels[in.Args[0].Sym] = pc
		case in.Kind() != ir.Directive:
			pc++
		}
	}
	f.end = pc + 1
	for i := range f.ir.Body {
		if in := &f.ir.Body[i]; in.Kind() != ir.Directive {
			if err := c.instr(in); err != nil {
				return err
			}
		}
	}
	// Falling off the end is ret.
	if err := c.instr(&ir.Instr{Op: "ret", Pos: f.ir.Pos}); err != nil {
		return err
	}
	c.join(f)
	return nil
}

func (c *compiler) instr(in *ir.Instr) error {
	c.prog.code = append(c.prog.code, inst{in: in, fn: c.fn, guard: -1})
	c.in = &c.prog.code[len(c.prog.code)-1]
	if in.Guard.Reg != 0 {
		g := c.fn.regs[in.Guard.Reg]
		if g.bank != bankP {
			return c.errorf(in, compute.ErrArgument, "the guard is no predicate")
		}
		c.in.guard = g.i
		if in.Guard.Not {
			c.in.not = full
		}
	}
	h := handlerOf(in.Op)
	if h == nil {
		return c.unsupported(in)
	}
	c.in.cost = costOf(in)
	c.wrapped, c.param = false, false
	s, err := h(c, in)
	if err != nil {
		return err
	}
	if c.plain(in) {
		c.in.raw = s
	}
	if !c.wrapped {
		s = c.wrap(in, s)
	}
	c.in.step = s
	return nil
}
