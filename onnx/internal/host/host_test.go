package host

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every code of a small float has a value that encodes to the code again, values between go to the nearer one, and to the even one from the middle.
func TestSmallFloats(t *testing.T) {
	for kind, f := range smallFloats {
		n := 256
		if kind == F4E2M1 {
			n = 16
		}
		for code := range n {
			x := f.decode(byte(code))
			if x != x || math.IsInf(x, 0) { // Inf becomes the largest number
				continue
			}
			require.Equal(t, byte(code), f.encode(x, true), "%v code %d is %v", kind, code, x)
		}
		for i := range f.values[:len(f.values)-1] {
			a, b := f.values[i], f.values[i+1]
			if math.IsInf(b, 1) {
				continue
			}
			require.Equal(t, byte(i), f.encode(a+(b-a)*0.4, true), "%v", kind)
			require.Equal(t, byte(i+1), f.encode(a+(b-a)*0.6, true), "%v", kind)
			require.Equal(t, byte(i+i&1), f.encode(a+(b-a)/2, true), "%v", kind)
		}
	}
	require.Equal(t, 448.0, smallFloats[F8E4M3FN].decode(smallFloats[F8E4M3FN].encode(1e9, true)))
	require.True(t, math.IsNaN(smallFloats[F8E4M3FN].decode(smallFloats[F8E4M3FN].encode(1e9, false))))
	require.True(t, math.IsInf(smallFloats[F8E5M2].decode(smallFloats[F8E5M2].encode(-1e9, false)), -1))
}

// What goes row by row gives what goes element by element.
func TestRows(t *testing.T) {
	shapes := [][2][]int{{{2, 3, 4}, {4}}, {{2, 1, 4}, {3, 1}}, {{1}, {2, 3}}, {{}, {}}, {{}, {5}}, {{2, 0, 3}, {1, 3}}, {{4, 1}, {1, 5}}}
	for _, s := range shapes {
		shape, err := Broadcast(s[0], s[1])
		require.NoError(t, err)
		var in [2]*Tensor
		for k := range in {
			x := make([]int64, Len(s[k]))
			for i := range x {
				x[i] = int64((i*7 + k*3) % 5)
			}
			in[k] = FromInts(Int64, x, s[k]...)
			expanded := in[k].Expand(shape)
			require.True(t, expanded.Equal(in[k].Pick(ExpandIndex(s[k], shape))), "%v to %v", s[k], shape)
		}
		for _, op := range []string{"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"} {
			got, err := Compare(op, in[0], in[1])
			require.NoError(t, err)
			want, err := Compare(op, FromFloats(Double, in[0].Floats(), s[0]...), FromFloats(Double, in[1].Floats(), s[1]...))
			require.NoError(t, err)
			require.True(t, got.Equal(want), "%s of %v and %v", op, s[0], s[1])
		}
	}
}

// Casts to 16 bits round once, from float64 too.
func TestRoundedOnce(t *testing.T) {
	x := 1 + math.Ldexp(1, -11) + math.Ldexp(1, -40) // just above the middle of two halves
	require.Equal(t, 1+math.Ldexp(1, -10), FromFloats(Float16, []float64{x}).Floats()[0])
	require.Equal(t, 1.0, FromFloats(Float16, []float64{1 + math.Ldexp(1, -11)}).Floats()[0])
}
