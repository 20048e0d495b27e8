package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// onTiers runs a test on every tier of this machine.
func onTiers(t *testing.T, f func(t *testing.T)) {
	before := Active()
	defer func() { require.NoError(t, SetTier(before)) }()
	for _, tier := range Available() {
		require.NoError(t, SetTier(tier))
		t.Run(tier.String(), f)
	}
}

func TestTranspose(t *testing.T) {
	r := random(t)
	onTiers(t, func(t *testing.T) {
		sizes := []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129, 200}
		for _, rows := range sizes {
			for _, cols := range sizes {
				lds, ldd := cols+r.IntN(3), rows+r.IntN(3)
				src, dst := make([]uint32, rows*lds), make([]uint32, cols*ldd)
				for i := range src {
					src[i] = r.Uint32() // signalling NaN among them
				}
				for i := range dst {
					dst[i] = 0xDEADBEEF
				}
				Transpose(dst, ldd, src, lds, rows, cols)
				for j := range cols {
					for i := range rows {
						if dst[j*ldd+i] != src[i*lds+j] {
							t.Fatalf("%d×%d: [%d, %d] is wrong", rows, cols, j, i)
						}
					}
					for _, v := range dst[j*ldd+rows : (j+1)*ldd] {
						require.Equal(t, uint32(0xDEADBEEF), v, "%d×%d: written beside row %d", rows, cols, j)
					}
				}
			}
		}
	})
}

func TestTransposeInPlace(t *testing.T) {
	r := random(t)
	onTiers(t, func(t *testing.T) {
		for n := range 140 {
			ld := n + r.IntN(3)
			x := make([]uint32, n*ld)
			for i := range x {
				x[i] = r.Uint32()
			}
			want := append([]uint32{}, x...)
			for i := range n {
				for j := range n {
					want[i*ld+j] = x[j*ld+i]
				}
			}
			TransposeInPlace(x, ld, n)
			require.Equal(t, want, x, "%d rows", n)
		}
	})
}
