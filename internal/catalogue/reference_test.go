package catalogue_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

var (
	nan = float32(math.NaN())
	inf = math.Inf(1)
)

func arr(shape []int, data ...float64) reference.Array {
	return reference.Array{Shape: shape, Data: data}
}
func vec(data ...float64) reference.Array { return arr([]int{len(data)}, data...) }

// eval runs a reference on float32 operands, ids being int32.
func eval(t *testing.T, e *program.Entry, options any, scalars []float32, in ...reference.Array) reference.Array {
	t.Helper()
	types := make([]program.Type, len(in))
	for i, x := range in {
		types[i] = program.F32(x.Shape...)
	}
	if e == catalogue.Embedding {
		types[1].DType = compute.Int32
	}
	a := attr(e, options)
	if scalars != nil {
		a.Scalars = scalars
	}
	out, err := e.Check(types, a)
	require.NoError(t, err)
	y := reference.Of(e, in, a, out)[0]
	require.Equal(t, program.Len(y.Shape), len(y.Data))
	return y
}

func near(t *testing.T, want, got []float64, msg string) {
	t.Helper()
	require.Len(t, got, len(want), msg)
	for i := range want {
		if want[i] != want[i] {
			require.True(t, math.IsNaN(got[i]), "%s: element %d is %v, want NaN", msg, i, got[i])
			continue
		}
		if math.IsInf(want[i], 0) {
			require.Equal(t, want[i], got[i], "%s: element %d", msg, i)
			continue
		}
		require.InDelta(t, want[i], got[i], 1e-6*(1+math.Abs(want[i])), "%s: element %d", msg, i)
	}
}

