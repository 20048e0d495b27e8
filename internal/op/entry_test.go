package op_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

func i32(shape ...int) op.Type { return op.Type{DType: compute.Int32, Shape: shape} }
func u32(shape ...int) op.Type { return op.Type{DType: compute.Uint32, Shape: shape} }
func f16(shape ...int) op.Type { return op.Type{DType: compute.Float16, Shape: shape} }

// attr returns the attributes with which an entry is called when a test does not care.
func attr(e *op.Entry, options any) op.Attr {
	a := op.Attr{Options: options}
	if options == nil {
		a.Options = e.Options
	}
	for _, s := range e.Scalars {
		a.Scalars = append(a.Scalars, s.Test[0])
	}
	return a
}

func TestCatalogueIsWellFormed(t *testing.T) {
	methods := map[string]bool{}
	for _, e := range op.All() {
		require.Regexp(t, regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`), e.Name)
		require.Regexp(t, regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`), e.Method, e.Name)
		require.False(t, methods[e.Method], "two entries with method %s", e.Method)
		methods[e.Method] = true
		require.Same(t, e, op.Lookup(e.Name))
		require.NotEmpty(t, e.Doc, e.Name)
		several := len(e.Results) > 0
		require.Equal(t, several, e.Infer == nil, "%s: InferAll for several results", e.Name)
		require.Equal(t, several, e.InferAll != nil, e.Name)
		require.LessOrEqual(t, e.Updates, min(e.ResultCount(), len(e.Inputs)), e.Name)
		require.Equal(t, e.Class.Elementwise(), e.F != nil, "%s: F is for elementwise entries", e.Name)
		require.Equal(t, several, e.RefAll != nil, e.Name)
		require.Equal(t, e.Class.Elementwise() || several, e.Ref == nil, "%s: Ref is for all others", e.Name)
		require.GreaterOrEqual(t, e.Domain[1], e.Domain[0], e.Name)
		for i, in := range e.Inputs {
			require.NotEmpty(t, in.Name, e.Name)
			last := i == len(e.Inputs)-1
			require.True(t, last || !in.Variadic && (!in.Optional || e.Inputs[i+1].Optional), "%s: only trailing inputs are optional", e.Name)
		}
		for _, s := range e.Scalars {
			require.NotEmpty(t, s.Test, "%s: %s has no values to try", e.Name, s.Name)
		}
	}
	require.Nil(t, op.Lookup("no such operation"))
	require.Nil(t, op.Lookup(op.UserKernel.Name), "user kernels are not in the catalogue")
	all := op.All()
	all[0] = nil
	require.NotNil(t, op.All()[0], "All must return a copy")
}

func TestIssueCatalogueIsComplete(t *testing.T) {
	for name := range strings.FieldsSeq(`neg abs sqrt recip exp log log2 sin cos tanh floor ceil round trunc sign relu leaky_relu elu selu
		sigmoid gelu gelu_erf swish hardswish mish softplus clip scale pow_scalar add sub mul div minimum maximum pow fma lerp
		sum mean max min argmax argmin dot norm_l1 norm_l2 norm_linf softmax log_softmax layer_norm rms_norm
		matmul matvec transpose conv2d max_pool2d avg_pool2d embedding concat slice pad copy fill`) {
		require.NotNil(t, op.Lookup(name), name)
	}
}

func TestActivations(t *testing.T) {
	e, err := op.ActivationEntry(compute.NoActivation)
	require.NoError(t, err)
	require.Nil(t, e)
	for a, want := range map[compute.Activation]*op.Entry{compute.ReLU: op.ReLU, compute.GELU: op.GELU, compute.GELUErf: op.GELUErf,
		compute.SiLU: op.Swish, compute.Sigmoid: op.Sigmoid, compute.Tanh: op.Tanh} {
		e, err := op.ActivationEntry(a)
		require.NoError(t, err)
		require.Same(t, want, e)
	}
	_, err = op.ActivationEntry(99)
	require.ErrorIs(t, err, compute.ErrArgument)

	plain := op.ToleranceOf(op.MatMul, op.Attr{Options: compute.MatMulOptions{}})
	require.Equal(t, op.MatMul.Tol, plain)
	wider := op.ToleranceOf(op.MatMul, op.Attr{Options: compute.MatMulOptions{Act: compute.GELU}})
	require.Greater(t, wider.Mag, plain.Mag)
	require.Equal(t, op.GELU.Tol.Abs, wider.Abs)
	require.Greater(t, op.ToleranceOf(op.Conv2D, op.Attr{Options: compute.Conv2DOptions{Act: compute.Tanh}}).Rel, 0.0)
}

