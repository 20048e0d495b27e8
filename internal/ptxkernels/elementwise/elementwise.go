package elementwise

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Kernels is the kernels of a formula: y[i] = f(x[i], …), four elements at a time. Those of the last four of a
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

// Kernel is the one for a way.
func (w *Kernels) Kernel(v way) kit.Kernel {
	suffix := [Ways]string{"_flat", "_quads", "_elements"}[v]
	what, build := "Parameters: u32 quads, u32 single (bit i: operand i is one element; not of unary ones)", w.buildFlat
	switch v {
	case quads:
		what, build = "Strided; counts are of four elements. Parameters: u32 count, axes (see broadcast.arguments)", w.buildQuads
	case elements:
		what, build = "Strided. Parameters: u32 count, axes (see broadcast.arguments)", w.buildElements
	}
	return kit.Kernel{Family: w.family, Name: w.name + suffix, Block: [3]int{elementwiseBlock, 1, 1}, Build: build,
		Doc: w.doc + " " + what + ", f32* operands …, f32* results …, f32 scalars …."}
}

// Tensors declares the pointers to the operands and the results.
func (w *Kernels) Tensors(k *ptx.Kernel) (x, y []ptx.Ptr[ptx.Global, float32]) {
	if w.blocks > 0 {
		k.MinBlocks(w.blocks)
	}
	for _, name := range w.Operands {
		x = append(x, ptx.PointerParam[float32](k, name, ptx.Align(16)))
	}
	for _, name := range w.Results {
		y = append(y, ptx.PointerParam[float32](k, name, ptx.Align(16)))
	}
	return x, y
}

// parameters declares the scalars.
func (w *Kernels) parameters(k *ptx.Kernel) (p []scalar.Float) {
	for _, name := range w.Scalars {
		p = append(p, ptx.Param[float32](k, name))
	}
	return p
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
// once. Behind the end old values are computed with and nothing is stored.
func (w *Kernels) buildFlat(k *ptx.Kernel) {
	count := ptx.Param[uint32](k, "quads")
	whole := make([]ptx.Reg[bool], len(w.Operands)) // operands, where there are several
	if len(whole) > 1 {
		single := ptx.Param[uint32](k, "single")
		for i := range whole {
			whole[i] = single.And(uint32(1) << i).Eq(0)
		}
	}
	x, y := w.Tensors(k)
	p := w.parameters(k)
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
	tensors := append(s.Tensors(), s.Scalars()...)
	if !isFlat {
		w.lowerStrided(s, kernelOf, tensors)
		return nil
	}
	count := kit.CeilDiv(s.Result.Len(), 4)
	arguments := []any{count}
	if len(s.Operands) > 1 {
		arguments = append(arguments, single)
	}
	s.Launch(kernelOf(Flat), s.GridStride(count, elementwiseBlock*w.Ahead), append(arguments, tensors...)...)
	return nil
}
