package ptxkernels

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxtest"
)

// Expressions give what their entries give one after the other, to the last bit, and what the reference gives within the errors
// that the entries may have: of all entries, with operands repeated along any axes, several results, odd sizes, and
// numbers that are none.
func TestExpressions(t *testing.T) {
	rng := ptxtest.Random(t)
	entries := elementwiseEntries()
	r := newExpressionRig(t, rng)
	shapes := [][]int{{1}, {7}, {1025}, {33, 8}, {5, 3, 4}, {2, 3, 1, 5}, {3, 1, 2, 2, 4}, {0, 4}, {}}
	known, all := 0, 0
	used := map[*program.Entry]bool{}
	for i := range 60 {
		x, scalars := randomExpression(rng, entries, 1+rng.IntN(5), 1+rng.IntN(8), 1+rng.IntN(3))
		for _, n := range x.Nodes {
			used[n.Entry] = true
		}
		shape := shapes[i%len(shapes)]
		in := make([][]int, x.Inputs)
		for k := range in {
			in[k] = shape
			if k > 0 && i%3 > 0 {
				in[k] = repeated(rng, shape)
			}
		}
		c := newCall(rng, program.Fused, program.Attr{Options: x, Scalars: scalars}, i%4 == 0, in...)
		require.True(t, Fuses(&program.Step{Entry: program.Fused, Attr: c.Attr}, c.in, c.in, &r.Caps, nil), "%v", &x)
		k, n := c.checkReference(t, c.same(t, r))
		known, all = known+k, all+n
	}
	t.Logf("%d of %d elements compared with the reference, %d of %d entries", known, all, len(used), len(entries))
	require.NotZero(t, known)
	require.Greater(t, len(used), len(entries)/2)
}

// Each entry alone is the expression of one node.
func TestExpressionsOfOneNode(t *testing.T) {
	rng := ptxtest.Random(t)
	r := newExpressionRig(t, rng)
	for _, e := range elementwiseEntries() {
		x := program.Expression{Inputs: len(e.Inputs), Results: []int{len(e.Inputs)}}
		node := program.Node{Entry: e}
		var scalars []float32
		shapes := [][]int{{3, 20}}
		for i := range e.Inputs {
			node.Args = append(node.Args, i)
			if i > 0 {
				shapes = append(shapes, repeated(rng, shapes[0]))
			}
		}
		for _, s := range e.Scalars {
			scalars = append(scalars, s.Test[0])
		}
		x.Nodes = []program.Node{node}
		c := newCall(rng, program.Fused, program.Attr{Options: x, Scalars: scalars}, true, shapes...)
		c.same(t, r)
	}
}

// What does not fit the registers, or is too long, stays apart, and is an error if somebody asks for it all the same.
func TestExpressionLimits(t *testing.T) {
	sum := func(operands int) program.Expression { // all operands are there before any is used
		x := program.Expression{Inputs: operands}
		v := 0
		for i := 1; i < operands; i++ {
			x.Nodes = append(x.Nodes, program.Node{Entry: catalogue.Add, Args: []int{v, i}})
			v = operands + i - 1
		}
		x.Results = []int{v}
		return x
	}
	long := program.Expression{Inputs: 1, Results: []int{scalar.ExpressionNodes + 1}}
	for i := range scalar.ExpressionNodes + 1 {
		long.Nodes = append(long.Nodes, program.Node{Entry: catalogue.Neg, Args: []int{i}})
	}
	wide := program.Expression{Inputs: 1} // that many values live at once
	for range scalar.ExpressionNodes - 1 {
		wide.Nodes = append(wide.Nodes, program.Node{Entry: catalogue.Neg, Args: []int{0}})
	}
	idle := program.Expression{Inputs: 2, Results: []int{2}, Nodes: []program.Node{{Entry: catalogue.Neg, Args: []int{0}}}}
	for i := range wide.Nodes {
		wide.Results = append(wide.Results, 1+i)
	}
	for name, c := range map[string]struct {
		x  program.Expression
		ok bool
	}{
		"most operands": {sum(scalar.ExpressionOperands), true}, "too many operands": {sum(scalar.ExpressionOperands + 1), false},
		"too long": {long, false}, "too many values": {wide, false}, "an operand of no use": {idle, false},
	} {
		in := slices.Repeat([]program.Type{program.F32(4)}, c.x.Inputs)
		a := program.Attr{Options: c.x}
		out, err := program.Fused.Check(in, a)
		require.NoError(t, err, name)
		s := &program.Step{Entry: program.Fused, Attr: a}
		require.Equal(t, c.ok, Fuses(s, in, out, &kit.DefaultCaps, nil), name)
		_, err = Lower(s, in, out, &kit.DefaultCaps, nil)
		if c.ok {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, "expression", name)
		}
	}
}
