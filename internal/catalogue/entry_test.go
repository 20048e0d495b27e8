package catalogue_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func i32(shape ...int) program.Type { return program.Type{DType: compute.Int32, Shape: shape} }
func u32(shape ...int) program.Type { return program.Type{DType: compute.Uint32, Shape: shape} }
func f16(shape ...int) program.Type { return program.Type{DType: compute.Float16, Shape: shape} }

// attr returns the attributes with which an entry is called when a test does not care.
func attr(e *program.Entry, options any) program.Attr {
	a := program.Attr{Options: options}
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
	for _, e := range catalogue.All() {
		require.Regexp(t, regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`), e.Name)
		require.Regexp(t, regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`), e.Method, e.Name)
		require.False(t, methods[e.Method], "two entries with method %s", e.Method)
		methods[e.Method] = true
		require.Same(t, e, catalogue.Lookup(e.Name))
		require.NotEmpty(t, e.Doc, e.Name)
		several := len(e.Results) > 0
		require.Equal(t, several, e.Infer == nil, "%s: InferAll for several results", e.Name)
		require.Equal(t, several, e.InferAll != nil, e.Name)
		require.LessOrEqual(t, e.Updates, min(e.ResultCount(), len(e.Inputs)), e.Name)
		require.Equal(t, e.Class.Elementwise(), e.F != nil, "%s: F is for elementwise entries", e.Name)
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
	require.Nil(t, catalogue.Lookup("no such operation"))
	require.Nil(t, catalogue.Lookup(program.UserKernel.Name), "user kernels are not in the catalogue")
	all := catalogue.All()
	all[0] = nil
	require.NotNil(t, catalogue.All()[0], "All must return a copy")
}

func TestIssueCatalogueIsComplete(t *testing.T) {
	for name := range strings.FieldsSeq(`neg abs sqrt recip exp log log2 sin cos tanh floor ceil round trunc sign relu leaky_relu elu selu
		sigmoid gelu gelu_erf silu hardswish mish softplus clip scale pow_scalar add sub mul div minimum maximum pow fma lerp
		sum mean max min argmax argmin dot norm_l1 norm_l2 norm_linf softmax log_softmax layer_norm rms_norm
		matmul matvec transpose conv2d max_pool2d avg_pool2d embedding concat slice pad copy fill`) {
		require.NotNil(t, catalogue.Lookup(name), name)
	}
}

func TestActivations(t *testing.T) {
	e, err := catalogue.ActivationEntry(compute.NoActivation)
	require.NoError(t, err)
	require.Nil(t, e)
	for a, want := range map[compute.Activation]*program.Entry{compute.ReLU: catalogue.ReLU, compute.GELU: catalogue.GELU, compute.GELUErf: catalogue.GELUErf,
		compute.SiLU: catalogue.SiLU, compute.Sigmoid: catalogue.Sigmoid, compute.Tanh: catalogue.Tanh} {
		e, err := catalogue.ActivationEntry(a)
		require.NoError(t, err)
		require.Same(t, want, e)
	}
	_, err = catalogue.ActivationEntry(99)
	require.ErrorIs(t, err, compute.ErrArgument)

	plain := catalogue.ToleranceOf(catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{}})
	require.Equal(t, catalogue.MatMul.Tol, plain)
	wider := catalogue.ToleranceOf(catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{Act: compute.GELU}})
	require.Greater(t, wider.Mag, plain.Mag)
	require.Equal(t, catalogue.GELU.Tol.Abs, wider.Abs)
	require.Greater(t, catalogue.ToleranceOf(catalogue.Conv2D, program.Attr{Options: compute.Conv2DOptions{Act: compute.Tanh}}).Rel, 0.0)
}

