package sim

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/lanes"
)

// moved is a load or store: an address and the registers of its elements.
type moved struct {
	op    *memOp
	addr  address
	elems []ref
	size  int  // bytes of an element
	sign  bool // loads extend the sign
	atom  bool // a lock is needed while blocks run on several goroutines
}

// moved collects what a load or store says; the data are argument i, the address argument j.
func (c *compiler) moved(in *ir.Instr, data, at int) (*moved, error) {
	if len(in.Args) < 2 {
		return nil, c.errorf(in, compute.ErrArgument, "operands are missing")
	}
	t := in.Type(0)
	width := in.Width()
	if t.Size() == 0 {
		return nil, c.errorf(in, compute.ErrArgument, "nothing of type %s can be in memory", t)
	}
	v := &moved{size: t.Size(), sign: t.IsSigned()}
	v.op = c.memOp(in, width*v.size, data != 0)
	var err error
	if v.addr, err = c.addr(in, &in.Args[at]); err != nil {
		return nil, err
	}
	if v.addr.frame { // a .param variable of a device function or of a call
		if s := v.op.space; s == ir.ParamSpace || s == ir.LocalSpace || s == ir.NoSpace {
			v.op.space = ir.LocalSpace
		} else {
			return nil, c.errorf(in, compute.ErrArgument, "a variable of the function's frame in another space")
		}
	}
	if v.elems, err = c.list(in, &in.Args[data], t); err != nil {
		return nil, err
	}
	if len(v.elems) != width {
		return nil, c.errorf(in, compute.ErrArgument, "%d registers for %d elements", len(v.elems), width)
	}
	if v.size == 16 { // a register of 128 bits is two slots
		v.size = 8
		for i := len(v.elems) - 1; i >= 0; i-- {
			hi := v.elems[i]
			hi.i++
			v.elems = append(v.elems[:i+1], append([]ref{hi}, v.elems[i+1:]...)...)
		}
	}
	v.atom = v.op.strong() && c.cfg.Workers > 1 && v.op.space != ir.SharedSpace && v.op.space != ir.LocalSpace
	return v, nil
}

func compileLoad(c *compiler, in *ir.Instr) (step, error) {
	v, err := c.moved(in, 0, 1)
	if err != nil {
		return nil, err
	}
	for _, r := range v.elems {
		if r.bank == bankP {
			return nil, c.errorf(in, compute.ErrArgument, "a predicate cannot be loaded")
		}
	}
	if v.op.space == ir.ParamSpace && v.addr.base.i < 0 {
		if f := v.fastParam(args.LayoutOf(c.prog.kernel.Params).Size()); f != nil {
			c.param = true
			c.vector(lanes.Op{Code: [...]lanes.Code{bank32: lanes.OpParam, bank64: lanes.OpParam64}[v.elems[0].bank],
				D: v.elems[0].offset(), X: uint32(v.addr.off)}, true)
			return f, nil
		}
		return v.loadParam, nil
	}
	if !v.atom {
		switch s := v.fastLoad(); {
		case s == nil || c.checks && v.op.strong():
		case c.checks:
			return v.checkedLoad(s), nil
		default:
			return s, nil
		}
	}
	return v.load, nil
}

// load is any load.
func (v *moved) load(w *warp, m uint32) {
	for ; m != 0; m &= m - 1 {
		l := first(m)
		addr := v.addr.of(w, l)
		if v.atom {
			w.locked(addr, func() { v.loadLane(w, l, addr) })
		} else {
			v.loadLane(w, l, addr)
		}
	}
}

func (v *moved) loadLane(w *warp, l int, addr uint64) {
	b, undef := w.bytes(l, v.op, addr, 0)
	for e, r := range v.elems {
		w.set(r, l, v.extend(load(b[e*v.size:], v.size)))
	}
	if undef != 0 {
		v.poison(w, l, undef)
	}
}

// extend makes a register of an element.
func (v *moved) extend(x uint64) uint64 {
	if v.sign && v.size < 8 {
		s := 64 - 8*v.size
		return uint64(int64(x<<s) >> s)
	}
	return x
}

// poison notes which elements have no value.
func (v *moved) poison(w *warp, l int, undef uint32) {
	for e := range v.elems {
		if part := undef >> (e * v.size) & byteMask(0, v.size); part != 0 {
			w.poison[e] |= 1 << l
			w.watched.parts[e][l] = uint8(part)
		}
	}
}

