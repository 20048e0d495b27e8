package simd

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/simd/internal/kernels"
)

// Functions of a whole vector. The aliasing rule is that of elementwise functions. Nothing happens to empty slices.

// Softmax computes exp(x − max)/Σexp(x − max). Where x holds NaN or +Inf, or nothing but −Inf, all of dst becomes NaN.
func Softmax(dst, x []float32) {
	mustFit("Softmax", dst, x)
	softmaxRow.apply(dst, x, vectors{})
}

// LogSoftmax computes x − max − log Σexp(x − max). Where x holds NaN or +Inf, or nothing but −Inf, all of dst becomes NaN.
func LogSoftmax(dst, x []float32) {
	mustFit("LogSoftmax", dst, x)
	logSoftmaxRow.apply(dst, x, vectors{})
}

// LayerNorm computes (x − mean)/√(variance + eps)·gamma + beta with the variance that [Variance] computes. Eps must not be
// negative.
func LayerNorm(dst, x, gamma, beta []float32, eps float32) {
	mustFit("LayerNorm", dst, x)
	mustFit("LayerNorm", dst, gamma)
	mustFit("LayerNorm", dst, beta)
	mustNotBeNegative("LayerNorm", eps)
	layerNormRow.apply(dst, x, vectors{gamma, beta, float64(eps)})
}

// LayerNormSimple is LayerNorm with gamma 1 and beta 0.
func LayerNormSimple(dst, x []float32, eps float32) {
	mustFit("LayerNormSimple", dst, x)
	mustNotBeNegative("LayerNormSimple", eps)
	standardRow.apply(dst, x, vectors{eps: float64(eps)})
}

// RMSNorm computes x/√(mean(x²) + eps)·gamma. Eps must not be negative.
func RMSNorm(dst, x, gamma []float32, eps float32) {
	mustFit("RMSNorm", dst, x)
	mustFit("RMSNorm", dst, gamma)
	mustNotBeNegative("RMSNorm", eps)
	rmsNormRow.apply(dst, x, vectors{gamma: gamma, eps: float64(eps)})
}

// mustNotBeNegative refuses NaN, too.
func mustNotBeNegative(name string, eps float32) {
	if !(eps >= 0) {
		panic(fmt.Errorf("simd.%s: eps is %v, must not be negative: %w", name, eps, compute.ErrArgument))
	}
}

// ZScore computes (x − mean)/σ with the standard deviation that [StdDev] computes; NaN where all elements are equal.
func ZScore(dst, x []float32) {
	mustFit("ZScore", dst, x)
	standardRow.apply(dst, x, vectors{})
}

// Normalize divides x by its [NormL2], so that dst has length 1; NaN where all elements are 0.
func Normalize(dst, x []float32) {
	mustFit("Normalize", dst, x)
	unitRow.apply(dst, x, vectors{})
}

// MinMaxNormalize computes (x − min)/(max − min), which is between 0 and 1; NaN where all elements are equal or one is NaN.
func MinMaxNormalize(dst, x []float32) {
	mustFit("MinMaxNormalize", dst, x)
	minMaxRow.apply(dst, x, vectors{})
}

var standardRow = rowOp[moments]{cost: cost{2, 0.14}, merge: moments.plus, block: layerNormRow.block,
	write: func(y, x, _, _ []float32, _, row moments, eps float64) {
		kernels.Normalize(y, x, float32(row.mean), float32(1/math.Sqrt(row.variance()+eps)))
	}}

var unitRow = rowOp[squares]{cost: cost{1, 0.09}, merge: squares.plus, block: squaresOf,
	write: func(y, x, _, _ []float32, _, row squares, _ float64) {
		kernels.Scale(y, x, 1/norm2(row.sum))
	}}

// bounds are the smallest and the largest of some elements.
type bounds struct{ min, max float32 }

var minMaxRow = rowOp[bounds]{cost: cost{1.8, 0.1},
	block: func(_, x []float32) bounds { return bounds{kernels.Min(x), kernels.Max(x)} },
	merge: func(a, b bounds) bounds { return bounds{min(a.min, b.min), max(a.max, b.max)} },
	write: func(y, x, _, _ []float32, _, row bounds, _ float64) {
		kernels.Normalize(y, x, row.min, 1/(row.max-row.min))
	}}
