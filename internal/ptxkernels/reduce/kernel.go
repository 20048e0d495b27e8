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
	// follow, if not nil, is merge where every element of b lies behind those of a.
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
			return behind.ApplyOne(x, tiling.Site{Z: scalar.U32(0), Row: t.Task, Col: scalar.U32(0)})
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
		k.If(ptx.And(k, t.Active, ptx.Eq(k, t.Lane, scalar.U32(0))), func() { b.store(acc) })
	}})
}

// joinKernel merges what a kernel of reduceKernel left for the parts of each row. Its parameters are work.args, where parts are
// elements; T* out, T* parts.
func joinKernel[T ptx.Lane](name, doc string, identity []T, f func(k *ptx.Kernel) scalar.Merge[T],
	store func(t threadgroup.Group, out ptx.Ptr[ptx.Global, T], acc []ptx.Reg[T])) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "reduce", Name: name, Doc: doc, Block: [3]int{threadgroup.Threads, 1, 1}, Build: func(k *ptx.Kernel) {
		t, size := threadgroup.Of(k), len(identity)
		out, parts := ptx.PointerParam[T](k, "out"), ptx.PointerParam[T](k, "parts")
		parts = ptx.AtByte(k, parts, ptx.Mul(k, ptx.MulWideU32(k, t.Row, t.Cols), ptx.Imm(uint64(4*size))))
		acc := scalar.VariablesOf(k, scalar.Constants(identity))
		ptx.For(k, ptx.Add(k, t.Start, t.Lane), t.End, t.Lanes, func(i ptx.Reg[uint32]) {
			acc.Set(f(k)(acc.Get(), scalar.LoadAll(k, ptx.AtByte(k, parts, ptx.MulWideU32(k, i, scalar.U32(4*size))), size)))
		})
		all := threadgroup.Reduce(t, acc.Get(), threadgroup.SharedFor[T](k, size), f(k))
		k.If(ptx.And(k, t.Active, ptx.Eq(k, t.Lane, scalar.U32(0))), func() { store(t, out, all) })
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
	at := ptx.VarOf(k, ptx.Add(k, b.Start, b.Lane))
	k.While(func() ptx.Reg[bool] { return ptx.Lt(k, at.Get(), b.End) }, func() {
		var values [][]ptx.Reg[T]
		for j := range batch {
			i, x := at.Get(), []scalar.Float(nil)
			if j > 0 {
				i = ptx.Mad(k, b.Lanes, scalar.U32(j), i)
				x = b.One(ptx.Lt(k, i, b.End), i)
			} else {
				if b.head != nil {
					x = append(x, b.head.One(i))
				}
				for _, p := range b.x {
					x = append(x, ptx.Load(k, ptx.At(k, p, i)))
				}
			}
			values = append(values, b.value(x, func() ptx.Reg[uint32] { return i }))
		}
		b.take(values)
		at.Set(ptx.Mad(k, b.Lanes, scalar.U32(batch), at.Get()))
	})
}

// One is element i of each operand where inside.
func (b *reduceBuilder[T]) One(inside ptx.Reg[bool], i ptx.Reg[uint32]) (x []scalar.Float) {
	if b.head != nil {
		x = append(x, b.head.OneIf(inside, i, b.neutral))
	}
	for _, p := range b.x {
		x = append(x, ptx.LoadIf(b.K, inside, ptx.At(b.K, p, i), b.neutral))
	}
	return x
}

