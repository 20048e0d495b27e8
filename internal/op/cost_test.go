package op_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

func TestFlops(t *testing.T) {
	half := func(shape ...int) op.Type { return op.Type{DType: compute.Float16, Shape: shape} }
	for _, c := range []struct {
		e    *op.Entry
		in   []op.Type
		a    op.Attr
		want float64
	}{
		{op.Add, []op.Type{op.F32(3, 1), op.F32(4)}, op.Attr{}, 12},
		{op.Exp, []op.Type{op.F32(5)}, op.Attr{}, 50},
		{op.Copy, []op.Type{op.F32(5)}, op.Attr{}, 0},
		{op.Sum, []op.Type{op.F32(5, 6)}, op.Attr{Options: compute.LastAxis}, 30},
		{op.Softmax, []op.Type{op.F32(5, 6)}, op.Attr{}, 240},
		{op.MatMul, []op.Type{op.F32(7, 3, 5), op.F32(7, 5, 2)}, op.Attr{Options: compute.MatMulOptions{}}, 2 * 7 * 3 * 5 * 2},
		{op.MatMul, []op.Type{op.F32(5, 3), op.F32(2, 5)}, op.Attr{Options: compute.MatMulOptions{TransA: true, TransB: true}}, 2 * 3 * 5 * 2},
		{op.MatMul, []op.Type{op.F32(3, 0), op.F32(0, 2)}, op.Attr{Options: compute.MatMulOptions{}}, 0},
		{op.MatVec, []op.Type{half(8, 5), op.F32(3, 5)}, op.Attr{}, 2 * 8 * 5 * 3},
		{op.VecMat, []op.Type{op.F32(5), half(5, 8)}, op.Attr{}, 2 * 8 * 5},
		{op.QKV, []op.Type{op.F32(2, 4), half(8, 4), half(2, 4), half(2, 4)}, op.Attr{}, 2 * 2 * 4 * 12},
		{op.Conv2D, []op.Type{op.F32(2, 4, 5, 5), op.F32(6, 2, 3, 3)}, op.Attr{Options: compute.Conv2DOptions{Groups: 2}}, 2 * 2 * 6 * 9 * 2 * 9},
		{op.Conv2D, []op.Type{op.F32(5, 5), op.F32(3, 3)}, op.Attr{Options: compute.Conv2DOptions{}}, 2 * 9 * 9},
		{op.QuantMatMulRowMajor, []op.Type{op.F32(2, 64), {DType: compute.Uint32, Shape: []int{7, 12}}},
			op.Attr{Options: compute.QuantOptions{Format: compute.Q4_0}}, 2 * 2 * 64 * 7},
		{op.Attention, []op.Type{op.F32(2, 3, 4, 8), op.F32(2, 5, 2, 8), op.F32(2, 5, 2, 8)}, op.Attr{Options: compute.AttentionOptions{}},
			4 * 2 * 3 * 4 * 8 * 5},
		{op.Fused, []op.Type{op.F32(2, 3), op.F32(3)}, op.Attr{Scalars: []float32{2}, Options: scaledReLU}, 18},
		{op.Sum, []op.Type{op.F32(4), op.F32(4)}, op.Attr{Options: compute.AllAxes, Scalars: []float32{1}, Prologue: scaledReLU}, 16},
	} {
		out, err := c.e.Check(c.in, c.a)
		require.NoError(t, err, c.e.Name)
		require.Equal(t, c.want, c.e.Flops(c.in, out, c.a), "%s %v", c.e.Name, c.in)
	}
	for _, e := range op.All() {
		require.Equal(t, e.Class == op.Matrix || e == op.Conv2D || e == op.Conv1D || e == op.QKV || e == op.GateUpSwiGLU || e == op.RMSNormMatVec ||
			strings.HasPrefix(e.Name, "quant_") || e == op.AttentionLSE || e == op.AttentionBackward, e.Products(), e.Name)
	}
}
