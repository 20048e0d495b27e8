package ptxkernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxtest"
)

// fusable is a step with a result that an epilogue may stand after.
type fusable struct {
	*program.Entry
	program.Attr
	shapes [][]int
	halves int // so many operands
}

// products are matmuls and convolutions that take every kernel of theirs: tiles that are full and not, vectors, both ways to
// transpose, several products, depths that are cut up, biases and activations.
func products() (all []fusable) {
	add := func(e *program.Entry, options any, shapes ...[]int) {
		all = append(all, fusable{e, program.Attr{Options: options}, shapes, 0})
	}
	mm := func(o compute.MatMulOptions, shapes ...[]int) { add(catalogue.MatMul, o, shapes...) }
	mm(compute.MatMulOptions{}, []int{5, 7}, []int{7, 6})
	mm(compute.MatMulOptions{}, []int{70, 33}, []int{33, 68})
	mm(compute.MatMulOptions{Act: compute.ReLU}, []int{2, 33, 12}, []int{2, 12, 20}, []int{20})
	mm(compute.MatMulOptions{TransA: true, TransB: true}, []int{3, 20, 40}, []int{50, 20}, []int{50})
	mm(compute.MatMulOptions{}, []int{20, 600}, []int{600, 24})
	mm(compute.MatMulOptions{TransB: true}, []int{3, 520}, []int{90, 520}, []int{90})
	mm(compute.MatMulOptions{Precision: compute.TF32}, []int{130, 64}, []int{64, 140}, []int{140})
	mm(compute.MatMulOptions{Precision: compute.FP32Tensor, Act: compute.Tanh}, []int{2, 40, 520}, []int{2, 520, 35})
	halves := func(o compute.MatMulOptions, shapes ...[]int) {
		mm(o, shapes...)
		all[len(all)-1].halves = 2
	}
	halves(compute.MatMulOptions{TransB: true}, []int{70, 64}, []int{80, 64}, []int{80})
	halves(compute.MatMulOptions{}, []int{40, 560}, []int{560, 72})
	halves(compute.MatMulOptions{}, []int{3, 60}, []int{60, 72})
	add(catalogue.MatVec, catalogue.MatVec.Options, []int{50, 40}, []int{40})
	add(catalogue.VecMat, catalogue.VecMat.Options, []int{40}, []int{40, 52})
	conv := func(o compute.Conv2DOptions, shapes ...[]int) { add(catalogue.Conv2D, o, shapes...) }
	conv(compute.Conv2DOptions{}, []int{2, 3, 6, 7}, []int{5, 3, 3, 2}, []int{5})
	conv(compute.Conv2DOptions{Groups: 2, Pad: [2]int{1, 1}}, []int{2, 4, 6, 6}, []int{6, 2, 3, 3})
	conv(compute.Conv2DOptions{Act: compute.ReLU}, []int{2, 64, 4, 4}, []int{40, 64, 3, 3}, []int{40})
	conv(compute.Conv2DOptions{}, []int{2, 5, 4, 4}, []int{8, 5, 1, 1}, []int{8})
	return all
}

// overRows are reductions and norms, of rows that registers hold and longer ones, and of parts of rows; in fours and singly.
func overRows(rng *rand.Rand) (all []fusable) {
	shapes := [][]int{{3, 5}, {1, 68}, {2, 2, 67}, {5, 128}, {300, 3}, {3, 1028}, {2, 9000 + rng.IntN(4)}}
	for _, e := range catalogue.All() {
		if e.Class != program.Reduce && e.Class != program.Rows || !table()[e].Epilogue {
			continue
		}
		s := shapes[rng.IntN(len(shapes))]
		if e == catalogue.Sum || e == catalogue.Max || e == catalogue.LayerNorm { // whatever the seed
			s = shapes[len(shapes)-1]
		}
		f := fusable{e, program.Attr{Options: e.Options, Scalars: testScalars(e)}, [][]int{s}, 0}
		for _, in := range e.Inputs[1:] {
			if e.Class == program.Reduce || in.Name == "gate" {
				f.shapes = append(f.shapes, s)
			} else {
				f.shapes = append(f.shapes, s[len(s)-1:])
			}
		}
		all = append(all, f)
	}
	return all
}

