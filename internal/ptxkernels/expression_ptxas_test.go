package ptxkernels

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/elementwise"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/norm"
	"github.com/wavelane/wavelane/internal/ptxkernels/reduce"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// heavy is an expression that has as many values at a time as possible, all of them results of long functions.
func heavy(operands, values int) program.Expression {
	x := program.Expression{Inputs: operands}
	for i := range values {
		e := []*program.Entry{catalogue.Mish, catalogue.GELUErf, catalogue.Sin, catalogue.Tanh}[i%4]
		x.Nodes = append(x.Nodes, program.Node{Entry: e, Args: []int{i % operands}})
	}
	v := operands
	for i := 1; i < values; i++ {
		x.Nodes = append(x.Nodes, program.Node{Entry: catalogue.Pow, Args: []int{v, operands + i}})
		v = operands + len(x.Nodes) - 1
	}
	x.Results = []int{v}
	return x
}

// tailOf is an epilogue for any result.
func tailOf(x *program.Expression) (*kit.Epilogue, error) {
	f, err := scalar.BodyOf(x)
	return &kit.Epilogue{Fused: kit.Fused{Body: f, Text: x.String(), Strides: make([][]int, x.Inputs-1)}}, err
}

// rowsWith reports whether steps with an expression, of the entries that take one, launch a kernel of rows or reductions with it.
func rowsWith(takes func(l entry) bool, k *kit.Kernel) bool {
	for e, r := range reduce.Reductions {
		if takes(table()[e]) && k.Name == r.Name {
			return true
		}
	}
	for e, r := range norm.Kernels {
		if takes(table()[e]) && k.Name == r.Name {
			return true
		}
	}
	return false
}

// The kernels of expressions are code for NVIDIA's assembler, which spills nothing: a few of them, others each time, at the
// limits of what fuses and at random. With WAVELANE_PROOFS=all there are all kernels at the limits.
func TestPtxasExpressions(t *testing.T) {
	ptxas := ptxtest.Ptxas(t)
	rng := ptxtest.Random(t)
	assembles := func(name string, m *ir.Module) {
		t.Helper()
		_, err := ptxtest.Assemble(t, ptxas, ptxtest.TargetOf(m), m.String(), "-v", "--warn-on-spills",
			"--warn-on-local-memory-usage", "-Werror")
		assert.NoError(t, err, name)
	}
	some := func(n int) bool { return everything || rng.IntN(n) == 0 }
	most := heavy(1+kit.EpilogueOperands, kit.EpilogueRegisters-1)
	e, err := tailOf(&most)
	require.NoError(t, err)
	require.Equal(t, kit.EpilogueRegisters, scalar.Pressure(&most))
	before := heavy(kit.PrologueOperands, kit.PrologueRegisters-1)
	f, err := scalar.BodyOf(&before)
	require.NoError(t, err)
	h := &kit.Prologue{Fused: kit.Fused{Body: f, Text: before.String(), Strides: make([][]int, kit.PrologueOperands)}}
	require.Equal(t, kit.PrologueRegisters, scalar.Pressure(&before))
	for _, k := range all() {
		try := func(h *kit.Prologue, e *kit.Epilogue) {
			with := *k
			with.Build = k.With(h, e)
			m, err := with.Module()
			require.NoError(t, err)
			assembles(fmt.Sprintf("%s, head %t, tail %t", k.Name, h != nil, e != nil), m)
		}
		if k.BuildWith != nil && some(16) {
			begins, ends := rowsWith(func(l entry) bool { return l.Prologue }, k), rowsWith(func(l entry) bool { return l.Epilogue }, k)
			if k.Family != "rows" && k.Family != "reduce" { // products
				ends = true
			}
			if begins {
				try(h, nil)
			}
			if ends {
				try(nil, e)
			}
			if begins && ends {
				try(h, e)
			}
		}
	}
	for i := range 6 {
		x := heavy(scalar.ExpressionOperands, scalar.ExpressionOperands+i)
		if i > 0 {
			x, _ = randomExpression(rng, elementwiseEntries(), 1+rng.IntN(scalar.ExpressionOperands), 1+rng.IntN(20), 1+rng.IntN(3))
		}
		w, err := elementwise.FusedOf(&x)
		if err != nil {
			continue // it stays apart
		}
		for v := elementwise.Flat; v < elementwise.Ways; v++ {
			if v == elementwise.Flat || len(w.Operands) > 1 && some(2) {
				k := w.Kernel(v)
				m, err := k.Module()
				require.NoError(t, err)
				assembles(fmt.Sprint(k.Name, " ", &x), m)
			}
		}
	}
}
