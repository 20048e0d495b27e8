package lower

import "github.com/wavelane/wavelane/ptx"

// reduction is what a kernel of family reduce computes. Partial results are registers of one type.
type reduction[T ptx.Lane] struct {
	identity []T // what changes no result when it is merged
	// neutral stands where the task has no element, at a place not before its first. No element is less: where neutral ties
	// with the best, all elements are equal, and the first is the result anyway.
	neutral float
	// value is a partial result of one element of each operand; i is its place in the row.
	value func(x []float, i func() ptx.Reg[uint32]) []ptx.Reg[T]
	merge merge[T]
	// follow, if not nil, is merge where every element of b lies behind those of a.
	follow merge[T]
	store  func(acc []ptx.Reg[T]) // the result of a task
}

// finish is what an epilogue makes of the result of a task, where there is one.
type finish func(x float) float

// reduceKernel is a kernel that reduces each task to one value. Its parameters are work.args, then what body declares, then the
// operands.
func reduceKernel[T ptx.Lane](name, doc string, operands int, body func(t team, behind finish) reduction[T]) *Kernel {
	block := [3]int{teamThreads, 1, 1}
	return register(Kernel{Family: "reduce", Name: name, Doc: doc, Block: block, between: func(k *ptx.Kernel, h *head, e *tail) {
		t := teamOf(k)
		var behind *epilogue // whose parameters are the last
		b := reduceBuilder[T]{team: t, reduction: body(t, func(x float) float {
			if behind == nil {
				return x
			}
			return behind.one(x, site{u32(0), t.task, u32(0)})
		})}
		first := 0
		if h != nil {
			b.head, first = prologueOf(t, h), 1
		}
		for i := first; i < operands; i++ {
			b.x = append(b.x, rowOf(t, ptx.PointerParam[float32](k, string(rune('a'+i)))))
		}
		if behind = epilogueOf(k, e); h != nil || e != nil {
			k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
		}
		if b.follow == nil {
			b.follow = b.merge
		}
		b.acc = variablesOf(k, constants(b.identity))
		k.If(t.vector(), b.inVectors, b.oneByOne)
		acc := reduce(t, b.acc.get(), sharedFor[T](k, len(b.identity)), b.merge)
		k.If(ptx.And(k, t.active, ptx.Eq(k, t.lane, u32(0))), func() { b.store(acc) })
	}})
}

// joinKernel merges what a kernel of reduceKernel left for the parts of each row. Its parameters are work.args, where parts are
// elements; T* out, T* parts.
func joinKernel[T ptx.Lane](name, doc string, identity []T, f func(k *ptx.Kernel) merge[T],
	store func(t team, out ptx.Ptr[ptx.Global, T], acc []ptx.Reg[T])) *Kernel {
	return register(Kernel{Family: "reduce", Name: name, Doc: doc, Block: [3]int{teamThreads, 1, 1}, build: func(k *ptx.Kernel) {
		t, size := teamOf(k), len(identity)
		out, parts := ptx.PointerParam[T](k, "out"), ptx.PointerParam[T](k, "parts")
		parts = ptx.AtByte(k, parts, ptx.Mul(k, ptx.MulWideU32(k, t.row, t.cols), ptx.Imm(uint64(4*size))))
		acc := variablesOf(k, constants(identity))
		ptx.For(k, ptx.Add(k, t.start, t.lane), t.end, t.lanes, func(i ptx.Reg[uint32]) {
			acc.set(f(k)(acc.get(), loadAll(k, ptx.AtByte(k, parts, ptx.MulWideU32(k, i, u32(4*size))), size)))
		})
		all := reduce(t, acc.get(), sharedFor[T](k, size), f(k))
		k.If(ptx.And(k, t.active, ptx.Eq(k, t.lane, u32(0))), func() { store(t, out, all) })
	}})
}

// batch is the number of accesses that a lane has under way, whose elements are summed up by a tree.
const batch = 4

// longestTask is the number of elements of a task at most: a thread adds up 16 batches of 16, so that the error of a sum grows
// with the logarithm of its length.
const longestTask = 16 * batch * 4 * teamThreads

type reduceBuilder[T ptx.Lane] struct {
	team
	reduction[T]
	x    []ptx.Ptr[ptx.Global, float32] // rows of the operands
	head *prologue                      // in place of the first; nil if there is none
	acc  variables[T]
}

func (b *reduceBuilder[T]) take(values [][]ptx.Reg[T]) {
	b.acc.set(b.follow(b.acc.get(), tree(values, b.follow)))
}

// oneByOne reads single elements, lanes side by side.
func (b *reduceBuilder[T]) oneByOne() {
	k := b.k
	at := ptx.VarOf(k, ptx.Add(k, b.start, b.lane))
	k.While(func() ptx.Reg[bool] { return ptx.Lt(k, at.Get(), b.end) }, func() {
		var values [][]ptx.Reg[T]
		for j := range batch {
			i, x := at.Get(), []float(nil)
			if j > 0 {
				i = ptx.Mad(k, b.lanes, u32(j), i)
				x = b.one(ptx.Lt(k, i, b.end), i)
			} else {
				if b.head != nil {
					x = append(x, b.head.one(i))
				}
				for _, p := range b.x {
					x = append(x, ptx.Load(k, ptx.At(k, p, i)))
				}
			}
			values = append(values, b.value(x, func() ptx.Reg[uint32] { return i }))
		}
		b.take(values)
		at.Set(ptx.Mad(k, b.lanes, u32(batch), at.Get()))
	})
}

