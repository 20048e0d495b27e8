package lower

import (
	"math/bits"

	"github.com/wavelane/wavelane/ptx"
)

// teamThreads is the number of threads of a block that teams share: a power of two of whole warps.
const teamThreads = 256

// work cuts rows of cols elements into tasks, each of one team: parts per row, of chunk elements each but the last.
type work struct {
	rows, cols, parts, chunk int
	lanes                    int  // of a team: a power of two, at most teamThreads
	vector                   bool // the kernel is to access four neighbours at once where it can
}

const (
	smallTask = 4096 // elements that are worth a block
	busyLanes = 512  // per multiprocessor: enough to fill the GPU
)

// splitRows cuts rows into parts of at most longest elements, a multiple of 4: more than one per row only where rows are fewer
// than the blocks that fit the GPU, or longer.
func splitRows(s *step, rows, cols, blocks, longest int) work {
	parts := max(1, min(ceilDiv(blocks*s.caps.Multiprocessors, rows), cols/smallTask), ceilDiv(cols, longest))
	chunk := max(1, ceilDiv(cols, 4*parts)) * 4
	return work{rows: rows, cols: cols, parts: max(1, ceilDiv(cols, chunk)), chunk: chunk}
}

// teamLanes is the size of teams for work, from least on: as large as it takes for each lane to have at most reads accesses of
// width elements, and larger where there are so few tasks that the GPU would not be full.
func teamLanes(s *step, w work, least, width, reads int) int {
	n, l := min(w.chunk, w.cols), least
	for l < teamThreads && l*width < n && (reads*l*width < n || w.tasks()*l < busyLanes*s.caps.Multiprocessors) {
		l *= 2
	}
	return l
}

func (w work) tasks() int { return w.rows * w.parts }

func (w work) grid() [3]int { return [3]int{ceilDiv(w.tasks(), teamThreads/w.lanes), 1, 1} }

// args is the first argument of kernels that teams run: see teamOf.
func (w work) args() []uint32 {
	a := []uint32{uint32(w.tasks()), uint32(w.cols), uint32(w.chunk), uint32(bits.TrailingZeros(uint(w.lanes))), 0}
	if w.vector {
		a[4] = 1
	}
	return append(a, divisorOf(w.parts)...)
}

// team is the lanes of a block that work on one task, in a kernel whose first parameter is work.args. There are as many as the
// launch says: neighbours, so that teams of up to 32 lanes lie within a warp.
type team struct {
	k           *ptx.Kernel
	lanes, lane ptx.Reg[uint32] // how many, and which this thread is
	task, row   ptx.Reg[uint32]
	active      ptx.Reg[bool]   // whether there is such a task; the threads of others have to take part in collective steps
	start, end  ptx.Reg[uint32] // of the task in its row; equal in tasks that are not active
	cols, parts ptx.Reg[uint32]
	words       ptx.Array[uint32]
}

func teamOf(k *ptx.Kernel) team {
	a := ptx.ParamArray[uint32](k, "work", 5+divisorWords)
	tasks, cols, chunk, log := a.At(k, 0), a.At(k, 1), a.At(k, 2), a.At(k, 3)
	tid, parts := k.Tid(ptx.X), divisorAt(k, a, 5)
	t := team{k: k, lanes: ptx.Shl(k, u32(1), log), cols: cols, parts: parts.d, words: a}
	t.lane = ptx.And(k, tid, ptx.Sub(k, t.lanes, u32(1)))
	perBlock := ptx.Shr(k, u32(teamThreads), log)
	t.task = ptx.Mad(k, k.Ctaid(ptx.X), perBlock, ptx.Shr(k, tid, log))
	t.active = ptx.Lt(k, t.task, tasks)
	row, part := parts.split(k, t.task)
	t.row = row
	start := ptx.Mul(k, part, chunk)
	end := ptx.Min(k, ptx.Add(k, start, chunk), cols)
	t.start = ptx.Select(k, t.active, start, u32(0))
	t.end = ptx.Select(k, t.active, end, u32(0))
	return t
}

// vector is that of the work.
func (t team) vector() ptx.Reg[bool] { return ptx.Ne(t.k, t.words.At(t.k, 4), u32(0)) }

// log is the number of bits of lanes' numbers.
func (t team) log() ptx.Reg[uint32] { return t.words.At(t.k, 3) }

// rowOf is where the task's row begins in a matrix.
func rowOf[T ptx.Elem](t team, p ptx.Ptr[ptx.Global, T]) ptx.Ptr[ptx.Global, T] {
	return ptx.At(t.k, p, ptx.MulWideU32(t.k, t.row, t.cols))
}

// warps of a block.
const warps = teamThreads / 32

// sharedFor is the memory that reduce needs for partial results of so many registers.
func sharedFor[T ptx.Lane](k *ptx.Kernel, registers int) ptx.Ptr[ptx.Shared, T] {
	return ptx.SharedArray[T](k, "of_warps", registers*warps)
}

// reduce merges the partial results of a team's lanes by a tree, always the same. Lanes end with results that are equal but for
// what merge makes of an exchange of its operands; lane 0's is the team's. It may be called once in the life of a block, by all
// its threads together. shared is of sharedFor.
func reduce[T ptx.Lane](t team, acc []ptx.Reg[T], shared ptx.Ptr[ptx.Shared, T], f merge[T]) []ptx.Reg[T] {
	k, v := t.k, variablesOf(t.k, acc)
	exchange := func(width ptx.Reg[uint32]) { // among so many neighbours
		d := ptx.VarOf(k, ptx.Shr(k, width, u32(1)))
		k.While(func() ptx.Reg[bool] { return ptx.Ne(k, d.Get(), u32(0)) }, func() {
			var others []ptx.Reg[T]
			for _, x := range v.get() {
				others = append(others, ptx.Shuffle(k, ptx.ShuffleXor, x, d.Get(), 32, ptx.FullWarp()))
			}
			v.set(f(v.get(), others))
			d.Set(ptx.Shr(k, d.Get(), u32(1)))
		})
	}
	exchange(ptx.Min(k, t.lanes, u32(32)))
	k.If(ptx.Gt(k, t.lanes, u32(32)), func() {
		warp, lane := ptx.Shr(k, k.Tid(ptx.X), u32(5)), ptx.And(k, k.Tid(ptx.X), u32(31))
		mine := ptx.At(k, shared, warp)
		k.When(ptx.Eq(k, lane, u32(0)), func() {
			for i, x := range v.get() {
				ptx.Store(k, mine.At(i*warps), x)
			}
		})
		k.Barrier()
		others := ptx.Shr(k, t.lanes, u32(5)) // warps of a team
		last := ptx.Sub(k, others, u32(1))
		from := ptx.Or(k, ptx.And(k, warp, ptx.Not(k, last)), ptx.And(k, lane, last))
		at := ptx.At(k, shared, from)
		for i := range v {
			v[i].Set(ptx.Load(k, at.At(i*warps)))
		}
		exchange(others)
	})
	return v.get()
}

// fromFirst is x of the team's lane 0, or of a lane that has the same.
func fromFirst[T ptx.Lane](t team, x []ptx.Reg[T]) (y []ptx.Reg[T]) {
	k := t.k
	width := ptx.Min(k, t.lanes, u32(32))
	first := ptx.And(k, k.Tid(ptx.X), ptx.Sub(k, u32(32), width))
	for _, r := range x {
		y = append(y, ptx.Shuffle(k, ptx.ShuffleIndex, r, first, 32, ptx.FullWarp()))
	}
	return y
}
