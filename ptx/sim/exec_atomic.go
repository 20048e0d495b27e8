package sim

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

func compileAtom(c *compiler, in *ir.Instr) (step, error) { return compileAtomic(c, in, 1) }

func compileRed(c *compiler, in *ir.Instr) (step, error) { return compileAtomic(c, in, 0) }

// compileHint compiles hints for caches and profilers, which change nothing here.
func compileHint(c *compiler, in *ir.Instr) (step, error) {
	return func(*warp, uint32) {}, nil
}

// compileCreatePolicy compiles createpolicy: there is one policy, 0.
func compileCreatePolicy(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) == 0 {
		return nil, c.unsupported(in)
	}
	d, err := c.dst(in, &in.Args[0])
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			w.set(d, first(m), 0)
		}
	}, err
}

// compileAtomic compiles atom (dests 1) and red (0): [d,] [a], b [, c] [, policy].
func compileAtomic(c *compiler, in *ir.Instr, dests int) (step, error) {
	args := in.Args[min(dests, len(in.Args)):]
	if len(args) < 2 {
		return nil, c.errorf(in, compute.ErrArgument, "operands are missing")
	}
	f, err := eval.Atom(in)
	if err != nil {
		return nil, c.errorf(in, compute.ErrUnsupported, "%v", err)
	}
	t := in.Type(0)
	n := t.Size()
	op := c.memOp(in, n*in.Width(), true)
	addr, err := c.addr(in, &args[0])
	if err != nil {
		return nil, err
	}
	b, err := c.list(in, &args[1], t)
	if err != nil {
		return nil, err
	}
	k := none
	if in.Has("cas") {
		if len(args) < 3 {
			return nil, c.errorf(in, compute.ErrArgument, "operands are missing")
		}
		if k, err = c.src(in, &args[2], t); err != nil {
			return nil, err
		}
	}
	d := make([]ref, len(b))
	for i := range d {
		d[i] = none
	}
	if dests == 1 {
		if in.Args[0].Kind != ir.SinkOperand {
			if d, err = c.list(in, &in.Args[0], t); err != nil {
				return nil, err
			}
		}
	}
	if len(b) != in.Width() || len(d) != len(b) {
		return nil, c.errorf(in, compute.ErrArgument, "%d registers for %d elements", len(b), in.Width())
	}
	one := func(w *warp, l int, a uint64) {
		mem, _ := w.bytes(l, op, a, 0)
		for e := range b {
			p := mem[e*n : e*n+n]
			old := load(p, n)
			store(p, n, f(old, w.get(b[e], l), w.get(k, l)))
			w.set(d[e], l, old)
		}
	}
	parallel := c.cfg.Workers > 1
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			if a := addr.of(w, l); parallel {
				w.locked(a, func() { one(w, l, a) })
			} else {
				one(w, l, a)
			}
		}
	}, nil
}

// compileFence compiles membar.level and fence.sem.scope. Memory here is sequentially consistent: only the monitor cares.
func compileFence(c *compiler, in *ir.Instr) (step, error) {
	sem := in.First(ir.SC, ir.AcqRel, ir.Acquire, ir.Release)
	scope := in.First(ir.ScopeCTA, ir.ScopeCluster, ir.ScopeGPU, ir.ScopeSys, ir.GL)
	switch {
	case scope == ir.GL:
		scope = ir.ScopeGPU
	case scope == "":
		return nil, c.unsupported(in)
	}
	if sem == "" {
		sem = ir.AcqRel
		if in.Op == "membar" {
			sem = ir.SC
		}
	}
	return func(w *warp, m uint32) {
		if w.mon != nil {
			w.mon.fence(w, m, sem, scope)
		}
	}, nil
}
