package cpu

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// chain is terms of an expression one after the other whose values stay in registers.
type chain struct {
	end    int            // term after it
	links  []kernels.Link // without addresses
	moves  []move
	from   int   // first of its links in evaluation.linked
	stored []int // terms whose values are needed after the chain
	slots  int   // for values that links keep
	arrays int   // values that links load or store
}

// move is a link with an address: that of a slot, a constant, or an array.
type move struct {
	link  int
	kind  moveKind
	value int // slot or value
	array int // number among the arrays
}

type moveKind uint8

const (
	ofSlot moveKind = iota
	ofConstant
	loaded  // array
	between // an array that an earlier link stored
	storing // array
)

// links are the links of elementwise entries, by name.
var links = map[string]kernels.LinkOp{
	"neg": kernels.LinkNeg, "abs": kernels.LinkAbs, "sqrt": kernels.LinkSqrt, "recip": kernels.LinkRecip,
	"floor": kernels.LinkFloor, "ceil": kernels.LinkCeil, "round": kernels.LinkRound, "trunc": kernels.LinkTrunc,
	"sign": kernels.LinkSign,
	"relu": kernels.LinkReLU, "leaky_relu": kernels.LinkLeakyReLU, "clip": kernels.LinkClip, "scale": kernels.LinkScale,
	"hardswish": kernels.LinkHardSwish, "add": kernels.LinkAdd, "sub": kernels.LinkSub, "mul": kernels.LinkMul,
	"div": kernels.LinkDiv, "maximum": kernels.LinkMaximum, "minimum": kernels.LinkMinimum, "fma": kernels.LinkMulAdd,
	"lerp": kernels.LinkLerp, "less": kernels.LinkLess, "less_equal": kernels.LinkLessEqual, "equal": kernels.LinkEqual,
	"select": kernels.LinkSelect, "exp": kernels.LinkExp, "tanh": kernels.LinkTanh, "sigmoid": kernels.LinkSigmoid,
	"gelu": kernels.LinkGELU, "gelu_erf": kernels.LinkGELUErf, "silu": kernels.LinkSiLU, "mish": kernels.LinkMish,
	"softplus": kernels.LinkSoftplus, "selu": kernels.LinkSELU, "elu": kernels.LinkELU,
}

// linkCopy marks the term that copies an operand: its value needs no link that computes it.
const linkCopy = kernels.LinkStore

// commutes reports whether the first two operands of a link may be exchanged.
func commutes(l kernels.LinkOp) bool {
	return l == kernels.LinkAdd || l == kernels.LinkMul || l == kernels.LinkMulAdd
}

// Moves into each operand's registers.
var (
	loads   = [3]kernels.LinkOp{kernels.LinkLoadA, kernels.LinkLoadB, kernels.LinkLoadC}
	fills   = [3]kernels.LinkOp{kernels.LinkFillA, kernels.LinkFillB, kernels.LinkFillC}
	recalls = [3]kernels.LinkOp{kernels.LinkRecallA, kernels.LinkRecallB, kernels.LinkRecallC}
	repeats = [3]kernels.LinkOp{1: kernels.LinkCopyB, 2: kernels.LinkCopyC}
)

// findChains makes chains of all terms with links that have a neighbour with one, where the active tier has links.
func (f *expression) findChains(results []int) {
	f.chains = make([]*chain, len(f.terms))
	f.tier = kernels.Active()
	if kernels.ChainWidth() == 0 {
		return
	}
	for i := 0; i < len(f.terms); i++ {
		end := i
		for end < len(f.terms) && f.terms[end].link != 0 {
			end++
		}
		if end-i < 2 {
			continue
		}
		c := f.newChain(i, end, results)
		c.from, f.links = f.links, f.links+len(c.links)
		f.slots = max(f.slots, c.slots+c.arrays)
		f.chains[i] = c
		i = end
	}
}