// one is element i of each operand where inside.
func (b *reduceBuilder[T]) one(inside ptx.Reg[bool], i ptx.Reg[uint32]) (x []float) {
	if b.head != nil {
		x = append(x, b.head.oneIf(inside, i, b.neutral))
	}
	for _, p := range b.x {
		x = append(x, ptx.LoadIf(b.k, inside, ptx.At(b.k, p, i), b.neutral))
	}
	return x
}

// inVectors reads 16 aligned bytes at a time, and the up to three elements before and behind them by a lane each, so that teams
// need eight lanes.
func (b *reduceBuilder[T]) inVectors() {
	k := b.k
	offset := ptx.Add(k, ptx.Mul(k, b.row, b.cols), b.start) // its lower bits
	head := ptx.Min(k, ptx.And(k, ptx.Sub(k, u32(0), offset), u32(3)), ptx.Sub(k, b.end, b.start))
	first := ptx.Add(k, b.start, head)
	units := ptx.Shr(k, ptx.Sub(k, b.end, first), u32(2))
	behind := ptx.Mad(k, units, u32(4), first)

	before := ptx.Lt(k, b.lane, u32(4))
	beyond := ptx.Sub(k, b.lane, u32(4))
	edge := ptx.Select(k, before, ptx.Add(k, b.start, b.lane), ptx.Add(k, behind, beyond))
	inside := ptx.Lt(k, ptx.Select(k, before, b.lane, beyond), ptx.Select(k, before, head, ptx.Sub(k, b.end, behind)))
	edges := b.one(inside, edge)

	var x []ptx.Ptr[ptx.Global, float32]
	for _, p := range b.x {
		x = append(x, ptx.At(k, p, first))
	}
	u := ptx.VarOf(k, b.lane)
	next := func(j int) ptx.Reg[uint32] {
		if j == 0 {
			return u.Get()
		}
		return ptx.Mad(k, b.lanes, u32(j), u.Get())
	}
	// values of unit number n; load gives four elements of an operand, and whole those of the head.
	whole := func(n ptx.Reg[uint32]) [4]float {
		return b.head.four(ptx.Mad(k, n, u32(4), first))
	}
	values := func(n ptx.Reg[uint32], whole func(n ptx.Reg[uint32]) [4]float,
		load func(p ptx.Ptr[ptx.Global, float32]) [4]float) (values [][]ptx.Reg[T]) {
		var at ptx.Reg[uint32]
		known := false
		place := func() ptx.Reg[uint32] {
			if !known {
				at, known = ptx.Mad(k, n, u32(4), first), true
			}
			return at
		}
		var elements [4][]float
		if b.head != nil {
			for c, v := range whole(n) {
				elements[c] = append(elements[c], v)
			}
		}
		for _, p := range x {
			for c, v := range load(ptx.AtByte(k, p, ptx.MulWideU32(k, n, u32(16)))) {
				elements[c] = append(elements[c], v)
			}
		}
		for c, e := range elements {
			values = append(values, b.value(e, func() ptx.Reg[uint32] { return ptx.Add(k, place(), u32(c)) }))
		}
		return values
	}
	k.While(func() ptx.Reg[bool] { return ptx.Lt(k, next(batch-1), units) }, func() {
		var all [][]ptx.Reg[T]
		for j := range batch {
			all = append(all, values(next(j), whole, func(p ptx.Ptr[ptx.Global, float32]) [4]float { return ptx.Load4(k, p) })...)
		}
		b.take(all)
		u.Set(next(batch))
	})
	k.If(ptx.Lt(k, u.Get(), units), func() { // fewer than a batch is left
		var all [][]ptx.Reg[T]
		for j := range batch - 1 {
			n, some := next(j), whole
			if j > 0 {
				some = func(n ptx.Reg[uint32]) [4]float {
					v := variablesOf(k, []float{b.neutral, b.neutral, b.neutral, b.neutral})
					k.If(ptx.Lt(k, n, units), func() {
						x := whole(n)
						v.set(x[:])
					})
					return [4]float(v.get())
				}
			}
			all = append(all, values(n, some, func(p ptx.Ptr[ptx.Global, float32]) [4]float {
				if j == 0 {
					return ptx.Load4(k, p)
				}
				v := variablesOf(k, []float{b.neutral, b.neutral, b.neutral, b.neutral})
				k.When(ptx.Lt(k, n, units), func() {
					x := ptx.Load4(k, p)
					v.set(x[:])
				})
				return [4]float(v.get())
			})...)
		}
		b.take(all)
	})
	b.acc.set(b.merge(b.acc.get(), b.value(edges, func() ptx.Reg[uint32] { return edge })))
}
