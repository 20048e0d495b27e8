package catalogue_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// scaledReLU is relu(x0·s + x1).
var scaledReLU = program.Expression{Inputs: 2, Results: []int{4}, Nodes: []program.Node{{Entry: catalogue.Scale, Args: []int{0}},
	{Entry: catalogue.Add, Args: []int{2, 1}}, {Entry: catalogue.ReLU, Args: []int{3}}}}

func TestFlops(t *testing.T) {
	half := func(shape ...int) program.Type { return program.Type{DType: compute.Float16, Shape: shape} }
	for _, c := range []struct {
		e    *program.Entry
		in   []program.Type
		a    program.Attr
		want float64
	}{
		{catalogue.Add, []program.Type{program.F32(3, 1), program.F32(4)}, program.Attr{}, 12},
		{catalogue.Exp, []program.Type{program.F32(5)}, program.Attr{}, 50},
		{catalogue.Copy, []program.Type{program.F32(5)}, program.Attr{}, 0},
		{catalogue.Sum, []program.Type{program.F32(5, 6)}, program.Attr{Options: compute.LastAxis}, 30},
		{catalogue.Softmax, []program.Type{program.F32(5, 6)}, program.Attr{}, 240},
		{catalogue.MatMul, []program.Type{program.F32(7, 3, 5), program.F32(7, 5, 2)}, program.Attr{Options: compute.MatMulOptions{}}, 2 * 7 * 3 * 5 * 2},
		{catalogue.MatMul, []program.Type{program.F32(5, 3), program.F32(2, 5)}, program.Attr{Options: compute.MatMulOptions{TransA: true, TransB: true}}, 2 * 3 * 5 * 2},
		{catalogue.MatMul, []program.Type{program.F32(3, 0), program.F32(0, 2)}, program.Attr{Options: compute.MatMulOptions{}}, 0},
		{catalogue.MatVec, []program.Type{half(8, 5), program.F32(3, 5)}, program.Attr{}, 2 * 8 * 5 * 3},
		{catalogue.VecMat, []program.Type{program.F32(5), half(5, 8)}, program.Attr{}, 2 * 8 * 5},
		{catalogue.QKV, []program.Type{program.F32(2, 4), half(8, 4), half(2, 4), half(2, 4)}, program.Attr{}, 2 * 2 * 4 * 12},
		{catalogue.Conv2D, []program.Type{program.F32(2, 4, 5, 5), program.F32(6, 2, 3, 3)}, program.Attr{Options: compute.Conv2DOptions{Groups: 2}}, 2 * 2 * 6 * 9 * 2 * 9},
		{catalogue.Conv2D, []program.Type{program.F32(5, 5), program.F32(3, 3)}, program.Attr{Options: compute.Conv2DOptions{}}, 2 * 9 * 9},
		{catalogue.QuantMatMulRowMajor, []program.Type{program.F32(2, 64), {DType: compute.Uint32, Shape: []int{7, 12}}},
			program.Attr{Options: compute.QuantOptions{Format: compute.Q4_0}}, 2 * 2 * 64 * 7},
		{catalogue.MatMulExperts, []program.Type{program.F32(2, 8), program.F32(5, 3, 8), {DType: compute.Int32, Shape: []int{2, 4}}},
			program.Attr{Options: compute.ExpertOptions{}}, 2 * 2 * 4 * 3 * 8},
		{catalogue.Attention, []program.Type{program.F32(2, 3, 4, 8), program.F32(2, 5, 2, 8), program.F32(2, 5, 2, 8)}, program.Attr{Options: compute.AttentionOptions{}},
			4 * 2 * 3 * 4 * 8 * 5},
		{program.Fused, []program.Type{program.F32(2, 3), program.F32(3)}, program.Attr{Scalars: []float32{2}, Options: scaledReLU}, 18},
		{catalogue.Sum, []program.Type{program.F32(4), program.F32(4)}, program.Attr{Options: compute.AllAxes, Scalars: []float32{1}, Prologue: scaledReLU}, 16},
	} {
		out, err := c.e.Check(c.in, c.a)
		require.NoError(t, err, c.e.Name)
		require.Equal(t, c.want, c.e.Flops(c.in, out, c.a), "%s %v", c.e.Name, c.in)
	}
	for _, e := range catalogue.All() {
		require.Equal(t, e.Class == program.Matrix || e == catalogue.Conv2D || e == catalogue.Conv1D || e == catalogue.QKV || e == catalogue.GateUpSwiGLU || e == catalogue.RMSNormMatVec ||
			strings.HasPrefix(e.Name, "quant_") || e == catalogue.MatMulExperts || e == catalogue.AttentionLSE || e == catalogue.AttentionBackward, e.Products(), e.Name)
	}
}
