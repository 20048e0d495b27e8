package sim

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
)

// frame is where the variables of a function lie in a thread's local memory.
type frame struct {
	at   map[string]int
	size int
}

// add places a variable after the others.
func (f *frame) add(v *ir.Var) {
	if f.at == nil {
		f.at = map[string]int{}
	}
	a := v.Alignment()
	f.size = (f.size + a - 1) &^ (a - 1)
	f.at[v.Name] = f.size
	f.size += v.Size()
}

// frameAlign is what frames begin at a multiple of.
const frameAlign = 16

// layoutFrame places a function's .local and .param variables, and a device function's parameters and results.
func (c *compiler) layoutFrame(f *function) {
	for i := range f.ir.Vars {
		if v := &f.ir.Vars[i]; v.Space == ir.LocalSpace || v.Space == ir.ParamSpace {
			f.frame.add(v)
		}
	}
	if !f.ir.Entry {
		for _, list := range [][]ir.Var{f.ir.Params, f.ir.Rets} {
			for i := range list {
				if list[i].Space == ir.ParamSpace {
					f.frame.add(&list[i])
				}
			}
		}
		c.prog.local = true
	}
	f.frame.size = (f.frame.size + frameAlign - 1) &^ (frameAlign - 1)
	c.prog.local = c.prog.local || f.frame.size > 0
}

// frameAddress is the offset of a variable's address, in its own space, from the frame of the current function; false for
// what is in no frame.
func (c *compiler) frameAddress(name string) (uint64, bool) {
	off, ok := c.fn.frame.at[name]
	if v := localVar(c.fn.ir, name); ok && (v == nil || v.Space == ir.ParamSpace) {
		return uint64(off) + frameParams, true
	}
	return uint64(off), ok
}

// sharedLayout is where shared variables lie in a block's shared memory.
type sharedLayout struct {
	at     map[*ir.Var]int
	static int // bytes of variables with a size; the dynamic ones lie after
	dyn    int // offset of the dynamic ones
}

// layoutShared places the shared variables that the program's functions mention.
func (c *compiler) layoutShared() error {
	l := &c.prog.shared
	l.at = map[*ir.Var]int{}
	var open []*ir.Var
	align := 16
	add := func(v *ir.Var) {
		if _, ok := l.at[v]; ok || v.Space != ir.SharedSpace {
			return
		}
		a := v.Alignment()
		if v.Size() == 0 {
			l.at[v] = 0
			open = append(open, v)
			align = max(align, a)
			return
		}
		l.static = (l.static + a - 1) &^ (a - 1)
		l.at[v] = l.static
		l.static += v.Size()
	}
	for _, f := range c.prog.funcs {
		for i := range f.ir.Vars {
			add(&f.ir.Vars[i])
		}
		for i := range f.ir.Body {
			for j := range f.ir.Body[i].Args {
				if err := symbols(&f.ir.Body[i].Args[j], func(name string) error {
					if v := moduleVar(c.prog.module.ir, name); v != nil && localVar(f.ir, name) == nil {
						add(v)
					}
					return nil
				}); err != nil {
					return err
				}
			}
		}
	}
	l.dyn = (l.static + align - 1) &^ (align - 1)
	for _, v := range open {
		l.at[v] = l.dyn
	}
	if l.static > int(rankSize) {
		return fmt.Errorf("sim: kernel %s has %d bytes of shared variables: %w", c.prog.name, l.static, compute.ErrTooLarge)
	}
	return nil
}

func moduleVar(m *ir.Module, name string) *ir.Var {
	for i := range m.Vars {
		if m.Vars[i].Name == name {
			return &m.Vars[i]
		}
	}
	return nil
}

func localVar(f *ir.Func, name string) *ir.Var {
	for i := range f.Vars {
		if f.Vars[i].Name == name {
			return &f.Vars[i]
		}
	}
	return nil
}

// symbols calls f with every symbol in an operand.
func symbols(o *ir.Operand, f func(string) error) error {
	if o.Sym != "" && (o.Kind == ir.SymOperand || o.Kind == ir.AddrOperand) {
		if err := f(o.Sym); err != nil {
			return err
		}
	}
	for i := range o.Elems {
		if err := symbols(&o.Elems[i], f); err != nil {
			return err
		}
	}
	return nil
}

// symbol is the address of a variable or function in its own space; for what lies in frames see [compiler.addr].
func (c *compiler) symbol(in *ir.Instr, name string, off int64) (uint64, error) {
	f := c.fn.ir
	if name == "WARP_SZ" {
		return warpSize, nil
	}
	if v := c.variable(name); v != nil && v.Space == ir.SharedSpace {
		return uint64(c.prog.shared.at[v]) + uint64(off), nil
	}
	if f.Entry {
		for i := range f.Params {
			if f.Params[i].Name == name {
				return uint64(args.LayoutOf(f.Params).Param(i).Offset) + uint64(off), nil
			}
		}
	}
	a, err := c.prog.module.address(name, false)
	if err != nil {
		return 0, c.errorf(in, compute.ErrArgument, "%s is no variable or function that is known here", name)
	}
	return a + uint64(off), nil
}

// variable is that of the function or else of the module with the name, nil if there is none.
func (c *compiler) variable(name string) *ir.Var {
	if v := localVar(c.fn.ir, name); v != nil {
		return v
	}
	return moduleVar(c.prog.module.ir, name)
}

// resetFrames gives each lane the kernel's frame and nothing above it.
func (w *warp) resetFrames() {
	f := w.prog.funcs[len(w.prog.funcs)-1]
	for l := range w.lanes {
		lane := &w.lanes[l]
		lane.calls, lane.frame = lane.calls[:0], 0
		lane.local.space, lane.local.name = ir.LocalSpace, "the thread's local memory"
		lane.local.data = lane.local.data[:0]
		w.grow(lane, f.frame.size)
		clear(lane.active)
	}
}

// maxLocal is how many bytes of frames a thread may have.
const maxLocal = 512 << 10

// grow adds n bytes to a lane's frames, zero and without value.
func (w *warp) grow(lane *lane, n int) {
	s := &lane.local
	at := len(s.data)
	if at+n <= cap(s.data) {
		s.data = s.data[:at+n]
		clear(s.data[at:])
	} else {
		s.data = append(s.data, make([]byte, n)...)
	}
	s.size = len(s.data)
	if w.mon != nil && n > 0 {
		w.mon.forget(s, at, n)
	}
}
