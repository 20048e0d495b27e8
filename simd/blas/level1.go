package blas

import (
	"math"

	"github.com/wavelane/wavelane/simd"
)

// Sdot computes Σ x[i]·y[i].
func (Implementation) Sdot(n int, x []float32, incX int, y []float32, incY int) float32 {
	u, okX := plain(n, x, incX)
	v, okY := plain(n, y, incY)
	if !okX || !okY {
		return reference.Sdot(n, x, incX, y, incY)
	}
	return simd.Dot(u, v)
}

// Saxpy adds alpha·x to y.
func (Implementation) Saxpy(n int, alpha float32, x []float32, incX int, y []float32, incY int) {
	u, okX := plain(n, x, incX)
	v, okY := plain(n, y, incY)
	if !okX || !okY || !apart(u, v) || alpha == 0 {
		reference.Saxpy(n, alpha, x, incX, y, incY)
		return
	}
	simd.Axpy(v, u, alpha)
}

// Sscal multiplies x by alpha; alpha = 0 makes all elements 0.
func (Implementation) Sscal(n int, alpha float32, x []float32, incX int) {
	u, ok := plain(n, x, incX)
	if !ok || alpha == 0 {
		reference.Sscal(n, alpha, x, incX)
		return
	}
	simd.Scale(u, u, alpha)
}

// Sasum computes Σ |x[i]|.
func (Implementation) Sasum(n int, x []float32, incX int) float32 {
	u, ok := plain(n, x, incX)
	if !ok {
		return reference.Sasum(n, x, incX)
	}
	return simd.NormL1(u)
}

// Snrm2 computes √(Σ x[i]²). Where squares overflow or vanish, gonum's slower way, which scales, does it.
func (Implementation) Snrm2(n int, x []float32, incX int) float32 {
	if u, ok := plain(n, x, incX); ok {
		if s := simd.SumSquares(u); s > 1e-25 && s < math.MaxFloat32 {
			return float32(math.Sqrt(float64(s)))
		}
	}
	return reference.Snrm2(n, x, incX)
}

// Isamax returns the lowest index of an element of largest magnitude, as gonum's does where there are NaN.
func (Implementation) Isamax(n int, x []float32, incX int) int {
	u, ok := plain(n, x, incX)
	if !ok {
		return reference.Isamax(n, x, incX)
	}
	low, high := simd.ArgMin(u), simd.ArgMax(u)
	switch {
	case u[low] != u[low]:
		return reference.Isamax(n, x, incX)
	case -u[low] > u[high]:
		return low
	case -u[low] == u[high]:
		return min(low, high)
	}
	return high
}
