package rewrite_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func TestFuseGroups(t *testing.T) {
	for _, c := range []rewriting{
		{"a chain", func(b *batch.Batch) {
			b.Read(b.ReLU(b.Neg(b.Scale(vector(b, 4), 3))))
		}, []string{"fused(scale, neg, relu)"}},
		{"a diamond", func(b *batch.Batch) {
			x := b.Exp(vector(b, 4))
			b.Read(b.Add(b.Sin(x), b.Cos(x)))
		}, []string{"fused(exp, sin, cos, add)"}},
		{"a tree with operands that are broadcast", func(b *batch.Batch) {
			b.Read(b.FMA(b.Mul(vector(b, 3, 4), vector(b, 4)), b.Add(vector(b, 3, 1), vector(b, 3, 4)), vector(b)))
		}, []string{"fused(mul, add, fma)"}},
		{"intermediates that are read and kept", func(b *batch.Batch) {
			x := b.Exp(vector(b, 4))
			y := b.Neg(x)
			b.Read(x)
			b.Keep(y)
			b.Read(b.ReLU(y))
		}, []string{"fused(exp, neg, relu)"}},
		{"bias and activation are two", func(b *batch.Batch) {
			b.Read(b.Neg(b.BiasActivation(vector(b, 3, 4), vector(b, 4), compute.BiasActivationOptions{Act: compute.GELU})))
		}, []string{"fused(add, gelu, neg)"}},
		{"what reads one operand runs together", func(b *batch.Batch) {
			x := vector(b, 4)
			b.Read(b.Exp(x))
			b.Read(b.Sum(x))
			b.Read(b.Neg(x))
		}, []string{"sum", "fused(exp, neg)"}},
		{"a smaller value is not computed again for each of more", func(b *batch.Batch) {
			b.Read(b.Neg(b.Mul(vector(b, 3, 4), b.Exp(vector(b, 4)))))
		}, []string{"exp", "fused(mul, neg)"}},
		{"unless that costs nothing", func(b *batch.Batch) {
			b.Read(b.Mul(vector(b, 3, 4), b.Neg(vector(b, 4))))
		}, []string{"fused(neg, mul)"}},
		{"and nobody else wants it", func(b *batch.Batch) {
			bias := b.Neg(vector(b, 4))
			b.Read(bias)
			b.Read(b.Neg(b.Mul(vector(b, 3, 4), bias)))
		}, []string{"neg", "fused(mul, neg)"}},
		{"equal sizes are no repetition", func(b *batch.Batch) {
			b.Read(b.Mul(vector(b, 1, 4), b.Exp(vector(b, 4))))
		}, []string{"fused(exp, mul)"}},
		{"no cycle through a step outside", func(b *batch.Batch) {
			x := b.Exp(vector(b, 4))
			b.Read(b.Neg(b.Sub(x, b.Sum(x))))
		}, []string{"exp", "sum", "fused(sub, neg)"}},
		{"around a step outside", func(b *batch.Batch) {
			x := b.Exp(vector(b, 4))
			s := b.Max(x)
			b.Read(b.Sub(b.Neg(x), s))
		}, []string{"fused(exp, neg)", "max", "sub"}},
		{"later, past a step outside", func(b *batch.Batch) {
			x := b.Exp(vector(b, 4, 4))
			m := b.MatMul(vector(b, 4, 2), vector(b, 2, 4))
			b.Read(m)
			b.Read(b.Sub(x, m))
		}, []string{"matmul", "fused(exp, sub)"}},
		{"scalars that vary", func(b *batch.Batch) {
			b.Read(b.Scale(b.Vary(b.Scale(b.Scale(vector(b, 4), 3), 5)), 7))
		}, []string{"fused(scale, scale, scale)"}},
	} {
		c.test(t, &idle{})
	}
}

// A value that a step updates in place is read before, wherever the readers go.
func TestFuseUpdates(t *testing.T) {
	adam := compute.AdamOptions{LR: 0.1, Step: 1}
	for _, c := range []rewriting{
		{"readers stay before", func(b *batch.Batch) {
			x := b.Import(tensor{shape: []int{4}})
			y := b.Exp(x)
			next, _, _ := b.Adam(x, vector(b, 4), vector(b, 4), vector(b, 4), adam)
			b.Read(b.Sub(next, y))
		}, []string{"exp", "adam", "sub"}},
		{"others pass", func(b *batch.Batch) {
			x := b.Import(tensor{shape: []int{4}})
			y := b.Exp(vector(b, 4))
			next, _, _ := b.Adam(x, vector(b, 4), vector(b, 4), vector(b, 4), adam)
			b.Read(b.Sub(next, y))
		}, []string{"adam", "fused(exp, sub)"}},
		{"epilogues too", func(b *batch.Batch) {
			x := b.Import(tensor{shape: []int{4, 4}})
			y := b.MatMul(x, x)
			next, _, _ := b.Adam(x, vector(b, 4, 4), vector(b, 4, 4), vector(b, 4, 4), adam)
			b.Read(b.Sub(next, y))
		}, []string{"matmul", "adam", "sub"}},
	} {
		c.test(t, &idle{})
	}
}

