package lower

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx"
)

// elementwise is the kernels of a formula: y[i] = f(x[i], …), four elements at a time. Those of the last four of a
// tensor may lie beyond its end: buffers have room for them. y may be an operand that is as large.
type elementwise struct {
	formula
	family, name, doc string

	ahead    int // quads of a thread at a time in flat kernels
	blocks   int // what ptxas needs to know lest it saves registers and spills; 0 where it need not
	elements int // elements of a thread at a time where operands are strided

	kernels [ways]*Kernel // those that are registered
}

// way is how a kernel finds the elements of its operands.
type way int

const (
	flat     way = iota // each operand is as large as the result, or a single element
	quads               // by strides along up to program.MaxRank axes, of which the innermost consists of quads
	elements            // by strides
	ways
)

const (
	elementwiseBlock  = 256
	quadsPerThread    = 2 // at a time, in flat kernels: what keeps memory busy
	elementsPerThread = 4 // likewise where operands are strided
)

// elementwiseKernels are those of each entry, by way.
var elementwiseKernels = func() map[*program.Entry]*elementwise {
	all := map[*program.Entry]*elementwise{}
	for _, e := range catalogue.All() {
		if f := functions[e]; f != nil {
			all[e] = newElementwise(e, f)
		}
	}
	return all
}()

// newElementwise registers the kernels of an entry. Where there is one operand it is never strided.
func newElementwise(e *program.Entry, f function) *elementwise {
	w := &elementwise{family: "unary", name: e.Name, doc: "y is " + e.Doc + ".", ahead: quadsPerThread,
		elements: elementsPerThread}
	w.formula = formula{results: []string{"y"}, f: func(c calc, x, p []float) []float { return []float{f(c, x, p)} }}
	for _, in := range e.Inputs {
		w.operands = append(w.operands, in.Name)
	}
	for _, s := range e.Scalars {
		w.scalars = append(w.scalars, s.Name)
	}
	if len(w.operands) > 1 {
		w.family = "binary"
	}
	w.kernels[flat] = register(w.kernel(flat))
	for v := quads; v < ways && len(w.operands) > 1; v++ {
		w.kernels[v] = register(w.kernel(v))
	}
	return w
}

// elementwiseStep lowers the entries that functions has.
func elementwiseStep(s *step) error {
	w := elementwiseKernels[s.Entry]
	return w.lower(s, func(v way) *Kernel { return w.kernels[v] })
}

// kernel is the one for a way.
func (w *elementwise) kernel(v way) Kernel {
	suffix := [ways]string{"_flat", "_quads", "_elements"}[v]
	what, build := "Parameters: u32 quads, u32 single (bit i: operand i is one element; not of unary ones)", w.buildFlat
	switch v {
	case quads:
		what, build = "Strided; counts are of four elements. Parameters: u32 count, axes (see broadcast.arguments)", w.buildQuads
	case elements:
		what, build = "Strided. Parameters: u32 count, axes (see broadcast.arguments)", w.buildElements
	}
	return Kernel{Family: w.family, Name: w.name + suffix, Block: [3]int{elementwiseBlock, 1, 1}, build: build,
		Doc: w.doc + " " + what + ", f32* operands …, f32* results …, f32 scalars …."}
}

// tensors declares the pointers to the operands and the results.
func (w *elementwise) tensors(k *ptx.Kernel) (x, y []ptx.Ptr[ptx.Global, float32]) {
	if w.blocks > 0 {
		k.MinBlocks(w.blocks)
	}
	for _, name := range w.operands {
		x = append(x, ptx.PointerParam[float32](k, name, ptx.Align(16)))
	}
	for _, name := range w.results {
		y = append(y, ptx.PointerParam[float32](k, name, ptx.Align(16)))
	}
	return x, y
}

// parameters declares the scalars.
func (w *elementwise) parameters(k *ptx.Kernel) (p []float) {
	for _, name := range w.scalars {
		p = append(p, ptx.Param[float32](k, name))
	}
	return p
}

// quad is four elements of each operand.
type quad [][4]*ptx.Var[float32]

func (w *elementwise) newQuad(element func() *ptx.Var[float32]) quad {
	q := make(quad, len(w.operands))
	for i := range q {
		for j := range q[i] {
			q[i][j] = element()
		}
	}
	return q
}

// set makes operand i those elements.
func (q quad) set(i int, x [4]float) {
	for j, v := range x {
		q[i][j].Set(v)
	}
}

