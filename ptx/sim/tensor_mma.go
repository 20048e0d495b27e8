package sim

import (
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/tensorcore"
)

// compileMMA compiles mma.sync.aligned.
func compileMMA(c *compiler, in *ir.Instr) (step, error) {
	if isVolta(in) {
		return compileVolta(c, in)
	}
	m, n, k, ok := in.Shape()
	td, ta, tb, tc := in.Type(0), in.Type(1), in.Type(2), in.Type(3)
	if !ok || !tensorcore.HasMMA(m, n, k, ta) || !in.Has(ir.Row) || !in.Has(ir.Col) || len(in.Args) != 4 {
		return nil, c.unsupported(in)
	}
	p, err := tensorcore.NewProduct(m, n, k, td, ta, tb, tc)
	if err != nil {
		return nil, c.errorf(in, compute.ErrUnsupported, "%v", err)
	}
	p.Saturate, p.Xor = in.Has("satfinite"), in.Has("xor")
	f, err := c.fragments(in, m, n, k, k)
	if err != nil {
		return nil, err
	}
	return c.warpwide(multiply(p, f.d, f.a, f.b, f.c)), nil
}

// fragments are the matrices of mma in the registers of a warp.
type fragments struct{ d, a, b, c *layout }

// fragments are those of the first four operands: A has kA columns, B k rows.
func (c *compiler) fragments(in *ir.Instr, m, n, kA, k int) (f fragments, err error) {
	td, ta, tb, tc := in.Type(0), in.Type(1), in.Type(2), in.Type(3)
	per := max(1, 32/ta.Bits())
	indexC := func(lane, e int) int {
		row, col := tensorcore.FragmentC(lane, e)
		return row*n + col
	}
	if f.d, err = c.layout(in, &in.Args[0], td, m*n, indexC); err != nil {
		return f, err
	}
	if f.a, err = c.layout(in, &in.Args[1], ta, m*kA, func(lane, e int) int {
		row, at := tensorcore.FragmentA(m, per, lane, e/per, e%per)
		return row*kA + at
	}); err != nil {
		return f, err
	}
	if f.b, err = c.layout(in, &in.Args[2], tb, n*k, func(lane, e int) int {
		at, col := tensorcore.FragmentB(per, lane, e/per, e%per)
		return col*k + at
	}); err != nil {
		return f, err
	}
	f.c, err = c.layout(in, &in.Args[3], tc, m*n, indexC)
	return f, err
}

// multiply is the step that gathers the operands, computes and scatters the result.
func multiply(p *tensorcore.Product, ld, la, lb, lc *layout) step {
	type buffers struct{ a, b, c []uint64 }
	pool := sync.Pool{New: func() any {
		return &buffers{make([]uint64, p.M*p.K), make([]uint64, p.N*p.K), make([]uint64, p.M*p.N)}
	}}
	return func(w *warp, _ uint32) {
		t := pool.Get().(*buffers)
		la.gather(w, t.a)
		lb.gather(w, t.b)
		lc.gather(w, t.c)
		p.Compute(t.c, t.c, t.a, t.b)
		ld.scatter(w, t.c)
		pool.Put(t)
	}
}
