package sim

import (
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/lanes"
)

// stretch is neighbouring instructions that compute with registers and parameters alone, without guards and labels among them. They are executed
// together, with one look at what the checks ask for; where that is not enough, because a register has no value or because the turn of the
// warp or the way of its lanes ends among them, one by one.
type stretch struct {
	n       int32
	steps   []step
	read    []ref // registers that have to have values before; where initialisation is checked
	written []ref // those that have them afterwards
}

// plain tells whether the instruction being compiled may be part of a stretch.
func (c *compiler) plain(in *ir.Instr) bool {
	if in.Guard.Reg != 0 || c.in.flow || c.wrapped || c.cfg.Counters {
		return false
	}
	switch in.Kind() {
	case ir.Arithmetic, ir.SetPred:
	case ir.Load:
		if !c.param {
			return false
		}
	case ir.Move:
		switch in.Op {
		case "mov", "cvt", "cvt.pack", "cvta", "selp", "slct":
		default:
			return false
		}
	default:
		return false
	}
	for i := range in.Args {
		if in.Args[i].Kind == ir.SpecialOperand && volatileSpecials[in.Args[i].Sym] != nil {
			return false
		}
	}
	ok := true
	if c.checks && c.cfg.Checks&CheckAsync != 0 { // registers of products have looks of their own
		used := c.fn.productRegs()
		in.Regs(func(r ir.Reg, _ ir.Role) { ok = ok && !used[r] })
	}
	return ok
}

// join makes stretches of the instructions of the function from first on.
func (c *compiler) join(f *function) {
	label := map[int32]bool{}
	for _, pc := range f.labels {
		label[pc] = true
	}
	code := c.prog.code
	for pc := f.entry; pc < int32(len(code)); pc++ {
		end := pc
		for end < int32(len(code)) && code[end].raw != nil && (end == pc || !label[end]) {
			end++
		}
		if end-pc >= 2 || end > pc && code[pc].op != (lanes.Op{}) {
			code[pc].stretch = c.stretch(code[pc:end])
			pc = end - 1
		}
	}
}

// stretch makes one of instructions.
func (c *compiler) stretch(code []inst) *stretch {
	s := &stretch{n: int32(len(code))}
	has := map[ref]bool{}
	for i := range code {
		o := c.operands(code[i].in)
		for _, r := range o.values {
			if !has[r] {
				has[r] = true
				s.read = append(s.read, r)
			}
		}
		for _, r := range o.written {
			if !has[r] {
				has[r] = true
				s.written = append(s.written, r)
			}
		}
	}
	for i := 0; i < len(code); i++ {
		var ops []lanes.Op
		var single []step
		for ; i < len(code) && code[i].op != (lanes.Op{}); i++ {
			ops, single = append(ops, code[i].op), append(single, code[i].raw)
		}
		if len(ops) > 0 {
			s.steps = append(s.steps, opsStep(ops, single))
		}
		if i < len(code) {
			s.steps = append(s.steps, code[i].raw)
		}
	}
	return s
}

// starts tells whether the group executes a stretch at its instruction as a whole, in at most n instructions.
func (w *warp) starts(s *stretch, n int) bool {
	if int(s.n) > n || w.at+s.n > w.stop {
		return false
	}
	if w.def != nil {
		for _, r := range s.read {
			if w.act&^w.def[r.bank][r.i] != 0 {
				return false
			}
		}
	}
	return true
}

// stretch executes one.
func (w *warp) stretch(s *stretch) {
	m := w.act
	for _, f := range s.steps {
		f(w, m)
	}
	if w.def != nil {
		for _, r := range s.written {
			w.def[r.bank][r.i] |= m
		}
	}
	w.at += s.n
}
