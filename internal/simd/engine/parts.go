package engine

import "github.com/wavelane/wavelane/internal/simd/pool"

// ThreadsFor is the number of threads for work of the given duration.
func ThreadsFor(ns float64) int {
	if ns < SplitTime {
		return 1
	}
	return pool.Limit()
}

// InParts does parts of a loop on several threads.
func InParts(parts, threads int, do func(part int)) {
	pool.Shared().EachN(partFunc(do), parts, threads)
}

type partFunc func(part int)

func (f partFunc) Do(part int) { f(part) }
