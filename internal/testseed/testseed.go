// Package testseed has the seed of all random inputs of tests. It is the same in every run, so that a test fails because something
// has changed, unless the environment variable WAVELANE_SEED, decimal or with 0x, gives another one; "make proofs" draws one.
// Importing the package fixes the seed of package rapid as well, which the flag -rapid.seed still changes.
package testseed

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	_ "pgregory.net/rapid" // which defines its flags before the function below sets one
)

// Variable is the environment variable that gives another seed.
const Variable = "WAVELANE_SEED"

// Value returns the seed of this process.
var Value = sync.OnceValue(func() uint64 {
	s := os.Getenv(Variable)
	if s == "" {
		return 1
	}
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		panic(fmt.Errorf("%s: %w", Variable, err))
	}
	return v
})

// Whole reports whether all is asked for of which a test takes some by the seed: "make proofs" does.
func Whole() bool { return os.Getenv("WAVELANE_PROOFS") == "all" }

// Of returns the seed and logs it, so that a failure shows it.
func Of(t testing.TB) uint64 {
	t.Helper()
	t.Logf("repeat with %s=%d", Variable, Value())
	return Value()
}

// Rand returns a source of random numbers. The numbers differ from test to test, and from call to call in one test.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	calls, _ := sources.LoadOrStore(t.Name(), new(atomic.Uint64))
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(t.Name()) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(Of(t)+calls.(*atomic.Uint64).Add(1)<<32, h))
}

// sources counts the calls of Rand by the name of the test.
var sources sync.Map

func init() {
	// rapid takes 0 for a seed of its own.
	if err := flag.Set("rapid.seed", strconv.FormatUint(max(Value(), 1), 10)); err != nil {
		panic(err)
	}
}
