package ptxkernels

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
)

// withPrologue puts a random expression before an entry over rows of that shape, and sometimes one after it; after the first come
// the entry's other operands.
func withPrologue(t *testing.T, rng *rand.Rand, r *kerneltest.Rig, e *program.Entry, options any, special bool, shape []int) (c call, ok bool) {
	for range 100 {
		x, scalars := randomExpression(rng, tame, 1+rng.IntN(kit.PrologueOperands), 1+rng.IntN(4), 1)
		in := [][]int{shape}
		for range x.Inputs - 1 {
			in = append(in, repeated(rng, shape))
		}
		rng.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		for range e.Inputs[1:] {
			if e.Class == program.Reduce {
				in = append(in, shape)
			} else {
				in = append(in, shape[len(shape)-1:])
			}
		}
		a := program.Attr{Options: options, Prologue: x, Scalars: append(scalars, testScalars(e)...)}
		if table()[e].Epilogue && rng.IntN(2) == 0 {
			epilogue, more := randomExpression(rng, tame, 1, 1+rng.IntN(3), 1)
			a.Epilogue, a.Scalars = epilogue, append(a.Scalars, more...)
		}
		c = newCall(rng, e, a, special, in...)
		out, err := e.Check(c.in, c.Attr)
		require.NoError(t, err, "%s %v", e.Name, in)
		if Fuses(&program.Step{Entry: e, Attr: c.Attr}, c.in, out, &r.Caps, nil) {
			return c, true
		}
	}
	return c, false
}

func testScalars(e *program.Entry) (all []float32) {
	for _, s := range e.Scalars {
		all = append(all, s.Test[0])
	}
	return all
}

// Shifted tells whether the step's reduction cannot read fours.
func (c *call) Shifted(t *testing.T) bool {
	p, err := c.Parts(c.in, c.Attr)
	require.NoError(t, err)
	s := &kit.Step{Step: &lowering.Step[*kit.Launch]{Step: &program.Step{Entry: c.Entry, Attr: p.Attr}, Operands: p.In, Parts: p}}
	rows, cols := program.ReduceRows(p.In[0].Shape, p.Attr.Options.(compute.Axis))
	h, err := s.Prologue(rows, cols)
	require.NoError(t, err)
	return h.Shifted(cols)
}

// A reduction, a norm or a softmax with a prologue gives what it gives of the expression's result, to the last bit: for rows
// that registers hold and longer ones, in fours and singly, with operands that are repeated along rows or columns.
func TestPrologues(t *testing.T) {
	rng := ptxtest.Random(t)
	r := newExpressionRig(t, rng)
	shapes := [][]int{{3, 5}, {1}, {2, 2, 67}, {5, 128}, {1, 700}, {3, 1028}}
	n := 0
	for _, e := range catalogue.All() {
		if !table()[e].Prologue || !e.TakesPrologue() {
			continue
		}
		options := []any{e.Options}
		if _, ok := e.Options.(compute.Axis); ok {
			options = []any{compute.LastAxis, compute.AllAxes}
		}
		for _, o := range options {
			shape := shapes[rng.IntN(len(shapes))]
			special := rng.IntN(4) == 0
			c, ok := withPrologue(t, rng, r, e, o, special, shape)
			require.True(t, ok, "%s fuses with nothing", e.Name)
			n++
			var got [][]float32
			if e.Class == program.Reduce && c.Shifted(t) { // its sums are in another order
				_, got = c.fused(t, r)
			} else {
				got = c.same(t, r)
			}
			if !special && e.Tol != (program.Tolerance{}) {
				c.loosely(t, got, 1e-3)
			}
		}
	}
	for _, e := range []*program.Entry{catalogue.Sum, catalogue.Softmax, catalogue.LayerNorm} { // too long for registers
		c, ok := withPrologue(t, rng, r, e, e.Options, false, []int{2, 9000 + rng.IntN(2)*3})
		require.True(t, ok)
		c.same(t, r)
		n++
	}
	t.Logf("%d calls", n)
}