// Values of elementwise entries, computed by hand or with many digits elsewhere.
func TestElementwiseReferences(t *testing.T) {
	n := math.NaN()
	for _, c := range []struct {
		e       *program.Entry
		scalars []float32
		x, want []float64
	}{
		{catalogue.Neg, nil, []float64{1, -2, inf}, []float64{-1, 2, -inf}},
		{catalogue.Abs, nil, []float64{-3, 3, -inf}, []float64{3, 3, inf}},
		{catalogue.Sqrt, nil, []float64{4, -1, inf}, []float64{2, n, inf}},
		{catalogue.Recip, nil, []float64{4, 0, -inf}, []float64{0.25, inf, 0}},
		{catalogue.Exp, nil, []float64{0, 1, -inf}, []float64{1, math.E, 0}},
		{catalogue.Log, nil, []float64{1, math.E, 0, -1}, []float64{0, 1, -inf, n}},
		{catalogue.Log2, nil, []float64{8, 0.5, 0, -1}, []float64{3, -1, -inf, n}},
		{catalogue.Sin, nil, []float64{0, math.Pi / 2, inf}, []float64{0, 1, n}},
		{catalogue.Cos, nil, []float64{0, math.Pi, -inf}, []float64{1, -1, n}},
		{catalogue.Tanh, nil, []float64{0, 1, inf, -inf}, []float64{0, 0.7615941559557649, 1, -1}},
		{catalogue.Floor, nil, []float64{1.5, -1.5}, []float64{1, -2}},
		{catalogue.Ceil, nil, []float64{1.5, -1.5}, []float64{2, -1}},
		{catalogue.Round, nil, []float64{0.5, 1.5, 2.5, -0.5, -1.5}, []float64{0, 2, 2, 0, -2}},
		{catalogue.Trunc, nil, []float64{1.9, -1.9}, []float64{1, -1}},
		{catalogue.Sign, nil, []float64{-5, 0, 7, n}, []float64{-1, 0, 1, n}},
		{catalogue.ReLU, nil, []float64{-5, 7, n, -inf}, []float64{0, 7, n, 0}},
		{catalogue.LeakyReLU, []float32{0.5}, []float64{-5, 7, n}, []float64{-2.5, 7, n}},
		{catalogue.ELU, []float32{2}, []float64{-1, 3, -inf}, []float64{2 * (1/math.E - 1), 3, -2}},
		{catalogue.SELU, nil, []float64{1, -1, -inf}, []float64{1.0507009873554805, -1.1113307378125625, -1.7580993408473766}},
		{catalogue.Sigmoid, nil, []float64{0, 2, -inf}, []float64{0.5, 0.8807970779778823, 0}},
		{catalogue.GELU, nil, []float64{0, 1, -1, -inf, inf}, []float64{0, 0.8411919906082768, -0.15880800939172324, 0, inf}},
		{catalogue.GELUErf, nil, []float64{0, 1, -1, -inf, inf}, []float64{0, 0.8413447460685429, -0.15865525393145707, 0, inf}},
		{catalogue.SiLU, nil, []float64{0, 1, -inf, n}, []float64{0, 0.7310585786300049, 0, n}},
		{catalogue.HardSwish, nil, []float64{-4, -1, 1, 4, -inf}, []float64{0, -1.0 / 3, 2.0 / 3, 4, 0}},
		{catalogue.Mish, nil, []float64{0, 1, -inf, inf}, []float64{0, 0.8650983882673103, 0, inf}},
		{catalogue.Softplus, nil, []float64{0, 100, -inf, inf}, []float64{math.Ln2, 100, 0, inf}},
		{catalogue.Clip, []float32{-1, 2}, []float64{-5, 0.5, 5, n}, []float64{-1, 0.5, 2, n}},
		{catalogue.Clip, []float32{2, 1}, []float64{-5, 1.5, 5}, []float64{1, 1, 1}},
		{catalogue.Scale, []float32{-3}, []float64{2, inf}, []float64{-6, -inf}},
		{catalogue.PowScalar, []float32{3}, []float64{2, -2, 0}, []float64{8, -8, 0}},
		{catalogue.PowScalar, []float32{0}, []float64{n, inf, 0}, []float64{1, 1, 1}},
		{catalogue.PowScalar, []float32{0.5}, []float64{9, -9}, []float64{3, n}},
	} {
		near(t, c.want, eval(t, c.e, nil, c.scalars, vec(c.x...)).Data, c.e.Name)
	}
	for _, c := range []struct {
		e             *program.Entry
		a, b, c, want float64
	}{
		{catalogue.Add, 1, 2, 0, 3}, {catalogue.Sub, 1, 2, 0, -1}, {catalogue.Mul, 3, -2, 0, -6}, {catalogue.Div, 1, 4, 0, 0.25}, {catalogue.Div, 1, 0, 0, inf}, {catalogue.Div, 0, 0, 0, n},
		{catalogue.Maximum, 1, 2, 0, 2}, {catalogue.Maximum, inf, n, 0, n}, {catalogue.Maximum, n, 1, 0, n}, {catalogue.Minimum, 1, 2, 0, 1}, {catalogue.Minimum, n, -inf, 0, n},
		{catalogue.Pow, 2, 10, 0, 1024}, {catalogue.Pow, -2, 3, 0, -8}, {catalogue.Pow, -2, 0.5, 0, n}, {catalogue.Pow, 1, n, 0, 1}, {catalogue.Pow, n, 0, 0, 1},
		{catalogue.FMA, 2, 3, 4, 10}, {catalogue.Lerp, 2, 10, 0.25, 4}, {catalogue.Lerp, 2, 10, 1, 10}, {catalogue.Lerp, 2, 10, -1, -6},
		{catalogue.Less, 1, 2, 0, 1}, {catalogue.Less, 2, 2, 0, 0}, {catalogue.Less, -inf, inf, 0, 1}, {catalogue.Less, n, 1, 0, 0}, {catalogue.Less, 1, n, 0, 0},
		{catalogue.LessEqual, 2, 2, 0, 1}, {catalogue.LessEqual, 3, 2, 0, 0}, {catalogue.LessEqual, inf, inf, 0, 1}, {catalogue.LessEqual, n, n, 0, 0},
		{catalogue.Equal, 2, 2, 0, 1}, {catalogue.Equal, 0, math.Copysign(0, -1), 0, 1}, {catalogue.Equal, 1, 2, 0, 0}, {catalogue.Equal, n, n, 0, 0},
		{catalogue.Select, 1, 2, 3, 2}, {catalogue.Select, -0.5, 2, n, 2}, {catalogue.Select, 0, inf, 3, 3}, {catalogue.Select, math.Copysign(0, -1), n, 3, 3},
		{catalogue.Select, n, 2, 3, 2}, {catalogue.Select, inf, 2, n, 2},
	} {
		args := []reference.Array{vec(c.a), vec(c.b), vec(c.c)}[:len(c.e.Inputs)]
		near(t, []float64{c.want}, eval(t, c.e, nil, nil, args...).Data, c.e.Name)
	}
}

func TestBroadcastReference(t *testing.T) {
	got := eval(t, catalogue.Sub, nil, nil, arr([]int{2, 1}, 10, 20), vec(1, 2, 3))
	require.Equal(t, []int{2, 3}, got.Shape)
	require.Equal(t, []float64{9, 8, 7, 19, 18, 17}, got.Data)
	require.Empty(t, eval(t, catalogue.Add, nil, nil, arr([]int{0, 3}), vec(1, 2, 3)).Data)
}

