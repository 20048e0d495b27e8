package simd

import (
	"slices"

	"github.com/wavelane/wavelane/simd/internal/kernels"
)

// chain is terms of a formula one after the other whose values stay in registers.
type chain struct {
	first, end int // terms
	links      []chainLink
	from       int   // first of evaluation.linked
	stored     []int // terms whose values are needed behind the chain
	slots      int   // for values that links keep
	arrays     []int // values that links load or store
}

// chainLink is a link before memory is known.
type chainLink struct {
	op    kernels.LinkOp
	p     numbers
	value int // that it loads, stores or fills with; −1 for none
	slot  int // that it keeps or recalls; −1 for none
}

// links are the links of elementwise entries, by name. What takes long beside loads and stores gains little, but ends a chain.
var links = map[string]kernels.LinkOp{
	"neg": kernels.LinkNeg, "abs": kernels.LinkAbs, "sqrt": kernels.LinkSqrt, "recip": kernels.LinkRecip, "floor": kernels.LinkFloor,
	"ceil": kernels.LinkCeil, "round": kernels.LinkRound, "trunc": kernels.LinkTrunc, "sign": kernels.LinkSign,
	"relu": kernels.LinkReLU, "leaky_relu": kernels.LinkLeakyReLU, "clip": kernels.LinkClip, "scale": kernels.LinkScale,
	"hardswish": kernels.LinkHardSwish, "add": kernels.LinkAdd, "sub": kernels.LinkSub, "mul": kernels.LinkMul,
	"div": kernels.LinkDiv, "maximum": kernels.LinkMaximum, "minimum": kernels.LinkMinimum, "fma": kernels.LinkMulAdd,
	"lerp": kernels.LinkLerp,
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

// findChains makes chains of all terms with links that have a neighbour with one.
func (f *formula) findChains(results []int) {
	f.chains = make([]*chain, len(f.terms))
	from := 0
	for i := 0; i < len(f.terms); i++ {
		end := i
		for end < len(f.terms) && f.terms[end].link != 0 {
			end++
		}
		if end-i < 2 {
			continue
		}
		c := f.newChain(i, end, results)
		c.from = from
		from += len(c.links)
		f.chains[i] = c
		i = end
	}
}

// newChain makes a chain of terms first to end.
func (f *formula) newChain(first, end int, results []int) *chain {
	c := &chain{first: first, end: end}
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
	emit := func(op kernels.LinkOp, p numbers, value, slot int) {
		c.links = append(c.links, chainLink{op, p, value, slot})
	}
	array := func(op kernels.LinkOp, value int) {
		if !slices.Contains(c.arrays, value) {
			c.arrays = append(c.arrays, value)
		}
		emit(op, numbers{}, value, -1)
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
			emit(kernels.LinkKeep, numbers{}, -1, kept[result])
		}
		for k := len(args) - 1; k >= 0; k-- {
			a := args[k]
			slot, isKept := kept[a]
			switch {
			case a == result && k == 0:
			case a == result:
				emit(repeats[k], numbers{}, -1, -1)
			case f.constant(a):
				emit(fills[k], numbers{}, a, -1)
			case isKept:
				emit(recalls[k], numbers{}, -1, slot)
			default:
				array(loads[k], a)
			}
		}
		for _, a := range args {
			if slot, isKept := kept[a]; isKept && last[a] == i {
				free = append(free, slot)
				delete(kept, a)
			}
		}
		if t.link != linkCopy {
			emit(t.link, t.p, -1, -1)
		}
		result = inputs + i
		if stored[result] {
			c.stored = append(c.stored, i)
			array(kernels.LinkStore, result)
		}
	}
	emit(kernels.LinkAgain, numbers{}, -1, -1)
	return c
}

// constant reports whether an operand is one number throughout a block.
func (f *formula) constant(a int) bool {
	if a >= len(f.operands) {
		return false
	}
	o := &f.operands[a]
	return o.single || f.byRow && !o.dense && o.strides[len(f.shape)-1] == 0
}

// begins makes the links of a chain, all but the addresses of arrays.
func (e *evaluation) begins(c *chain) {
	for _, l := range c.links {
		var k kernels.Link
		k.Link(l.op, l.p)
		switch {
		case l.slot >= 0:
			k.At(&e.slots[l.slot*e.width])
		case l.value >= 0 && e.constant(l.value):
			k.At(&e.values[l.value].number)
		}
		e.linked = append(e.linked, k)
	}
}

// slotsNeeded is the number of vectors of e.width elements that chains need: for values that they keep, and one for each array.
func (f *formula) slotsNeeded() int {
	n := 0
	for _, c := range f.chains {
		if c != nil {
			n = max(n, c.slots+len(c.arrays))
		}
	}
	return n
}

// runChain runs a chain on n elements from lo on. What is left of them has a vector for each array.
func (e *evaluation) runChain(c *chain, lo, n int) {
	for _, i := range c.stored {
		e.values[len(e.operands)+i] = blockValue{x: e.place(i, lo, n)}
	}
	linked := e.linked[c.from:][:len(c.links)]
	whole := n - n%e.width
	if whole > 0 {
		for i, l := range c.links {
			if l.value >= 0 && !e.constant(l.value) {
				linked[i].At(&e.values[l.value].x[0])
			}
		}
		kernels.RunChain(linked, whole)
	}
	if whole == n {
		return
	}
	rest := func(value int) []float32 { return e.slots[(c.slots+slices.Index(c.arrays, value))*e.width:][:n-whole] }
	for i, l := range c.links {
		if l.value >= 0 && !e.constant(l.value) {
			part := rest(l.value)
			linked[i].At(&part[0])
			if l.op != kernels.LinkStore && l.value-len(e.operands) < c.first {
				copy(part, e.values[l.value].x[whole:])
			}
		}
	}
	kernels.RunChain(linked, e.width)
	for _, i := range c.stored {
		v := len(e.operands) + i
		copy(e.values[v].x[whole:], rest(v))
	}
}
