package reduce

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// reduction is what a kernel of family reduce computes. Partial results are registers of one type.
type reduction[T ptx.Lane] struct {
	identity []T // what changes no result when it is merged
	// neutral stands where the task has no element, at a place not before its first. No element is less: where neutral ties
	// with the best, all elements are equal, and the first is the result anyway.
	neutral scalar.Float
	// value is a partial result of one element of each operand; i is its place in the row.
	value func(x []scalar.Float, i func() ptx.Reg[uint32]) []ptx.Reg[T]
	merge scalar.Merge[T]
	// follow, if not nil, is merge where every element of b lies after those of a.
	follow scalar.Merge[T]
	store  func(acc []ptx.Reg[T]) // the result of a task
}

// finish is what an epilogue makes of the result of a task, where there is one.
type finish func(x scalar.Float) scalar.Float

// reduceKernel is a kernel that reduces each task to one value. Its parameters are work.args, then what body declares, then the
// operands.
func reduceKernel[T ptx.Lane](name, doc string, operands int, body func(t threadgroup.Group, behind finish) reduction[T]) *kit.Kernel {
	block := [3]int{threadgroup.Threads, 1, 1}
	return kit.Register(kit.Kernel{Family: "reduce", Name: name, Doc: doc, Block: block, BuildAround: func(k *ptx.Kernel, h *kit.Prologue, e *kit.Epilogue) {
		t := threadgroup.Of(k)
		var behind *tiling.Epilogue // whose parameters are the last
		b := reduceBuilder[T]{Group: t, reduction: body(t, func(x scalar.Float) scalar.Float {
			if behind == nil {
				return x
			}
			return behind.ApplyOne(x, tiling.Site{Z: ptx.U32(0), Row: t.Task, Col: ptx.U32(0)})
		})}
		first := 0
		if h != nil {
			b.head, first = threadgroup.PrologueOf(t, h), 1
		}
		for i := first; i < operands; i++ {
			b.x = append(b.x, threadgroup.RowOf(t, ptx.PointerParam[float32](k, string(rune('a'+i)))))
		}
		if behind = tiling.EpilogueOf(k, e); h != nil || e != nil {
			k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
		}
		if b.follow == nil {
			b.follow = b.merge
		}
		b.acc = scalar.VariablesOf(k, scalar.Constants(b.identity))
		k.If(t.Vector(), b.inVectors, b.oneByOne)
		acc := threadgroup.Reduce(t, b.acc.Get(), threadgroup.SharedFor[T](k, len(b.identity)), b.merge)
		k.If(t.Active.And(t.Lane.Eq(0)), func() { b.store(acc) })
	}})
}

// joinKernel merges what a kernel of reduceKernel left for the parts of each row. Its parameters are work.args, where parts are
// elements; T* out, T* parts.
func joinKernel[T ptx.Lane](name, doc string, identity []T, f func(k *ptx.Kernel) scalar.Merge[T],
	store func(t threadgroup.Group, out ptx.Ptr[ptx.Global, T], acc []ptx.Reg[T])) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "reduce", Name: name, Doc: doc, Block: [3]int{threadgroup.Threads, 1, 1}, Build: func(k *ptx.Kernel) {
		t, size := threadgroup.Of(k), len(identity)
		out, parts := ptx.PointerParam[T](k, "out"), ptx.PointerParam[T](k, "parts")
		parts = parts.Bytes(t.Row.MulWide(t.Cols).Mul(uint64(4 * size)))
		acc := scalar.VariablesOf(k, scalar.Constants(identity))
		ptx.For(k, t.Start.Add(t.Lane), t.End, t.Lanes, func(i ptx.Reg[uint32]) {
			acc.Set(f(k)(acc.Get(), scalar.LoadAll(k, parts.Bytes(i.MulWide(4*size)), size)))
		})
		all := threadgroup.Reduce(t, acc.Get(), threadgroup.SharedFor[T](k, size), f(k))
		k.If(t.Active.And(t.Lane.Eq(0)), func() { store(t, out, all) })
	}})
}

// batch is the number of accesses that a lane has under way, whose elements are summed up by a tree.
const batch = 4

// longestTask is the number of elements of a task at most: a thread adds up 16 batches of 16, so that the error of a sum grows
// with the logarithm of its length.
const longestTask = 16 * batch * 4 * threadgroup.Threads

type reduceBuilder[T ptx.Lane] struct {
	threadgroup.Group
	reduction[T]
	x    []ptx.Ptr[ptx.Global, float32] // rows of the operands
	head *threadgroup.Prologue          // in place of the first; nil if there is none
	acc  scalar.Variables[T]
}

func (b *reduceBuilder[T]) take(values [][]ptx.Reg[T]) {
	b.acc.Set(b.follow(b.acc.Get(), scalar.Tree(values, b.follow)))
}

