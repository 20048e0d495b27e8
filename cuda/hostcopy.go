package cuda

import (
	"runtime"
	"sync"
)

const (
	copyPart = 512 << 10 // bytes: what a goroutine takes much longer for than to begin
	copyMost = 8         // goroutines
)

// copyHost is copy, by several goroutines where there are many processors: on a machine with an H100 one of them moves 12 GB/s, eight 36,
// and the bus 55.
func copyHost(dst, src []byte) {
	n := min(len(dst), len(src))
	parts := min(n/copyPart, runtime.GOMAXPROCS(0)/2, copyMost)
	var wg sync.WaitGroup
	for i := 1; i < parts; i++ {
		from, to := n*i/parts, n*(i+1)/parts
		wg.Go(func() { copy(dst[from:to], src[from:to]) })
	}
	n /= max(1, parts)
	copy(dst[:n], src[:n])
	wg.Wait()
}