func TestFuseNeighbours(t *testing.T) {
	for _, c := range []rewriting{
		{"bias and activation are options", func(b *batch.Batch) {
			b.Read(b.Tanh(b.Add(vector(b, 5), b.MatMul(vector(b, 3, 4), vector(b, 4, 5)))))
			b.Read(b.ReLU(b.Conv2D(vector(b, 8, 8), vector(b, 3, 3))))
			b.Read(b.BiasActivation(b.MatMul(vector(b, 3, 4), vector(b, 4, 5)), vector(b, 5), compute.BiasActivationOptions{Act: compute.GELU}))
		}, []string{"matmul", "conv2d", "matmul"}},
		{"then epilogues", func(b *batch.Batch) {
			x := b.MatMul(vector(b, 3, 4), vector(b, 4, 5))
			b.Read(b.Neg(b.Add(vector(b, 3, 5), b.ReLU(b.Add(x, vector(b, 5))))))
		}, []string{"fused(matmul, add, neg)"}},
		{"of what is used twice in one expression", func(b *batch.Batch) {
			x := b.MatVec(vector(b, 5, 4), vector(b, 4))
			b.Read(b.Mul(x, b.Sigmoid(b.Scale(x, 1.702))))
		}, []string{"fused(matvec, scale, sigmoid, mul)"}},
		{"not where the product is wanted", func(b *batch.Batch) {
			x := b.MatVec(vector(b, 5, 4), vector(b, 4))
			b.Read(x)
			b.Read(b.Neg(b.Exp(x)))
		}, []string{"matvec", "fused(exp, neg)"}},
		{"nor where it is broadcast", func(b *batch.Batch) {
			b.Read(b.Add(b.MatVec(vector(b, 5, 4), vector(b, 4)), vector(b, 3, 5)))
		}, []string{"matvec", "add"}},
		{"after reductions and rows", func(b *batch.Batch) {
			b.Read(b.Sqrt(b.Sum(vector(b, 3, 4), compute.LastAxis)))
			b.Read(b.Scale(b.Softmax(vector(b, 3, 4)), 2))
		}, []string{"fused(sum, sqrt)", "fused(softmax, scale)"}},
		{"prologues", func(b *batch.Batch) {
			x, y := vector(b, 3, 4), vector(b, 3, 4)
			b.Read(b.Sum(b.Mul(b.Exp(x), b.Neg(y)), compute.LastAxis))
			b.Read(b.Softmax(b.Scale(x, 3)))
		}, []string{"fused(exp, neg, mul, sum)", "fused(scale, softmax)"}},
		{"not where the operand is another one too", func(b *batch.Batch) {
			x := b.Neg(vector(b, 4))
			b.Read(b.Dot(x, x))
			y := b.Exp(vector(b, 3, 4))
			b.Read(b.Softmax(y))
			b.Read(y)
		}, []string{"neg", "dot", "exp", "softmax"}},
		{"both", func(b *batch.Batch) {
			b.Read(b.Neg(b.RMSNorm(b.Mul(vector(b, 3, 4), vector(b, 4)), vector(b, 4), 1e-6)))
		}, []string{"fused(mul, rms_norm, neg)"}},
		{"a scalar operand that comes later", func(b *batch.Batch) {
			x := b.MatVec(vector(b, 5, 4), vector(b, 4))
			s := b.Max(vector(b, 9))
			b.Read(b.Div(x, s))
		}, []string{"max", "fused(matvec, div)"}},
	} {
		c.test(t, &idle{})
	}
}

