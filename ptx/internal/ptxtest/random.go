// Package ptxtest is what the tests of package ptx and of those below it share: random inputs that can be replayed, and
// NVIDIA's assembler.
package ptxtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// seedVariable is the environment variable that replays a run.
const seedVariable = "WAVELANE_SEED"

// Random returns a source of random numbers with a seed of its own, which the log tells. A run is replayed by the environment
// variable WAVELANE_SEED, decimal or with 0x.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv(seedVariable); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 0, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("%s=%d", seedVariable, seed)
	return Replay(seed)
}

// Replay returns the source of random numbers with a given seed.
func Replay(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
