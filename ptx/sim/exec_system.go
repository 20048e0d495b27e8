package sim

import "github.com/wavelane/wavelane/ptx/ir"

func compileNanosleep(c *compiler, in *ir.Instr) (step, error) {
	return func(w *warp, m uint32) { w.idle = true }, nil
}

// compileAlloca compiles alloca.type d, size[, align]: d is an address in local memory.
func compileAlloca(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) < 2 {
		return nil, c.unsupported(in)
	}
	d, err := c.dst(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	n, err := c.src(in, &in.Args[1], ir.U64)
	if err != nil {
		return nil, err
	}
	align := uint64(8)
	if len(in.Args) > 2 {
		align = max(align, in.Args[2].Bits)
	}
	c.prog.local = true
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			lane := &w.lanes[l]
			at := uint64(len(lane.local.data))
			size := w.get(n, l)
			up := (at + align - 1) &^ (align - 1)
			if size > maxLocal || up+size > maxLocal {
				w.fault(OutOfBounds, l, ir.LocalSpace, at, "the stack overflows: alloca of %d bytes", size)
			}
			w.grow(lane, int((up+size+frameAlign-1)&^(frameAlign-1)-at))
			w.set(d, l, up)
		}
	}, nil
}

func compileStackSave(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 1 {
		return nil, c.unsupported(in)
	}
	d, err := c.dst(in, &in.Args[0])
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			w.set(d, first(m), uint64(len(w.lanes[first(m)].local.data)))
		}
	}, err
}

func compileStackRestore(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 1 {
		return nil, c.unsupported(in)
	}
	s, err := c.src(in, &in.Args[0], ir.U64)
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			lane := &w.lanes[l]
			n := w.get(s, l)
			if n > uint64(len(lane.local.data)) || n < uint64(lane.frame) {
				w.fault(BadOperand, l, 0, 0, "stack restored to %d, it has %d bytes", n, len(lane.local.data))
			}
			lane.local.data = lane.local.data[:n]
		}
	}, err
}
