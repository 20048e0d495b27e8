//go:build !amd64 && !arm64

package blocks

// rowsFloats and rows8 multiply rows of weights with one row of x where there are instructions for it.

func (w *Weights) rowsFloats(_, _ []float32, _ int) bool { return false }

func (w *Weights) rows8(_ []float32, _ *Rounded, _ int) bool { return false }

func (r *Rounded) roundVectors(_ []float32, lo, _ int) int { return lo }
