package simd

import (
	"github.com/wavelane/wavelane/simd/internal/kernels"
	"github.com/wavelane/wavelane/simd/internal/pool"
)

// cost is the estimated time for an element, in ns, of operands that lie in the second cache: of the portable kernel, and of
// the one for AVX-512.
type cost struct{ scalar, avx512 float64 }

// ns is the cost on the active tier.
func (c cost) ns() float64 {
	switch kernels.Active() {
	case kernels.Scalar:
		return c.scalar
	case kernels.AVX512:
		return c.avx512
	case kernels.AVX2:
		return min(c.scalar, 1.6*c.avx512)
	}
	return min(c.scalar, 3.5*c.avx512) // four lanes
}

// Slice functions run in parts on several threads from splitTime on, in ns: long against the cost of a loop on awake workers,
// a few microseconds. A worker that sleeps may come late, which the others make up for: parts, of partTime, are handed out one
// by one. Tests change both.
var (
	splitTime = 40_000.0
	partTime  = 15_000.0
)

// fewest is the number of elements that may be worth several threads, for whatever function.
const fewest = 1024

// threads is the number of threads for n elements.
func (c cost) threads(n int) int {
	if n <= fewest {
		return 1
	}
	return c.threadsOf(n)
}

func (c cost) threadsOf(n int) int {
	if c.ns()*float64(n) < splitTime {
		return 1
	}
	return pool.Limit()
}

// part is the number of elements for a part: whole cache lines.
func (c cost) part() int { return max(fewest, int(partTime/c.ns())&^63) }