// Errors of Check wrap a sentinel and name the operation and the shapes.
func TestCheckErrors(t *testing.T) {
	long := make([]int, program.MaxRank+1)
	for i := range long {
		long[i] = 1
	}
	matmul := compute.MatMulOptions{}
	for _, c := range []struct {
		e    *program.Entry
		in   []program.Type
		a    program.Attr
		want error
	}{
		{catalogue.Add, nil, program.Attr{}, compute.ErrArgument},
		{catalogue.Add, []program.Type{program.F32(1)}, program.Attr{}, compute.ErrArgument},
		{catalogue.Neg, []program.Type{program.F32(1), program.F32(1)}, program.Attr{}, compute.ErrArgument},
		{catalogue.MatMul, []program.Type{program.F32(1, 1), program.F32(1, 1), program.F32(1), program.F32(1)}, program.Attr{Options: matmul}, compute.ErrArgument},
		{catalogue.Concat, nil, program.Attr{Options: compute.ConcatOptions{}}, compute.ErrArgument},
		{catalogue.Neg, []program.Type{i32(3)}, program.Attr{}, compute.ErrDType},
		{catalogue.Embedding, []program.Type{program.F32(3, 3), program.F32(3)}, program.Attr{}, compute.ErrDType},
		{catalogue.Transpose, []program.Type{f16(3, 3)}, attr(catalogue.Transpose, nil), compute.ErrDType},
		{catalogue.Neg, []program.Type{program.F32(long...)}, program.Attr{}, compute.ErrShape},
		{catalogue.Neg, []program.Type{program.F32(3, -1)}, program.Attr{}, compute.ErrShape},
		{catalogue.Neg, []program.Type{program.F32(1<<16, 1<<16)}, program.Attr{}, compute.ErrTooLarge},
		{catalogue.Neg, []program.Type{program.F32(1<<40, 0, 1<<40)}, program.Attr{}, compute.ErrTooLarge},
		{catalogue.Add, []program.Type{program.F32(1<<20, 1), program.F32(1 << 20)}, program.Attr{}, compute.ErrTooLarge},
		{catalogue.Clip, []program.Type{program.F32(3)}, program.Attr{Scalars: []float32{1}}, compute.ErrArgument},
		{catalogue.Neg, []program.Type{program.F32(3)}, program.Attr{Scalars: []float32{1}}, compute.ErrArgument},
		{catalogue.Neg, []program.Type{program.F32(3)}, program.Attr{Options: matmul}, compute.ErrArgument},
		{catalogue.MatMul, []program.Type{program.F32(1, 1), program.F32(1, 1)}, program.Attr{}, compute.ErrArgument},
		{catalogue.MatMul, []program.Type{program.F32(1, 1), program.F32(1, 1)}, program.Attr{Options: &matmul}, compute.ErrArgument},
	} {
		_, err := c.e.Check(c.in, c.a)
		require.ErrorIs(t, err, c.want, "%s %v", c.e.Name, c.in)
		require.Contains(t, err.Error(), c.e.Name)
		require.Contains(t, err.Error(), fmt.Sprint(c.in))
	}
}

