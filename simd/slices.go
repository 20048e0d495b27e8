package simd

import (
	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/internal/simd/pool"
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

// SetThreads bounds the threads that one call of a slice function uses, the caller's included, and returns the previous
// bound; 1 keeps all work on the caller. 0 means the default, GOMAXPROCS. Results do not depend on it.
func SetThreads(n int) (previous int) { return pool.SetLimit(n) }

// Slice functions check their operands with the following; what is wrong is a panic with an error.