// Entries of the catalogue take the place of several on every device.
func TestFuseIntoCatalogue(t *testing.T) {
	for _, c := range []rewriting{
		{"residual and norm", func(b *batch.Batch) {
			x, g := vector(b, 3, 4), vector(b, 4)
			sum := b.Add(x, vector(b, 3, 4))
			b.Read(b.MatMul(b.RMSNorm(sum, g, 1e-6), vector(b, 4, 5)))
			other := b.Add(x, vector(b, 3, 4))
			b.Read(b.MatMul(b.LayerNorm(other, g, g, 1e-6), vector(b, 4, 5)))
			b.Read(sum)
			b.Read(other)
		}, []string{"add_rms_norm", "matmul", "add_layer_norm", "matmul"}},
		{"norm and product", func(b *batch.Batch) {
			b.Read(b.MatVec(vector(b, 5, 4), b.RMSNorm(vector(b, 4), vector(b, 4), 1e-6)))
			b.Read(b.MatVec(vector(b, 5, 4), b.RMSNorm(vector(b, 9, 4), vector(b, 4), 1e-6))) // many rows
		}, []string{"rms_norm_matvec", "rms_norm", "matvec"}},
		{"gate and up", func(b *batch.Batch) {
			x := vector(b, 4)
			b.Read(b.SwiGLU(b.MatVec(vector(b, 5, 4), x), b.MatVec(vector(b, 5, 4), x)))
			y := vector(b, 2, 4)
			o := compute.MatMulOptions{TransB: true}
			b.Read(b.SwiGLU(b.MatMul(y, vector(b, 5, 4), o), b.MatMul(y, vector(b, 5, 4), o)))
		}, []string{"gate_up_swiglu", "gate_up_swiglu"}},
	} {
		c.test(t, &idle{})
		c.test(t, ignorant{&idle{}})
	}
}

func TestWithoutFusion(t *testing.T) {
	record := func(b *batch.Batch) {
		b.Read(b.Sum(b.Neg(b.Exp(b.ReLU(b.MatMul(vector(b, 3, 4), vector(b, 4, 5)))))))
	}
	want := []string{"matmul", "relu", "exp", "neg", "sum"}
	require.Equal(t, want, names(t, &idle{}, record, batch.WithoutFusion()))
	require.Equal(t, []string{"fused(matmul, exp, neg)", "sum"}, names(t, &idle{}, record))
	want = []string{"matmul", "exp", "neg", "sum"}
	require.Equal(t, want, names(t, ignorant{&idle{}}, record))
	require.Equal(t, want, names(t, &idle{refuses: func(*program.Step) bool { return true }}, record))
}

// A device that refuses a long expression gets shorter ones.
func TestFuseWhatTheDeviceTakes(t *testing.T) {
	short := &idle{refuses: func(s *program.Step) bool {
		x, ok := s.Attr.Options.(program.Expression)
		return ok && len(x.Nodes) > 2
	}}
	require.Equal(t, []string{"fused(exp, neg)", "fused(sin, cos)", "tanh"}, names(t, short, func(b *batch.Batch) {
		b.Read(b.Tanh(b.Cos(b.Sin(b.Neg(b.Exp(vector(b, 4)))))))
	}))
}

func TestFuseLimits(t *testing.T) {
	dev := &idle{}
	b := batch.New(program.Seal(dev))
	y := vector(b, 4)
	for range 12 {
		y = b.Add(b.Exp(y), vector(b, 4))
	}
	for range 100 {
		y = b.Sin(y)
	}
	b.Read(y)
	p := compiled(t, b, dev)
	nodes := 0
	for _, s := range p.Steps {
		require.LessOrEqual(t, len(s.In)+len(s.Out), 8)
		x, ok := s.Attr.Options.(program.Expression)
		require.True(t, ok, s.Name())
		require.LessOrEqual(t, len(x.Nodes), 32)
		nodes += len(x.Nodes)
	}
	require.Equal(t, 124, nodes)
	require.Less(t, len(p.Steps), 8)
}

// Steps that others were put into tell their scalars in the order of the nodes, with those that vary.
func TestFusedScalars(t *testing.T) {
	dev := &idle{}
	b := batch.New(program.Seal(dev))
	x := b.Vary(b.Scale(b.Scale(vector(b, 3, 4), 3), 5))
	b.Read(b.Scale(b.RMSNorm(x, vector(b, 4), 0.25), 7))
	p := compiled(t, b, dev)
	require.Equal(t, []string{"fused(scale, scale, rms_norm, scale)"}, stepNames(p))
	require.Equal(t, []float32{3, 5, 0.25, 7}, p.Steps[0].Attr.Scalars)
	require.Equal(t, []int{0, 1, 0, 0}, p.Steps[0].Attr.Vary)
	require.True(t, slices.Equal(p.Read, p.Steps[0].Out))
}
