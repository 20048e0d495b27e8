package engine

import (
	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/internal/simd/pool"
)

// Cost is the estimated time for an element, in ns, of operands that lie in L2: of the portable kernel, and of
// the one for AVX-512.
type Cost struct{ Scalar, AVX512 float64 }

// Ns is the cost on the active tier.
func (c Cost) Ns() float64 {
	switch kernels.Active() {
	case kernels.Scalar:
		return c.Scalar
	case kernels.AVX512:
		return c.AVX512
	case kernels.AVX2:
		return min(c.Scalar, 1.6*c.AVX512)
	}
	return min(c.Scalar, 3.5*c.AVX512) // four lanes
}

// Near is the cost of an element in L1.
func (c Cost) Near() float64 { return max(0.4*c.Ns(), c.Ns()-0.08) }

// InRegister is the cost of an element without loads and stores.
func (c Cost) InRegister() float64 { return max(0.15*c.Ns(), c.Ns()-0.105) }

// Slice functions run in parts on several threads from splitTime on, in ns: long against the cost of a loop on awake workers,
// a few microseconds. A sleeping worker may start late, so the others take its parts: parts, of partTime, are handed out one
// by one. Tests change both.
var (
	SplitTime = 40_000.0
	PartTime  = 15_000.0
)

// Fewest is the number of elements that may be worth several threads, for whatever function.
const Fewest = 1024

// alone reports whether n elements are for one thread on every tier, of which none is slower than Scalar. It is small enough to be
// inlined.
func (c *Cost) alone(n int) bool { return c.Scalar*float64(n) < SplitTime }

// threads is the number of threads for n elements.
func (c Cost) threads(n int) int {
	if n <= Fewest {
		return 1
	}
	return c.threadsOf(n)
}

func (c Cost) threadsOf(n int) int {
	if c.Ns()*float64(n) < SplitTime {
		return 1
	}
	return pool.Limit()
}

// part is the number of elements for a part: whole cache lines.
func (c Cost) part() int { return max(Fewest, int(PartTime/c.Ns())&^63) }
