//go:build !js

package blocks

// There is a side module on js only.

func side() bool { return false }

func (w *Weights) sideDequantize([]float32, int, int) bool { return false }

func (w *Weights) sideColumns([]float32, []float32, int, int, int, int, int) bool { return false }

func (w *Weights) sideMultiply([]float32, int, []float32, int, int, int) bool { return false }

func (w *Weights) sideMultiply8([]float32, int, RoundedRows, int, int) bool { return false }

const wideWords = 0

func (r *Rounded) widen(int) {}
