package simd

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/simd/internal/kernels"
	"github.com/wavelane/wavelane/simd/internal/pool"
)

// Tier returns the name of the instruction set that kernels run on: "scalar", "sse", "avx2", "avx512", "neon" or "simd128".
func Tier() string { return kernels.Active().String() }

// Tiers returns the names of the instruction sets that this machine has, each of which WAVELANE_SIMD may force; the last is
// the best.
func Tiers() []string {
	var names []string
	for _, t := range kernels.Available() {
		names = append(names, t.String())
	}
	return names
}

// SetThreads bounds the threads that one call of a slice function uses, the caller's included, and returns the previous bound;
// 1 keeps all work on the caller. The default, for which 0 stands, is GOMAXPROCS. Results do not depend on it.
func SetThreads(n int) (previous int) { return pool.SetLimit(n) }

// Slice functions check their operands with the following; what is wrong is a panic with an error.

// mustLen wants a slice of so many elements.
func mustLen(name string, got, want int) {
	if got != want {
		wrongLen(name, got, want)
	}
}

//go:noinline // keeps mustLen small
func wrongLen(name string, got, want int) {
	panic(fmt.Errorf("simd.%s: %d elements where %d belong: %w", name, got, want, compute.ErrShape))
}

// mustApart wants a destination that shares no element with an operand.
func mustApart(name string, dst, x []float32) {
	if overlaps(dst, x) {
		panic(fmt.Errorf("simd.%s: the destination overlaps an operand: %w", name, compute.ErrArgument))
	}
}

// mustFit wants what elementwise functions need: an operand of the destination's length, and if they share elements one that
// does not begin before the destination.
func mustFit(name string, dst, x []float32) {
	if len(x) != len(dst) || ahead(x, dst) {
		misfit(name, dst, x)
	}
}

//go:noinline // keeps mustFit small
func misfit(name string, dst, x []float32) {
	mustLen(name, len(x), len(dst))
	panic(fmt.Errorf("simd.%s: an operand begins before the destination and reaches into it: %w", name, compute.ErrArgument))
}

// ahead reports whether x begins before y and reaches into it.
func ahead(x, y []float32) bool {
	d := address(y) - address(x)
	return d != 0 && d < uintptr(4*len(x))
}

func overlaps(x, y []float32) bool {
	return len(x) > 0 && len(y) > 0 && (address(y)-address(x) < uintptr(4*len(x)) || address(x)-address(y) < uintptr(4*len(y)))
}

func address(x []float32) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(x))) }

// freeList keeps what calls need for their time only. Unlike a sync.Pool it never forgets, so that calls allocate nothing; it
// holds as many as there ever were calls at a time.
type freeList[T any] struct {
	mu   sync.Mutex
	free []*T
}

func (l *freeList[T]) take() *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		t := l.free[n-1]
		l.free = l.free[:n-1]
		return t
	}
	return new(T)
}

func (l *freeList[T]) give(t *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, t)
}
