package randomprograms

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// proofs is the number of programs where WAVELANE_PROOFS asks for all.
const proofs = 5000

// checked calls property on so many programs, or on as many as the flag of rapid says. They are others in each run;
// WAVELANE_SEED, which is logged, repeats them.
func checked(t *testing.T, programs int, property func(t *rapid.T)) {
	t.Helper()
	if os.Getenv("WAVELANE_PROOFS") == "all" {
		programs = proofs
	}
	seed := rand.Uint64()
	if s := os.Getenv("WAVELANE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 0, 64); err != nil {
			t.Fatalf("WAVELANE_SEED=%q is no number", s)
		}
	}
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(programs), "rapid.seed": strconv.FormatUint(seed, 10)} {
		if given()[name] {
			continue
		}
		before := flag.Lookup(name).Value.String()
		set(t, name, value)
		defer set(t, name, before)
	}
	t.Logf("WAVELANE_SEED=%d repeats these programs", seed)
	rapid.Check(t, property)
}

// given are the flags of the command line.
var given = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
})

func set(t *testing.T, name, value string) {
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
}
