package cpu

import (
	"slices"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// expression is a fused expression on operands of known shapes. It is evaluated in blocks of elements of the result that stay
// in L1: there each node runs the kernel that a step of its own would run, or a link with the bits of that kernel, so that
// results are the same bits, but in WebAssembly, where portable Go computes what is short: functions such as Exp may differ
// in the last bits there. The kernels of log, sin, cos and pow compute elements beyond their usual range, and their
// neighbours, in another way; which those neighbours are may differ.
type expression struct {
	terms    []term
	operands []operandForm
	results  int
	own      bool // operand 0 is result 0
	shape    []int
	byRow    bool // blocks do not go beyond the end of a row, the last axis
	block    int  // elements; the last may have a few more
	plans    [2]registers
	chains   []*chain     // by the first term of each; nil for none
	links    int          // of all chains
	slots    int          // of the chain that needs most
	tier     kernels.Tier // of the chains
	ns       float64      // for an element
}

// term is a node of an expression.
type term struct {
	*engine.SpanOp
	link kernels.LinkOp
	p    engine.Numbers
	args []int // values: operands, then terms
}

// copying is the term of a result that is an operand.
var copying = engine.SpanOp{Name: "Copy", Cost: engine.Cheap, F: func(y, a, _, _ []float32, _ engine.Numbers) { copy(y, a) }}

// operandForm is how an operand is read.
type operandForm struct {
	dense   bool  // in the result's order
	single  bool  // one number
	strides []int // along expression.shape
}

// registers says where terms put their values: in a buffer, or in the memory of result ^i, which they do not share.
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
	leastRow   = 64      // of one term by a number for each row
	blockRest  = 64      // that a block takes rather than leave it to the next
	longBlock  = 1 << 14 // of terms that need no room in a cache
)

// newExpression lowers a checked expression with results of a shape, of which there are some elements. With own the first
// operand is the first result.
func newExpression(x *program.Expression, scalars []float32, in []program.Type, shape []int, own bool) *expression {
	f := &expression{results: len(x.Results), own: own}
	for _, node := range x.Nodes {
		t := term{SpanOp: spanOf(node.Entry), link: links[node.Entry.Name], args: node.Args}
		n := copy(t.p[:], scalars[:len(node.Entry.Scalars)])
		scalars = scalars[n:]
		f.terms = append(f.terms, t)
	}
	results := slices.Clone(x.Results)
	for k, r := range results {
		if r < x.Inputs {
			results[k] = x.Inputs + len(f.terms)
			f.terms = append(f.terms, term{SpanOp: &copying, link: linkCopy, args: []int{r}})
		}
	}
	f.shapes(in, shape)
	for aliased := range f.plans {
		f.plans[aliased] = f.allocate(results, aliased > 0)
	}
	buffers := max(f.plans[0].buffers, f.plans[1].buffers)
	f.block = min(max(blockRoom/(buffers+len(f.operands)+len(results))&^127, leastBlock), mostBlock)
	least := leastBlock
	if len(f.terms) == 1 && !slices.ContainsFunc(f.operands, func(o operandForm) bool { return !o.dense && !o.single && o.strides[len(f.shape)-1] != 0 }) {
		least = leastRow
	}
	f.byRow = f.byRow && f.shape[len(f.shape)-1] >= least
	f.findChains(results)
	f.ns = f.cost()
	return f
}

// cost is the estimated time for an element, in ns.
func (f *expression) cost() float64 {
	ns, end := 0.05, 0
	for i, t := range f.terms {
		if c := f.chains[i]; c != nil {
			end = c.end
		}
		if i < end {
			ns += t.Cost.InRegister()
		} else {
			ns += t.Cost.Near()
		}
	}
	return ns
}

// shapes finds how operands are read.
func (f *expression) shapes(in []program.Type, shape []int) {
	f.operands = make([]operandForm, len(in))
	n := program.Len(shape)
	var strides [][]int
	for k, t := range in {
		o := &f.operands[k]
		o.single, o.dense = t.Len() == 1 && n > 1, t.Len() == n
		if !o.single && !o.dense {
			f.byRow = true
		}
		strides = append(strides, program.BroadcastStrides(t.Shape, shape))
	}
	f.shape, strides = program.Collapse(shape, strides...)
	for k := range in {
		f.operands[k].strides = strides[k]
	}
}

// allocate gives each term memory for its value. The memory of a result can hold other values before its own; if an operand
// may be stored there, only from the last term on that reads such an operand.
func (f *expression) allocate(results []int, aliased bool) registers {
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
