package simd

import (
	"slices"

	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/simd/internal/kernels"
)

// formula is an expression on operands of known shapes. It is evaluated in blocks of elements of the result that stay in the
// first cache: there each node runs the kernel that a step of its own would run, so that results are the same bits, but in WebAssembly,
// where portable Go computes what is short: functions such as Exp may differ in the last bits there. The kernels
// of log, sin, cos and pow treat elements beyond their usual range and the neighbours of those apart; what their neighbours are
// may differ.
type formula struct {
	terms    []term
	operands []operandForm
	results  int
	own      bool // operand 0 is result 0
	shape    []int
	byRow    bool // blocks do not go beyond the end of a row, the last axis
	block    int  // elements; the last may have a few more
	plans    [2]registers
	ns       float64 // for an element
}

// term is a node of an expression.
type term struct {
	*spanOp
	p    numbers
	args []int // values: operands, then terms
}

// copying is the term of a result that is an operand.
var copying = spanOp{name: "Copy", cost: cheap, f: func(y, a, _, _ []float32, _ numbers) { copy(y, a) }}

// operandForm is how an operand is read.
type operandForm struct {
	dense   bool  // in the result's order
	single  bool  // one number
	strides []int // along formula.shape
}

// registers says where terms put their values: in a buffer, or in the memory of result ^i, which they have for themselves.
type registers struct {
	to      []int
	buffers int
	copies  []copied // at the end of a block
}

// copied is a result that was computed elsewhere.
type copied struct{ result, value int }

// Bounds of blocks, in elements.
const (
	blockRoom  = 6144 // of all memory that a block touches
	leastBlock = 512
	mostBlock  = 2048
	blockRest  = 64 // that a block takes rather than leave it to the next
)

// newFormula lowers a checked expression with results of a shape, of which there are some elements. With own the first operand
// is the first result.
func newFormula(x *op.Expression, scalars []float32, in []op.Type, shape []int, own bool) *formula {
	f := &formula{results: len(x.Results), own: own, ns: 0.05}
	for _, node := range x.Nodes {
		t := term{spanOp: spans[node.Entry.Name], args: node.Args}
		n := copy(t.p[:], scalars[:len(node.Entry.Scalars)])
		scalars = scalars[n:]
		f.terms = append(f.terms, t)
	}
	results := slices.Clone(x.Results)
	for k, r := range results {
		if r < x.Inputs {
			results[k] = x.Inputs + len(f.terms)
			f.terms = append(f.terms, term{spanOp: &copying, args: []int{r}})
		}
	}
	for _, t := range f.terms {
		f.ns += t.cost.near()
	}
	f.shapes(in, shape)
	for aliased := range f.plans {
		f.plans[aliased] = f.allocate(results, aliased > 0)
	}
	buffers := max(f.plans[0].buffers, f.plans[1].buffers)
	f.block = min(max(blockRoom/(buffers+len(f.operands)+len(results))&^63, leastBlock), mostBlock)
	f.byRow = f.byRow && f.shape[len(f.shape)-1] >= leastBlock
	return f
}

// near is the cost of an element in the first cache.
func (c cost) near() float64 { return max(0.4*c.ns(), c.ns()-0.08) }

// shapes finds how operands are read.
func (f *formula) shapes(in []op.Type, shape []int) {
	f.operands = make([]operandForm, len(in))
	n := op.Len(shape)
	var strides [][]int
	for k, t := range in {
		o := &f.operands[k]
		o.single, o.dense = t.Len() == 1 && n > 1, t.Len() == n
		if !o.single && !o.dense {
			f.byRow = true
		}
		strides = append(strides, op.BroadcastStrides(t.Shape, shape))
	}
	f.shape, strides = op.Collapse(shape, strides...)
	for k := range in {
		f.operands[k].strides = strides[k]
	}
}

