package catalogue_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

func TestInspect(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	x := reference.Array{Shape: []int{2, 4}, Data: []float64{1, nan, inf, nan, -inf, 0, 2, inf}}
	for axis, want := range map[compute.Axis][]float64{
		compute.AllAxes:  {2, 3, 1, 2},
		compute.LastAxis: {2, 1, 1, 2, 0, 2, -1, 0},
	} {
		a := program.Attr{Options: axis}
		out, err := catalogue.Inspect.Check([]program.Type{program.F32(2, 4)}, a)
		require.NoError(t, err)
		require.Equal(t, compute.Int32, out[0].DType)
		require.Equal(t, len(want), out[0].Len())
		require.Equal(t, want, reference.Of(catalogue.Inspect, []reference.Array{x}, a, out)[0].Data)
	}
	out, err := catalogue.Inspect.Check([]program.Type{program.F32(0)}, program.Attr{Options: compute.AllAxes})
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0, -1, -1}, reference.Of(catalogue.Inspect, []reference.Array{{Shape: []int{0}}}, program.Attr{Options: compute.AllAxes}, out)[0].Data)
	_, err = catalogue.Inspect.Check([]program.Type{program.F32()}, program.Attr{Options: compute.LastAxis})
	require.ErrorIs(t, err, compute.ErrShape)
}

func TestTraffic(t *testing.T) {
	i32 := func(shape ...int) program.Type { return program.Type{DType: compute.Int32, Shape: shape} }
	for _, c := range []struct {
		e       *program.Entry
		in, out []program.Type
		want    float64
	}{
		{catalogue.Add, []program.Type{program.F32(8, 4), program.F32(4)}, []program.Type{program.F32(8, 4)}, 4 * (32 + 4 + 32)},
		{catalogue.MatMul, []program.Type{program.F32(3, 5), program.F32(5, 7)}, []program.Type{program.F32(3, 7)}, 4 * (15 + 35 + 21)},
		{catalogue.Embedding, []program.Type{program.F32(1000, 8), i32(3)}, []program.Type{program.F32(3, 8)}, 4 * (24 + 3 + 24)},
		{catalogue.Lookup("kv_append"), []program.Type{program.F32(1, 1000, 2, 4), program.F32(1, 1, 2, 4), i32(1)}, []program.Type{program.F32(1, 1000, 2, 4)}, 2 * 4 * (8 + 1)},
	} {
		require.Equal(t, c.want, c.e.Traffic(c.in, c.out), c.e.Name)
	}
}

// Halves as arrays, and the slack of two devices.
func TestDisagreement(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	halves := reference.ArrayOf([]compute.F16{0, 0x8000, 1, 0x3c00, 0xc000, 0x7bff, 0x7c00, 0xfc00, 0x3555}, []int{9})
	require.Equal(t, []float64{0, 0, 0x1p-24, 1, -2, 65504, inf, -inf, 0.333251953125}, halves.Data)
	require.True(t, math.IsNaN(reference.ArrayOf([]compute.F16{0x7e00}, []int{1}).Data[0]))
	disagree := func(e *program.Entry, d compute.DType, x, y float64) int {
		in := []reference.Array{{Shape: []int{2}, Data: []float64{1, 2}}}
		for len(in) < len(e.Inputs) {
			in = append(in, in[0])
		}
		return reference.Disagreement(e, in, program.Attr{Options: e.Options}, []program.Type{{DType: d, Shape: []int{2}}}, 0, []float64{3, x}, []float64{3, y})
	}
	for _, c := range []struct {
		e    *program.Entry
		d    compute.DType
		x, y float64
		same bool
	}{
		{catalogue.Add, compute.Float32, 4, 4, true}, {catalogue.Add, compute.Float32, 4, 4.0000005, false}, {catalogue.Add, compute.Float32, 0, 1e-40, true},
		{catalogue.Add, compute.Float32, nan, nan, true}, {catalogue.Add, compute.Float32, nan, 4, false}, {catalogue.Add, compute.Float32, inf, -inf, false},
		{catalogue.Add, compute.Float32, inf, 1, false}, {catalogue.Tanh, compute.Float32, 0.5, 0.500003, true}, {catalogue.Tanh, compute.Float32, 0.5, 0.50001, false},
		{catalogue.Exp, compute.Float32, math.MaxFloat32, inf, true}, {catalogue.FMA, compute.Float32, 3, 3.000001, true}, {catalogue.FMA, compute.Float32, 3, 3.00001, false},
		{catalogue.Copy, compute.Float16, 1, 1.0009765625, true}, {catalogue.Copy, compute.Float16, 1, 1.01, false}, {catalogue.ArgMax, compute.Int32, 1, 0, false},
	} {
		require.Equal(t, c.same, disagree(c.e, c.d, c.x, c.y) < 0, "%s %v: %v and %v", c.e.Name, c.d, c.x, c.y)
	}
}
