package wgslkernels

import (
	"fmt"
	"sort"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

// workgroup returns the number of threads of a one-dimensional workgroup: a power of two, at most 256.
func (s *step) workgroup() int {
	n := uint32(256)
	for n > 1 && (n > s.caps.MaxInvocations || n > s.caps.MaxWorkgroupSize[0]) {
		n /= 2
	}
	return int(n)
}

// lanes returns how many of a workgroup's threads share one of a number of tasks of n elements, read width at a time: as many
// as it takes for each to have no more than reads of them, and more where tasks are too few to fill a GPU. Powers of four
// keep the number of kernels small.
func lanes(tasks, n, width, reads, workgroup int) int {
	l := 1
	for l < workgroup && l*width < n && (reads*l*width < n || tasks*l < manyThreads) {
		l = min(4*l, workgroup)
	}
	return l
}

// strides returns the distances over which tree.wgsl merges: each step leaves a quarter of the lanes, the last maybe half.
func strides(lanes int) []int {
	var steps []int
	for lanes > 1 {
		lanes = max(lanes/4, 1)
		steps = append(steps, lanes)
	}
	return steps
}

// work cuts rows of cols elements into tasks: parts per row, of chunk elements each but the last.
type work struct {
	rows, cols, parts, chunk int
}

const (
	manyThreads = 1 << 16 // enough to fill a GPU
	manyTasks   = 1024    // enough workgroups to fill a GPU
	smallTask   = 4096    // elements that are worth a workgroup
)

// split cuts rows of cols elements of four bytes into tasks of at most most elements: more than one part per row only where
// rows are few and long, or a row does not fit a task or a binding.
func (s *step) split(rows, cols, most int) work {
	most = max(4, min(most, (int(s.caps.MaxBinding)-s.align())/4))
	parts := max(1, min(ceilDiv(manyTasks, max(rows, 1)), cols/smallTask), ceilDiv(cols, most))
	chunk := max(1, ceilDiv(cols, 4*parts)) * 4
	return work{rows, cols, max(1, ceilDiv(cols, chunk)), chunk}
}

func (w work) tasks() int { return w.rows * w.parts }

// start returns the element at which a task begins and the one before it ends.
func (w work) start(task int) int {
	return task/w.parts*w.cols + min(task%w.parts*w.chunk, w.cols)
}

// extent is that of the tasks' elements, given the bytes of each.
func (w work) extent(bytes int) extent {
	return func(first, end int) (from, to int) { return w.start(first) * bytes, w.start(end) * bytes }
}

// perTask is the extent of a tensor of one element per task.
func perTask(bytes int) extent {
	return func(first, end int) (from, to int) { return first * bytes, end * bytes }
}

func (w work) params(first, end int) []uint32 {
	return []uint32{uint32(first), uint32(end), uint32(w.cols), uint32(w.parts), uint32(w.chunk)}
}

// align is the alignment of binding offsets where vec4 are read.
func (s *step) align() int { return max(16, int(s.caps.StorageAlign)) }

// part is what a dispatch binds of a buffer for its tasks: bytes from base on.
type part struct {
	base int
	size int
}

// of returns the part of a buffer as a binding.
func (p part) of(b Buffer) Buffer {
	b.Offset, b.Size = p.base, p.size
	return b
}

// part returns the smallest part that may be bound and holds the bytes from … to.
func (s *step) part(from, to int) part {
	base := from - from%s.align()
	return part{base, int(wgsl.BufferSize(to - base))}
}

// extent returns the bytes of a tensor that a range of tasks touches. Longer ranges touch no less.
type extent func(first, end int) (from, to int)

// ranges cuts n tasks into as few dispatches as storage bindings allow. It calls emit for each with the range of tasks and, for
// each of extents, the part to bind.
func (s *step) ranges(n int, emit func(first, end int, parts []part), extents ...extent) error {
	for first := 0; first < n; {
		parts := make([]part, len(extents))
		fit := func(end int) bool {
			for i, x := range extents {
				if parts[i] = s.part(x(first, end)); uint64(parts[i].size) > s.caps.MaxBinding {
					return false
				}
			}
			return true
		}
		end := n
		if !fit(n) {
			end = first + sort.Search(n-first, func(i int) bool { return !fit(first + i + 1) })
		}
		if !fit(end) || end == first {
			return fmt.Errorf("the smallest piece of the work, 1 of %d, needs more than the %d bytes of a storage binding; slice the operands: %w",
				n, s.caps.MaxBinding, compute.ErrTooLarge)
		}
		emit(first, end, parts)
		first = end
	}
	return nil
}
