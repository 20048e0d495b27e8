package threadgroup

import (
	"slices"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Accumulator says what the partial results of a reduction are and how they are combined: those of elements, lanes, warps and tasks.
type Accumulator[T ptx.Lane] struct {
	Identity []T               // combining with it changes nothing
	Combine  scalar.Combine[T] // of two partial results
}

// Sums is the accumulator of n sums.
func Sums[T ptx.Lane](n int) Accumulator[T] {
	return Accumulator[T]{make([]T, n), func(a, b []ptx.Reg[T]) (sums []ptx.Reg[T]) {
		for i := range a {
			sums = append(sums, a[i].Add(b[i]))
		}
		return sums
	}}
}

// With is the accumulator whose partial results are those of a, then those of b.
func (a Accumulator[T]) With(b Accumulator[T]) Accumulator[T] {
	n := len(a.Identity)
	return Accumulator[T]{slices.Concat(a.Identity, b.Identity), func(x, y []ptx.Reg[T]) []ptx.Reg[T] {
		return append(a.Combine(x[:n], y[:n]), b.Combine(x[n:], y[n:])...)
	}}
}

// Reducer writes a row reduction into a kernel. Each lane accumulates a partial result; Reduce combines them over warps and groups;
// where a row has several tasks, Run does so over these, too.
type Reducer[T ptx.Lane] struct {
	Group
	Accumulator[T]
	shared ptx.Ptr[ptx.Shared, T] // for a partial result of each warp
}

// ReducerOf declares the shared memory of a reduction.
func ReducerOf[T ptx.Lane](t Group, a Accumulator[T]) Reducer[T] {
	return Reducer[T]{t, a, ptx.SharedArray[T](t.K, "of_warps", len(a.Identity)*Warps)}
}

// Partial is the partial result of a lane.
type Partial[T ptx.Lane] struct {
	scalar.Variables[T]
	combine scalar.Combine[T]
}

// Partial returns one that begins as the identity.
func (r Reducer[T]) Partial() Partial[T] {
	return Partial[T]{scalar.VariablesOf(r.K, scalar.Constants(r.Identity)), r.Combine}
}

// Accumulate combines p with the partial result x.
func (p Partial[T]) Accumulate(x []ptx.Reg[T]) { p.Set(p.combine(p.Get(), x)) }

// First tells whether the thread is the lane that writes the result of a task.
func (t Group) First() ptx.Reg[bool] { return t.Active.And(t.Lane.Eq(0)) }

// Reduce combines the partial results of a group's lanes by a tree, always the same: over warps by shuffles, then over the warps of
// the group through shared memory. Lanes end with results that are equal but for what combining makes of an exchange of its
// operands; lane 0's is the group's. It may be called once in the life of a block, by all its threads together.
func (r Reducer[T]) Reduce(acc []ptx.Reg[T]) []ptx.Reg[T] {
	k, p := r.K, Partial[T]{scalar.VariablesOf(r.K, acc), r.Combine}
	p.exchange(k, r.Lanes.Min(32))
	k.If(r.Lanes.Gt(32), func() {
		warp, lane := k.Tid(ptx.X).Shr(5), k.Tid(ptx.X).And(31)
		mine := r.shared.At(warp)
		k.When(lane.Eq(0), func() {
			for i, x := range p.Get() {
				mine.At(i * Warps).Store(x)
			}
		})
		k.Barrier()
		others := r.Lanes.Shr(5) // warps of a group
		last := others.Sub(1)
		from := warp.And(last.Not()).Or(lane.And(last))
		at := r.shared.At(from)
		for i, v := range p.Variables {
			v.Set(at.At(i * Warps).Load())
		}
		p.exchange(k, others)
	})
	return p.Get()
}

// exchange combines the partial results of so many neighbours in a warp.
func (p Partial[T]) exchange(k *ptx.Kernel, lanes ptx.Reg[uint32]) {
	d := ptx.VarOf(k, lanes.Shr(1))
	k.While(func() ptx.Reg[bool] { return d.Get().Ne(0) }, func() {
		var others []ptx.Reg[T]
		for _, x := range p.Get() {
			others = append(others, x.Shuffle(ptx.ShuffleXor, d.Get(), 32, ptx.FullWarp()))
		}
		p.Accumulate(others)
		d.Set(d.Get().Shr(1))
	})
}

// ReduceWarp is [Reducer.Reduce] for groups that lie within a warp.
func ReduceWarp[T ptx.Lane](t Group, a Accumulator[T], acc []ptx.Reg[T]) []ptx.Reg[T] {
	p := Partial[T]{scalar.VariablesOf(t.K, acc), a.Combine}
	p.exchange(t.K, t.Lanes)
	return p.Get()
}

// AllReduce is Reduce whose result is lane 0's in every lane: they must not differ in the last bit.
func (r Reducer[T]) AllReduce(acc []ptx.Reg[T]) (all []ptx.Reg[T]) {
	acc = r.Reduce(acc)
	width := r.Lanes.Min(32)
	first := r.K.Tid(ptx.X).And(ptx.U32(32).Sub(width))
	for _, x := range acc {
		all = append(all, x.Shuffle(ptx.ShuffleIndex, first, 32, ptx.FullWarp()))
	}
	return all
}

// What a kernel does with its tasks.
const (
	WholeRows  uint32 = iota // accumulates and finishes rows, each of which is one task
	PartRows                 // accumulates, and leaves the partial results of tasks
	FinishRows               // combines the partial results of its row's tasks, and finishes
)

// Run writes the body of a kernel of row reductions: finish gets the partial result of the task's row, in all lanes. A row has so many
// parts, whose partial results lie in memory from partial on.
func (r Reducer[T]) Run(stage, parts ptx.Reg[uint32], partial ptx.Ptr[ptx.Global, T], accumulate func(p Partial[T]), finish func(all []ptx.Reg[T])) {
	k, p := r.K, r.Partial()
	at := func(task ptx.Reg[uint32]) ptx.Ptr[ptx.Global, T] {
		return partial.Bytes(task.MulWide(4 * len(r.Identity)))
	}
	k.If(stage.Ne(FinishRows), func() { accumulate(p) }, func() {
		first := at(r.Row.Mul(parts))
		ptx.For(k, r.Lane, ptx.Select(r.Active, parts, 0), r.Lanes, func(i ptx.Reg[uint32]) {
			p.Accumulate(scalar.LoadAll(first.Bytes(i.MulWide(4*len(r.Identity))), len(r.Identity)))
		}, ptx.NoUnroll())
	})
	all := r.AllReduce(p.Get())
	k.If(stage.Eq(PartRows), func() {
		k.If(r.First(), func() { scalar.StoreAll(at(r.Task), all) })
	}, func() { finish(all) })
}

// Stages launches a kernel of row reductions over w by run: once, or for the parts of rows and then for the rows. Partial results
// take so many words.
func (w Partition) Stages(s *kit.Step, words int, run func(stage uint32, partial kit.Buffer)) {
	if w.Parts == 1 {
		run(WholeRows, kit.Out)
		return
	}
	partial := s.NewScratch(4 * words * w.Tasks())
	run(PartRows, partial)
	run(FinishRows, partial)
}

// WarpReduce combines x of so many neighbouring lanes of a warp, a power of two, by shuffles. All of them get the result.
func WarpReduce[T ptx.Lane](x ptx.Reg[T], lanes int, combine func(a, b ptx.Reg[T]) ptx.Reg[T]) ptx.Reg[T] {
	for d := lanes / 2; d > 0; d /= 2 {
		x = combine(x, x.Shuffle(ptx.ShuffleXor, d, 32, ptx.FullWarp()))
	}
	return x
}

// BlockReduce combines the values of all threads of a block, each number of them by itself; every thread gets the results. It is for
// kernels whose blocks are groups: what [Reducer.Reduce] finds out about lanes is known here.
func BlockReduce[T ptx.Lane](k *ptx.Kernel, name string, values []ptx.Reg[T], combine func(a, b ptx.Reg[T]) ptx.Reg[T]) []ptx.Reg[T] {
	shared, all := ptx.SharedArray[T](k, name, len(values)*Warps), scalar.VariablesOf(k, values)
	for d := 16; d > 0; d /= 2 {
		for _, v := range all {
			v.Set(combine(v.Get(), v.Get().Shuffle(ptx.ShuffleXor, d, 32, ptx.FullWarp())))
		}
	}
	tid := k.Tid(ptx.X)
	k.If(tid.And(31).Eq(0), func() {
		for i, v := range all {
			shared.At(tid.Shr(5)).At(i * Warps).Store(v.Get())
		}
	})
	k.Barrier()
	for i, v := range all {
		total := shared.At(i * Warps).Load()
		for w := 1; w < Warps; w++ {
			total = combine(total, shared.At(i*Warps+w).Load())
		}
		v.Set(total)
	}
	return all.Get()
}

// Plus is the sum of two values, for reductions.
func Plus[T ptx.Lane](a, b ptx.Reg[T]) ptx.Reg[T] { return a.Add(b) }