func TestReduceReferences(t *testing.T) {
	n := math.NaN()
	x := arr([]int{2, 3}, 1, -5, 2, 4, 4, -4)
	for _, c := range []struct {
		e          *program.Entry
		all, empty float64
		last       []float64
	}{
		{catalogue.Sum, 2, 0, []float64{-2, 4}}, {catalogue.Mean, 1.0 / 3, n, []float64{-2.0 / 3, 4.0 / 3}},
		{catalogue.NormL1, 20, 0, []float64{8, 12}}, {catalogue.NormL2, math.Sqrt(78), 0, []float64{math.Sqrt(30), math.Sqrt(48)}}, {catalogue.NormLInf, 5, 0, []float64{5, 4}},
		{catalogue.Max, 4, n, []float64{2, 4}}, {catalogue.Min, -5, n, []float64{-5, -4}}, {catalogue.ArgMax, 3, n, []float64{2, 0}}, {catalogue.ArgMin, 1, n, []float64{1, 2}},
	} {
		near(t, []float64{c.all}, eval(t, c.e, compute.AllAxes, nil, x).Data, c.e.Name)
		near(t, c.last, eval(t, c.e, compute.LastAxis, nil, x).Data, c.e.Name)
		if _, err := c.e.Check(in(program.F32(0)), program.Attr{Options: compute.AllAxes}); err == nil {
			near(t, []float64{c.empty}, eval(t, c.e, compute.AllAxes, nil, vec()).Data, c.e.Name)
			near(t, []float64{c.empty, c.empty}, eval(t, c.e, compute.LastAxis, nil, arr([]int{2, 0})).Data, c.e.Name)
		}
	}
	near(t, []float64{-2, 12}, eval(t, catalogue.DotProduct, compute.LastAxis, nil, x, arr([]int{2, 3}, 2, 0, -2, 1, 2, 0)).Data, "dot")

	// Ties, NaN and signed zeros.
	minusZero := math.Copysign(0, -1)
	near(t, []float64{1}, eval(t, catalogue.ArgMax, compute.AllAxes, nil, vec(1, 7, 7, 7)).Data, "ties")
	near(t, []float64{0}, eval(t, catalogue.ArgMax, compute.AllAxes, nil, vec(minusZero, 0)).Data, "zeros")
	near(t, []float64{0}, eval(t, catalogue.ArgMin, compute.AllAxes, nil, vec(0, minusZero)).Data, "zeros")
	near(t, []float64{2}, eval(t, catalogue.ArgMax, compute.AllAxes, nil, vec(1, inf, n, 7, n)).Data, "NaN")
	near(t, []float64{2}, eval(t, catalogue.ArgMin, compute.AllAxes, nil, vec(1, -inf, n, 7)).Data, "NaN")
	near(t, []float64{0}, eval(t, catalogue.ArgMax, compute.AllAxes, nil, vec(-inf, -inf)).Data, "all −Inf")
	for _, e := range []*program.Entry{catalogue.Max, catalogue.Min, catalogue.NormLInf, catalogue.Sum} {
		near(t, []float64{n}, eval(t, e, compute.AllAxes, nil, vec(1, n, inf)).Data, e.Name)
	}
	near(t, []float64{inf}, eval(t, catalogue.NormL2, compute.AllAxes, nil, vec(1e20, 1)).Data, "squares beyond float32")
}

func TestRowReferences(t *testing.T) {
	n := math.NaN()
	x := arr([]int{2, 3}, 1, 2, 3, 0, 0, 0)
	near(t, []float64{0.09003057317038046, 0.24472847105479764, 0.6652409557748219, 1.0 / 3, 1.0 / 3, 1.0 / 3}, eval(t, catalogue.Softmax, nil, nil, x).Data, "softmax")
	near(t, []float64{-2.4076059644443806, -1.4076059644443804, -0.4076059644443804, -math.Log(3), -math.Log(3), -math.Log(3)},
		eval(t, catalogue.LogSoftmax, nil, nil, x).Data, "log_softmax")
	s := math.Sqrt(2.0 / 3)
	near(t, []float64{10 - 2/s, 20, 30 + 2/s}, eval(t, catalogue.LayerNorm, nil, []float32{0}, arr([]int{1, 3}, 1, 2, 3), vec(2, 2, 2), vec(10, 20, 30)).Data, "layer_norm")
	near(t, []float64{10, 20, 30}, eval(t, catalogue.LayerNorm, nil, nil, vec(5, 5, 5), vec(2, 2, 2), vec(10, 20, 30)).Data, "a constant row")
	near(t, []float64{3 / math.Sqrt(12.5), -8 / math.Sqrt(12.5)}, eval(t, catalogue.RMSNorm, nil, []float32{0}, vec(3, 4), vec(1, -2)).Data, "rms_norm")
	near(t, []float64{n, n}, eval(t, catalogue.Softmax, nil, nil, vec(-inf, -inf)).Data, "all −Inf")
	near(t, []float64{n, n}, eval(t, catalogue.Softmax, nil, nil, vec(inf, 1)).Data, "+Inf")
	near(t, []float64{0, 1}, eval(t, catalogue.Softmax, nil, nil, vec(-inf, 1)).Data, "one −Inf")
	near(t, []float64{1, 0}, eval(t, catalogue.Softmax, nil, nil, vec(1e4, -1e4)).Data, "large")
	require.Empty(t, eval(t, catalogue.Softmax, nil, nil, arr([]int{3, 0})).Data)
}

