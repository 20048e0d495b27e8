package pool

import (
	"runtime"
	"sync/atomic"
)

var limit atomic.Int32 // 0 for GOMAXPROCS

// Limit is the number of threads that a call on the shared pool should use, the caller's included.
func Limit() int {
	if n := limit.Load(); n > 0 {
		return int(n)
	}
	return runtime.GOMAXPROCS(0)
}

// SetLimit sets it, 0 standing for GOMAXPROCS, and returns what was set before.
func SetLimit(n int) (previous int) {
	const most = 1024
	return int(limit.Swap(int32(max(0, min(n, most)))))
}
