package sim

import (
	"fmt"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

func init() { register("mma", compileMMA) }

// shape is the m, n and k in an opcode, such as m16n8k16; ok is false if there is none.
func shape(in *ir.Instr) (m, n, k int, ok bool) {
	for _, mod := range in.Mods {
		var rest string
		if c, _ := fmt.Sscanf(string(mod), "m%dn%dk%d%s", &m, &n, &k, &rest); c == 3 {
			return m, n, k, true
		}
	}
	return 0, 0, 0, false
}

// mmaShapes are the values of k, for m16n8 and m8n8, by the width of A's elements.
var mmaShapes = map[int]struct{ tall, flat []int }{
	1:  {[]int{128, 256}, []int{128}},
	4:  {[]int{32, 64}, []int{32}},
	8:  {[]int{16, 32}, []int{16}},
	16: {[]int{8, 16}, nil},
	32: {[]int{4, 8}, nil},
	64: {[]int{4, 8, 16}, []int{4}},
}

func contains(list []int, v int) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

// compileMMA compiles mma.sync.aligned, but for the shape of Volta, m8n8k4 of f16, and what is newer than sm_90.
func compileMMA(c *compiler, in *ir.Instr) (step, error) {
	m, n, k, ok := shape(in)
	td, ta, tb, tc := in.Type(0), in.Type(1), in.Type(2), in.Type(3)
	s := mmaShapes[ta.Bits()]
	ok = ok && n == 8 && (m == 16 && contains(s.tall, k) || m == 8 && contains(s.flat, k)) && in.Has(ir.Row) && in.Has(ir.Col)
	if !ok || len(in.Args) != 4 {
		return nil, c.unsupported(in)
	}
	p, err := newProduct(m, n, k, td, ta, tb, tc)
	if err != nil {
		return nil, c.errorf(in, compute.ErrUnsupported, "%v", err)
	}
	p.saturate = in.Has("satfinite")
	p.bit = in.First("xor", "and")
	per := max(1, 32/ta.Bits())
	indexC := func(lane, e int) int {
		row, col := fragC(lane, e)
		return row*n + col
	}
	ld, err := c.layout(in, &in.Args[0], td, m*n, indexC)
	if err != nil {
		return nil, err
	}
	la, err := c.layout(in, &in.Args[1], ta, m*k, func(lane, e int) int {
		row, at := fragA(m, per, lane, e/per, e%per)
		return row*k + at
	})
	if err != nil {
		return nil, err
	}
	lb, err := c.layout(in, &in.Args[2], tb, n*k, func(lane, e int) int {
		at, col := fragB(per, lane, e/per, e%per)
		return col*k + at
	})
	if err != nil {
		return nil, err
	}
	lc, err := c.layout(in, &in.Args[3], tc, m*n, indexC)
	if err != nil {
		return nil, err
	}
	return c.warpwide(p.step(ld, la, lb, lc)), nil
}

// step gathers the operands, computes and scatters the result.
func (p *product) step(ld, la, lb, lc *layout) step {
	type buffers struct{ a, b, c []uint64 }
	pool := sync.Pool{New: func() any {
		return &buffers{make([]uint64, p.m*p.k), make([]uint64, p.n*p.k), make([]uint64, p.m*p.n)}
	}}
	return func(w *warp, _ uint32) {
		t := pool.Get().(*buffers)
		la.gather(w, t.a)
		lb.gather(w, t.b)
		lc.gather(w, t.c)
		p.compute(t.c, t.c, t.a, t.b)
		ld.scatter(w, t.c)
		pool.Put(t)
	}
}