func TestMoveReferences(t *testing.T) {
	x := arr([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	near(t, []float64{1, 4, 2, 5, 3, 6}, eval(t, catalogue.Transpose, nil, nil, x).Data, "transpose")
	near(t, []float64{6, 4, 3, 1}, eval(t, catalogue.Slice, compute.SliceOptions{Start: []int{1, 2}, Size: []int{2, 2}, Step: []int{-1, -2}}, nil, x).Data, "slice")
	near(t, []float64{9, 9, 9, 9, 9, 1, 2, 3, 9, 4, 5, 6}, eval(t, catalogue.Pad, compute.PadOptions{Before: []int{1, 1}, After: []int{0, 0}, Value: 9}, nil, x).Data, "pad")
	near(t, []float64{1, 2, 3, 7, 4, 5, 6, 8}, eval(t, catalogue.Concat, compute.ConcatOptions{Axis: 1}, nil, x, arr([]int{2, 1}, 7, 8)).Data, "concat")
	n := math.NaN()
	near(t, []float64{4, 5, 6, n, n, n, 1, 2, 3, n, n, n}, eval(t, catalogue.Embedding, nil, nil, x, vec(1, -1, 0, 2)).Data, "embedding")
	near(t, x.Data, eval(t, catalogue.Copy, nil, nil, x).Data, "copy")
	near(t, x.Data, eval(t, catalogue.Reshape, compute.ReshapeOptions{Shape: []int{-1}}, nil, x).Data, "reshape")
	near(t, []float64{7, 7}, eval(t, catalogue.Fill, compute.FillOptions{Shape: []int{2}}, []float32{7}).Data, "fill")
}

func random(r *rand.Rand, shape ...int) reference.Array {
	a := reference.Array{Shape: shape, Data: make([]float64, program.Len(shape))}
	for i := range a.Data {
		a.Data[i] = 2*r.Float64() - 1
	}
	return a
}

func fresh(t *testing.T) *rand.Rand {
	return testseed.Rand(t)
}

// Matrices obey their algebra.
func TestMatrixReferences(t *testing.T) {
	near(t, []float64{11, 14, 21, 28}, eval(t, catalogue.MatMul, nil, nil, arr([]int{2, 2}, 1, 2, 3, 4), arr([]int{2, 2}, 1, 2, 4, 5), vec(2, 2)).Data, "with bias")
	r := fresh(t)
	a, b := random(r, 4, 5), random(r, 5, 3)
	at, bt := eval(t, catalogue.Transpose, nil, nil, a), eval(t, catalogue.Transpose, nil, nil, b)
	c := eval(t, catalogue.MatMul, nil, nil, a, b)
	near(t, c.Data, eval(t, catalogue.MatMul, compute.MatMulOptions{TransA: true}, nil, at, b).Data, "transposed a")
	near(t, c.Data, eval(t, catalogue.MatMul, compute.MatMulOptions{TransB: true}, nil, a, bt).Data, "transposed b")
	near(t, c.Data, eval(t, catalogue.MatMul, compute.MatMulOptions{TransA: true, TransB: true}, nil, at, bt).Data, "both transposed")
	near(t, eval(t, catalogue.Transpose, nil, nil, c).Data, eval(t, catalogue.MatMul, nil, nil, bt, at).Data, "(ab)ᵀ = bᵀaᵀ")
	near(t, eval(t, catalogue.Tanh, nil, nil, c).Data, eval(t, catalogue.MatMul, compute.MatMulOptions{Act: compute.Tanh}, nil, a, b).Data, "activation")
	x := random(r, 5)
	near(t, eval(t, catalogue.MatMul, nil, nil, a, arr([]int{5, 1}, x.Data...)).Data, eval(t, catalogue.MatVec, nil, nil, a, x).Data, "matvec")
	batch := eval(t, catalogue.Concat, compute.ConcatOptions{}, nil, a, random(r, 4, 5))
	batch.Shape = []int{2, 4, 5}
	shared := eval(t, catalogue.MatMul, nil, nil, batch, b)
	near(t, c.Data, shared.Data[:12], "first of a batch")
	near(t, []float64{5, 6}, eval(t, catalogue.MatMul, nil, nil, arr([]int{1, 0}), arr([]int{0, 2}), vec(5, 6)).Data, "K = 0 gives the bias")
}

func TestWindowReferences(t *testing.T) {
	r := fresh(t)
	near(t, []float64{-8, -8}, eval(t, catalogue.Conv2D, nil, nil, arr([]int{3, 4}, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3), arr([]int{3, 3}, 1, 0, -1, 2, 0, -2, 1, 0, -1)).Data, "Sobel")
	x := random(r, 1, 3, 4, 5)
	w := random(r, 2, 3, 1, 1)
	flat := eval(t, catalogue.MatMul, nil, nil, arr([]int{2, 3}, w.Data...), arr([]int{3, 20}, x.Data...))
	near(t, flat.Data, eval(t, catalogue.Conv2D, nil, nil, x, w).Data, "a 1×1 convolution is a matmul")

	one := arr([]int{3, 1, 2, 2}, .25, .25, .25, .25, .25, .25, .25, .25, .25, .25, .25, .25)
	pooled := eval(t, catalogue.AvgPool2D, compute.PoolOptions{Size: [2]int{2, 2}, Stride: [2]int{1, 2}}, nil, x)
	near(t, pooled.Data, eval(t, catalogue.Conv2D, compute.Conv2DOptions{Groups: 3, Stride: [2]int{1, 2}}, nil, x, one).Data, "average pooling is a depthwise convolution")

	plane := arr([]int{3, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	pad := compute.PoolOptions{Size: [2]int{2, 2}, Pad: [2]int{1, 1}}
	near(t, []float64{1, 3, 7, 9}, eval(t, catalogue.MaxPool2D, pad, nil, plane).Data, "max_pool2d")
	near(t, []float64{1, 2.5, 5.5, 7}, eval(t, catalogue.AvgPool2D, pad, nil, plane).Data, "avg_pool2d counts no padding")
	near(t, []float64{1, 3, 7, 9}, eval(t, catalogue.Conv2D, compute.Conv2DOptions{Stride: [2]int{2, 2}}, nil, plane, arr([]int{1, 1}, 1)).Data, "stride")
	near(t, []float64{10}, eval(t, catalogue.Conv2D, compute.Conv2DOptions{Dilation: [2]int{2, 2}}, nil, plane, arr([]int{2, 2}, 1, 0, 0, 1)).Data, "dilation")
	neg := eval(t, catalogue.Neg, nil, nil, plane)
	near(t, []float64{-1, -2, -4, -5}, eval(t, catalogue.MaxPool2D, pad, nil, neg).Data, "padding never wins")
}

// The yardstick of sums is at least the result, and that of lerp knows that b − a cancels.
func TestMagnitudes(t *testing.T) {
	r := fresh(t)
	for _, e := range []*program.Entry{catalogue.Sum, catalogue.NormL1, catalogue.FMA, catalogue.Lerp, catalogue.MatVec} {
		ops := []reference.Array{random(r, 3, 3), random(r, 3, 3), random(r, 3, 3)}[:len(e.Inputs)]
		if e == catalogue.MatVec {
			ops[1] = random(r, 3)
		}
		types := make([]program.Type, len(ops))
		for i := range ops {
			types[i] = program.F32(ops[i].Shape...)
		}
		a := attr(e, nil)
		out, err := e.Check(types, a)
		require.NoError(t, err)
		want, mag := reference.Of(e, ops, a, out)[0].Data, reference.Magnitudes(e, ops, a, out)[0]
		for i := range want {
			require.GreaterOrEqual(t, mag[i], math.Abs(want[i])-1e-12, e.Name)
		}
	}
	m := reference.Magnitudes(catalogue.Lerp, []reference.Array{vec(5), vec(5), vec(1)}, program.Attr{}, []program.Type{program.F32(1)})[0]
	require.InDelta(t, 15, m[0], 1e-9)
}
