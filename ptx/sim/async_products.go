package sim

import (
	"slices"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

// products are a warp's part of the asynchronous products of its warpgroup: each warp multiplies its own 16 rows. They are
// executed in order, at any time between issue and wait. With CheckAsync the registers are locked that long.
type products struct {
	queue     []*asyncProduct // oldest first
	issued    int
	trace     uint64 // of what has been issued, to compare the warps
	committed int    // groups
	fenced    bool
	locks     []*asyncProduct // by slot of 32 bits
	touched   []int32         // by slot: the instruction that accessed it since the last fence, plus 1
}

// asyncProduct is one of them.
type asyncProduct struct {
	pc    int32
	group int
	run   func()
	done  bool
	d, a  []ref
	tiles *flight
}

func (q *products) any() bool { return q.issued > 0 || q.fenced || q.touched != nil }

func (q *products) fence() {
	q.fenced = true
	clear(q.touched)
}

// execute executes what is in the queue, up to p.
func (q *products) execute(p *asyncProduct) {
	for _, x := range q.queue {
		if !x.done {
			x.done = true
			x.run()
		}
		if x == p {
			return
		}
	}
}

// wait ends products until at most n groups are in flight.
func (q *products) wait(n int) {
	for len(q.queue) > 0 && q.queue[0].group < q.committed-n {
		p := q.queue[0]
		q.execute(p)
		q.queue = q.queue[1:]
		p.tiles.free()
		for _, r := range append(p.d, p.a...) {
			if q.locks != nil && q.locks[r.i] == p {
				q.locks[r.i] = nil
			}
		}
	}
}

func (q *products) exit(w *warp, m uint32) {
	if len(q.queue) > 0 && w.checksAsync() {
		w.from(q.queue[0].pc, func() {
			w.fault(AsyncHazard, first(m), 0, 0, "the thread exits and has not waited for this product")
		})
	}
}

// touch looks at an instruction's access to registers of products.
func (q *products) touch(w *warp, m uint32, reads, writes []ref) {
	if q.touched == nil {
		q.touched = make([]int32, len(w.r32))
		q.locks = make([]*asyncProduct, len(w.r32))
	}
	look := func(list []ref, write bool) {
		for _, r := range list {
			if p := q.locks[r.i]; p != nil && (write || slices.Contains(p.d, r)) {
				f := w.faultOf(AsyncHazard, first(m), 0, 0,
					"nobody has waited for the asynchronous product that uses a register of this instruction")
				f.Other = w.accessAt(p.pc, first(m))
				panic(f)
			}
			q.touched[r.i] = w.at + 1
		}
	}
	look(reads, false)
	look(writes, true)
}

// issue looks at the registers of a product and locks them.
func (q *products) issue(w *warp, p *asyncProduct) {
	q.touch(w, full, nil, nil)
	if !q.fenced {
		w.fault(AsyncHazard, 0, 0, 0, "the first product of the warp has no wgmma.fence before it")
	}
	for _, r := range append(slices.Clone(p.d), p.a...) {
		if pc := q.touched[r.i]; pc != 0 {
			f := w.faultOf(AsyncHazard, 0, 0, 0, "a register of the product was accessed since the last wgmma.fence")
			f.Other = w.accessAt(pc-1, 0)
			panic(f)
		}
		if o := q.locks[r.i]; o != nil && !slices.Equal(o.d, p.d) && (slices.Contains(p.d, r) || slices.Contains(o.d, r)) {
			f := w.faultOf(AsyncHazard, 0, 0, 0, "an earlier product that nobody has waited for uses registers of this one otherwise")
			f.Other = w.accessAt(o.pc, 0)
			panic(f)
		}
	}
	for _, r := range append(slices.Clone(p.d), p.a...) {
		q.locks[r.i] = p
	}
}

// guarded wraps instructions that touch registers of products.
func (c *compiler) guarded(in *ir.Instr, s step) step {
	if c.cfg.Checks&CheckAsync == 0 || strings.HasPrefix(string(in.Op), "wgmma.") {
		return s
	}
	used := c.fn.productRegs()
	if len(used) == 0 {
		return s
	}
	var reads, writes []ref
	in.Regs(func(r ir.Reg, role ir.Role) {
		if !used[r] {
			return
		}
		if role == ir.Read {
			reads = append(reads, c.fn.regs[r])
		} else {
			writes = append(writes, c.fn.regs[r])
		}
	})
	if len(reads)+len(writes) == 0 {
		return s
	}
	return func(w *warp, m uint32) {
		if m != 0 {
			w.async.products.touch(w, m, reads, writes)
		}
		s(w, m)
	}
}

// productRegs are the registers that hold accumulators or fragments of asynchronous products.
func (f *function) productRegs() map[ir.Reg]bool {
	if f.products == nil {
		f.products = map[ir.Reg]bool{}
		for i := range f.ir.Body {
			if in := &f.ir.Body[i]; in.Op == "wgmma.mma_async" {
				for j := range min(2, len(in.Args)) {
					if in.Args[j].Kind == ir.VecOperand {
						in.Args[j].Regs(func(r ir.Reg) { f.products[r] = true })
					}
				}
			}
		}
	}
	return f.products
}
