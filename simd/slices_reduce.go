package simd

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/simd/internal/kernels"
)

// Sums. The error of a sum is at most 2e-6 of the sum of the absolute values of what is added, however long the slices.

// Sum returns the sum of the elements, 0 of none.
func Sum(x []float32) float32 {
	if len(x) <= fewest {
		return kernels.Sum(x)
	}
	return float32(sumFold.of(x, nil))
}

// SumKahan returns the sum by compensated summation (Kahan, 1965): the error is that of one rounding of the result, unless
// elements of either sign cancel; 0 of none.
func SumKahan(x []float32) float32 { return float32(kahanFold.of(x, nil)) }

// SumOfSquares returns Σx[i]², 0 of none.
func SumOfSquares(x []float32) float32 { return float32(squaresFold.of(x, nil)) }

// Dot returns Σa[i]·b[i], 0 of none.
func Dot(a, b []float32) float32 {
	mustLen("Dot", len(b), len(a))
	if len(a) <= fewest {
		return kernels.Dot(a, b)
	}
	return float32(dotFold.of(a, b))
}

// NormL1 returns Σ|x[i]|, 0 of none.
func NormL1(x []float32) float32 { return float32(sumAbsFold.of(x, nil)) }

// NormL2 returns √Σx[i]², 0 of none; squares beyond float32's range give +Inf.
func NormL2(x []float32) float32 { return norm2(squaresFold.of(x, nil)) }

// NormLInf returns the largest |x[i]|: 0 of none, NaN if any element is.
func NormLInf(x []float32) float32 { return maxAbsFold.of(x, nil) }

// Extremes. There is none of nothing, which is a panic with compute.ErrShape.

// Max returns the largest element, NaN if any element is.
func Max(x []float32) float32 {
	mustHold("Max", x)
	if len(x) <= fewest {
		return kernels.Max(x)
	}
	return maxFold.of(x, nil).value
}

// Min returns the smallest element, NaN if any element is.
func Min(x []float32) float32 {
	mustHold("Min", x)
	if len(x) <= fewest {
		return kernels.Min(x)
	}
	return minFold.of(x, nil).value
}

// ArgMax returns the index of the largest element: the lowest among equals; the lowest index of a NaN if there is one.
func ArgMax(x []float32) int {
	mustHold("ArgMax", x)
	return maxFold.of(x, nil).index(x)
}

// ArgMin returns the index of the smallest element: the lowest among equals; the lowest index of a NaN if there is one.
func ArgMin(x []float32) int {
	mustHold("ArgMin", x)
	return minFold.of(x, nil).index(x)
}

// mustHold wants at least one element.
func mustHold(name string, x []float32) {
	if len(x) == 0 {
		panic(fmt.Errorf("simd.%s of an empty slice: %w", name, compute.ErrShape))
	}
}

// Statistics are of the elements themselves (division by n). The estimates for a population that the elements are a sample of
// are n/(n−1) times the variance and the covariance. They are computed from differences from the mean, never as
// E[x²] − E[x]². Of an empty slice they are NaN.

// Mean returns Σx[i]/n.
func Mean(x []float32) float32 { return float32(sumFold.of(x, nil) / float64(len(x))) }

// Variance returns the mean square of the differences from the mean.
func Variance(x []float32) float32 { return float32(momentsFold.of(x, nil).variance()) }

// StdDev returns the standard deviation, the square root of the variance.
func StdDev(x []float32) float32 { return float32(math.Sqrt(momentsFold.of(x, nil).variance())) }

// Covariance returns the mean of the products of the differences of a and b from their means.
func Covariance(a, b []float32) float32 {
	mustLen("Covariance", len(b), len(a))
	c := comomentsFold.of(a, b)
	return float32(c.products / c.a.n)
}

// Correlation returns the covariance divided by both standard deviations (Pearson's coefficient), which is between −1 and 1;
// NaN if the elements of a or of b are all equal.
func Correlation(a, b []float32) float32 {
	mustLen("Correlation", len(b), len(a))
	return float32(comomentsFold.of(a, b).correlation())
}
