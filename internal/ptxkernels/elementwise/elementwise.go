package elementwise

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Kernels is the kernels of a function: y[i] = f(x[i], …), four elements at a time. Those of the last four of a
// tensor may lie beyond its end: buffers have room for them. y may be an operand that is as large.
type Kernels struct {
	scalar.Body
	family, name, doc string

	Ahead    int // quads of a thread at a time in flat kernels
	blocks   int // what ptxas needs to know lest it saves registers and spills; 0 where it need not
	elements int // elements of a thread at a time where operands are strided

	kernels [Ways]*kit.Kernel // those that are registered
}

// way is how a kernel finds the elements of its operands.
type way int

const (
	Flat     way = iota // each operand is as large as the result, or a single element
	quads               // by strides along up to program.MaxRank axes, of which the innermost consists of quads
	elements            // by strides
	Ways
)

const (
	elementwiseBlock  = 256
	QuadsPerThread    = 2 // at a time, in flat kernels: what keeps memory busy
	elementsPerThread = 4 // likewise where operands are strided
)

// kernelsOf are those of each entry, by way.
var kernelsOf = func() map[*program.Entry]*Kernels {
	all := map[*program.Entry]*Kernels{}
	for _, e := range catalogue.All() {
		if f := scalar.Functions[e]; f != nil {
			all[e] = newElementwise(e, f)
		}
	}
	return all
}()

// newElementwise registers the kernels of an entry. Where there is one operand it is never strided.
func newElementwise(e *program.Entry, f scalar.Function) *Kernels {
	w := &Kernels{family: "unary", name: e.Name, doc: "y is " + e.Doc + ".", Ahead: QuadsPerThread,
		elements: elementsPerThread}
	w.Body = scalar.Body{Results: []string{"y"}, F: func(c scalar.Math, x, p []scalar.Float) []scalar.Float { return []scalar.Float{f(c, x, p)} }}
	for _, in := range e.Inputs {
		w.Operands = append(w.Operands, in.Name)
	}
	for _, s := range e.Scalars {
		w.Scalars = append(w.Scalars, s.Name)
	}
	if len(w.Operands) > 1 {
		w.family = "binary"
	}
	w.kernels[Flat] = kit.Register(w.Kernel(Flat))
	for v := quads; v < Ways && len(w.Operands) > 1; v++ {
		w.kernels[v] = kit.Register(w.Kernel(v))
	}
	return w
}

// Elementwise lowers the entries that functions has.
func Elementwise(s *kit.Step) error {
	w := kernelsOf[s.Entry]
	return w.Lower(s, func(v way) *kit.Kernel { return w.kernels[v] })
}

// tensorParams are the parameters that all kernels of a function end with.
type tensorParams struct {
	Body    *scalar.Body `param:"-"` // which has their names
	X, Y    []kit.Buffer
	Scalars []float32
}

// ParamNames implements [kit.Namer].
func (p tensorParams) ParamNames(field string) []string {
	return map[string][]string{"X": p.Body.Operands, "Y": p.Body.Results, "Scalars": p.Body.Scalars}[field]
}

// tensors are the parameters in a kernel.
func (w *Kernels) tensors() tensorParams {
	return tensorParams{&w.Body, make([]kit.Buffer, len(w.Operands)), make([]kit.Buffer, len(w.Results)), make([]float32, len(w.Scalars))}
}

// tensorsOf are those of a step.
func (w *Kernels) tensorsOf(s *kit.Step) tensorParams {
	p := w.tensors()
	for i := range p.X {
		p.X[i] = kit.In(i)
	}
	for i := range p.Y {
		p.Y[i] = kit.OutAt(i)
	}
	p.Scalars = s.Attr.Scalars
	return p
}

// flatParams are those of flat kernels.
type flatParams struct {
	Quads  int
	Single []int `names:"single"` // bit i: operand i is one element; not of unary ones
	tensorParams
}

func (w *Kernels) flat(quads, single int, tensors tensorParams) flatParams {
	p := flatParams{Quads: quads, tensorParams: tensors}
	if len(w.Operands) > 1 {
		p.Single = []int{single}
	}
	return p
}

// walkParams are those of strided kernels; see [broadcast.arguments].
type walkParams struct {
	Count int
	Axes  []uint32
	tensorParams
}

// Kernel is the one for a way.
func (w *Kernels) Kernel(v way) kit.Kernel {
	suffix := [Ways]string{"_flat", "_quads", "_elements"}[v]
	k := kit.Kernel{Family: w.family, Name: w.name + suffix, Block: [3]int{elementwiseBlock, 1, 1}, Doc: w.doc, Params: walkParams{tensorParams: w.tensors()}}
	switch v {
	case quads:
		k.Doc, k.Build = k.Doc+" Strided; counts are of four elements.", w.buildQuads
	case elements:
		k.Doc, k.Build = k.Doc+" Strided.", w.buildElements
	default:
		k.Params, k.Build = w.flat(0, 0, w.tensors()), w.buildFlat
	}
	return k
}