// Errors of Check wrap a sentinel and name the operation and the shapes.
func TestCheckErrors(t *testing.T) {
	long := make([]int, op.MaxRank+1)
	for i := range long {
		long[i] = 1
	}
	matmul := compute.MatMulOptions{}
	for _, c := range []struct {
		e    *op.Entry
		in   []op.Type
		a    op.Attr
		want error
	}{
		{op.Add, nil, op.Attr{}, compute.ErrArgument},
		{op.Add, []op.Type{op.F32(1)}, op.Attr{}, compute.ErrArgument},
		{op.Neg, []op.Type{op.F32(1), op.F32(1)}, op.Attr{}, compute.ErrArgument},
		{op.MatMul, []op.Type{op.F32(1, 1), op.F32(1, 1), op.F32(1), op.F32(1)}, op.Attr{Options: matmul}, compute.ErrArgument},
		{op.Concat, nil, op.Attr{Options: compute.ConcatOptions{}}, compute.ErrArgument},
		{op.Neg, []op.Type{i32(3)}, op.Attr{}, compute.ErrDType},
		{op.Embedding, []op.Type{op.F32(3, 3), op.F32(3)}, op.Attr{}, compute.ErrDType},
		{op.Transpose, []op.Type{f16(3, 3)}, attr(op.Transpose, nil), compute.ErrDType},
		{op.Neg, []op.Type{op.F32(long...)}, op.Attr{}, compute.ErrShape},
		{op.Neg, []op.Type{op.F32(3, -1)}, op.Attr{}, compute.ErrShape},
		{op.Neg, []op.Type{op.F32(1<<16, 1<<16)}, op.Attr{}, compute.ErrTooLarge},
		{op.Neg, []op.Type{op.F32(1<<40, 0, 1<<40)}, op.Attr{}, compute.ErrTooLarge},
		{op.Add, []op.Type{op.F32(1<<20, 1), op.F32(1 << 20)}, op.Attr{}, compute.ErrTooLarge},
		{op.Clip, []op.Type{op.F32(3)}, op.Attr{Scalars: []float32{1}}, compute.ErrArgument},
		{op.Neg, []op.Type{op.F32(3)}, op.Attr{Scalars: []float32{1}}, compute.ErrArgument},
		{op.Neg, []op.Type{op.F32(3)}, op.Attr{Options: matmul}, compute.ErrArgument},
		{op.MatMul, []op.Type{op.F32(1, 1), op.F32(1, 1)}, op.Attr{}, compute.ErrArgument},
		{op.MatMul, []op.Type{op.F32(1, 1), op.F32(1, 1)}, op.Attr{Options: &matmul}, compute.ErrArgument},
	} {
		_, err := c.e.Check(c.in, c.a)
		require.ErrorIs(t, err, c.want, "%s %v", c.e.Name, c.in)
		require.Contains(t, err.Error(), c.e.Name)
		require.Contains(t, err.Error(), fmt.Sprint(c.in))
	}
}

// rule is the result, or the error, of one call.
type rule struct {
	e       *op.Entry
	options any
	in      []op.Type
	want    op.Type
	err     error
}

func (r rule) check(t *testing.T) {
	got, err := r.e.Check(r.in, attr(r.e, r.options))
	if r.err != nil {
		require.ErrorIs(t, err, r.err, "%s %v %+v", r.e.Name, r.in, r.options)
		return
	}
	require.NoError(t, err, "%s %v %+v", r.e.Name, r.in, r.options)
	require.Equal(t, r.want.String(), got[0].String(), "%s %v %+v", r.e.Name, r.in, r.options)
}

func in(t ...op.Type) []op.Type { return t }