// rule is the result, or the error, of one call.
type rule struct {
	e       *program.Entry
	options any
	in      []program.Type
	want    program.Type
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

func in(t ...program.Type) []program.Type { return t }

func TestShapeRules(t *testing.T) {
	none := program.Type{}
	all, last := compute.AllAxes, compute.LastAxis
	conv, pool := func(o compute.Conv2DOptions) any { return o }, func(o compute.PoolOptions) any { return o }
	for _, r := range []rule{
		{catalogue.ReLU, nil, in(program.F32()), program.F32(), nil},
		{catalogue.Add, nil, in(program.F32(2, 1, 4), program.F32(3, 1)), program.F32(2, 3, 4), nil},
		{catalogue.Add, nil, in(program.F32(2), program.F32(3)), none, compute.ErrShape},
		{catalogue.FMA, nil, in(program.F32(0), program.F32(1), program.F32()), program.F32(0), nil},

		{catalogue.Sum, all, in(program.F32(2, 3)), program.F32(), nil},
		{catalogue.Sum, last, in(program.F32(2, 3)), program.F32(2), nil},
		{catalogue.Sum, last, in(program.F32()), none, compute.ErrShape},
		{catalogue.Sum, compute.Axis(7), in(program.F32(2)), none, compute.ErrArgument},
		{catalogue.Sum, all, in(program.F32(0)), program.F32(), nil},
		{catalogue.Max, all, in(program.F32(0)), none, compute.ErrShape},
		{catalogue.Max, last, in(program.F32(5, 0)), none, compute.ErrShape},
		{catalogue.Max, last, in(program.F32(0, 0)), program.F32(0), nil},
		{catalogue.ArgMax, last, in(program.F32(2, 3)), i32(2), nil},
		{catalogue.ArgMin, all, in(program.F32()), i32(), nil},
		{catalogue.NormLInf, all, in(program.F32(0)), program.F32(), nil},
		{catalogue.DotProduct, all, in(program.F32(3), program.F32(4)), none, compute.ErrShape},
		{catalogue.DotProduct, last, in(program.F32(2, 3), program.F32(2, 3)), program.F32(2), nil},

		{catalogue.Softmax, nil, in(program.F32()), none, compute.ErrShape},
		{catalogue.Softmax, nil, in(program.F32(2, 0)), program.F32(2, 0), nil},
		{catalogue.LayerNorm, nil, in(program.F32(2, 3), program.F32(3), program.F32(3)), program.F32(2, 3), nil},
		{catalogue.LayerNorm, nil, in(program.F32(2, 3), program.F32(3), program.F32(2)), none, compute.ErrShape},
		{catalogue.RMSNorm, nil, in(program.F32(2, 3), program.F32(1, 3)), none, compute.ErrShape},

		{catalogue.MatMul, nil, in(program.F32(2, 3), program.F32(3, 4)), program.F32(2, 4), nil},
		{catalogue.MatMul, nil, in(program.F32(2, 3), program.F32(4, 3)), none, compute.ErrShape},
		{catalogue.MatMul, compute.MatMulOptions{TransA: true, TransB: true}, in(program.F32(3, 2), program.F32(4, 3)), program.F32(2, 4), nil},
		{catalogue.MatMul, nil, in(program.F32(5, 2, 3), program.F32(5, 3, 4), program.F32(4)), program.F32(5, 2, 4), nil},
		{catalogue.MatMul, nil, in(program.F32(5, 2, 3), program.F32(3, 4)), program.F32(5, 2, 4), nil},
		{catalogue.MatMul, nil, in(program.F32(2, 3), program.F32(5, 6, 3, 4)), program.F32(5, 6, 2, 4), nil},
		{catalogue.MatMul, nil, in(program.F32(5, 2, 3), program.F32(6, 3, 4)), none, compute.ErrShape},
		{catalogue.MatMul, nil, in(program.F32(1, 2, 3), program.F32(6, 3, 4)), none, compute.ErrShape},
		{catalogue.MatMul, nil, in(program.F32(3), program.F32(3, 4)), none, compute.ErrShape},
		{catalogue.MatMul, nil, in(program.F32(2, 3), program.F32(3, 4), program.F32(1, 4)), none, compute.ErrShape},
		{catalogue.MatMul, nil, in(program.F32(2, 0), program.F32(0, 4)), program.F32(2, 4), nil},
		{catalogue.MatMul, compute.MatMulOptions{Act: 99}, in(program.F32(1, 1), program.F32(1, 1)), none, compute.ErrArgument},
		{catalogue.MatVec, nil, in(program.F32(2, 3), program.F32(3)), program.F32(2), nil},
		{catalogue.MatVec, nil, in(program.F32(2, 3), program.F32(2)), none, compute.ErrShape},

		{catalogue.Conv2D, nil, in(program.F32(5, 6), program.F32(3, 3)), program.F32(3, 4), nil},
		{catalogue.Conv2D, nil, in(program.F32(5, 6), program.F32(1, 1, 3, 3)), none, compute.ErrShape},
		{catalogue.Conv2D, nil, in(program.F32(2, 3, 5, 6), program.F32(4, 3, 2, 1), program.F32(4)), program.F32(2, 4, 4, 6), nil},
		{catalogue.Conv2D, nil, in(program.F32(2, 3, 5, 6), program.F32(4, 2, 2, 1)), none, compute.ErrShape},
		{catalogue.Conv2D, nil, in(program.F32(2, 3, 5, 6), program.F32(4, 3, 2, 1), program.F32(3)), none, compute.ErrShape},
		{catalogue.Conv2D, conv(compute.Conv2DOptions{Stride: [2]int{2, 3}, Pad: [2]int{1, 0}, Dilation: [2]int{2, 1}}), in(program.F32(7, 8), program.F32(3, 2)), program.F32(3, 3), nil},
		{catalogue.Conv2D, conv(compute.Conv2DOptions{Groups: 2}), in(program.F32(1, 4, 3, 3), program.F32(6, 2, 3, 3)), program.F32(1, 6, 1, 1), nil},
		{catalogue.Conv2D, conv(compute.Conv2DOptions{Groups: 3}), in(program.F32(1, 4, 3, 3), program.F32(6, 2, 3, 3)), none, compute.ErrArgument},
		{catalogue.Conv2D, conv(compute.Conv2DOptions{Stride: [2]int{-1, 1}}), in(program.F32(5, 5), program.F32(3, 3)), none, compute.ErrArgument},
		{catalogue.Conv2D, conv(compute.Conv2DOptions{Pad: [2]int{-1, 1}}), in(program.F32(5, 5), program.F32(3, 3)), none, compute.ErrArgument},
		{catalogue.Conv2D, conv(compute.Conv2DOptions{Stride: [2]int{1 << 40, 1}}), in(program.F32(5, 5), program.F32(3, 3)), none, compute.ErrTooLarge},
		{catalogue.Conv2D, nil, in(program.F32(2, 6), program.F32(3, 3)), none, compute.ErrShape},
		{catalogue.Conv2D, nil, in(program.F32(2, 6), program.F32(0, 3)), none, compute.ErrShape},
		{catalogue.Conv2D, conv(compute.Conv2DOptions{Act: 99}), in(program.F32(5, 5), program.F32(3, 3)), none, compute.ErrArgument},
		{catalogue.MaxPool2D, pool(compute.PoolOptions{Size: [2]int{2, 3}}), in(program.F32(4, 5, 6, 7)), program.F32(4, 5, 3, 2), nil},
		{catalogue.MaxPool2D, pool(compute.PoolOptions{Size: [2]int{3, 3}, Stride: [2]int{1, 2}, Pad: [2]int{1, 1}}), in(program.F32(6, 7)), program.F32(6, 4), nil},
		{catalogue.AvgPool2D, pool(compute.PoolOptions{}), in(program.F32(6, 7)), none, compute.ErrArgument},
		{catalogue.AvgPool2D, pool(compute.PoolOptions{Size: [2]int{3, 3}, Pad: [2]int{2, 0}}), in(program.F32(6, 7)), none, compute.ErrArgument},
		{catalogue.AvgPool2D, pool(compute.PoolOptions{Size: [2]int{2, 2}}), in(program.F32(7)), none, compute.ErrShape},
		{catalogue.AvgPool2D, pool(compute.PoolOptions{Size: [2]int{8, 2}}), in(program.F32(6, 7)), none, compute.ErrShape},

		{catalogue.Transpose, nil, in(i32(2, 3, 4)), i32(2, 4, 3), nil},
		{catalogue.Transpose, nil, in(program.F32(3)), none, compute.ErrShape},
		{catalogue.Transpose, compute.TransposeOptions{Perm: []int{2, 0, 1}}, in(program.F32(2, 3, 4)), program.F32(4, 2, 3), nil},
		{catalogue.Transpose, compute.TransposeOptions{Perm: []int{0, 0, 1}}, in(program.F32(2, 3, 4)), none, compute.ErrArgument},
		{catalogue.Transpose, compute.TransposeOptions{Perm: []int{0, 1}}, in(program.F32(2, 3, 4)), none, compute.ErrArgument},
		{catalogue.Transpose, compute.TransposeOptions{Perm: []int{}}, in(program.F32(2, 3)), none, compute.ErrArgument},
		{catalogue.Slice, compute.SliceOptions{Start: []int{1, 3}, Size: []int{2, 2}, Step: []int{1, -2}}, in(program.F32(4, 4)), program.F32(2, 2), nil},
		{catalogue.Slice, compute.SliceOptions{Start: []int{1}, Size: []int{2}}, in(program.F32(4, 4)), none, compute.ErrArgument},
		{catalogue.Slice, compute.SliceOptions{Start: []int{3}, Size: []int{2}}, in(program.F32(4)), none, compute.ErrArgument},
		{catalogue.Slice, compute.SliceOptions{Start: []int{0}, Size: []int{2}, Step: []int{-1}}, in(program.F32(4)), none, compute.ErrArgument},
		{catalogue.Slice, compute.SliceOptions{Start: []int{0}, Size: []int{2}, Step: []int{0}}, in(program.F32(4)), none, compute.ErrArgument},
		{catalogue.Slice, compute.SliceOptions{Start: []int{-1}, Size: []int{0}}, in(program.F32(4)), none, compute.ErrArgument},
		{catalogue.Slice, compute.SliceOptions{Start: []int{1}, Size: []int{2}, Step: []int{1 << 62}}, in(program.F32(4)), none, compute.ErrArgument},
		{catalogue.Slice, compute.SliceOptions{Start: []int{4}, Size: []int{0}}, in(u32(4)), u32(0), nil},
		{catalogue.Pad, compute.PadOptions{Before: []int{1, 0}, After: []int{0, 2}}, in(program.F32(2, 3)), program.F32(3, 5), nil},
		{catalogue.Pad, compute.PadOptions{Before: []int{1}, After: []int{0, 2}}, in(program.F32(2, 3)), none, compute.ErrArgument},
		{catalogue.Pad, compute.PadOptions{Before: []int{-1}, After: []int{0}}, in(program.F32(2)), none, compute.ErrArgument},
		{catalogue.Pad, compute.PadOptions{Before: []int{1 << 30}, After: []int{1 << 30}}, in(program.F32(2)), none, compute.ErrTooLarge},
		{catalogue.Concat, compute.ConcatOptions{Axis: -1}, in(u32(2, 3), u32(2, 0), u32(2, 1)), u32(2, 4), nil},
		{catalogue.Concat, compute.ConcatOptions{}, in(program.F32(2, 3), program.F32(2, 4)), none, compute.ErrShape},
		{catalogue.Concat, compute.ConcatOptions{}, in(program.F32(2, 3), program.F32(2)), none, compute.ErrShape},
		{catalogue.Concat, compute.ConcatOptions{}, in(program.F32(2), i32(2)), none, compute.ErrDType},
		{catalogue.Concat, compute.ConcatOptions{Axis: 2}, in(program.F32(2, 3)), none, compute.ErrArgument},
		{catalogue.Concat, compute.ConcatOptions{}, in(program.F32()), none, compute.ErrArgument},
		{catalogue.Embedding, nil, in(program.F32(9, 4), i32(2, 3)), program.F32(2, 3, 4), nil},
		{catalogue.Embedding, nil, in(program.F32(9), i32(2)), none, compute.ErrShape},
		{catalogue.Embedding, nil, in(program.F32(9, 4), i32()), program.F32(4), nil},
		{catalogue.Copy, nil, in(f16(3)), f16(3), nil},
		{catalogue.Reshape, compute.ReshapeOptions{Shape: []int{3, -1}}, in(f16(2, 6)), f16(3, 4), nil},
		{catalogue.Reshape, compute.ReshapeOptions{}, in(program.F32(1, 1)), program.F32(), nil},
		{catalogue.Reshape, compute.ReshapeOptions{Shape: []int{5}}, in(program.F32(2, 3)), none, compute.ErrShape},
		{catalogue.Reshape, compute.ReshapeOptions{Shape: []int{-1, -1}}, in(program.F32(4)), none, compute.ErrShape},
		{catalogue.Reshape, compute.ReshapeOptions{Shape: []int{4, -1}}, in(program.F32(6)), none, compute.ErrShape},
		{catalogue.Reshape, compute.ReshapeOptions{Shape: []int{0, -1}}, in(program.F32(0)), none, compute.ErrShape}, // any size would do
		{catalogue.Reshape, compute.ReshapeOptions{Shape: []int{1 << 31, 1 << 31}}, in(program.F32(0)), none, compute.ErrTooLarge},
		{catalogue.Reshape, compute.ReshapeOptions{Shape: []int{1, 1, 1, 1, 1, 1, 1, 1, 1}}, in(program.F32(1)), none, compute.ErrShape},
		{catalogue.Fill, compute.FillOptions{Shape: []int{2, 3}}, nil, program.F32(2, 3), nil},
		{catalogue.Fill, compute.FillOptions{}, nil, program.F32(), nil},
		{catalogue.Fill, compute.FillOptions{Shape: []int{-2}}, nil, none, compute.ErrShape},
		{catalogue.Fill, compute.FillOptions{Shape: []int{1 << 31}}, nil, none, compute.ErrTooLarge},
		{catalogue.Fill, compute.FillOptions{Shape: []int{1, 1, 1, 1, 1, 1, 1, 1, 1}}, nil, none, compute.ErrShape},
		{catalogue.Cast, compute.CastOptions{To: compute.Float16}, in(program.F32(3)), f16(3), nil},
		{catalogue.Cast, compute.CastOptions{To: compute.Int32}, in(program.F32(3)), none, compute.ErrDType},
		{catalogue.Cast, compute.CastOptions{To: compute.Float32}, in(i32(3)), none, compute.ErrDType},
	} {
		r.check(t)
	}
	for _, eps := range []float32{-1, nan} {
		_, err := catalogue.RMSNorm.Check(in(program.F32(2, 3), program.F32(3)), program.Attr{Scalars: []float32{eps}})
		require.ErrorIs(t, err, compute.ErrArgument)
	}
}

// Every entry that is declared is in the list, once.
func TestListIsWhole(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	declared := 0
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR || strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, s := range g.Specs {
				for _, name := range s.(*ast.ValueSpec).Names {
					if name.IsExported() {
						declared++
					}
				}
			}
		}
	}
	require.Len(t, catalogue.All(), declared, "exported variables are entries")
	names := map[string]bool{}
	for _, e := range catalogue.All() {
		require.False(t, names[e.Name], "two entries named %s", e.Name)
		names[e.Name] = true
	}
}
