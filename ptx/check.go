package ptx

import (
	"fmt"

	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

// finish is the kernel as a function, and what is wrong with it.
func (k *Kernel) finish() (*ir.Func, []error) {
	f := &ir.Func{Pos: k.pos, Name: k.name, Entry: true, Linkage: ir.Visible, Params: k.params, Vars: k.vars, Bounds: k.bounds,
		Body: []ir.Instr{}}
	body := k.body
	if !k.dead {
		body = append(body[:len(body):len(body)], instr{Instr: ir.Instr{Pos: k.pos, Op: "ret"}})
	}
	c := checker{k: k, body: body}
	if b := k.bounds; b.MaxThreads[0] > 0 && b.ReqThreads[0] > 0 {
		c.fail(k.pos, "MaxThreads and RequireThreads exclude each other")
	} else if b.MinBlocks > 0 && b.Threads() == 0 {
		c.fail(k.pos, "MinBlocks needs MaxThreads or RequireThreads")
	}
	c.unused()
	c.definite()
	final := make([]instr, len(body))
	for i := range body {
		final[i] = body[i]
		final[i].Instr = body[i].Clone()
	}
	k.coalesce(final)
	for i := range final {
		if in := &final[i]; in.Op != "" && !(in.drop && k.idle(in)) {
			f.Body = append(f.Body, in.Instr)
		}
	}
	k.number(f)
	return f, c.errs
}

// idle tells whether none of the results is used.
func (k *Kernel) idle(in *instr) bool {
	for _, d := range in.defs {
		if k.regs[d.reg].uses > 0 {
			return false
		}
	}
	return true
}

// number gives the registers of f their names, in the order of their first mention.
func (k *Kernel) number(f *ir.Func) {
	f.Regs = make([]ir.RegDecl, 1)
	to := make([]ir.Reg, len(k.regs))
	counts := map[string]int{}
	rename := func(r *ir.Reg) {
		if *r == 0 {
			return
		}
		if to[*r] == 0 {
			t := k.regs[*r].typ
			counts[t.stem]++
			f.Regs = append(f.Regs, ir.RegDecl{Name: fmt.Sprintf("%s%d", t.stem, counts[t.stem]), Type: t.reg})
			to[*r] = ir.Reg(len(f.Regs) - 1)
		}
		*r = to[*r]
	}
	var operand func(o *ir.Operand)
	operand = func(o *ir.Operand) {
		rename(&o.Reg)
		for i := range o.Elems {
			operand(&o.Elems[i])
		}
	}
	for i := range f.Body {
		in := &f.Body[i]
		rename(&in.Guard.Reg)
		for j := range in.Args {
			operand(&in.Args[j])
		}
	}
}

// checker looks at a whole kernel.
type checker struct {
	k    *Kernel
	body []instr
	errs []error
}

func (c *checker) fail(pos ir.Pos, format string, args ...any) {
	c.errs = append(c.errs, &Error{Kernel: c.k.name, Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// unused reports instructions none of whose results is read.
func (c *checker) unused() {
	k := c.k
	reported := map[ir.Reg]bool{}
	for i := range c.body {
		in := &c.body[i]
		if len(in.defs) == 0 || !k.idle(in) {
			continue
		}
		r := &k.regs[in.defs[0].reg]
		switch {
		case r.ignore || r.mutable || reported[in.defs[0].reg]:
		case r.what != "":
			c.fail(r.pos, "%s is never used", r.what)
		default:
			c.fail(in.Pos, "the result of %s is never used", in.Opcode())
		}
		reported[in.defs[0].reg] = true
	}
	for i := range k.regs {
		if r := &k.regs[i]; r.mutable && r.uses == 0 {
			c.fail(r.pos, "the variable is never read")
		}
	}
}

// set is a set of registers and views.
type set []uint64

func (s set) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) remove(i int)   { s[i/64] &^= 1 << (i % 64) }

// block is a basic block with what is known before it on every path.
type block struct {
	flow.Block
	in      set
	reached bool
}

// definite reports registers that are read before they are written on some path, and values of variables that are read
// after the variable changed: both are forward "must" problems over the control-flow graph.
func (c *checker) definite() {
	k := c.k
	body := make([]ir.Instr, len(c.body))
	for i := range body {
		body[i] = c.body[i].Instr
	}
	var blocks []block
	for _, b := range flow.New(&ir.Func{Body: body}).Blocks {
		blocks = append(blocks, block{Block: b})
	}
	nregs, size := len(k.regs), len(k.regs)+len(k.views)
	viewsOf := map[ir.Reg][]int{}
	for v, r := range k.views {
		if v > 0 {
			viewsOf[r] = append(viewsOf[r], nregs+v)
		}
	}
	blocks[0].in, blocks[0].reached = make(set, size/64+1), true
	work := []int{0}
	for len(work) > 0 {
		b := &blocks[work[len(work)-1]]
		work = work[:len(work)-1]
		out := append(set(nil), b.in...)
		for i := b.Start; i < b.End; i++ {
			c.transfer(out, &c.body[i], viewsOf, nregs)
		}
		for _, n := range b.Succs {
			if next := &blocks[n]; !next.reached {
				next.reached, next.in = true, append(set(nil), out...)
				work = append(work, n)
			} else if intersect(next.in, out) {
				work = append(work, n)
			}
		}
	}
	reported := map[int]bool{}
	for i := range blocks {
		b := &blocks[i]
		if !b.reached {
			continue
		}
		known := append(set(nil), b.in...)
		for j := b.Start; j < b.End; j++ {
			c.reads(known, &c.body[j], nregs, reported)
			c.transfer(known, &c.body[j], viewsOf, nregs)
		}
	}
}

// intersect takes from a what is not in b and tells whether that was anything.
func intersect(a, b set) bool {
	changed := false
	for i := range a {
		if n := a[i] & b[i]; n != a[i] {
			a[i], changed = n, true
		}
	}
	return changed
}

// transfer is what an instruction does to what is known.
func (c *checker) transfer(known set, in *instr, viewsOf map[ir.Reg][]int, nregs int) {
	if in.Op != "" {
		in.Regs(func(r ir.Reg, role ir.Role) {
			if role == ir.Read {
				return
			}
			if in.Guard.Reg == 0 || in.sure || !c.k.regs[r].mutable {
				known.add(int(r))
			}
			for _, v := range viewsOf[r] {
				known.remove(v)
			}
		})
	}
	for _, v := range in.gens {
		known.add(nregs + int(v))
	}
}

// reads reports what an instruction reads and is not known.
func (c *checker) reads(known set, in *instr, nregs int, reported map[int]bool) {
	if in.Op == "" {
		return
	}
	in.Regs(func(r ir.Reg, role ir.Role) {
		if in.fresh && in.writes(r) {
			return
		}
		if role == ir.Read && !known.has(int(r)) && !reported[int(r)] {
			reported[int(r)] = true
			c.fail(in.Pos, "a %s (of %s) is read before every path to here has set it", c.noun(r), c.k.regs[r].pos)
		}
	})
	for _, v := range in.reads {
		r := c.k.views[v]
		if !known.has(nregs+int(v)) && known.has(int(r)) && !reported[nregs+int(v)] {
			reported[nregs+int(v)] = true
			c.fail(in.Pos, "a value of the variable of %s is read after the variable was set again; Copy keeps a value", c.k.regs[r].pos)
		}
	}
}

func (c *checker) noun(r ir.Reg) string {
	if what := c.k.regs[r].what; what != "" {
		return what
	}
	return "value"
}