func TestShapeRules(t *testing.T) {
	none := op.Type{}
	all, last := compute.AllAxes, compute.LastAxis
	conv, pool := func(o compute.Conv2DOptions) any { return o }, func(o compute.PoolOptions) any { return o }
	for _, r := range []rule{
		{op.ReLU, nil, in(op.F32()), op.F32(), nil},
		{op.Add, nil, in(op.F32(2, 1, 4), op.F32(3, 1)), op.F32(2, 3, 4), nil},
		{op.Add, nil, in(op.F32(2), op.F32(3)), none, compute.ErrShape},
		{op.FMA, nil, in(op.F32(0), op.F32(1), op.F32()), op.F32(0), nil},

		{op.Sum, all, in(op.F32(2, 3)), op.F32(), nil},
		{op.Sum, last, in(op.F32(2, 3)), op.F32(2), nil},
		{op.Sum, last, in(op.F32()), none, compute.ErrShape},
		{op.Sum, compute.Axis(7), in(op.F32(2)), none, compute.ErrArgument},
		{op.Sum, all, in(op.F32(0)), op.F32(), nil},
		{op.Max, all, in(op.F32(0)), none, compute.ErrShape},
		{op.Max, last, in(op.F32(5, 0)), none, compute.ErrShape},
		{op.Max, last, in(op.F32(0, 0)), op.F32(0), nil},
		{op.ArgMax, last, in(op.F32(2, 3)), i32(2), nil},
		{op.ArgMin, all, in(op.F32()), i32(), nil},
		{op.NormLInf, all, in(op.F32(0)), op.F32(), nil},
		{op.DotProduct, all, in(op.F32(3), op.F32(4)), none, compute.ErrShape},
		{op.DotProduct, last, in(op.F32(2, 3), op.F32(2, 3)), op.F32(2), nil},

		{op.Softmax, nil, in(op.F32()), none, compute.ErrShape},
		{op.Softmax, nil, in(op.F32(2, 0)), op.F32(2, 0), nil},
		{op.LayerNorm, nil, in(op.F32(2, 3), op.F32(3), op.F32(3)), op.F32(2, 3), nil},
		{op.LayerNorm, nil, in(op.F32(2, 3), op.F32(3), op.F32(2)), none, compute.ErrShape},
		{op.RMSNorm, nil, in(op.F32(2, 3), op.F32(1, 3)), none, compute.ErrShape},

		{op.MatMul, nil, in(op.F32(2, 3), op.F32(3, 4)), op.F32(2, 4), nil},
		{op.MatMul, nil, in(op.F32(2, 3), op.F32(4, 3)), none, compute.ErrShape},
		{op.MatMul, compute.MatMulOptions{TransA: true, TransB: true}, in(op.F32(3, 2), op.F32(4, 3)), op.F32(2, 4), nil},
		{op.MatMul, nil, in(op.F32(5, 2, 3), op.F32(5, 3, 4), op.F32(4)), op.F32(5, 2, 4), nil},
		{op.MatMul, nil, in(op.F32(5, 2, 3), op.F32(3, 4)), op.F32(5, 2, 4), nil},
		{op.MatMul, nil, in(op.F32(2, 3), op.F32(5, 6, 3, 4)), op.F32(5, 6, 2, 4), nil},
		{op.MatMul, nil, in(op.F32(5, 2, 3), op.F32(6, 3, 4)), none, compute.ErrShape},
		{op.MatMul, nil, in(op.F32(1, 2, 3), op.F32(6, 3, 4)), none, compute.ErrShape},
		{op.MatMul, nil, in(op.F32(3), op.F32(3, 4)), none, compute.ErrShape},
		{op.MatMul, nil, in(op.F32(2, 3), op.F32(3, 4), op.F32(1, 4)), none, compute.ErrShape},
		{op.MatMul, nil, in(op.F32(2, 0), op.F32(0, 4)), op.F32(2, 4), nil},
		{op.MatMul, compute.MatMulOptions{Act: 99}, in(op.F32(1, 1), op.F32(1, 1)), none, compute.ErrArgument},
		{op.MatVec, nil, in(op.F32(2, 3), op.F32(3)), op.F32(2), nil},
		{op.MatVec, nil, in(op.F32(2, 3), op.F32(2)), none, compute.ErrShape},

		{op.Conv2D, nil, in(op.F32(5, 6), op.F32(3, 3)), op.F32(3, 4), nil},
		{op.Conv2D, nil, in(op.F32(5, 6), op.F32(1, 1, 3, 3)), none, compute.ErrShape},
		{op.Conv2D, nil, in(op.F32(2, 3, 5, 6), op.F32(4, 3, 2, 1), op.F32(4)), op.F32(2, 4, 4, 6), nil},
		{op.Conv2D, nil, in(op.F32(2, 3, 5, 6), op.F32(4, 2, 2, 1)), none, compute.ErrShape},
		{op.Conv2D, nil, in(op.F32(2, 3, 5, 6), op.F32(4, 3, 2, 1), op.F32(3)), none, compute.ErrShape},
		{op.Conv2D, conv(compute.Conv2DOptions{Stride: [2]int{2, 3}, Pad: [2]int{1, 0}, Dilation: [2]int{2, 1}}), in(op.F32(7, 8), op.F32(3, 2)), op.F32(3, 3), nil},
		{op.Conv2D, conv(compute.Conv2DOptions{Groups: 2}), in(op.F32(1, 4, 3, 3), op.F32(6, 2, 3, 3)), op.F32(1, 6, 1, 1), nil},
		{op.Conv2D, conv(compute.Conv2DOptions{Groups: 3}), in(op.F32(1, 4, 3, 3), op.F32(6, 2, 3, 3)), none, compute.ErrArgument},
		{op.Conv2D, conv(compute.Conv2DOptions{Stride: [2]int{-1, 1}}), in(op.F32(5, 5), op.F32(3, 3)), none, compute.ErrArgument},
		{op.Conv2D, conv(compute.Conv2DOptions{Pad: [2]int{-1, 1}}), in(op.F32(5, 5), op.F32(3, 3)), none, compute.ErrArgument},
		{op.Conv2D, conv(compute.Conv2DOptions{Stride: [2]int{1 << 40, 1}}), in(op.F32(5, 5), op.F32(3, 3)), none, compute.ErrTooLarge},
		{op.Conv2D, nil, in(op.F32(2, 6), op.F32(3, 3)), none, compute.ErrShape},
		{op.Conv2D, nil, in(op.F32(2, 6), op.F32(0, 3)), none, compute.ErrShape},
		{op.Conv2D, conv(compute.Conv2DOptions{Act: 99}), in(op.F32(5, 5), op.F32(3, 3)), none, compute.ErrArgument},
		{op.MaxPool2D, pool(compute.PoolOptions{Size: [2]int{2, 3}}), in(op.F32(4, 5, 6, 7)), op.F32(4, 5, 3, 2), nil},
		{op.MaxPool2D, pool(compute.PoolOptions{Size: [2]int{3, 3}, Stride: [2]int{1, 2}, Pad: [2]int{1, 1}}), in(op.F32(6, 7)), op.F32(6, 4), nil},
		{op.AvgPool2D, pool(compute.PoolOptions{}), in(op.F32(6, 7)), none, compute.ErrArgument},
		{op.AvgPool2D, pool(compute.PoolOptions{Size: [2]int{3, 3}, Pad: [2]int{2, 0}}), in(op.F32(6, 7)), none, compute.ErrArgument},
		{op.AvgPool2D, pool(compute.PoolOptions{Size: [2]int{2, 2}}), in(op.F32(7)), none, compute.ErrShape},
		{op.AvgPool2D, pool(compute.PoolOptions{Size: [2]int{8, 2}}), in(op.F32(6, 7)), none, compute.ErrShape},

		{op.Transpose, nil, in(i32(2, 3, 4)), i32(2, 4, 3), nil},
		{op.Transpose, nil, in(op.F32(3)), none, compute.ErrShape},
		{op.Transpose, compute.TransposeOptions{Perm: []int{2, 0, 1}}, in(op.F32(2, 3, 4)), op.F32(4, 2, 3), nil},
		{op.Transpose, compute.TransposeOptions{Perm: []int{0, 0, 1}}, in(op.F32(2, 3, 4)), none, compute.ErrArgument},
		{op.Transpose, compute.TransposeOptions{Perm: []int{0, 1}}, in(op.F32(2, 3, 4)), none, compute.ErrArgument},
		{op.Transpose, compute.TransposeOptions{Perm: []int{}}, in(op.F32(2, 3)), none, compute.ErrArgument},
		{op.Slice, compute.SliceOptions{Start: []int{1, 3}, Size: []int{2, 2}, Step: []int{1, -2}}, in(op.F32(4, 4)), op.F32(2, 2), nil},
		{op.Slice, compute.SliceOptions{Start: []int{1}, Size: []int{2}}, in(op.F32(4, 4)), none, compute.ErrArgument},
		{op.Slice, compute.SliceOptions{Start: []int{3}, Size: []int{2}}, in(op.F32(4)), none, compute.ErrArgument},
		{op.Slice, compute.SliceOptions{Start: []int{0}, Size: []int{2}, Step: []int{-1}}, in(op.F32(4)), none, compute.ErrArgument},
		{op.Slice, compute.SliceOptions{Start: []int{0}, Size: []int{2}, Step: []int{0}}, in(op.F32(4)), none, compute.ErrArgument},
		{op.Slice, compute.SliceOptions{Start: []int{-1}, Size: []int{0}}, in(op.F32(4)), none, compute.ErrArgument},
		{op.Slice, compute.SliceOptions{Start: []int{1}, Size: []int{2}, Step: []int{1 << 62}}, in(op.F32(4)), none, compute.ErrArgument},
		{op.Slice, compute.SliceOptions{Start: []int{4}, Size: []int{0}}, in(u32(4)), u32(0), nil},
		{op.Pad, compute.PadOptions{Before: []int{1, 0}, After: []int{0, 2}}, in(op.F32(2, 3)), op.F32(3, 5), nil},
		{op.Pad, compute.PadOptions{Before: []int{1}, After: []int{0, 2}}, in(op.F32(2, 3)), none, compute.ErrArgument},
		{op.Pad, compute.PadOptions{Before: []int{-1}, After: []int{0}}, in(op.F32(2)), none, compute.ErrArgument},
		{op.Pad, compute.PadOptions{Before: []int{1 << 30}, After: []int{1 << 30}}, in(op.F32(2)), none, compute.ErrTooLarge},
		{op.Concat, compute.ConcatOptions{Axis: -1}, in(u32(2, 3), u32(2, 0), u32(2, 1)), u32(2, 4), nil},
		{op.Concat, compute.ConcatOptions{}, in(op.F32(2, 3), op.F32(2, 4)), none, compute.ErrShape},
		{op.Concat, compute.ConcatOptions{}, in(op.F32(2, 3), op.F32(2)), none, compute.ErrShape},
		{op.Concat, compute.ConcatOptions{}, in(op.F32(2), i32(2)), none, compute.ErrDType},
		{op.Concat, compute.ConcatOptions{Axis: 2}, in(op.F32(2, 3)), none, compute.ErrArgument},
		{op.Concat, compute.ConcatOptions{}, in(op.F32()), none, compute.ErrArgument},
		{op.Embedding, nil, in(op.F32(9, 4), i32(2, 3)), op.F32(2, 3, 4), nil},
		{op.Embedding, nil, in(op.F32(9), i32(2)), none, compute.ErrShape},
		{op.Embedding, nil, in(op.F32(9, 4), i32()), op.F32(4), nil},
		{op.Copy, nil, in(f16(3)), f16(3), nil},
		{op.Reshape, compute.ReshapeOptions{Shape: []int{3, -1}}, in(f16(2, 6)), f16(3, 4), nil},
		{op.Reshape, compute.ReshapeOptions{}, in(op.F32(1, 1)), op.F32(), nil},
		{op.Reshape, compute.ReshapeOptions{Shape: []int{5}}, in(op.F32(2, 3)), none, compute.ErrShape},
		{op.Reshape, compute.ReshapeOptions{Shape: []int{-1, -1}}, in(op.F32(4)), none, compute.ErrShape},
		{op.Reshape, compute.ReshapeOptions{Shape: []int{4, -1}}, in(op.F32(6)), none, compute.ErrShape},
		{op.Reshape, compute.ReshapeOptions{Shape: []int{0, -1}}, in(op.F32(0)), none, compute.ErrShape}, // any size would do
		{op.Reshape, compute.ReshapeOptions{Shape: []int{1 << 31, 1 << 31}}, in(op.F32(0)), none, compute.ErrTooLarge},
		{op.Reshape, compute.ReshapeOptions{Shape: []int{1, 1, 1, 1, 1, 1, 1, 1, 1}}, in(op.F32(1)), none, compute.ErrShape},
		{op.Fill, compute.FillOptions{Shape: []int{2, 3}}, nil, op.F32(2, 3), nil},
		{op.Fill, compute.FillOptions{}, nil, op.F32(), nil},
		{op.Fill, compute.FillOptions{Shape: []int{-2}}, nil, none, compute.ErrShape},
		{op.Fill, compute.FillOptions{Shape: []int{1 << 31}}, nil, none, compute.ErrTooLarge},
		{op.Fill, compute.FillOptions{Shape: []int{1, 1, 1, 1, 1, 1, 1, 1, 1}}, nil, none, compute.ErrShape},
		{op.Cast, compute.CastOptions{To: compute.Float16}, in(op.F32(3)), f16(3), nil},
		{op.Cast, compute.CastOptions{To: compute.Int32}, in(op.F32(3)), none, compute.ErrDType},
		{op.Cast, compute.CastOptions{To: compute.Float32}, in(i32(3)), none, compute.ErrDType},
	} {
		r.check(t)
	}
	for _, eps := range []float32{-1, nan} {
		_, err := op.RMSNorm.Check(in(op.F32(2, 3), op.F32(3)), op.Attr{Scalars: []float32{eps}})
		require.ErrorIs(t, err, compute.ErrArgument)
	}
}
