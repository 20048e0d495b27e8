package sim

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/tensorcore"
)

// wmmaLayout is the layout of a fragment.
func (c *compiler) wmmaLayout(in *ir.Instr, o *ir.Operand, t ir.Type, f tensorcore.WmmaFragment) (*layout, error) {
	return c.layout(in, o, t, f.Elements(), f.Element)
}

func compileWmma(c *compiler, in *ir.Instr) (step, error) {
	m, n, k, ok := in.Shape()
	if !ok || len(in.Args) != 4 {
		return nil, c.unsupported(in)
	}
	// f16 products name the types of d and c alone.
	td, ta, tb, tc := in.Type(0), in.Type(1), in.Type(2), in.Type(3)
	if tc == ir.NoType {
		td, ta, tb, tc = in.Type(0), ir.F16, ir.F16, in.Type(1)
	}
	var orders []ir.Mod
	for _, mod := range in.Mods {
		if mod == ir.Row || mod == ir.Col {
			orders = append(orders, mod)
		}
	}
	if !tensorcore.HasWmma(m, n, k, ta) || len(orders) != 2 {
		return nil, c.unsupported(in)
	}
	p, err := tensorcore.NewProduct(m, n, k, td, ta, tb, tc)
	if err != nil {
		return nil, c.errorf(in, compute.ErrUnsupported, "%v", err)
	}
	p.Saturate = in.Has("satfinite")
	var l [4]*layout
	for i, f := range []struct {
		role  byte
		t     ir.Type
		order ir.Mod
	}{{'d', td, ir.Row}, {'a', ta, orders[0]}, {'b', tb, orders[1]}, {'c', tc, ir.Row}} {
		if l[i], err = c.wmmaLayout(in, &in.Args[i], f.t, tensorcore.NewWmmaFragment(f.role, m, n, k, f.t, f.order)); err != nil {
			return nil, err
		}
	}
	return c.warpwide(multiply(p, l[0], l[1], l[2], l[3])), nil
}

// compileWmmaMemory compiles loads and stores: each element is accessed by the lane that has it, and where several have it by
// the first.
func compileWmmaMemory(c *compiler, in *ir.Instr) (step, error) {
	role := in.Op[len(in.Op)-1]
	writes := role == 'd'
	m, n, k, ok := in.Shape()
	t := in.Type(0)
	order := in.First(ir.Row, ir.Col)
	regs, mem := 0, 1
	if writes {
		regs, mem = 1, 0
	}
	if !ok || order == "" || len(in.Args) < 2 || t.Bits() < 8 && t != ir.TF32 {
		return nil, c.unsupported(in)
	}
	if (role == 'a' || role == 'b') && !tensorcore.HasWmma(m, n, k, t) {
		return nil, c.unsupported(in)
	}
	// Fragments of C lie by rows whatever the layout in memory.
	fragOrder := order
	if role == 'c' || role == 'd' {
		fragOrder = ir.Row
	}
	f := tensorcore.NewWmmaFragment(role, m, n, k, t, fragOrder)
	l, err := c.wmmaLayout(in, &in.Args[regs], t, f)
	if err != nil {
		return nil, err
	}
	addr, err := c.addr(in, &in.Args[mem])
	if err != nil {
		return nil, err
	}
	rows, cols := f.Rows, f.Cols
	natural := cols
	if order == ir.Col {
		natural = rows
	}
	ld := c.constant(ir.U32, uint64(natural))
	if len(in.Args) > 2 {
		if ld, err = c.arg(in, 2, ir.U32); err != nil {
			return nil, err
		}
	}
	size := t.Bits() / 8
	op := c.memOp(in, size, writes)
	op.atomic = false
	// where is the offset in elements of the matrix's element i, with rows or columns ld apart.
	where := func(i, ld int) int {
		row, col := i/cols, i%cols
		if role == 'b' {
			row, col = i%rows, i/rows
		}
		if order == ir.Col {
			return col*ld + row
		}
		return row*ld + col
	}
	align := uint64(len(l.refs) * max(32, t.Bits()) / 8)
	return c.warpwide(func(w *warp, _ uint32) {
		base, stride := addr.of(w, 0), int(w.get(ld, 0))
		for lane := 1; lane < warpSize; lane++ {
			if addr.of(w, lane) != base || int(w.get(ld, lane)) != stride {
				w.fault(BadOperand, lane, 0, 0, "address or stride differ between lanes")
			}
		}
		w.alignedTo(0, op.space, base, int(min(align, 32)))
		if stride*size%min(16, natural*size) != 0 || stride < natural {
			w.fault(BadOperand, 0, 0, 0, "rows or columns are %d elements apart: want at least %d, and a multiple of 16 bytes",
				stride, natural)
		}
		if writes {
			l.storeTo(w, op, func(i int) uint64 { return base + uint64(where(i, stride)*size) })
			return
		}
		l.loadFrom(w, op, rows*cols, func(i int) uint64 { return base + uint64(where(i, stride)*size) })
	}), nil
}

// each calls f with each register, lane and place in it, and the element there.
func (l *layout) each(f func(reg, lane, e, i int)) {
	at := l.at
	for reg := range l.refs {
		for lane := range warpSize {
			for e := range l.per {
				f(reg, lane, e, int(at[e]))
			}
			at = at[l.per:]
		}
	}
}

// loadFrom loads a matrix of count elements into the registers.
func (l *layout) loadFrom(w *warp, op *memOp, count int, addr func(i int) uint64) {
	v, undef, have := make([]uint64, count), make([]bool, count), make([]bool, count)
	var bad [warpSize]uint32 // by register
	l.each(func(reg, lane, _, i int) {
		if !have[i] {
			b, u := w.bytes(lane, op, addr(i), 0)
			v[i], undef[i], have[i] = load(b, op.size), u != 0, true
		}
		if undef[i] {
			bad[reg] |= 1 << lane
		}
	})
	l.scatter(w, v)
	copy(w.poison[:], bad[:])
}

// storeTo stores the matrix.
func (l *layout) storeTo(w *warp, op *memOp, addr func(i int) uint64) {
	l.each(func(reg, lane, e, i int) {
		undef := w.poison[reg] >> lane & 1 * byteMask(0, op.size)
		b, _ := w.bytes(lane, op, addr(i), undef)
		store(b, op.size, w.get(l.refs[reg], lane)>>(e*l.bits))
	})
}
