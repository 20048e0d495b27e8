package cpu

import (
	"slices"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// evaluation is an expression at work on one thread.
type evaluation struct {
	*expression
	plan   *registers
	outs   []view
	base   int // index of the first element of outs
	in     []view
	room   int // elements of a buffer
	memory []float32
	values []blockValue

	width  int            // of chains; 0 for none
	most   int            // elements of a block
	linked []kernels.Link // of all chains
	slots  []float32      // for values that links keep, and for what is left of a block
}

// blockValue is a value at the elements of a block.
type blockValue struct {
	x        []float32
	number   float32 // that it is throughout, if it is constant; x is nil then until it is needed
	constant bool
}

var evaluations engine.FreeList[evaluation]

// run computes elements lo ≤ i < hi of the results; those from element base on are in outs. in holds the operands, without
// the first if that is a result.
func (f *expression) run(outs []view, base int, in []view, lo, hi int) {
	e := evaluations.Take()
	defer evaluations.Give(e)
	e.expression, e.base = f, base
	e.outs, e.in = append(e.outs[:0], outs...), append(e.in[:0], in...)
	e.begin()
	last := len(f.shape) - 1
	for lo < hi {
		n := hi - lo
		if f.byRow {
			n = min(n, f.shape[last]-lo%f.shape[last])
		}
		if n > e.most+blockRest {
			n = e.most
		}
		e.operandsAt(lo, n)
		e.compute(lo, n, min(hi, lo+2*n))
		lo += n
	}
	clear(e.values)
	clear(e.outs)
	clear(e.in)
	clear(e.linked)
	e.expression, e.plan = nil, nil
}

func (e *evaluation) begin() {
	e.plan = &e.plans[0]
	for k := range e.operands {
		for _, y := range e.outs {
			if e.operands[k].dense && (k == 0 && e.own || e.view(k).p == y.p) {
				e.plan = &e.plans[1]
			}
		}
	}
	e.values = engine.Resized(e.values, len(e.operands)+len(e.terms))
	for k, o := range e.operands {
		if o.single {
			e.values[k] = blockValue{number: e.view(k).f32()[0], constant: true}
		}
	}
	e.width, e.most = 0, e.block
	if e.links > 0 && e.tier == kernels.Active() { // tests change it
		e.width = kernels.ChainWidth()
	}
	if e.width > 0 && e.needsNoRoom() {
		e.most = longBlock
	} else {
		e.room = e.block + blockRest
		e.memory = engine.Resized(e.memory, e.room*(len(e.operands)+e.plan.buffers))
	}
	if e.width == 0 {
		return
	}
	e.linked = engine.Resized(e.linked, e.links)
	e.slots = engine.Resized(e.slots, e.width*e.expression.slots)
	for _, c := range e.chains {
		if c != nil {
			e.begins(c)
		}
	}
}

// needsNoRoom reports whether all terms form one chain that needs no buffer.
func (e *evaluation) needsNoRoom() bool {
	c := e.chains[0]
	return c != nil && c.end == len(e.terms) &&
		!slices.ContainsFunc(c.stored, func(i int) bool { return e.plan.to[i] >= 0 }) &&
		(e.byRow || !slices.ContainsFunc(e.operands, func(o operandForm) bool { return !o.dense && !o.single }))
}

// view is an operand's memory.
func (e *evaluation) view(k int) view {
	if e.own {
		if k == 0 {
			return e.outs[0]
		}
		k--
	}
	return e.in[k]
}

// buffer is memory for n elements: one for each operand, then those of the plan.
func (e *evaluation) buffer(k, n int) []float32 { return e.memory[k*e.room:][:n] }

// operandsAt finds n elements of each operand for those of the result from lo on.
func (e *evaluation) operandsAt(lo, n int) {
	for k := range e.operands {
		o, v := &e.operands[k], &e.values[k]
		switch {
		case o.dense && k == 0 && e.own:
			v.x = e.outs[0].f32()[lo-e.base:][:n]
		case o.dense:
			v.x = e.view(k).f32()[lo:][:n]
		case !o.single:
			e.spread(k, v, lo, n)
		}
	}
}

// spread lays out an operand that is repeated, unless the block is part of a row.
func (e *evaluation) spread(k int, v *blockValue, lo, n int) {
	x, strides := e.view(k).f32(), e.operands[k].strides
	last := len(e.shape) - 1
	var index [program.MaxRank]int
	at := 0
	for d, rest := last, lo; d >= 0; d-- {
		index[d] = rest % e.shape[d]
		rest /= e.shape[d]
		at += index[d] * strides[d]
	}
	if e.byRow {
		if strides[last] == 0 {
			*v = blockValue{number: x[at], constant: true}
		} else {
			v.x = x[at:][:n]
		}
		return
	}
	y := e.buffer(k, n)
	v.x = y
	inner := e.shape[last]
	repeats := !slices.ContainsFunc(strides[:last], func(s int) bool { return s != 0 })
	for j := index[last]; len(y) > 0; j = 0 {
		row := y[:min(inner-j, len(y))]
		y = y[len(row):]
		if strides[last] == 0 {
			engine.FillWith(row, x[at])
		} else {
			copy(row, x[at:])
		}
		at -= j * strides[last]
		for d := last - 1; d >= 0; d-- {
			index[d]++
			at += strides[d]
			if index[d] < e.shape[d] {
				break
			}
			at -= strides[d] * e.shape[d]
			index[d] = 0
		}
		if done := n - len(y); repeats && done >= inner { // the rest is like what is there
			for ; len(y) > 0; done = n - len(y) {
				y = y[copy(y, v.x[done%inner:done]):]
			}
		}
	}
}

// compute runs the terms on n elements from lo on. Between terms it prefetches operands up to ahead: processors do not
// prefetch beyond a block, as they read the operands once and then work in the cache.
func (e *evaluation) compute(lo, n, ahead int) {
	more := engine.CeilDiv((ahead-lo-n)/len(e.terms), 16) * 16
	for i := 0; i < len(e.terms); {
		next := i + 1
		c := e.chains[i]
		if e.width > 0 && c != nil {
			next = c.end
			e.runChain(c, lo, n)
		} else {
			e.term(i, lo, n)
		}
		if e.most < longBlock { // a long block is read and written once, as processors expect
			e.fetch(lo+n+i*more, min(lo+n+next*more, ahead))
		}
		i = next
	}
	for _, c := range e.plan.copies {
		copy(e.outs[c.result].f32()[lo-e.base:][:n], e.values[c.value].x)
	}
}

// place is the memory for n elements of a term's value.
func (e *evaluation) place(i, lo, n int) []float32 {
	if at := e.plan.to[i]; at >= 0 {
		return e.buffer(len(e.operands)+at, n)
	} else {
		return e.outs[^at].f32()[lo-e.base:][:n]
	}
}

// term runs a kernel on n elements from lo on.
func (e *evaluation) term(i, lo, n int) {
	t, y := &e.terms[i], e.place(i, lo, n)
	e.values[len(e.operands)+i] = blockValue{x: y}
	var x [3][]float32
	constant, which := 0, 0
	for k, a := range t.args {
		x[k] = e.values[a].x
		if e.values[a].constant {
			constant++
			which = k
		}
	}
	if constant == 1 && t.Fixed[which] != nil {
		t.Fixed[which](y, x[0], x[1], x[2], engine.Numbers{e.values[t.args[which]].number})
		return
	}
	if constant > 0 {
		for k, a := range t.args {
			x[k] = e.filled(a, n)
		}
	}
	t.F(y, x[0], x[1], x[2], t.p)
}

// fetch prefetches elements lo to hi of operands in the result's order.
func (e *evaluation) fetch(lo, hi int) {
	if lo >= hi {
		return
	}
	for k, o := range e.operands {
		if o.dense && (k > 0 || !e.own) {
			kernels.Prefetch(e.view(k).f32()[lo:hi])
		}
	}
	if !e.own && e.base == 0 {
		for _, y := range e.outs {
			kernels.PrefetchWrite(y.f32()[lo:hi])
		}
	}
}

// filled is a value as n elements.
func (e *evaluation) filled(a, n int) []float32 {
	v := &e.values[a]
	if v.constant && len(v.x) < n {
		all := e.room
		if !e.operands[a].single { // it is another number in the next block
			all = n
		}
		v.x = e.buffer(a, all)
		engine.FillWith(v.x, v.number)
	}
	return v.x[:n]
}
