package jstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
)

// Conform runs the conformance cases of every entry through the API that answers, at most perEntry of each: which ones is up to the
// seed. It returns their number.
func (r *Remote) Conform(t *testing.T, perEntry int) int {
	count := 0
	for _, e := range catalogue.All() {
		cases, err := conformance.Cases(e)
		if err != nil {
			t.Fatal(err)
		}
		step := max(1, len(cases)/perEntry)
		var wg sync.WaitGroup
		for i := int(conformance.Seed() % uint64(step)); i < len(cases); i += step {
			count++
			wg.Go(func() {
				if err := cases[i].Run(r); err != nil {
					t.Errorf("%v\nrepeat with WAVELANE_SEED=%d", err, conformance.Seed())
				}
			})
		}
		wg.Wait()
	}
	return count
}

// Report is what api.js says of its tests, by name.
type Report map[string]struct {
	OK   bool   `json:"ok"`
	Note string `json:"note"`
}

// Check makes a test of each, and checks their number.
func (r Report) Check(t *testing.T, least int) {
	if len(r) < least {
		t.Errorf("only %d tests: %v", len(r), r)
	}
	for name, x := range r {
		t.Run(name, func(t *testing.T) {
			if x.Note != "" {
				t.Log(x.Note)
			}
			if !x.OK {
				t.Fail()
			}
		})
	}
}

// Models has Node.js write the models of model.js, and returns their folder.
func Models(t *testing.T) string {
	dir := t.TempDir()
	if err := os.CopyFS(dir, Files); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("node", filepath.Join(dir, "models_node.js"), dir).CombinedOutput(); err != nil {
		t.Fatalf("node: %v\n%s", err, out)
	}
	return dir
}

// Snippet returns the JavaScript of a README.
func Snippet(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(text), "```js\n")
	code, _, closed := strings.Cut(code, "```")
	if !ok || !closed {
		t.Fatalf("no JavaScript in %s", path)
	}
	return code
}

// SnippetResults are c, probabilities and y of the README of the package.
var SnippetResults = []float64{4, 5, 10, 11, 0.377541, 0.622459, 0.377541, 0.622459, 4, 5, 10, 11}
