package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAttend compares with sums in float64, for keys that lie apart, of which nothing is read beyond the last, and checks that nothing is
// written beside the results.
func TestAttend(t *testing.T) {
	r := random(t)
	onTiers(t, func(t *testing.T) {
		used := 0
		for range 200 {
			rows, d, keys := 1+r.IntN(AttendRows+1), 16*(1+r.IntN(9)), 1+r.IntN(40)
			stride, lds := d+r.IntN(30), keys+r.IntN(5)
			floats := func(n int) []float32 {
				x := make([]float32, n)
				for i := range x {
					x[i] = r.Float32() - 0.5
				}
				return x
			}
			q, weights := floats(rows*d), floats(rows*lds)
			halves := make([]uint16, (keys-1)*stride+d)
			NarrowF16(halves, floats(len(halves)))
			wide := make([]float32, len(halves))
			WidenF16(wide, halves)
			for _, half := range []bool{false, true} {
				s, o := floats(rows*lds), floats(rows*d)
				wantS, wantO := append([]float32{}, s...), append([]float32{}, o...)
				for i := range rows {
					for j := range keys {
						sum := 0.0
						for k := range d {
							sum += float64(q[i*d+k]) * float64(wide[j*stride+k])
						}
						wantS[i*lds+j] = float32(sum)
					}
					for k := range d {
						sum := float64(o[i*d+k])
						for j := range keys {
							sum += float64(weights[i*lds+j]) * float64(wide[j*stride+k])
						}
						wantO[i*d+k] = float32(sum)
					}
				}
				var ok, also bool
				if half {
					ok, also = Scores(s, q, halves, rows, d, keys, stride, lds), AddValues(o, weights, halves, rows, d, keys, stride, lds)
				} else {
					ok, also = Scores(s, q, wide, rows, d, keys, stride, lds), AddValues(o, weights, wide, rows, d, keys, stride, lds)
				}
				require.Equal(t, ok, also)
				if !ok {
					continue
				}
				used++
				near(t, wantS, s, rows, d, keys)
				near(t, wantO, o, rows, d, keys)
			}
		}
		require.Equal(t, attends(1, 32, 1), used > 0)
	})
}

func near(t *testing.T, want, got []float32, shape ...int) {
	t.Helper()
	for i := range want {
		if math.Abs(float64(want[i]-got[i])) > 1e-5 {
			t.Fatalf("%v: element %d is %v, not %v", shape, i, got[i], want[i])
		}
	}
}