// read reads the parameters that all kernels end with.
func (at *tensorParams) read(w *Kernels, p *kit.Params) (x, y []ptx.Ptr[ptx.Global, float32], scalars []scalar.Float) {
	if w.blocks > 0 {
		p.Kernel.MinBlocks(w.blocks)
	}
	for i := range at.X {
		x = append(x, kit.Ptr[float32](p, &at.X[i], ptx.Align(16)))
	}
	for i := range at.Y {
		y = append(y, kit.Ptr[float32](p, &at.Y[i], ptx.Align(16)))
	}
	for i := range at.Scalars {
		scalars = append(scalars, kit.Read(p, &at.Scalars[i]))
	}
	return x, y, scalars
}

// quad is four elements of each operand.
type quad [][4]*ptx.Var[float32]

func (w *Kernels) newQuad(element func() *ptx.Var[float32]) quad {
	q := make(quad, len(w.Operands))
	for i := range q {
		for j := range q[i] {
			q[i][j] = element()
		}
	}
	return q
}

// Set makes operand i those elements.
func (q quad) Set(i int, x [4]scalar.Float) {
	for j, v := range x {
		q[i][j].Set(v)
	}
}

// compute is four of each result.
func (w *Kernels) compute(k *ptx.Kernel, q quad, p []scalar.Float) [][4]scalar.Float {
	y := make([][4]scalar.Float, len(w.Results))
	for j := range 4 {
		x := make([]scalar.Float, len(q))
		for i := range q {
			x[i] = q[i][j].Get()
		}
		for i, v := range w.F(scalar.Math{K: k}, x, p) {
			y[i][j] = v
		}
	}
	return y
}

// buildFlat strides over pieces of the tensors, of some quads for each thread of the block. What is a single element is read
// once. Beyond the end old values are computed with and nothing is stored.
func (w *Kernels) buildFlat(k *ptx.Kernel) {
	of := w.flat(0, 0, w.tensors())
	params := kit.NewParams(k, &of)
	count := params.U32(&of.Quads)
	whole := make([]ptx.Reg[bool], len(w.Operands)) // operands, where there are several
	if len(whole) > 1 {
		single := params.U32(&of.Single[0])
		for i := range whole {
			whole[i] = single.And(uint32(1) << i).Eq(0)
		}
	}
	x, y, p := of.read(w, params)
	all := make([]quad, w.Ahead)
	for u := range all {
		all[u] = w.newQuad(func() *ptx.Var[float32] {
			if u == 0 && len(x) == 1 { // written whenever it is read
				return ptx.NewVar[float32](k)
			}
			return ptx.VarOf(k, ptx.F32(0))
		})
	}
	if len(x) > 1 {
		for i := range x {
			k.If(whole[i].Not(), func() {
				v := x[i].Load()
				for _, q := range all {
					q.Set(i, [4]scalar.Float{v, v, v, v})
				}
			})
		}
	}
	piece := uint32(elementwiseBlock * w.Ahead)
	first := k.Ctaid(ptx.X).Mad(piece, k.Tid(ptx.X))
	ptx.For(k, first, count, k.Nctaid(ptx.X).Mul(piece), func(i ptx.Reg[uint32]) {
		at := i.Shl(2)
		inside := make([]ptx.Reg[bool], w.Ahead) // but of the first, which is
		for u := 1; u < w.Ahead; u++ {
			inside[u] = i.Add(uint32(u * elementwiseBlock)).Lt(count)
		}
		for o, from := range x {
			from = from.At(at)
			for u, q := range all {
				load := func() { q.Set(o, from.At(4*u*elementwiseBlock).Load4()) }
				switch {
				case u > 0 && len(x) > 1:
					k.When(inside[u].And(whole[o]), load)
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
			to[o] = y[o].At(at)
		}
		for u, q := range all {
			r := w.compute(k, q, p)
			for o := range r {
				store := func() { to[o].At(4 * u * elementwiseBlock).Store4(r[o]) }
				if u == 0 {
					store()
				} else {
					k.When(inside[u], store)
				}
			}
		}
	})
}

// Lower picks the way, of which kernelOf has the kernel.
func (w *Kernels) Lower(s *kit.Step, kernelOf func(way) *kit.Kernel) error {
	single, isFlat := 0, true
	for i, t := range s.Operands {
		if t.Len() == 1 {
			single |= 1 << i
		}
		isFlat = isFlat && (t.Len() == 1 || t.Len() == s.Result.Len())
	}
	if !isFlat {
		w.lowerStrided(s, kernelOf)
		return nil
	}
	count := kit.CeilDiv(s.Result.Len(), 4)
	s.Launch(kernelOf(Flat), s.GridStride(count, elementwiseBlock*w.Ahead), w.flat(count, single, w.tensorsOf(s)))
	return nil
}
