package cpu_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// The product of matrices that a convolution usually is would multiply weights with zeros of the padding; weights that are
// not finite take another way.
func TestConvolutionWithInfiniteWeights(t *testing.T) {
	d := open(t)
	x, w := random(t, 2*3*9*7), random(t, 8*3*3*3)
	w[4], w[40], w[100] = float32(math.Inf(1)), float32(math.NaN()), float32(math.Inf(-1))
	shapes := []program.Type{program.F32(2, 3, 9, 7), program.F32(8, 3, 3, 3)}
	for _, o := range []compute.Conv2DOptions{
		{Pad: [2]int{1, 1}},
		{Pad: [2]int{2, 3}, Stride: [2]int{2, 1}, Act: compute.ReLU},
		{Dilation: [2]int{2, 3}, Pad: [2]int{1, 2}, Stride: [2]int{1, 2}},
	} {
		p, a := &program.Program{}, program.Attr{Options: o}
		y, err := p.Apply(catalogue.Conv2D, a, p.Add(shapes[0], program.FromHost), p.Add(shapes[1], program.FromHost))
		require.NoError(t, err)
		p.Read = []program.Slot{y}
		out := p.Values[y].Type
		got := make([]float32, out.Len())
		e, err := program.ExecutorOf(d).Compile(t.Context(), p)
		require.NoError(t, err)
		require.NoError(t, wait(e.Start(&program.IO{Host: []any{x, w}, Read: []any{got}})))
		require.NoError(t, e.Close())
		want := reference.Of(catalogue.Conv2D, []reference.Array{array(shapes[0], x), array(shapes[1], w)}, a, []program.Type{out})[0].Data
		special := 0
		for i, v := range want {
			switch {
			case v != v:
				special++
				require.True(t, got[i] != got[i], "%+v: element %d is %v, want NaN", o, i, got[i])
			case math.IsInf(v, 0):
				special++
				require.Equal(t, float32(v), got[i], "%+v: element %d", o, i)
			default:
				require.InDelta(t, v, got[i], 1e-5, "%+v: element %d", o, i)
			}
		}
		require.NotZero(t, special)
		require.Less(t, special, len(want))
	}
}

// array is x as an operand of a reference.
func array(t program.Type, x []float32) reference.Array { return reference.ArrayOf(x, t.Shape) }
