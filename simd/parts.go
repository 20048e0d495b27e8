package simd

import "github.com/wavelane/wavelane/simd/internal/pool"

// threadsFor is the number of threads for work of so many ns.
func threadsFor(ns float64) int {
	if ns < splitTime {
		return 1
	}
	return pool.Limit()
}

// inParts does parts of a loop on several threads.
func inParts(parts, threads int, do func(part int)) {
	pool.Shared().EachN(partFunc(do), parts, threads)
}

type partFunc func(part int)

func (f partFunc) Do(part int) { f(part) }
