//go:build !js

package wavelane_test

import (
	"context"
	"fmt"
	"os"
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

// TestReadme compares the README's code with the function above.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, block, ok := strings.Cut(string(text), "```go\n")
	require.True(t, ok, "the README has a block of Go")
	block, _, _ = strings.Cut(block, "```")
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	require.Contains(t, strings.ReplaceAll(string(source), "\n\t", "\n"), block)
}