// newChain makes a chain of terms first to end.
func (f *expression) newChain(first, end int, results []int) *chain {
	c := &chain{end: end}
	inputs := len(f.operands)
	last := make([]int, inputs+len(f.terms)) // term of the chain that reads a value last
	stored := make([]bool, inputs+len(f.terms))
	for i := first; i < len(f.terms); i++ {
		for _, a := range f.terms[i].args {
			if i < end {
				last[a] = i
			} else {
				stored[a] = true
			}
		}
	}
	for _, r := range results {
		stored[r] = true
	}
	emit := func(op kernels.LinkOp, p engine.Numbers) { c.links = append(c.links, kernels.NewLink(op, p)) }
	arrays := map[int]int{}
	transfer := func(op kernels.LinkOp, kind moveKind, value int) {
		m := move{link: len(c.links), kind: kind, value: value}
		if kind >= loaded {
			if _, known := arrays[value]; !known {
				arrays[value] = len(arrays)
			}
			m.array = arrays[value]
		}
		c.moves = append(c.moves, m)
		emit(op, engine.Numbers{})
	}
	kept := map[int]int{} // slots of values
	var free []int
	result := -1 // value that is in registers
	for i := first; i < end; i++ {
		t := &f.terms[i]
		args := slices.Clone(t.args)
		if commutes(t.link) && args[1] == result {
			args[0], args[1] = args[1], args[0]
		}
		if result >= 0 && !stored[result] && last[result] > i {
			if len(free) == 0 {
				free = append(free, c.slots)
				c.slots++
			}
			kept[result], free = free[len(free)-1], free[:len(free)-1]
			transfer(kernels.LinkKeep, ofSlot, kept[result])
		}
		for k := len(args) - 1; k >= 0; k-- {
			a := args[k]
			slot, isKept := kept[a]
			switch {
			case a == result && k == 0:
			case a == result:
				emit(repeats[k], engine.Numbers{})
			case f.constant(a):
				transfer(fills[k], ofConstant, a)
			case isKept:
				transfer(recalls[k], ofSlot, slot)
			case a >= inputs+first:
				transfer(loads[k], between, a)
			default:
				transfer(loads[k], loaded, a)
			}
		}
		for _, a := range args {
			if slot, isKept := kept[a]; isKept && last[a] == i {
				free = append(free, slot)
				delete(kept, a)
			}
		}
		switch nan := float32(math.NaN()); {
		case t.link == linkCopy:
		case t.link == kernels.LinkClip && (t.p[0] != t.p[0] || t.p[1] != t.p[1]):
			emit(kernels.LinkScale, engine.Numbers{nan})
		default:
			emit(t.link, t.p)
		}
		result = inputs + i
		if stored[result] {
			c.stored = append(c.stored, i)
			transfer(kernels.LinkStore, storing, result)
		}
	}
	emit(kernels.LinkAgain, engine.Numbers{})
	c.arrays = len(arrays)
	return c
}

// constant reports whether an operand is one number throughout a block.
func (f *expression) constant(a int) bool {
	if a >= len(f.operands) {
		return false
	}
	o := &f.operands[a]
	return o.single || f.byRow && !o.dense && o.strides[len(f.shape)-1] == 0
}

// begins makes the links of a chain, all but the addresses of arrays.
func (e *evaluation) begins(c *chain) {
	linked := e.linked[c.from:][:copy(e.linked[c.from:], c.links)]
	for _, m := range c.moves {
		switch m.kind {
		case ofSlot:
			linked[m.link].At(&e.slots[m.value*e.width])
		case ofConstant:
			linked[m.link].At(&e.values[m.value].number)
		}
	}
}

// runChain runs a chain on n elements from lo on. What is left of them has a vector for each array.
func (e *evaluation) runChain(c *chain, lo, n int) {
	for _, i := range c.stored {
		e.values[len(e.operands)+i] = blockValue{x: e.place(i, lo, n)}
	}
	linked := e.linked[c.from:][:len(c.links)]
	whole := n - n%e.width
	if whole > 0 {
		for _, m := range c.moves {
			if m.kind >= loaded {
				linked[m.link].At(&e.values[m.value].x[0])
			}
		}
		kernels.RunChain(linked, whole)
	}
	if whole == n {
		return
	}
	rest := func(m move) []float32 { return e.slots[(c.slots+m.array)*e.width:][:n-whole] }
	for _, m := range c.moves {
		if m.kind < loaded {
			continue
		}
		linked[m.link].At(&rest(m)[0])
		if m.kind == loaded {
			copy(rest(m), e.values[m.value].x[whole:])
		}
	}
	kernels.RunChain(linked, e.width)
	for _, m := range c.moves {
		if m.kind == storing {
			copy(e.values[m.value].x[whole:], rest(m))
		}
	}
}