// compute is four of each result.
func (w *elementwise) compute(k *ptx.Kernel, q quad, p []float) [][4]float {
	y := make([][4]float, len(w.results))
	for j := range 4 {
		x := make([]float, len(q))
		for i := range q {
			x[i] = q[i][j].Get()
		}
		for i, v := range w.f(calc{k}, x, p) {
			y[i][j] = v
		}
	}
	return y
}

// buildFlat strides over pieces of the tensors, of some quads for each thread of the block. What is a single element is read
// once. Behind the end old values are computed with and nothing is stored.
func (w *elementwise) buildFlat(k *ptx.Kernel) {
	count := ptx.Param[uint32](k, "quads")
	whole := make([]ptx.Reg[bool], len(w.operands)) // operands, where there are several
	if len(whole) > 1 {
		single := ptx.Param[uint32](k, "single")
		for i := range whole {
			whole[i] = ptx.Eq(k, ptx.And(k, single, ptx.Imm(uint32(1)<<i)), ptx.Imm[uint32](0))
		}
	}
	x, y := w.tensors(k)
	p := w.parameters(k)
	all := make([]quad, w.ahead)
	for u := range all {
		all[u] = w.newQuad(func() *ptx.Var[float32] {
			if u == 0 && len(x) == 1 { // written whenever it is read
				return ptx.NewVar[float32](k)
			}
			return ptx.VarOf(k, num(0))
		})
	}
	if len(x) > 1 {
		for i := range x {
			k.If(ptx.Not(k, whole[i]), func() {
				v := ptx.Load(k, x[i])
				for _, q := range all {
					q.set(i, [4]float{v, v, v, v})
				}
			})
		}
	}
	piece := uint32(elementwiseBlock * w.ahead)
	first := ptx.Mad(k, k.Ctaid(ptx.X), ptx.Imm(piece), k.Tid(ptx.X))
	ptx.For(k, first, count, ptx.Mul(k, k.Nctaid(ptx.X), ptx.Imm(piece)), func(i ptx.Reg[uint32]) {
		at := ptx.Shl(k, i, ptx.Imm[uint32](2))
		inside := make([]ptx.Reg[bool], w.ahead) // but of the first, which is
		for u := 1; u < w.ahead; u++ {
			inside[u] = ptx.Lt(k, ptx.Add(k, i, ptx.Imm(uint32(u*elementwiseBlock))), count)
		}
		for o, from := range x {
			from = ptx.At(k, from, at)
			for u, q := range all {
				load := func() { q.set(o, ptx.Load4(k, from.At(4*u*elementwiseBlock))) }
				switch {
				case u > 0 && len(x) > 1:
					k.When(ptx.And(k, inside[u], whole[o]), load)
				case u > 0:
					k.When(inside[u], load)
				case len(x) > 1:
					k.When(whole[o], load)
				default:
					load()
				}
			}
		}
		to := make([]ptx.Ptr[ptx.Global, float32], len(y))
		for o := range y {
			to[o] = ptx.At(k, y[o], at)
		}
		for u, q := range all {
			r := w.compute(k, q, p)
			for o := range r {
				store := func() { ptx.Store4(k, to[o].At(4*u*elementwiseBlock), r[o]) }
				if u == 0 {
					store()
				} else {
					k.When(inside[u], store)
				}
			}
		}
	})
}

// lower picks the way, of which kernelOf has the kernel.
func (w *elementwise) lower(s *step, kernelOf func(way) *Kernel) error {
	single, isFlat := 0, true
	for i, t := range s.in {
		if t.Len() == 1 {
			single |= 1 << i
		}
		isFlat = isFlat && (t.Len() == 1 || t.Len() == s.out.Len())
	}
	tensors := append(s.tensors(), s.scalars()...)
	if !isFlat {
		w.lowerStrided(s, kernelOf, tensors)
		return nil
	}
	count := ceilDiv(s.out.Len(), 4)
	arguments := []any{count}
	if len(s.in) > 1 {
		arguments = append(arguments, single)
	}
	s.launch(kernelOf(flat), s.strides(count, elementwiseBlock*w.ahead), append(arguments, tensors...)...)
	return nil
}

// tensors is the operands and the results as arguments.
func (s *step) tensors() (all []any) {
	for i := range s.in {
		all = append(all, operand(i))
	}
	for i := range s.outs {
		all = append(all, resultAt(i))
	}
	return all
}

// scalars is the scalars as arguments.
func (s *step) scalars() (all []any) {
	for _, v := range s.Attr.Scalars {
		all = append(all, v)
	}
	return all
}
