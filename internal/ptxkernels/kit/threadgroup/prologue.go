package threadgroup

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Prologue computes the elements of the first operand in a kernel.
type Prologue struct {
	k *ptx.Kernel
	scalar.Body
	from  []ptx.Ptr[ptx.Global, float32] // the task's row of each operand
	steps []ptx.Reg[uint32]              // from element to element
	p     []scalar.Float
}

// PrologueOf declares the parameters of a prologue, in place of an operand's.
func PrologueOf(t Group, h *kit.Prologue, field *kit.Buffer) *Prologue {
	t.Skip(field)
	k, e := t.K, &Prologue{k: t.K, Body: h.Body}
	for _, name := range h.Operands {
		e.from = append(e.from, ptx.PointerParam[float32](k, "head_"+name, ptx.Align(16)))
	}
	words := ptx.ParamArray[uint32](k, "head", 2*len(h.Operands))
	for _, name := range h.Scalars {
		e.p = append(e.p, ptx.Param[float32](k, "head_"+name))
	}
	for i := range e.from {
		e.from[i] = e.from[i].At(t.Row.MulWide(words.At(2 * i)))
		e.steps = append(e.steps, words.At(2*i+1))
	}
	return e
}

// value is an element, of one of each operand.
func (e *Prologue) value(x []scalar.Float) scalar.Float { return e.F(scalar.Math{K: e.k}, x, e.p)[0] }

// at is where element i of an operand lies.
func (e *Prologue) at(operand int, i ptx.Reg[uint32]) ptx.Ptr[ptx.Global, float32] {
	return e.from[operand].At(i.Mul(e.steps[operand]))
}

// One is element i.
func (e *Prologue) One(i ptx.Reg[uint32]) scalar.Float {
	var x []scalar.Float
	for o := range e.from {
		x = append(x, e.at(o, i).Load())
	}
	return e.value(x)
}

// OneIf is element i if it is inside, else neutral.
func (e *Prologue) OneIf(inside ptx.Reg[bool], i ptx.Reg[uint32], neutral scalar.Float) scalar.Float {
	var x []scalar.Float
	for o := range e.from {
		x = append(x, ptx.LoadIf(inside, e.at(o, i), 0))
	}
	return ptx.Select(inside, e.value(x), neutral)
}

// Four is the elements from one on at which fours may be read.
func (e *Prologue) Four(first ptx.Reg[uint32]) (y [4]scalar.Float) {
	var x [4][]scalar.Float
	for o := range e.from {
		var v scalar.Variables[float32]
		for range 4 {
			v = append(v, ptx.NewVar[float32](e.k))
		}
		from := e.at(o, first)
		e.k.If(e.steps[o].Ne(0), func() {
			all := from.Load4()
			v.Set(all[:])
		}, func() {
			all := from.Load()
			v.Set([]scalar.Float{all, all, all, all})
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

// Load is the n elements from number i on, one or four.
func (e *Prologue) Load(n int, i ptx.Reg[uint32]) []scalar.Float {
	if n == 1 {
		return []scalar.Float{e.One(i)}
	}
	four := e.Four(i)
	return four[:]
}
