package sim

import (
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

func compileRet(c *compiler, in *ir.Instr) (step, error) {
	c.flow()
	if c.fn.ir.Entry && !c.prog.recurse {
		return func(w *warp, m uint32) { w.exit(m) }, nil
	}
	return func(w *warp, m uint32) { w.ret(m) }, nil
}

func compileExit(c *compiler, in *ir.Instr) (step, error) {
	c.flow()
	return func(w *warp, m uint32) { w.exit(m) }, nil
}

func compileTrap(c *compiler, in *ir.Instr) (step, error) {
	return func(w *warp, m uint32) { w.fault(Trap, first(m), 0, 0, "") }, nil
}

func (c *compiler) label(in *ir.Instr, o *ir.Operand) (int32, error) {
	pc, ok := c.fn.labels[o.Sym]
	if !ok || o.Kind != ir.LabelOperand {
		return 0, c.errorf(in, compute.ErrArgument, "no label %s in %s", o.Sym, c.fn.ir.Name)
	}
	return pc, nil
}

func compileBranch(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 1 {
		return nil, c.unsupported(in)
	}
	pc, err := c.label(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	c.flow()
	return func(w *warp, m uint32) { w.jump(m, pc) }, nil
}

// compileIndexedBranch compiles brx.idx i, list; where list labels a .branchtargets.
func compileIndexedBranch(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 2 {
		return nil, c.unsupported(in)
	}
	index, err := c.arg(in, 0, ir.U32)
	if err != nil {
		return nil, err
	}
	var targets []int32
	body := c.fn.ir.Body
	for i := range body[:max(0, len(body)-1)] {
		if body[i].Op == ir.OpLabel && body[i].Args[0].Sym == in.Args[1].Sym && body[i+1].Op == ir.OpBranchTargets {
			list := body[i+1].Args
			if len(list) == 1 && len(list[0].Elems) > 0 {
				list = list[0].Elems
			}
			for j := range list {
				pc, err := c.label(in, &list[j])
				if err != nil {
					return nil, err
				}
				targets = append(targets, pc)
			}
		}
	}
	if targets == nil {
		return nil, c.errorf(in, compute.ErrArgument, "no .branchtargets with the label %s", in.Args[1].Sym)
	}
	c.flow()
	return func(w *warp, m uint32) {
		w.place(w.act&^m, w.at+1)
		for l := m; l != 0; l &= l - 1 {
			i := w.get(index, first(l))
			if i >= uint64(len(targets)) {
				w.fault(BadOperand, first(l), 0, 0, "index %d of %d targets", i, len(targets))
			}
			w.pcs[first(l)] = targets[i]
		}
		w.scatter()
	}, nil
}

// call is an active call of a lane.
type call struct {
	fn    *function // called
	back  int32     // where it returns to
	frame int       // of the caller
	site  *callSite
	saved []uint64 // the lane's registers of fn as they were, if another call of it is active
	def   []bool   // which of them had a value
}

// callSite is a compiled call.
type callSite struct {
	in     *ir.Instr
	caller *function
	args   []passed
	rets   []passed
	byAddr ref
	index  int // of the function called; -1: by address
}

// passed is an argument or result at the caller: a .param variable in its frame, or a register.
type passed struct {
	at  int // offset in the frame; -1: reg
	reg ref
}

// callee returns the function that a call names, nil if it calls by address, and where that operand is.
func (c *compiler) callee(in *ir.Instr) *ir.Func {
	if i := calleeArg(in); i < len(in.Args) {
		if o := &in.Args[i]; o.Kind == ir.SymOperand || o.Kind == ir.LabelOperand {
			return c.prog.module.ir.Func(o.Sym)
		}
	}
	return nil
}

func calleeArg(in *ir.Instr) int {
	return b2i(len(in.Args) > 0 && in.Args[0].Kind == ir.ListOperand)
}

func compileCall(c *compiler, in *ir.Instr) (step, error) {
	at := calleeArg(in)
	if at >= len(in.Args) {
		return nil, c.unsupported(in)
	}
	site := &callSite{in: in, caller: c.fn, index: -1}
	var err error
	if f := c.callee(in); f != nil {
		site.index = slices.Index(c.prog.module.ir.Funcs, f)
	} else if in.Args[at].Kind == ir.RegOperand {
		site.byAddr = c.fn.regs[in.Args[at].Reg]
	} else {
		return nil, c.errorf(in, compute.ErrArgument, "%s is no function", in.Args[at].Sym)
	}
	if at == 1 {
		if site.rets, err = c.passed(in, &in.Args[0]); err != nil {
			return nil, err
		}
	}
	if at+1 < len(in.Args) && in.Args[at+1].Kind == ir.ListOperand {
		if site.args, err = c.passed(in, &in.Args[at+1]); err != nil {
			return nil, err
		}
	}
	if site.index >= 0 {
		f := c.prog.module.ir.Funcs[site.index]
		if len(site.args) != len(f.Params) || len(site.rets) != len(f.Rets) {
			return nil, c.errorf(in, compute.ErrArgument, "%d arguments and %d results, %s has %d and %d",
				len(site.args), len(site.rets), f.Name, len(f.Params), len(f.Rets))
		}
		if f.Body == nil {
			return c.runtimeCall(in, f, site)
		}
	}
	c.flow()
	return func(w *warp, m uint32) {
		w.place(w.act&^m, w.at+1)
		for l := m; l != 0; l &= l - 1 {
			w.call(first(l), site)
		}
		w.scatter()
	}, nil
}

func (c *compiler) passed(in *ir.Instr, list *ir.Operand) ([]passed, error) {
	out := make([]passed, len(list.Elems))
	for i := range list.Elems {
		o := &list.Elems[i]
		if off, ok := c.fn.frame.at[o.Sym]; ok && (o.Kind == ir.SymOperand || o.Kind == ir.LabelOperand) {
			out[i] = passed{at: off + int(o.Off)}
			continue
		}
		r, err := c.src(in, o, ir.NoType)
		if err != nil {
			return nil, err
		}
		out[i] = passed{at: -1, reg: r}
	}
	return out, nil
}

// call makes one lane enter a function.
func (w *warp) call(l int, site *callSite) {
	lane := &w.lanes[l]
	index := site.index
	if index < 0 {
		addr := w.get(site.byAddr, l)
		index = int((addr - funcWindow) / 16)
		if addr < funcWindow || addr%16 != 0 || w.prog.byIndex[index] == nil {
			w.fault(BadOperand, l, 0, 0, "call of address %#x, where no function is", addr)
		}
	}
	fn := w.prog.byIndex[index]
	if len(site.args) != len(fn.ir.Params) || len(site.rets) != len(fn.ir.Rets) {
		w.fault(BadOperand, l, 0, 0, "%d arguments and %d results, %s has %d and %d",
			len(site.args), len(site.rets), fn.ir.Name, len(fn.ir.Params), len(fn.ir.Rets))
	}
	k := call{fn: fn, back: w.at + 1, frame: lane.frame, site: site}
	frame := len(lane.local.data)
	if frame+fn.frame.size > maxLocal || len(lane.calls) > maxLocal/16 {
		w.fault(OutOfBounds, l, ir.LocalSpace, uint64(frame), "the stack overflows: %d calls are active", len(lane.calls))
	}
	w.grow(lane, fn.frame.size)
	args := make([]uint64, len(site.args)) // read before a recursive call's registers are saved and written
	for i := range site.args {
		if p := &site.args[i]; p.at < 0 {
			args[i] = w.get(p.reg, l)
		}
	}
	if w.prog.recurse {
		if lane.active == nil {
			lane.active = make([]int32, len(w.prog.module.ir.Funcs))
		}
		if lane.active[index]++; lane.active[index] > 1 {
			k.save(w, l)
		}
	}
	for i := range site.args {
		p, v := &site.args[i], &fn.ir.Params[i]
		w.pass(l, p, args[i], fn, v, frame, true)
	}
	lane.calls = append(lane.calls, k)
	lane.frame = frame
	w.pcs[l] = fn.entry
}

// pass moves an argument into a function's parameter or, with into false, a result out of it.
func (w *warp) pass(l int, p *passed, value uint64, fn *function, v *ir.Var, frame int, into bool) {
	lane := &w.lanes[l]
	data := lane.local.data
	if v.Space == ir.RegSpace {
		r := fn.param(v.Name)
		switch {
		case p.at >= 0 && into:
			w.set(r, l, load(data[lane.frame+p.at:], v.Type.Size()))
		case p.at >= 0:
			store(data[lane.frame+p.at:], v.Type.Size(), w.get(r, l))
		case into:
			w.set(r, l, value)
		}
		if into {
			w.define(r, l)
		}
		return
	}
	inner := frame + fn.frame.at[v.Name]
	n := v.Size()
	switch {
	case p.at >= 0:
		to, from := inner, lane.frame+p.at
		if !into {
			to, from = from, to
		}
		copy(data[to:to+n], data[from:from+n])
		if w.mon != nil {
			w.mon.carry(&lane.local, to, &lane.local, from, n)
		}
	case into:
		store(data[inner:], min(n, 8), value)
		if w.mon != nil {
			w.mon.wrote(&lane.local, inner, n)
		}
	}
}

// define notes that a lane's register has a value.
func (w *warp) define(r ref, l int) {
	if w.def != nil && r.i >= 0 {
		w.def[r.bank][r.i] |= 1 << l
	}
}

// param is the register of a function that stands for a parameter or result in register space.
func (f *function) param(name string) ref {
	for i := range f.ir.Regs {
		if f.ir.Regs[i].Name == name {
			return f.regs[i]
		}
	}
	return none
}

// save keeps a lane's registers of the function called.
func (k *call) save(w *warp, l int) {
	for _, r := range k.fn.regs[min(1, len(k.fn.regs)):] {
		k.saved = append(k.saved, w.get(r, l))
		if w.def != nil {
			k.def = append(k.def, w.def[r.bank][r.i]>>l&1 != 0)
		}
	}
}

func (k *call) restore(w *warp, l int) {
	for i, r := range k.fn.regs[min(1, len(k.fn.regs)):] {
		w.set(r, l, k.saved[i])
		if w.def != nil {
			w.def[r.bank][r.i] &^= 1 << l
			if k.def[i] {
				w.def[r.bank][r.i] |= 1 << l
			}
		}
	}
}

// ret makes lanes return from a function; those that return from the kernel exit.
func (w *warp) ret(m uint32) {
	if m == 0 {
		w.next()
		return
	}
	at := w.at
	w.place(w.act&^m, at+1)
	var ended uint32
	for ; m != 0; m &= m - 1 {
		l := first(m)
		lane := &w.lanes[l]
		if len(lane.calls) == 0 {
			ended |= 1 << l
			continue
		}
		k := lane.calls[len(lane.calls)-1]
		lane.calls = lane.calls[:len(lane.calls)-1]
		frame := lane.frame
		lane.frame = k.frame
		results := make([]uint64, 0, 4) // of registers, which the restored ones may overwrite
		for i := range k.site.rets {
			p, v := &k.site.rets[i], &k.fn.ir.Rets[i]
			if p.at < 0 && v.Space == ir.RegSpace {
				results = append(results, w.get(k.fn.param(v.Name), l))
				continue
			}
			if p.at < 0 {
				results = append(results, load(lane.local.data[frame+k.fn.frame.at[v.Name]:], min(8, v.Size())))
				continue
			}
			w.pass(l, p, 0, k.fn, v, frame, false)
		}
		lane.local.data = lane.local.data[:frame]
		if w.prog.recurse {
			if lane.active[k.fn.index]--; k.saved != nil {
				k.restore(w, l)
			}
		}
		for i := range k.site.rets {
			if p := &k.site.rets[i]; p.at < 0 {
				w.set(p.reg, l, results[0])
				w.define(p.reg, l)
				results = results[1:]
			}
		}
		w.pcs[l] = k.back
	}
	w.scatter()
	if ended != 0 {
		w.act, w.at = ended, at
		w.exit(ended)
		w.repick()
	}
}
