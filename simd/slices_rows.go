package simd

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// Functions of a whole vector. The aliasing rule is that of elementwise functions. Nothing happens to empty slices.

// Softmax computes exp(x − max)/Σexp(x − max). If x holds NaN or +Inf, or only −Inf, all of dst becomes NaN.
func Softmax(dst, x []float32) {
	engine.MustFit("Softmax", dst, x)
	engine.SoftmaxRow.Apply(dst, x, engine.Vectors{})
}

// LogSoftmax computes x − max − log Σexp(x − max). Where x holds NaN or +Inf, or only −Inf, all of dst becomes NaN.
func LogSoftmax(dst, x []float32) {
	engine.MustFit("LogSoftmax", dst, x)
	engine.LogSoftmaxRow.Apply(dst, x, engine.Vectors{})
}

// LayerNorm computes (x − mean)/√(variance + eps)·gamma + beta with the variance that [Variance] computes. Eps must not be
// negative.
func LayerNorm(dst, x, gamma, beta []float32, eps float32) {
	engine.MustFit("LayerNorm", dst, x)
	engine.MustFit("LayerNorm", dst, gamma)
	engine.MustFit("LayerNorm", dst, beta)
	mustNotBeNegative("LayerNorm", eps)
	engine.LayerNormRow.Apply(dst, x, engine.Vectors{Gamma: gamma, Beta: beta, Eps: float64(eps)})
}

// LayerNormSimple is LayerNorm with gamma 1 and beta 0.
func LayerNormSimple(dst, x []float32, eps float32) {
	engine.MustFit("LayerNormSimple", dst, x)
	mustNotBeNegative("LayerNormSimple", eps)
	standardRow.Apply(dst, x, engine.Vectors{Eps: float64(eps)})
}

// RMSNorm computes x/√(mean(x²) + eps)·gamma. Eps must not be negative.
func RMSNorm(dst, x, gamma []float32, eps float32) {
	engine.MustFit("RMSNorm", dst, x)
	engine.MustFit("RMSNorm", dst, gamma)
	mustNotBeNegative("RMSNorm", eps)
	engine.RmsNormRow.Apply(dst, x, engine.Vectors{Gamma: gamma, Eps: float64(eps)})
}

// mustNotBeNegative refuses NaN, too.
func mustNotBeNegative(name string, eps float32) {
	if !(eps >= 0) {
		panic(fmt.Errorf("simd.%s: eps is %v, must not be negative: %w", name, eps, compute.ErrArgument))
	}
}

// ZScore computes (x − mean)/σ with the standard deviation that [StdDev] computes; NaN where all elements are equal.
func ZScore(dst, x []float32) {
	engine.MustFit("ZScore", dst, x)
	standardRow.Apply(dst, x, engine.Vectors{})
}

// Normalize divides x by its [NormL2], so that dst has length 1; NaN where all elements are 0.
func Normalize(dst, x []float32) {
	engine.MustFit("Normalize", dst, x)
	unitRow.Apply(dst, x, engine.Vectors{})
}

// MinMaxNormalize computes (x − min)/(max − min), which is between 0 and 1; NaN where all elements are equal or one is NaN.
func MinMaxNormalize(dst, x []float32) {
	engine.MustFit("MinMaxNormalize", dst, x)
	minMaxRow.Apply(dst, x, engine.Vectors{})
}

var standardRow = engine.RowOp[engine.Moments]{Cost: engine.Cost{Scalar: 2, AVX512: 0.14}, Merge: engine.Moments.Plus, Block: engine.LayerNormRow.Block,
	Write: func(y, x, _, _ []float32, _, row engine.Moments, eps float64) {
		kernels.Normalize(y, x, float32(row.Mean), float32(1/math.Sqrt(row.Variance()+eps)))
	}}

var unitRow = engine.RowOp[engine.Squares]{Cost: engine.Cost{Scalar: 1, AVX512: 0.09}, Merge: engine.Squares.Plus, Block: engine.SquaresOf,
	Write: func(y, x, _, _ []float32, _, row engine.Squares, _ float64) {
		kernels.Scale(y, x, 1/engine.Norm2(row.Sum))
	}}

// bounds are the smallest and the largest of some elements.
type bounds struct{ min, max float32 }

var minMaxRow = engine.RowOp[bounds]{Cost: engine.Cost{Scalar: 1.8, AVX512: 0.1},
	Block: func(_, x []float32) bounds { return bounds{kernels.Min(x), kernels.Max(x)} },
	Merge: func(a, b bounds) bounds { return bounds{min(a.min, b.min), max(a.max, b.max)} },
	Write: func(y, x, _, _ []float32, _, row bounds, _ float64) {
		kernels.Normalize(y, x, row.min, 1/(row.max-row.min))
	}}