// oneByOne reads single elements, lanes side by side.
func (b *reduceBuilder[T]) oneByOne() {
	k := b.K
	at := ptx.VarOf(k, b.Start.Add(b.Lane))
	k.While(func() ptx.Reg[bool] { return at.Get().Lt(b.End) }, func() {
		var values [][]ptx.Reg[T]
		for j := range batch {
			i, x := at.Get(), []scalar.Float(nil)
			if j > 0 {
				i = b.Lanes.Mad(j, i)
				x = b.One(i.Lt(b.End), i)
			} else {
				if b.head != nil {
					x = append(x, b.head.One(i))
				}
				for _, p := range b.x {
					x = append(x, p.At(i).Load())
				}
			}
			values = append(values, b.value(x, func() ptx.Reg[uint32] { return i }))
		}
		b.take(values)
		at.Set(b.Lanes.Mad(batch, at.Get()))
	})
}

// One is element i of each operand where inside.
func (b *reduceBuilder[T]) One(inside ptx.Reg[bool], i ptx.Reg[uint32]) (x []scalar.Float) {
	if b.head != nil {
		x = append(x, b.head.OneIf(inside, i, b.neutral))
	}
	for _, p := range b.x {
		x = append(x, ptx.LoadIf(inside, p.At(i), b.neutral))
	}
	return x
}

// inVectors reads 16 aligned bytes at a time, and the up to three elements before and after them by a lane each, so that teams
// need eight lanes.
func (b *reduceBuilder[T]) inVectors() {
	k := b.K
	offset := b.Row.Mul(b.Cols).Add(b.Start) // its lower bits
	head := ptx.U32(0).Sub(offset).And(3).Min(b.End.Sub(b.Start))
	first := b.Start.Add(head)
	units := b.End.Sub(first).Shr(2)
	behind := units.Mad(4, first)

	before := b.Lane.Lt(4)
	beyond := b.Lane.Sub(4)
	edge := ptx.Select(before, b.Start.Add(b.Lane), behind.Add(beyond))
	inside := ptx.Select(before, b.Lane, beyond).Lt(ptx.Select(before, head, b.End.Sub(behind)))
	edges := b.One(inside, edge)

	var x []ptx.Ptr[ptx.Global, float32]
	for _, p := range b.x {
		x = append(x, p.At(first))
	}
	u := ptx.VarOf(k, b.Lane)
	next := func(j int) ptx.Reg[uint32] {
		if j == 0 {
			return u.Get()
		}
		return b.Lanes.Mad(j, u.Get())
	}
	// values of unit number n; load gives four elements of an operand, and whole those of the head.
	whole := func(n ptx.Reg[uint32]) [4]scalar.Float {
		return b.head.Four(n.Mad(4, first))
	}
	values := func(n ptx.Reg[uint32], whole func(n ptx.Reg[uint32]) [4]scalar.Float,
		load func(p ptx.Ptr[ptx.Global, float32]) [4]scalar.Float) (values [][]ptx.Reg[T]) {
		var at ptx.Reg[uint32]
		known := false
		place := func() ptx.Reg[uint32] {
			if !known {
				at, known = n.Mad(4, first), true
			}
			return at
		}
		var elements [4][]scalar.Float
		if b.head != nil {
			for c, v := range whole(n) {
				elements[c] = append(elements[c], v)
			}
		}
		for _, p := range x {
			for c, v := range load(p.Bytes(n.MulWide(16))) {
				elements[c] = append(elements[c], v)
			}
		}
		for c, e := range elements {
			values = append(values, b.value(e, func() ptx.Reg[uint32] { return place().Add(c) }))
		}
		return values
	}
	k.While(func() ptx.Reg[bool] { return next(batch - 1).Lt(units) }, func() {
		var all [][]ptx.Reg[T]
		for j := range batch {
			all = append(all, values(next(j), whole, func(p ptx.Ptr[ptx.Global, float32]) [4]scalar.Float { return p.Load4() })...)
		}
		b.take(all)
		u.Set(next(batch))
	})
	k.If(u.Get().Lt(units), func() { // fewer than a batch is left
		var all [][]ptx.Reg[T]
		for j := range batch - 1 {
			n, some := next(j), whole
			if j > 0 {
				some = func(n ptx.Reg[uint32]) [4]scalar.Float {
					v := scalar.VariablesOf(k, []scalar.Float{b.neutral, b.neutral, b.neutral, b.neutral})
					k.If(n.Lt(units), func() {
						x := whole(n)
						v.Set(x[:])
					})
					return [4]scalar.Float(v.Get())
				}
			}
			all = append(all, values(n, some, func(p ptx.Ptr[ptx.Global, float32]) [4]scalar.Float {
				if j == 0 {
					return p.Load4()
				}
				v := scalar.VariablesOf(k, []scalar.Float{b.neutral, b.neutral, b.neutral, b.neutral})
				k.When(n.Lt(units), func() {
					x := p.Load4()
					v.Set(x[:])
				})
				return [4]scalar.Float(v.Get())
			})...)
		}
		b.take(all)
	})
	b.acc.Set(b.merge(b.acc.Get(), b.value(edges, func() ptx.Reg[uint32] { return edge })))
}
