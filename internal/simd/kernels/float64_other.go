//go:build !amd64

package kernels

// Dot64 returns Σ x[i]·y[i], added up in several lanes.
func Dot64(x, y []float64) float64 { return dot64Go(x, y) }

// Axpy64 adds f·x to y.
func Axpy64(y, x []float64, f float64) { axpy64Go(y, x, f) }

// Rank2x64 subtracts fv·w + fw·v from x.
func Rank2x64(x, v, w []float64, fv, fw float64) { rank2x64Go(x, v, w, fv, fw) }

// Turn64 rotates TurnColumns columns of rows that are wide apart, each with the row before it: first the last TurnColumns
// elements of z. Turns holds a cosine c and a sine s for each pair.
//
//	low, high = c·low − s·high, s·low + c·high
func Turn64(z []float64, wide int, turns []float64) { turn64Go(z, wide, turns) }
