package lower

import (
	"slices"

	"github.com/wavelane/wavelane/internal/op"
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
		strides[i][last] *= 4 // it was 1: nothing lies behind the innermost axis
		if slices.ContainsFunc(strides[i], func(n int) bool { return n%4 != 0 }) {
			return b, false
		}
	}
	shape, strides = op.Collapse(shape, strides...)
	return broadcast{shape, strides, wide}, true
}

// strideWords is the words of an axis: its size as a divisor, and the stride of each operand.
func strideWords(operands int) int { return divisorWords + operands }

// broadcastWords is the words of a walk.
func broadcastWords(operands int) int { return 2 + operands + (op.MaxRank-1)*strideWords(operands) }

// arguments is the walk for [locate]: the number of axes, the mask of wide operands, the strides of the outermost axis, then the
// other axes from the innermost on.
func (b broadcast) arguments() []uint32 {
	words := []uint32{uint32(len(b.shape)), uint32(b.wide)}
	for _, st := range b.strides {
		words = append(words, uint32(st[0]))
	}
	for d := len(b.shape) - 1; d > 0; d-- {
		words = append(words, divisorOf(b.shape[d])...)
		for _, st := range b.strides {
			words = append(words, uint32(st[d]))
		}
	}
	return append(words, make([]uint32, broadcastWords(len(b.strides))-len(words))...)
}

// locate is where each operand is read in step i of a walk.
func locate(k *ptx.Kernel, walk ptx.Array[uint32], i ptx.Reg[uint32], operands int) []ptx.Reg[uint32] {
	rank := walk.At(k, 0)
	rest := ptx.VarOf(k, i)
	at := make([]*ptx.Var[uint32], operands)
	for o := range at {
		at[o] = ptx.VarOf(k, ptx.Imm[uint32](0))
	}
	var axis func(d int)
	axis = func(d int) {
		if d == op.MaxRank-1 {
			return
		}
		k.If(ptx.Gt(k, rank, ptx.Imm(uint32(d+1))), func() {
			from := 2 + operands + d*strideWords(operands)
			quotient, index := divisorAt(k, walk, from).split(k, rest.Get())
			rest.Set(quotient)
			for o, v := range at {
				v.Set(ptx.Mad(k, index, walk.At(k, from+divisorWords+o), v.Get()))
			}
			axis(d + 1)
		})
	}
	axis(0)
	out := make([]ptx.Reg[uint32], operands)
	for o, v := range at {
		out[o] = ptx.Mad(k, rest.Get(), walk.At(k, 2+o), v.Get())
	}
	return out
}

// walk declares the parameters of a strided kernel and strides over the steps; body gets each with the pointers to the
// operands' elements there and to the result.
func (w *elementwise) walk(k *ptx.Kernel, body func(axes ptx.Array[uint32], i ptx.Reg[uint32], x []ptx.Ptr[ptx.Global, float32],
	y ptx.Ptr[ptx.Global, float32])) {
	count := ptx.Param[uint32](k, "count")
	axes := ptx.ParamArray[uint32](k, "axes", broadcastWords(len(w.entry.Inputs)))
	x, y := w.tensors(k)
	ptx.For(k, k.GlobalID(ptx.X), count, ptx.Mul(k, k.Nctaid(ptx.X), ptx.Imm[uint32](elementwiseBlock)), func(i ptx.Reg[uint32]) {
		here := slices.Clone(x)
		for o, at := range locate(k, axes, i, len(x)) {
			here[o] = ptx.At(k, x[o], at)
		}
		body(axes, i, here, y)
	})
}

func (w *elementwise) buildElements(k *ptx.Kernel) {
	w.walk(k, func(_ ptx.Array[uint32], i ptx.Reg[uint32], x []ptx.Ptr[ptx.Global, float32], y ptx.Ptr[ptx.Global, float32]) {
		v := make([]float, len(x))
		for o, from := range x {
			v[o] = ptx.Load(k, from)
		}
		ptx.Store(k, ptx.At(k, y, i), w.f(calc{k}, v, nil))
	})
}

func (w *elementwise) buildQuads(k *ptx.Kernel) {
	w.walk(k, func(axes ptx.Array[uint32], i ptx.Reg[uint32], x []ptx.Ptr[ptx.Global, float32], y ptx.Ptr[ptx.Global, float32]) {
		wide := axes.At(k, 1)
		q := w.newQuad(func() *ptx.Var[float32] { return ptx.NewVar[float32](k) })
		for o, from := range x {
			whole := ptx.Ne(k, ptx.And(k, wide, ptx.Imm(uint32(1)<<o)), ptx.Imm[uint32](0))
			k.If(whole, func() { q.set(o, ptx.Load4(k, from)) }, func() {
				v := ptx.Load(k, from)
				q.set(o, [4]float{v, v, v, v})
			})
		}
		ptx.Store4(k, ptx.At(k, y, ptx.Shl(k, i, ptx.Imm[uint32](2))), w.compute(k, q, nil))
	})
}

// lowerStrided is for operands that are neither as large as the result nor single elements.
func (w *elementwise) lowerStrided(s *step) {
	var b broadcast
	for _, t := range s.in {
		b.strides = append(b.strides, op.BroadcastStrides(t.Shape, s.out.Shape))
	}
	b.shape, b.strides = op.Collapse(s.out.Shape, b.strides...)
	kernel, count := w.elements, s.out.Len()
	if q, ok := b.quads(); ok {
		b, kernel, count = q, w.quads, count/4
	}
	s.launch(kernel, s.strides(count, elementwiseBlock), append([]any{count, b.arguments()}, s.tensors()...)...)
}
