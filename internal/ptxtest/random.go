// Package ptxtest is what the tests of package ptx and of those below it share: random inputs and NVIDIA's assembler.
package ptxtest

import (
	"math/rand/v2"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"
)

// Random returns a source of random numbers by the seed of the run, which the log tells.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	return testseed.Rand(t)
}

// Replay returns the source of random numbers with a given seed.
func Replay(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
