package lower

import (
	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/ptx"
)

// elementwise is the kernels of an entry: y[i] = f(x[i], …), four elements at a time. Those of the last four of a
// tensor may lie beyond its end: buffers have room for them. y may be an operand that is as large.
type elementwise struct {
	entry *op.Entry
	f     function

	flat *Kernel // each operand is as large as the result, or a single element
	// By strides along up to op.MaxRank axes; nil where operands cannot be repeated.
	quads    *Kernel // where the innermost axis consists of quads
	elements *Kernel // anywhere
}

// function computes an entry for one element of each operand; p are the entry's scalars.
type function func(c calc, x, p []float) float

const (
	elementwiseBlock = 256
	quadsPerThread   = 2 // at a time, in flat kernels: what keeps memory busy
)

func newElementwise(e *op.Entry, f function) *elementwise {
	w := &elementwise{entry: e, f: f}
	family := "unary"
	if e.Class != op.Unary {
		family = "binary"
	}
	kernel := func(suffix, doc string, build func(k *ptx.Kernel)) *Kernel {
		return register(Kernel{Family: family, Name: e.Name + suffix, Block: [3]int{elementwiseBlock, 1, 1}, build: build,
			Doc: "y is " + e.Doc + ". " + doc})
	}
	w.flat = kernel("_flat", "Parameters: u32 quads, u32 single (bit i: operand i is one element; not of unary ones), "+
		"f32* operands …, f32* y, f32 scalars ….", w.buildFlat)
	if e.Class != op.Unary {
		const parameters = "Parameters: u32 count, axes (see broadcast.arguments), f32* operands …, f32* y, f32 scalars …."
		w.quads = kernel("_quads", "Strided; counts are of four elements. "+parameters, w.buildQuads)
		w.elements = kernel("_elements", "Strided. "+parameters, w.buildElements)
	}
	lowerings[e] = w.lower
	return w
}

// tensors declares the pointers to the operands and the result.
func (w *elementwise) tensors(k *ptx.Kernel) (x []ptx.Ptr[ptx.Global, float32], y ptx.Ptr[ptx.Global, float32]) {
	for _, in := range w.entry.Inputs {
		x = append(x, ptx.PointerParam[float32](k, in.Name, ptx.Align(16)))
	}
	return x, ptx.PointerParam[float32](k, "y", ptx.Align(16))
}

// scalars declares the entry's.
func (w *elementwise) scalars(k *ptx.Kernel) (p []float) {
	for _, s := range w.entry.Scalars {
		p = append(p, ptx.Param[float32](k, s.Name))
	}
	return p
}

// quad is four elements of each operand.
type quad [][4]*ptx.Var[float32]

func (w *elementwise) newQuad(element func() *ptx.Var[float32]) quad {
	q := make(quad, len(w.entry.Inputs))
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

// compute is the four results.
func (w *elementwise) compute(k *ptx.Kernel, q quad, p []float) (y [4]float) {
	for j := range y {
		x := make([]float, len(q))
		for i := range q {
			x[i] = q[i][j].Get()
		}
		y[j] = w.f(calc{k}, x, p)
	}
	return y
}

// buildFlat strides over pieces of the tensors, of quadsPerThread quads for each thread of the block. What is a single element
// is read once. Behind the end old values are computed with and nothing is stored.
func (w *elementwise) buildFlat(k *ptx.Kernel) {
	count := ptx.Param[uint32](k, "quads")
	whole := make([]ptx.Reg[bool], len(w.entry.Inputs)) // operands, where there are several
	if len(whole) > 1 {
		single := ptx.Param[uint32](k, "single")
		for i := range whole {
			whole[i] = ptx.Eq(k, ptx.And(k, single, ptx.Imm(uint32(1)<<i)), ptx.Imm[uint32](0))
		}
	}
	x, y := w.tensors(k)
	p := w.scalars(k)
	var quads [quadsPerThread]quad
	for u := range quads {
		quads[u] = w.newQuad(func() *ptx.Var[float32] {
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
				for _, q := range quads {
					q.set(i, [4]float{v, v, v, v})
				}
			})
		}
	}
	const piece = elementwiseBlock * quadsPerThread
	first := ptx.Mad(k, k.Ctaid(ptx.X), ptx.Imm[uint32](piece), k.Tid(ptx.X))
	ptx.For(k, first, count, ptx.Mul(k, k.Nctaid(ptx.X), ptx.Imm[uint32](piece)), func(i ptx.Reg[uint32]) {
		at := ptx.Shl(k, i, ptx.Imm[uint32](2))
		var inside [quadsPerThread]ptx.Reg[bool] // but of the first, which is
		for u := 1; u < quadsPerThread; u++ {
			inside[u] = ptx.Lt(k, ptx.Add(k, i, ptx.Imm(uint32(u*elementwiseBlock))), count)
		}
		for o, from := range x {
			from = ptx.At(k, from, at)
			for u, q := range quads {
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
		to := ptx.At(k, y, at)
		for u, q := range quads {
			r := w.compute(k, q, p)
			store := func() { ptx.Store4(k, to.At(4*u*elementwiseBlock), r) }
			if u == 0 {
				store()
			} else {
				k.When(inside[u], store)
			}
		}
	})
}

// lower picks the kernel.
func (w *elementwise) lower(s *step) error {
	single, flat := 0, true
	for i, t := range s.in {
		if t.Len() == 1 {
			single |= 1 << i
		}
		flat = flat && (t.Len() == 1 || t.Len() == s.out.Len())
	}
	if !flat {
		w.lowerStrided(s)
		return nil
	}
	count := ceilDiv(s.out.Len(), 4)
	arguments := []any{count}
	if len(s.in) > 1 {
		arguments = append(arguments, single)
	}
	arguments = append(append(arguments, s.tensors()...), s.scalars()...)
	s.launch(w.flat, s.strides(count, elementwiseBlock*quadsPerThread), arguments...)
	return nil
}

// tensors is the operands and the result as arguments.
func (s *step) tensors() (all []any) {
	for i := range s.in {
		all = append(all, operand(i))
	}
	return append(all, result)
}

// scalars is the scalars as arguments.
func (s *step) scalars() (all []any) {
	for _, v := range s.Attr.Scalars {
		all = append(all, v)
	}
	return all
}
