package randomprograms

import (
	"flag"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"pgregory.net/rapid"
)

// proofs is the number of programs where WAVELANE_PROOFS asks for all.
const proofs = 5000

// checked calls property on n programs, or on as many as rapid's flag says.
func checked(t *testing.T, programs int, property func(t *rapid.T)) {
	t.Helper()
	if os.Getenv("WAVELANE_PROOFS") == "all" {
		programs = proofs
	}
	if !given()["rapid.checks"] {
		before := flag.Lookup("rapid.checks").Value.String()
		set(t, "rapid.checks", strconv.Itoa(programs))
		defer set(t, "rapid.checks", before)
	}
	testseed.Of(t)
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
