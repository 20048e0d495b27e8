package lower

import "github.com/wavelane/wavelane/ptx"

// epilogue is a tail in a kernel.
type epilogue struct {
	k *ptx.Kernel
	formula
	words ptx.Array[uint32]
	from  []ptx.Ptr[ptx.Global, float32] // of the operands but the first
	p     []float                        // the scalars
}

// epilogueOf declares the parameters of a tail; nil if there is none.
func epilogueOf(k *ptx.Kernel, t *tail) *epilogue {
	if t == nil {
		return nil
	}
	e := &epilogue{k: k, formula: t.formula}
	if n := len(t.strides); n > 0 {
		e.words = ptx.ParamArray[uint32](k, "tail", tailWords*n)
	}
	for _, name := range t.operands[1:] {
		e.from = append(e.from, ptx.PointerParam[float32](k, "tail_"+name, ptx.Align(16)))
	}
	for _, name := range t.scalars {
		e.p = append(e.p, ptx.Param[float32](k, "tail_"+name))
	}
	return e
}

// site is where a result is.
type site struct{ z, row, col ptx.Reg[uint32] }

// at is where operand i lies for it.
func (e *epilogue) at(i int, p site) ptx.Ptr[ptx.Global, float32] {
	k, word := e.k, func(n int) ptx.Reg[uint32] { return e.words.At(e.k, tailWords*i+n) }
	from := ptx.Add(k, ptx.MulWideU32(k, p.row, word(1)), ptx.MulWideU32(k, p.col, word(2)))
	return ptx.At(k, e.from[i], ptx.Add(k, from, ptx.MulWideU32(k, p.z, word(0))))
}

// apply is what becomes of results x at some sites, of those that are inside. With vector there are four: if it holds they are
// neighbours in a row, all or none of them inside, and begin at a multiple of four columns.
func (e *epilogue) apply(x []float, at func(i int) site, inside func(i int) ptx.Reg[bool], vector ...ptx.Reg[bool]) []float {
	k := e.k
	v := make([][]float, len(x))
	for i := range x {
		v[i] = []float{x[i]}
	}
	for o := range e.from {
		single := func(i int) float { return ptx.LoadIf(k, inside(i), e.at(o, at(i)), num(0)) }
		if len(vector) == 0 {
			for i := range x {
				v[i] = append(v[i], single(i))
			}
			continue
		}
		var four [4]*ptx.Var[float32]
		for i := range four {
			four[i] = ptx.VarOf(k, num(0))
		}
		wide := ptx.And(k, vector[0], ptx.Ne(k, e.words.At(k, tailWords*o+3), u32(0)))
		loadStrip(k, wide, func(i int) ptx.Ptr[ptx.Global, float32] { return e.at(o, at(i)) }, inside, four)
		for i := range four {
			v[i] = append(v[i], four[i].Get())
		}
	}
	y := make([]float, len(x))
	for i := range x {
		y[i] = e.f(calc{k}, v[i], e.p)[0]
	}
	return y
}

// one is apply for a single result.
func (e *epilogue) one(x float, at site) float {
	k, v := e.k, []float{x}
	for o := range e.from {
		v = append(v, ptx.Load(k, e.at(o, at)))
	}
	return e.f(calc{k}, v, e.p)[0]
}
