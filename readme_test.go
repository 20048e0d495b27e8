//go:build !js

package wavelane_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
)

// Example is the code of the README.
func Example() {
	a, b := []float32{1, 2, 3, 4}, []float32{1, 0, 0, -1}
	if err := readme(context.Background(), a, b, 2, 2, 2); err != nil {
		fmt.Println(err)
	}
	// Output: [0.622 0.378 0.818 0.182]
}

func readme(ctx context.Context, a, b []float32, m, k, n int) error {
	dev, err := wavelane.Open(ctx) // the best device of this machine
	if err != nil {
		return err
	}
	defer dev.Close()

	// One operation is one call.
	c := make([]float32, m*n)
	if err := dev.MatMul(ctx, c, a, b, m, k, n); err != nil {
		return err
	}

	// Many operations are a batch: nothing runs while it is recorded, one submission runs it, one readback returns.
	rec := batch.New(dev)
	x := rec.Upload(c, m, n)
	out := rec.Read(rec.Softmax(rec.Scale(rec.ReLU(x), 0.5)))
	if err := rec.Run(ctx); err != nil { // the first mistake in recording surfaces here too
		return err
	}
	fmt.Printf("%.3f\n", out.Float32s())
	return nil
}

// TestGuides looks for each block of Go in the README and the guides in the tests and examples, where it is compiled and run.
func TestGuides(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	var sources strings.Builder
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "*/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			sources.WriteString(unindented(string(text)))
		}
	}
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		parts := strings.Split(string(text), "```go\n")
		for _, part := range parts[1:] {
			block, _, _ := strings.Cut(part, "```")
			require.True(t, strings.Contains(sources.String(), unindented(block)), "%s: no test has this code:\n%s", page, block)
		}
	}
}

// unindented is a text without the tabs at the beginnings of its lines.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t")
	}
	return strings.Join(lines, "\n")
}
