//go:build !js

package gemm

// macro would compute m×n elements of C from packed panels in one call, for a tier on which a call costs more than a tile:
// wasm. T says the rest: K, LDC, Alpha and Beta.
//
// A holds the panels of [panels], one after the other without gaps, element (i, p) of a panel of h rows at p*h+i. B holds
// panels of nr columns, K·nr elements each, element (p, j) at p*nr+j; the last one is as wide as its columns rounded up to
// lanes.
func (s *shape) macro(*Tile, []float32, []float32, []float32, int, int) bool { return false }
