package sim

import (
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/tensorcore"
)

// isVolta tells whether an instruction is mma.m8n8k4 of halves.
func isVolta(in *ir.Instr) bool {
	m, n, k, ok := in.Shape()
	return in.Op == "mma" && ok && m == 8 && n == 8 && k == 4 && in.Type(1) == ir.F16
}

// compileVolta compiles mma.m8n8k4 of halves.
func compileVolta(c *compiler, in *ir.Instr) (step, error) {
	const m, n, k, products = 8, 8, 4, tensorcore.VoltaProducts
	var columns []bool
	for _, mod := range in.Mods {
		if mod == ir.Row || mod == ir.Col {
			columns = append(columns, mod == ir.Col)
		}
	}
	td, tc := in.Type(0), in.Type(3)
	if len(columns) != 2 || len(in.Args) != 4 {
		return nil, c.unsupported(in)
	}
	p, err := tensorcore.NewProduct(m, n, k, td, ir.F16, ir.F16, tc)
	if err != nil {
		return nil, c.errorf(in, compute.ErrUnsupported, "%v", err)
	}
	result := func(t ir.Type) func(lane, e int) int {
		return func(lane, e int) int {
			row, col := tensorcore.VoltaC(lane, e, t == ir.F16)
			return tensorcore.VoltaProduct(lane)*m*n + row*n + col
		}
	}
	ld, err := c.layout(in, &in.Args[0], td, products*m*n, result(td))
	if err != nil {
		return nil, err
	}
	la, err := c.layout(in, &in.Args[1], ir.F16, products*m*k, func(lane, e int) int {
		row, at := tensorcore.VoltaA(lane, e, columns[0])
		return tensorcore.VoltaProduct(lane)*m*k + row*k + at
	})
	if err != nil {
		return nil, err
	}
	lb, err := c.layout(in, &in.Args[2], ir.F16, products*n*k, func(lane, e int) int {
		at, col := tensorcore.VoltaB(lane, e, columns[1])
		return tensorcore.VoltaProduct(lane)*n*k + col*k + at
	})
	if err != nil {
		return nil, err
	}
	lc, err := c.layout(in, &in.Args[3], tc, products*m*n, result(tc))
	if err != nil {
		return nil, err
	}
	type buffers struct{ a, b, c [products * m * n]uint64 }
	pool := sync.Pool{New: func() any { return new(buffers) }}
	return c.warpwide(func(w *warp, _ uint32) {
		t := pool.Get().(*buffers)
		la.gather(w, t.a[:])
		lb.gather(w, t.b[:])
		lc.gather(w, t.c[:])
		for i := range products {
			sums := t.c[i*m*n:][:m*n]
			p.Compute(sums, sums, t.a[i*m*k:][:m*k], t.b[i*n*k:][:n*k])
		}
		ld.scatter(w, t.c[:])
		pool.Put(t)
	}), nil
}

// multipliedByVolta is the wrapper of mma.m8n8k4 of halves: a result has a value if all that its product's lanes have has one.
func multipliedByVolta(o operands, s step) step {
	return func(w *warp, m uint32) {
		lost := uint32(0)
		for _, r := range o.values {
			for bad := ^w.def[r.bank][r.i]; bad != 0; bad &= bad - 1 {
				lane := first(bad)
				others := uint32(0xf000f) << (4 * tensorcore.VoltaProduct(lane))
				if lost&others == 0 {
					from := w.originOf(r, lane)
					for l := others; l != 0; l &= l - 1 {
						w.setOrigin(o.written, first(l), from)
					}
				}
				lost |= others
			}
		}
		s(w, m)
		for _, r := range o.written {
			w.def[r.bank][r.i] = ^lost
		}
	}
}
