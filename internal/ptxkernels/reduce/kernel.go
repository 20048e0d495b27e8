package reduce

import (
	"sync"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// reduction is what a kernel of family reduce computes. Partial results are registers of one type.
type reduction[T ptx.Lane] struct {
	threadgroup.Accumulator[T]
	// neutral stands where the task has no element, at a place not before its first. No element is less: where neutral ties
	// with the best, all elements are equal, and the first is the result anyway.
	neutral scalar.Float
	// value is a partial result of one element of each operand; i is its place in the row.
	value func(x []scalar.Float, i func() ptx.Reg[uint32]) []ptx.Reg[T]
	// follow, if not nil, is Combine where every element of b lies after those of a.
	follow scalar.Combine[T]
	store  func(acc []ptx.Reg[T]) // the result of a row
}

// finish is what an epilogue makes of the result of a row, where there is one.
type finish func(x scalar.Float) scalar.Float

// reduceParams are those of kernels of family reduce. What a kernel does not need has no element.
type reduceParams struct {
	stageParams
	Finish   []int        `names:"finish"` // of sums: plain, divided or rooted
	Count    []float32    `names:"count"`  // that divides them
	Sign     []float32    `names:"sign"`   // 1 or -1
	Out      kit.Buffer   // one result for each row
	Operands []kit.Buffer `names:"a,b"`
}

// reduceKernel is a kernel that reduces each row to one value; params makes its parameters.
func reduceKernel[T ptx.Lane](name, doc string, params func() reduceParams,
	body func(t threadgroup.Group, at *reduceParams, epilogue finish) reduction[T]) *kit.Kernel {
	block := [3]int{threadgroup.Threads, 1, 1}
	return kit.Register(kit.Kernel{Family: "reduce", Name: name, Doc: doc, Params: params(), Block: block, BuildWith: func(k *ptx.Kernel, h *kit.Prologue, e *kit.Epilogue) {
		at := params()
		p := kit.NewParams(k, &at)
		t := threadgroup.Of(p, &at.Work)
		stage, states, partial := p.U32(&at.Stage), p.U32(&at.States), kit.Ptr[T](p, &at.Partial, ptx.Align(16))
		var epilogue *tiling.Epilogue // whose parameters are the last
		b := reduceBuilder[T]{reduction: body(t, &at, func(x scalar.Float) scalar.Float {
			if epilogue == nil {
				return x
			}
			return epilogue.ApplyOne(x, tiling.Site{Z: ptx.U32(0), Row: t.Row, Col: ptx.U32(0)})
		})}
		if h != nil {
			b.operands = append(b.operands, threadgroup.PrologueOf(t, h, &at.Operands[0]))
		}
		for i := len(b.operands); i < len(at.Operands); i++ {
			b.operands = append(b.operands, threadgroup.RowParam(t, &at.Operands[i]))
		}
		if epilogue = tiling.EpilogueOf(k, e); h != nil || e != nil {
			k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
		}
		if b.follow == nil {
			b.follow = b.reduction.Combine
		}
		b.Reducer = threadgroup.ReducerOf(t, b.reduction.Accumulator)
		b.Run(stage, states, partial, func(p threadgroup.Partial[T]) {
			b.acc = p
			k.If(t.Vector(), b.inVectors, b.oneByOne)
		}, func(all []ptx.Reg[T]) { k.If(t.First(), func() { b.store(all) }) })
	}})
}

// longestTask is the number of elements of a task at most: a thread adds up 16 batches of 16, so that the error of a sum grows
// with the logarithm of its length.
const longestTask = 16 * threadgroup.Batch * 4 * threadgroup.Threads

type reduceBuilder[T ptx.Lane] struct {
	reduction[T]
	threadgroup.Reducer[T]
	operands []threadgroup.Operand
	acc      threadgroup.Partial[T]
}

// accumulate takes in the partial results of elements in order, by a tree.
func (b *reduceBuilder[T]) accumulate(values [][]ptx.Reg[T]) {
	b.acc.Set(b.follow(b.acc.Get(), scalar.Tree(values, b.follow)))
}

// values are the partial results of elements: of x[i][j], operand i has element j, which stands at place(j).
func (b *reduceBuilder[T]) values(x [][]scalar.Float, place func(j int) ptx.Reg[uint32]) (values [][]ptx.Reg[T]) {
	for j := range x[0] {
		var e []scalar.Float
		for i := range x {
			e = append(e, x[i][j])
		}
		values = append(values, b.value(e, func() ptx.Reg[uint32] { return place(j) }))
	}
	return values
}

// oneByOne reads single elements, lanes side by side.
func (b *reduceBuilder[T]) oneByOne() {
	b.EachBatch(func(e threadgroup.Elements) {
		var x [][]scalar.Float
		for _, o := range b.operands {
			x = append(x, e.Load(o, b.neutral))
		}
		b.accumulate(b.values(x, func(j int) ptx.Reg[uint32] { return e.At[j] }))
	})
}

// inVectors reads 16 aligned bytes at a time, and the up to three elements before and after them by a lane each, so that groups
// need eight lanes.
func (b *reduceBuilder[T]) inVectors() {
	k := b.K
	offset := b.Row.Mul(b.Cols).Add(b.Start) // its lower bits
	head := ptx.U32(0).Sub(offset).And(3).Min(b.End.Sub(b.Start))
	first := b.Start.Add(head)
	units := b.End.Sub(first).Shr(2)
	tail := units.Mad(4, first)

	before := b.Lane.Lt(4)
	beyond := b.Lane.Sub(4)
	edge := ptx.Select(before, b.Start.Add(b.Lane), tail.Add(beyond))
	inside := ptx.Select(before, b.Lane, beyond).Lt(ptx.Select(before, head, b.End.Sub(tail)))
	var edges []scalar.Float
	for _, o := range b.operands {
		edges = append(edges, o.OneIf(inside, edge, b.neutral))
	}

	var fours []func(unit ptx.Reg[uint32]) func() [4]scalar.Float
	for _, o := range b.operands {
		fours = append(fours, o.Fours(first))
	}
	u := ptx.VarOf(k, b.Lane)
	next := func(j int) ptx.Reg[uint32] {
		if j == 0 {
			return u.Get()
		}
		return b.Lanes.Mad(j, u.Get())
	}
	// batch accumulates n units, of which the first exists.
	batch := func(n int, all bool) {
		var values [][]ptx.Reg[T]
		for j := range n {
			unit := next(j)
			var x [][]scalar.Float
			for i, o := range b.operands {
				read := fours[i](unit)
				if !all && j > 0 {
					whole := read
					read = func() [4]scalar.Float { return threadgroup.FourIf(k, o, unit.Lt(units), b.neutral, whole) }
				}
				four := read()
				x = append(x, four[:])
			}
			at := sync.OnceValue(func() ptx.Reg[uint32] { return unit.Mad(4, first) })
			values = append(values, b.values(x, func(c int) ptx.Reg[uint32] { return at().Add(c) })...)
		}
		b.accumulate(values)
	}
	k.While(func() ptx.Reg[bool] { return next(threadgroup.Batch - 1).Lt(units) }, func() {
		batch(threadgroup.Batch, true)
		u.Set(next(threadgroup.Batch))
	})
	k.If(u.Get().Lt(units), func() { batch(threadgroup.Batch-1, false) })
	b.acc.Accumulate(b.value(edges, func() ptx.Reg[uint32] { return edge }))
}