// withEpilogue puts a random expression after the step, with operands that are repeated along some axes of the result.
func (f fusable) withEpilogue(t *testing.T, rng *rand.Rand, r *kerneltest.Rig, special bool) call {
	in := make([]program.Type, len(f.shapes))
	for i, s := range f.shapes {
		if in[i] = program.F32(s...); i < f.halves {
			in[i].DType = compute.Float16
		}
	}
	out, err := f.Check(in, f.Attr)
	require.NoError(t, err)
	for {
		x, scalars := randomExpression(rng, tame, 1+rng.IntN(4), 1+rng.IntN(5), 1)
		shapes := slices.Clone(f.shapes)
		for range x.Inputs - 1 {
			shapes = append(shapes, repeated(rng, out[0].Shape))
		}
		a := program.Attr{Options: f.Attr.Options, Epilogue: x, Scalars: slices.Concat(f.Attr.Scalars, scalars)}
		c := newCall(rng, f.Entry, a, special, shapes...)
		c.halve(f.halves)
		if Fuses(&program.Step{Entry: f.Entry, Attr: c.Attr}, c.in, out, &r.Caps, nil) {
			return c
		}
	}
}

// loosely compares with the reference, as far as sums of some hundred numbers allow.
func (c *call) loosely(t *testing.T, got [][]float32, tolerance float64) {
	t.Helper()
	out, err := c.Check(c.in, c.Attr)
	require.NoError(t, err)
	in := make([]reference.Array, len(c.in))
	for i, d := range c.data {
		in[i] = reference.Array{Shape: c.in[i].Shape, Data: wide(floats(d))}
	}
	for k, want := range reference.Of(c.Entry, in, c.Attr, out) {
		for i, w := range want.Data {
			if g := float64(got[k][i]); !(math.Abs(g-w) <= tolerance*(1+math.Abs(w))) {
				t.Fatalf("element %d is %v, want %v: %s %+v %v", i, g, w, c.Name, c.Attr, c.in)
			}
		}
	}
}

// A step with an epilogue gives what it gives without, and the expression of that, to the last bit: in any variant, and
// about what the reference gives.
func TestEpilogues(t *testing.T) {
	rng := ptxtest.Random(t)
	r := newExpressionRig(t, rng)
	seen := map[string]bool{}
	tries := 1
	if everything {
		tries = 30
	}
	for i, f := range append(products(), overRows(rng)...) {
		// Some of the variants, others by each seed.
		for range tries {
			chosen := ""
			r.Pick = func(class, _ string, names []string) int {
				if i := slices.Index(names, chosen); i >= 0 {
					return i
				}
				n := rng.IntN(len(names))
				chosen = names[n]
				seen[class+" "+chosen] = true
				return n
			}
			c := f.withEpilogue(t, rng, r, i%5 == 4)
			chosen = ""
			got := c.same(t, r)
			if i%5 != 4 {
				tolerance := 1e-3
				if o, ok := f.Attr.Options.(compute.MatMulOptions); ok && o.Precision == compute.TF32 {
					tolerance = 0.1
				}
				c.loosely(t, got, tolerance)
			}
		}
	}
	t.Logf("%d variants", len(seen))
	if everything {
		for _, name := range []string{"matmul small", "matmul tile64x64", "matmul tile64x64/splitk", "matmul tile128x128",
			"matmul async", "matmul rows", "matmul columns", "matmul mma_64x64", "matmul mma_128x128", "matmul wgmma_128x128", "conv2d direct1",
			"conv2d direct4", "conv2d tile64x64"} {
			require.True(t, seen[name], "%s among %v", name, seen)
		}
	}
}
