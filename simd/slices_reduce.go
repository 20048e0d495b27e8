package simd

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// Sums. The error of a sum is at most 2e-6 of the sum of the absolute values of what is added, however long the slices.

// Sum returns the sum of the elements, or 0 for an empty slice.
func Sum(x []float32) float32 {
	if len(x) <= engine.Fewest {
		return kernels.Sum(x)
	}
	return float32(engine.SumFold.Of(x, nil))
}

// SumKahan returns the sum by compensated summation (Kahan, 1965): the error is that of one rounding of the result, unless
// elements of either sign cancel; 0 for an empty slice.
func SumKahan(x []float32) float32 { return float32(engine.KahanFold.Of(x, nil)) }

// SumSquares returns Σx[i]², or 0 for an empty slice.
func SumSquares(x []float32) float32 { return float32(engine.SquaresFold.Of(x, nil)) }

// Dot returns Σa[i]·b[i], or 0 for an empty slice.
func Dot(a, b []float32) float32 {
	engine.MustLen("Dot", len(b), len(a))
	if len(a) <= engine.Fewest {
		return kernels.Dot(a, b)
	}
	return float32(engine.DotFold.Of(a, b))
}

// NormL1 returns Σ|x[i]|, or 0 for an empty slice.
func NormL1(x []float32) float32 { return float32(engine.SumAbsFold.Of(x, nil)) }

// NormL2 returns √Σx[i]², or 0 for an empty slice; squares beyond float32's range give +Inf.
func NormL2(x []float32) float32 { return engine.Norm2(engine.SquaresFold.Of(x, nil)) }

// NormLInf returns the largest |x[i]|: 0 for an empty slice, NaN if any element is.
func NormLInf(x []float32) float32 { return engine.MaxAbsFold.Of(x, nil) }

// Extremes. There is none of nothing, which is a panic with compute.ErrShape.

// Max returns the largest element, NaN if any element is.
func Max(x []float32) float32 {
	mustHold("Max", x)
	if len(x) <= engine.Fewest {
		return kernels.Max(x)
	}
	return engine.LargestFold.Of(x, nil)
}

// Min returns the smallest element, NaN if any element is.
func Min(x []float32) float32 {
	mustHold("Min", x)
	if len(x) <= engine.Fewest {
		return kernels.Min(x)
	}
	return engine.SmallestFold.Of(x, nil)
}

// ArgMax returns the index of the largest element: the lowest of equal ones, or the lowest index of a NaN if there is one.
func ArgMax(x []float32) int {
	mustHold("ArgMax", x)
	return engine.MaxFold.Of(x, nil).Index(x)
}

// ArgMin returns the index of the smallest element: the lowest of equal ones, or the lowest index of a NaN if there is one.
func ArgMin(x []float32) int {
	mustHold("ArgMin", x)
	return engine.MinFold.Of(x, nil).Index(x)
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
func Mean(x []float32) float32 { return float32(engine.SumFold.Of(x, nil) / float64(len(x))) }

// Variance returns the mean square of the differences from the mean.
func Variance(x []float32) float32 { return float32(engine.MomentsFold.Of(x, nil).Variance()) }

// StdDev returns the standard deviation, the square root of the variance.
func StdDev(x []float32) float32 { return float32(math.Sqrt(engine.MomentsFold.Of(x, nil).Variance())) }

// Covariance returns the mean of the products of the differences of a and b from their means.
func Covariance(a, b []float32) float32 {
	engine.MustLen("Covariance", len(b), len(a))
	c := engine.ComomentsFold.Of(a, b)
	return float32(c.Products / c.A.N)
}

// Correlation returns the covariance divided by both standard deviations (Pearson's coefficient), which is between −1 and 1;
// NaN if the elements of a or of b are all equal.
func Correlation(a, b []float32) float32 {
	engine.MustLen("Correlation", len(b), len(a))
	return float32(engine.ComomentsFold.Of(a, b).Correlation())
}
