package elementwise

import (
	"slices"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// broadcast is how operands of different shapes are walked, along axes that no two operands let merge.
type broadcast struct {
	shape   []int
	strides [][]int // of each operand, in elements; 0 along axes over which it is repeated
	wide    int     // by quads: bit i tells that operand i is read four elements at a time, not repeated
}

// quads is the walk in steps of four elements along the innermost axis. It is possible where that axis and whatever lies along
// it consists of quads.
func (b broadcast) quads() (broadcast, bool) {
	last := len(b.shape) - 1
	if b.shape[last]%4 != 0 {
		return b, false
	}
	shape := slices.Clone(b.shape)
	shape[last] /= 4
	strides := make([][]int, len(b.strides))
	wide := 0
	for i, st := range b.strides {
		strides[i] = slices.Clone(st)
		if st[last] == 0 {
			continue
		}
		wide |= 1 << i
		strides[i][last] *= 4 // it was 1: nothing lies after the innermost axis
		if slices.ContainsFunc(strides[i], func(n int) bool { return n%4 != 0 }) {
			return b, false
		}
	}
	shape, strides = program.Collapse(shape, strides...)
	return broadcast{shape, strides, wide}, true
}

// strideWords is the words of an axis: its size as a divisor, and the stride of each operand.
func strideWords(operands int) int { return scalar.DivisorWords + operands }

// broadcastWords is the words of a walk.
func broadcastWords(operands int) int {
	return 2 + operands + (program.MaxRank-1)*strideWords(operands)
}

// arguments is the walk for [locate]: the number of axes, the mask of wide operands, the strides of the outermost axis, then
// the other axes from the innermost on.
func (b broadcast) arguments() []uint32 {
	words := []uint32{uint32(len(b.shape)), uint32(b.wide)}
	for _, st := range b.strides {
		words = append(words, uint32(st[0]))
	}
	for d := len(b.shape) - 1; d > 0; d-- {
		words = append(words, scalar.DivisorOf(b.shape[d])...)
		for _, st := range b.strides {
			words = append(words, uint32(st[d]))
		}
	}
	return append(words, make([]uint32, broadcastWords(len(b.strides))-len(words))...)
}

// locate is where each operand is read in each of some steps of a walk.
func locate(k *ptx.Kernel, walk ptx.Array[uint32], steps []ptx.Reg[uint32], operands int) [][]ptx.Reg[uint32] {
	rank := walk.At(0)
	rest := make([]*ptx.Var[uint32], len(steps))
	at := make([][]*ptx.Var[uint32], len(steps))
	for u, i := range steps {
		rest[u] = ptx.VarOf(k, i)
		for range operands {
			at[u] = append(at[u], ptx.VarOf(k, ptx.Imm[uint32](0)))
		}
	}
	var axis func(d int)
	axis = func(d int) {
		if d == program.MaxRank-1 {
			return
		}
		k.If(rank.Gt(uint32(d+1)), func() {
			from := 2 + operands + d*strideWords(operands)
			size := scalar.DivisorAt(k, walk, from)
			strides := make([]ptx.Reg[uint32], operands)
			for o := range strides {
				strides[o] = walk.At(from + scalar.DivisorWords + o)
			}
			for u := range steps {
				quotient, index := size.Split(k, rest[u].Get())
				rest[u].Set(quotient)
				for o, v := range at[u] {
					v.Set(index.Mad(strides[o], v.Get()))
				}
			}
			axis(d + 1)
		})
	}
	axis(0)
	out := make([][]ptx.Reg[uint32], len(steps))
	for o := range operands {
		outermost := walk.At(2 + o)
		for u := range steps {
			out[u] = append(out[u], rest[u].Get().Mad(outermost, at[u][o].Get()))
		}
	}
	return out
}

// visit is a step of a walk.
type visit struct {
	step   ptx.Reg[uint32]
	inside ptx.Reg[bool] // of the tensor: always for the first of those that a thread takes at a time
	x      []ptx.Ptr[ptx.Global, float32]
}

// walk reads the parameters of a strided kernel, and strides over all steps, of which each thread takes n at a time.
func (w *Kernels) walk(k *ptx.Kernel, n int,
	body func(axes ptx.Array[uint32], visits []visit, y []ptx.Ptr[ptx.Global, float32], p []scalar.Float)) {
	of := walkParams{tensorParams: w.tensors()}
	params := kit.NewParams(k, &of)
	count, axes := params.U32(&of.Count), kit.Array[uint32](params, &of.Axes, broadcastWords(len(w.Operands)))
	x, y, p := of.read(w, params)
	piece := ptx.Imm(uint32(n * elementwiseBlock))
	first := k.Ctaid(ptx.X).Mad(piece, k.Tid(ptx.X))
	ptx.For(k, first, count, k.Nctaid(ptx.X).Mul(piece), func(i ptx.Reg[uint32]) {
		steps := []ptx.Reg[uint32]{i}
		for u := 1; u < n; u++ {
			steps = append(steps, i.Add(uint32(u*elementwiseBlock)))
		}
		visits := make([]visit, n)
		for u, at := range locate(k, axes, steps, len(x)) {
			visits[u].step = steps[u]
			for o, from := range x {
				visits[u].x = append(visits[u].x, from.At(at[o]))
			}
			if u > 0 {
				visits[u].inside = steps[u].Lt(count)
			}
		}
		body(axes, visits, y, p)
	})
}

func (w *Kernels) buildElements(k *ptx.Kernel) {
	w.walk(k, w.elements, func(_ ptx.Array[uint32], visits []visit, y []ptx.Ptr[ptx.Global, float32], p []scalar.Float) {
		v := make([][]scalar.Float, len(visits))
		for u, s := range visits {
			for _, from := range s.x {
				x := ptx.Reg[float32]{}
				if u == 0 {
					x = from.Load()
				} else {
					x = ptx.LoadIf(s.inside, from, 0)
				}
				v[u] = append(v[u], x)
			}
		}
		for u, s := range visits {
			var to []ptx.Ptr[ptx.Global, float32]
			for _, y := range y {
				to = append(to, y.At(s.step))
			}
			for o, r := range w.F(scalar.Math{K: k}, v[u], p) {
				if u == 0 {
					to[o].Store(r)
				} else {
					ptx.StoreIf(s.inside, to[o], r)
				}
			}
		}
	})
}

func (w *Kernels) buildQuads(k *ptx.Kernel) {
	w.walk(k, 1, func(axes ptx.Array[uint32], visits []visit, y []ptx.Ptr[ptx.Global, float32], p []scalar.Float) {
		wide := axes.At(1)
		q := w.newQuad(func() *ptx.Var[float32] { return ptx.NewVar[float32](k) })
		for o, from := range visits[0].x {
			whole := wide.And(uint32(1) << o).Ne(0)
			k.If(whole, func() { q.Set(o, from.Load4()) }, func() {
				v := from.Load()
				q.Set(o, [4]scalar.Float{v, v, v, v})
			})
		}
		var to []ptx.Ptr[ptx.Global, float32]
		for _, y := range y {
			to = append(to, y.At(visits[0].step.Shl(2)))
		}
		for o, r := range w.compute(k, q, p) {
			to[o].Store4(r)
		}
	})
}

// lowerStrided is for operands that are neither as large as the result nor single elements.
func (w *Kernels) lowerStrided(s *kit.Step, kernelOf func(way) *kit.Kernel) {
	var b broadcast
	for _, t := range s.Operands {
		b.strides = append(b.strides, program.BroadcastStrides(t.Shape, s.Result.Shape))
	}
	b.shape, b.strides = program.Collapse(s.Result.Shape, b.strides...)
	v, count, each := elements, s.Result.Len(), w.elements
	if q, ok := b.quads(); ok {
		b, v, count, each = q, quads, count/4, 1
	}
	s.Launch(kernelOf(v), s.GridStride(count, elementwiseBlock*each), walkParams{count, b.arguments(), w.tensorsOf(s)})
}
