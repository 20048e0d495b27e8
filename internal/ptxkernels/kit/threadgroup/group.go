package threadgroup

import (
	"math/bits"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Threads is the number of threads of a block that groups share: a power of two of whole warps.
const Threads = 256

// Partition cuts rows of cols elements into tasks, each of one group: parts per row, of chunk elements each but the last.
type Partition struct {
	Rows, Cols, Parts, Chunk int
	Lanes                    int  // of a group: a power of two, at most Threads
	Vector                   bool // the kernel is to access four neighbours at once where it can
}

const (
	smallTask = 4096 // elements that are worth a block
	BusyLanes = 512  // per multiprocessor: enough to fill the GPU
)

// Split cuts rows into parts of at most longest elements, a multiple of 4: more than one per row only where rows are fewer
// than the blocks that fit the GPU, or longer.
func Split(s *kit.Step, rows, cols, blocks, longest int) Partition {
	parts := max(1, min(kit.CeilDiv(blocks*s.Caps.Multiprocessors, rows), cols/smallTask), kit.CeilDiv(cols, longest))
	chunk := max(1, kit.CeilDiv(cols, 4*parts)) * 4
	return Partition{Rows: rows, Cols: cols, Parts: max(1, kit.CeilDiv(cols, chunk)), Chunk: chunk}
}

// Lanes is the size of groups for w, from least on: as large as it takes for each lane to have at most reads accesses of
// width elements, and larger where there are so few tasks that the GPU would not be full.
func Lanes(s *kit.Step, w Partition, least, width, reads int) int {
	n, l := min(w.Chunk, w.Cols), least
	for l < Threads && l*width < n && (reads*l*width < n || w.Tasks()*l < BusyLanes*s.Caps.Multiprocessors) {
		l *= 2
	}
	return l
}

// Tasks is how many tasks there are.
func (w Partition) Tasks() int { return w.Rows * w.Parts }

// Grid is the grid of blocks that have a group for each task.
func (w Partition) Grid() [3]int { return [3]int{kit.CeilDiv(w.Tasks(), Threads/w.Lanes), 1, 1} }

// Work is the first parameter of kernels that groups run.
type Work struct {
	Tasks, Cols, Chunk int           `array:"work"`
	Log, Vector        int           // log2 of the lanes; 0 or 1
	Parts              scalar.Divide // of a row
}

// Work is the parameter for w.
func (w Partition) Work() Work {
	work := Work{Tasks: w.Tasks(), Cols: w.Cols, Chunk: w.Chunk, Log: bits.TrailingZeros(uint(w.Lanes)), Parts: scalar.Divide(w.Parts)}
	if w.Vector {
		work.Vector = 1
	}
	return work
}

// Group is the lanes of a block that work on one task, in a kernel whose first parameter is [Work]. There are as many as the
// launch says: neighbours, so that groups of up to 32 lanes lie within a warp.
type Group struct {
	K           *ptx.Kernel
	Lanes, Lane ptx.Reg[uint32] // how many, and which this thread is
	Task, Row   ptx.Reg[uint32]
	Active      ptx.Reg[bool]   // whether there is such a task; the threads of others have to take part in collective steps
	Start, End  ptx.Reg[uint32] // of the task in its row; equal in tasks that are not active
	Cols, Parts ptx.Reg[uint32]
	*kit.Params
	work *Work
}

// Of finds the thread's group, lane and task.
func Of(p *kit.Params, work *Work) Group {
	k := p.Kernel
	tasks, cols, chunk, log := p.U32(&work.Tasks), p.U32(&work.Cols), p.U32(&work.Chunk), p.U32(&work.Log)
	tid, parts := k.Tid(ptx.X), p.Divisor(&work.Parts)
	t := Group{K: k, Lanes: ptx.U32(1).Shl(log), Cols: cols, Parts: parts.D, Params: p, work: work}
	t.Lane = tid.And(t.Lanes.Sub(1))
	perBlock := ptx.U32(Threads).Shr(log)
	t.Task = k.Ctaid(ptx.X).Mad(perBlock, tid.Shr(log))
	t.Active = t.Task.Lt(tasks)
	row, part := parts.Split(k, t.Task)
	t.Row = row
	start := part.Mul(chunk)
	end := start.Add(chunk).Min(cols)
	t.Start = ptx.Select(t.Active, start, 0)
	t.End = ptx.Select(t.Active, end, 0)
	return t
}

// Vector is that of the work.
func (t Group) Vector() ptx.Reg[bool] { return t.U32(&t.work.Vector).Ne(0) }

// Log is the number of bits of lanes' numbers.
func (t Group) Log() ptx.Reg[uint32] { return t.U32(&t.work.Log) }

// Longest is the length of the longest task of the launch.
func (t Group) Longest() ptx.Reg[uint32] { return t.U32(&t.work.Chunk).Min(t.Cols) }

// RowOf is where the task's row begins in a matrix.
func RowOf[T ptx.Elem](t Group, p ptx.Ptr[ptx.Global, T]) ptx.Ptr[ptx.Global, T] {
	return p.At(t.Row.MulWide(t.Cols))
}

// Warps of a block.
const Warps = Threads / 32