// loadParam loads from a place in the parameter block that is the same for all lanes.
func (v *moved) loadParam(w *warp, m uint32) {
	b, _ := w.bytes(first(m), v.op, v.addr.off, 0)
	for e, r := range v.elems {
		x := v.extend(load(b[e*v.size:], v.size))
		for m := m; m != 0; m &= m - 1 {
			w.set(r, first(m), x)
		}
	}
}

func compileStore(c *compiler, in *ir.Instr) (step, error) {
	v, err := c.moved(in, 1, 0)
	if err != nil {
		return nil, err
	}
	if !v.atom {
		switch s := v.fastStore(); {
		case s == nil || c.checks && v.op.strong():
		case c.checks:
			return v.checkedStore(s), nil
		default:
			return s, nil
		}
	}
	return v.store, nil
}

// store is any store.
func (v *moved) store(w *warp, m uint32) {
	for ; m != 0; m &= m - 1 {
		l := first(m)
		addr := v.addr.of(w, l)
		if v.atom {
			w.locked(addr, func() { v.storeLane(w, l, addr) })
		} else {
			v.storeLane(w, l, addr)
		}
	}
}

func (v *moved) storeLane(w *warp, l int, addr uint64) {
	undef := uint32(0)
	if w.def != nil {
		for e, r := range v.elems {
			if w.poison[e]>>l&1 != 0 {
				undef |= w.undefinedBytes(r, l, v.size) << (e * v.size)
			}
		}
	}
	b, _ := w.bytes(l, v.op, addr, undef)
	for e, r := range v.elems {
		store(b[e*v.size:], v.size, w.get(r, l))
	}
}

// locked calls f while no other block's synchronising access is at the same memory.
func (w *warp) locked(addr uint64, f func()) {
	unlock := w.lock(addr)
	defer unlock()
	f()
}

// compileCvta compiles cvta.space d, a and cvta.to.space d, a. The source may be the name of a variable.
func compileCvta(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 2 || in.Space() == ir.NoSpace {
		return nil, c.unsupported(in)
	}
	dst, err := c.dst(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	space, to := in.Space(), in.Has(ir.To)
	convert := func(v uint64) uint64 { return generic(space, v) }
	if to {
		convert = func(v uint64) uint64 { return ungeneric(space, v) }
	}
	s := &in.Args[1]
	if off, ok := c.frameAddress(s.Sym); ok && s.Kind == ir.SymOperand {
		return func(w *warp, m uint32) {
			for ; m != 0; m &= m - 1 {
				l := first(m)
				w.set(dst, l, convert(uint64(w.lanes[l].frame)+off+uint64(s.Off)))
			}
		}, nil
	}
	src, err := c.src(in, s, in.Type(0))
	if err != nil {
		return nil, err
	}
	if space == ir.GlobalSpace || space == ir.ConstSpace {
		if f := c.fastMove(dst, src); f != nil {
			return f, nil
		}
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			w.set(dst, l, convert(w.get(src, l)))
		}
	}, nil
}

// compileIsspacep compiles isspacep.space p, a.
func compileIsspacep(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 2 || in.Space() == ir.NoSpace {
		return nil, c.unsupported(in)
	}
	dst, err := c.dst(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	src, err := c.src(in, &in.Args[1], ir.U64)
	if err != nil {
		return nil, err
	}
	space := in.Space()
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			w.set(dst, l, uint64(b2i(w.inSpace(space, w.get(src, l)))))
		}
	}, nil
}

// inSpace tells whether a generic address lies in a space.
func (w *warp) inSpace(space ir.Space, addr uint64) bool {
	window := addr / windowSize * windowSize
	switch space {
	case ir.SharedSpace:
		off := addr - sharedWindow
		return window == sharedWindow && (off < rankSize || int(off>>rankShift)-1 == w.block.rank)
	case ir.SharedClusterSpace:
		return window == sharedWindow
	case ir.LocalSpace:
		return window == localWindow
	case ir.ParamSpace:
		return window == paramWindow
	}
	s := w.block.grid.gpu.mem.find(addr)
	if space == ir.ConstSpace {
		return s != nil && s.space == ir.ConstSpace
	}
	return addr >= globalWindow && (s == nil || s.space == ir.GlobalSpace)
}
