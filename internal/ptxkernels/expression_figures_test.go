package ptxkernels

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/elementwise"
	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

const expressionFigures = "testdata/expressions.tsv"

// chain16 is four times f(x·s + a)·b: 16 operations on three operands.
func chain16() (program.Expression, []float32) {
	x := program.Expression{Inputs: 3}
	var scalars []float32
	v := 0
	next := func(e *program.Entry, more ...int) {
		x.Nodes = append(x.Nodes, program.Node{Entry: e, Args: append([]int{v}, more...)})
		v = x.Inputs + len(x.Nodes) - 1
	}
	for i := range 4 {
		scalars = append(scalars, 0.5)
		next(catalogue.Scale)
		next(catalogue.Add, 1)
		next([]*program.Entry{catalogue.GELU, catalogue.ReLU}[i%2])
		next(catalogue.Mul, 2)
	}
	x.Results = []int{v}
	return x, scalars
}

// perElement is the instructions of a flat kernel's loop for each element.
func perElement(t *testing.T, w *elementwise.Kernels) float64 {
	k := w.Kernel(elementwise.Flat)
	m, err := k.Module()
	require.NoError(t, err)
	f := m.Funcs[0]
	g, n := flow.New(f), 0
	require.Len(t, g.Loops, 1)
	for _, b := range g.Loops[0].Blocks {
		for i := range f.Body[g.Blocks[b].Start:g.Blocks[b].End] {
			if f.Body[g.Blocks[b].Start+i].Kind() != ir.Directive {
				n++
			}
		}
	}
	return float64(n) / float64(4*w.Ahead)
}

// What 16 operations take for each element, in kernels of their own and fused: bytes of memory, and instructions of the loops.
func TestExpressionFigures(t *testing.T) {
	x, _ := chain16()
	fused, err := elementwise.FusedOf(&x)
	require.NoError(t, err)
	apart, bytes := 0.0, 0
	for _, n := range x.Nodes {
		one := program.Expression{Inputs: len(n.Args), Nodes: []program.Node{{Entry: n.Entry}}, Results: []int{len(n.Args)}}
		for i := range n.Args {
			one.Nodes[0].Args = append(one.Nodes[0].Args, i)
		}
		w, err := elementwise.FusedOf(&one)
		require.NoError(t, err)
		require.Equal(t, elementwise.QuadsPerThread, w.Ahead)
		apart += perElement(t, w)
		bytes += 4 * (len(n.Args) + 1)
	}
	lines := []string{"16 operations\tkernels\tbytes per element\tinstructions per element",
		fmt.Sprintf("apart\t%d\t%d\t%.1f", len(x.Nodes), bytes, apart),
		fmt.Sprintf("fused\t1\t%d\t%.1f", 4*(x.Inputs+len(x.Results)), perElement(t, fused))}
	text := strings.Join(lines, "\n") + "\n"
	if *updateFigures {
		require.NoError(t, os.WriteFile(expressionFigures, []byte(text), 0o644))
	}
	want, err := os.ReadFile(expressionFigures)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "go test -run ExpressionFigures -update-figures writes the table anew")
}

// BenchmarkExpressionText writes the text of a kernel, which the first run of a program waits for.
func BenchmarkExpressionText(b *testing.B) {
	x, _ := chain16()
	w, err := elementwise.FusedOf(&x)
	require.NoError(b, err)
	for b.Loop() {
		k := w.Kernel(elementwise.Flat)
		k.Name = "text"
		m, err := k.Write()
		require.NoError(b, err)
		require.NotEmpty(b, m.String())
	}
}