// allocate gives each term memory for its value. The memory of a result can hold other values before its own. If it may be an
// operand's as well, that is only so from the last term on that reads such an operand.
func (f *formula) allocate(results []int, aliased bool) registers {
	inputs := len(f.operands)
	last := make([]int, inputs+len(f.terms)) // term that reads a value last
	for i, t := range f.terms {
		for _, a := range t.args {
			last[a] = i
		}
	}
	from := 0 // the memory of results is free
	for k, o := range f.operands {
		if aliased && o.dense {
			from = max(from, last[k])
		}
	}
	final := make([]int, len(results)) // the term of each result
	for k, r := range results {
		final[k] = r - inputs
		last[r] = len(f.terms)
	}
	r := registers{to: make([]int, len(f.terms))}
	var free []int // buffers
	taken := make([]bool, len(results))
	for i, t := range f.terms {
		for k, a := range t.args { // first, as an operation may write over its operands
			if a < inputs || last[a] != i || slices.Contains(t.args[:k], a) {
				continue
			}
			if at := r.to[a-inputs]; at >= 0 {
				free = append(free, at)
			} else {
				taken[^at] = false
			}
		}
		at := -1
		for k := range results {
			if i < from || taken[k] || final[k] < i {
				continue
			}
			if final[k] == i {
				at = k
				break
			}
			if at < 0 && last[inputs+i] <= final[k] {
				at = k
			}
		}
		switch {
		case at >= 0:
			taken[at] = true
			r.to[i] = ^at
		case len(free) > 0:
			r.to[i], free = free[len(free)-1], free[:len(free)-1]
		default:
			r.to[i] = r.buffers
			r.buffers++
		}
	}
	for k, v := range results {
		if r.to[v-inputs] != ^k {
			r.copies = append(r.copies, copied{k, v})
		}
	}
	return r
}

// evaluation is a formula at work on one thread.
type evaluation struct {
	*formula
	plan   *registers
	outs   []view
	base   int // index of the first element of outs
	in     []view
	room   int // elements of a buffer
	memory []float32
	values []blockValue
}

// blockValue is a value at the elements of a block.
type blockValue struct {
	x        []float32
	number   float32 // that it is throughout, if it is constant; x is nil then until it is needed
	constant bool
}

var evaluations freeList[evaluation]

// run computes elements lo ≤ i < hi of the results; those from element base on are in outs. In are the operands, without the
// first if that is a result.
func (f *formula) run(outs []view, base int, in []view, lo, hi int) {
	e := evaluations.take()
	defer evaluations.give(e)
	e.formula, e.base = f, base
	e.outs, e.in = append(e.outs[:0], outs...), append(e.in[:0], in...)
	e.begin()
	last := len(f.shape) - 1
	for lo < hi {
		n := hi - lo
		if f.byRow {
			n = min(n, f.shape[last]-lo%f.shape[last])
		}
		if n > f.block+blockRest {
			n = f.block
		}
		e.operandsAt(lo, n)
		e.compute(lo, n, min(hi, lo+2*n))
		lo += n
	}
	clear(e.values)
	clear(e.outs)
	clear(e.in)
	e.formula, e.plan = nil, nil
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
	e.room = e.block + blockRest
	e.memory = resized(e.memory, e.room*(len(e.operands)+e.plan.buffers))
	e.values = resized(e.values, len(e.operands)+len(e.terms))
	for k, o := range e.operands {
		if o.single {
			e.values[k] = blockValue{number: e.view(k).f32()[0], constant: true}
		}
	}
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
	var index [op.MaxRank]int
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
			fillWith(row, x[at])
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

// compute runs the terms on n elements from lo on. Between them it asks for what is in memory of those up to ahead: a processor
// does not fetch beyond a block by itself, as it reads the operands once and then works in the cache.
func (e *evaluation) compute(lo, n, ahead int) {
	more := ceilDiv((ahead-lo-n)/len(e.terms), 16) * 16
	for i := range e.terms {
		t := &e.terms[i]
		e.fetch(lo+n+i*more, min(lo+n+(i+1)*more, ahead))
		var y []float32
		if at := e.plan.to[i]; at < 0 {
			y = e.outs[^at].f32()[lo-e.base:][:n]
		} else {
			y = e.buffer(len(e.operands)+at, n)
		}
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
		if constant == 1 && t.fixed[which] != nil {
			t.fixed[which](y, x[0], x[1], x[2], numbers{e.values[t.args[which]].number})
			continue
		}
		if constant > 0 {
			for k, a := range t.args {
				x[k] = e.filled(a, n)
			}
		}
		t.f(y, x[0], x[1], x[2], t.p)
	}
	for _, c := range e.plan.copies {
		copy(e.outs[c.result].f32()[lo-e.base:][:n], e.values[c.value].x)
	}
}

// fetch asks for elements lo to hi of what is in the result's order.
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
		fillWith(v.x, v.number)
	}
	return v.x[:n]
}