// inVectors reads 16 aligned bytes at a time, and the up to three elements before and behind them by a lane each, so that teams
// need eight lanes.
func (b *reduceBuilder[T]) inVectors() {
	k := b.K
	offset := ptx.Add(k, ptx.Mul(k, b.Row, b.Cols), b.Start) // its lower bits
	head := ptx.Min(k, ptx.And(k, ptx.Sub(k, scalar.U32(0), offset), scalar.U32(3)), ptx.Sub(k, b.End, b.Start))
	first := ptx.Add(k, b.Start, head)
	units := ptx.Shr(k, ptx.Sub(k, b.End, first), scalar.U32(2))
	behind := ptx.Mad(k, units, scalar.U32(4), first)

	before := ptx.Lt(k, b.Lane, scalar.U32(4))
	beyond := ptx.Sub(k, b.Lane, scalar.U32(4))
	edge := ptx.Select(k, before, ptx.Add(k, b.Start, b.Lane), ptx.Add(k, behind, beyond))
	inside := ptx.Lt(k, ptx.Select(k, before, b.Lane, beyond), ptx.Select(k, before, head, ptx.Sub(k, b.End, behind)))
	edges := b.One(inside, edge)

	var x []ptx.Ptr[ptx.Global, float32]
	for _, p := range b.x {
		x = append(x, ptx.At(k, p, first))
	}
	u := ptx.VarOf(k, b.Lane)
	next := func(j int) ptx.Reg[uint32] {
		if j == 0 {
			return u.Get()
		}
		return ptx.Mad(k, b.Lanes, scalar.U32(j), u.Get())
	}
	// values of unit number n; load gives four elements of an operand, and whole those of the head.
	whole := func(n ptx.Reg[uint32]) [4]scalar.Float {
		return b.head.Four(ptx.Mad(k, n, scalar.U32(4), first))
	}
	values := func(n ptx.Reg[uint32], whole func(n ptx.Reg[uint32]) [4]scalar.Float,
		load func(p ptx.Ptr[ptx.Global, float32]) [4]scalar.Float) (values [][]ptx.Reg[T]) {
		var at ptx.Reg[uint32]
		known := false
		place := func() ptx.Reg[uint32] {
			if !known {
				at, known = ptx.Mad(k, n, scalar.U32(4), first), true
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
			for c, v := range load(ptx.AtByte(k, p, ptx.MulWideU32(k, n, scalar.U32(16)))) {
				elements[c] = append(elements[c], v)
			}
		}
		for c, e := range elements {
			values = append(values, b.value(e, func() ptx.Reg[uint32] { return ptx.Add(k, place(), scalar.U32(c)) }))
		}
		return values
	}
	k.While(func() ptx.Reg[bool] { return ptx.Lt(k, next(batch-1), units) }, func() {
		var all [][]ptx.Reg[T]
		for j := range batch {
			all = append(all, values(next(j), whole, func(p ptx.Ptr[ptx.Global, float32]) [4]scalar.Float { return ptx.Load4(k, p) })...)
		}
		b.take(all)
		u.Set(next(batch))
	})
	k.If(ptx.Lt(k, u.Get(), units), func() { // fewer than a batch is left
		var all [][]ptx.Reg[T]
		for j := range batch - 1 {
			n, some := next(j), whole
			if j > 0 {
				some = func(n ptx.Reg[uint32]) [4]scalar.Float {
					v := scalar.VariablesOf(k, []scalar.Float{b.neutral, b.neutral, b.neutral, b.neutral})
					k.If(ptx.Lt(k, n, units), func() {
						x := whole(n)
						v.Set(x[:])
					})
					return [4]scalar.Float(v.Get())
				}
			}
			all = append(all, values(n, some, func(p ptx.Ptr[ptx.Global, float32]) [4]scalar.Float {
				if j == 0 {
					return ptx.Load4(k, p)
				}
				v := scalar.VariablesOf(k, []scalar.Float{b.neutral, b.neutral, b.neutral, b.neutral})
				k.When(ptx.Lt(k, n, units), func() {
					x := ptx.Load4(k, p)
					v.Set(x[:])
				})
				return [4]scalar.Float(v.Get())
			})...)
		}
		b.take(all)
	})
	b.acc.Set(b.merge(b.acc.Get(), b.value(edges, func() ptx.Reg[uint32] { return edge })))
}
