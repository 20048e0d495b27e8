package lower

import "github.com/wavelane/wavelane/ptx"

// prologue is a head in a kernel.
type prologue struct {
	k *ptx.Kernel
	formula
	from  []ptx.Ptr[ptx.Global, float32] // the task's row of each operand
	steps []ptx.Reg[uint32]              // from element to element
	p     []float
}

// prologueOf declares the parameters of a head.
func prologueOf(t team, h *head) *prologue {
	k, e := t.k, &prologue{k: t.k, formula: h.formula}
	for _, name := range h.operands {
		e.from = append(e.from, ptx.PointerParam[float32](k, "head_"+name, ptx.Align(16)))
	}
	words := ptx.ParamArray[uint32](k, "head", 2*len(h.operands))
	for _, name := range h.scalars {
		e.p = append(e.p, ptx.Param[float32](k, "head_"+name))
	}
	for i := range e.from {
		e.from[i] = ptx.At(k, e.from[i], ptx.MulWideU32(k, t.row, words.At(k, 2*i)))
		e.steps = append(e.steps, words.At(k, 2*i+1))
	}
	return e
}

// value is an element, of one of each operand.
func (e *prologue) value(x []float) float { return e.f(calc{e.k}, x, e.p)[0] }

// at is where element i of an operand lies.
func (e *prologue) at(operand int, i ptx.Reg[uint32]) ptx.Ptr[ptx.Global, float32] {
	return ptx.At(e.k, e.from[operand], ptx.Mul(e.k, i, e.steps[operand]))
}

// one is element i.
func (e *prologue) one(i ptx.Reg[uint32]) float {
	var x []float
	for o := range e.from {
		x = append(x, ptx.Load(e.k, e.at(o, i)))
	}
	return e.value(x)
}

// oneIf is element i if it is inside, else neutral.
func (e *prologue) oneIf(inside ptx.Reg[bool], i ptx.Reg[uint32], neutral float) float {
	var x []float
	for o := range e.from {
		x = append(x, ptx.LoadIf(e.k, inside, e.at(o, i), num(0)))
	}
	return ptx.Select(e.k, inside, e.value(x), neutral)
}

// four is the elements from one on at which fours may be read.
func (e *prologue) four(first ptx.Reg[uint32]) (y [4]float) {
	var x [4][]float
	for o := range e.from {
		var v variables[float32]
		for range 4 {
			v = append(v, ptx.NewVar[float32](e.k))
		}
		from := e.at(o, first)
		e.k.If(ptx.Ne(e.k, e.steps[o], u32(0)), func() {
			all := ptx.Load4(e.k, from)
			v.set(all[:])
		}, func() {
			all := ptx.Load(e.k, from)
			v.set([]float{all, all, all, all})
		})
		for i := range x {
			x[i] = append(x[i], v[i].Get())
		}
	}
	for i := range y {
		y[i] = e.value(x[i])
	}
	return y
}
