package tiling

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Epilogue is a tail in a kernel.
type Epilogue struct {
	k *ptx.Kernel
	scalar.Body
	words ptx.Array[uint32]
	from  []ptx.Ptr[ptx.Global, float32] // of the operands but the first
	p     []scalar.Float                 // the scalars
}

// EpilogueOf declares the parameters of a tail; nil if there is none.
func EpilogueOf(k *ptx.Kernel, t *kit.Epilogue) *Epilogue {
	if t == nil {
		return nil
	}
	e := &Epilogue{k: k, Body: t.Body}
	if n := len(t.Strides); n > 0 {
		e.words = ptx.ParamArray[uint32](k, "tail", kit.EpilogueWords*n)
	}
	for _, name := range t.Operands[1:] {
		e.from = append(e.from, ptx.PointerParam[float32](k, "tail_"+name, ptx.Align(16)))
	}
	for _, name := range t.Scalars {
		e.p = append(e.p, ptx.Param[float32](k, "tail_"+name))
	}
	return e
}

// Site is where a result is.
type Site struct{ Z, Row, Col ptx.Reg[uint32] }

// at is where operand i lies for it.
func (e *Epilogue) at(i int, p Site) ptx.Ptr[ptx.Global, float32] {
	word := func(n int) ptx.Reg[uint32] { return e.words.At(kit.EpilogueWords*i + n) }
	from := p.Row.MulWide(word(1)).Add(p.Col.MulWide(word(2)))
	return e.from[i].At(from.Add(p.Z.MulWide(word(0))))
}

// Apply is what becomes of results x at some sites, of those that are inside. With vector there are four: if it holds they are
// neighbours in a row, all or none of them inside, and begin at a multiple of four columns.
func (e *Epilogue) Apply(x []scalar.Float, at func(i int) Site, inside func(i int) ptx.Reg[bool], vector ...ptx.Reg[bool]) []scalar.Float {
	k := e.k
	v := make([][]scalar.Float, len(x))
	for i := range x {
		v[i] = []scalar.Float{x[i]}
	}
	for o := range e.from {
		single := func(i int) scalar.Float { return ptx.LoadIf(inside(i), e.at(o, at(i)), 0) }
		if len(vector) == 0 {
			for i := range x {
				v[i] = append(v[i], single(i))
			}
			continue
		}
		four := scalar.Zeros(k, 4)
		wide := vector[0].And(e.words.At(kit.EpilogueWords*o + 3).Ne(0))
		loadStrip(k, wide, func(i int) ptx.Ptr[ptx.Global, float32] { return e.at(o, at(i)) }, inside, four)
		for i := range four {
			v[i] = append(v[i], four[i].Get())
		}
	}
	y := make([]scalar.Float, len(x))
	for i := range x {
		y[i] = e.F(scalar.Math{K: k}, v[i], e.p)[0]
	}
	return y
}

// ApplyOne is apply for a single result.
func (e *Epilogue) ApplyOne(x scalar.Float, at Site) scalar.Float {
	k, v := e.k, []scalar.Float{x}
	for o := range e.from {
		v = append(v, e.at(o, at).Load())
	}
	return e.F(scalar.Math{K: k}, v, e.p)[0]
}
