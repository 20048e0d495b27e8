//go:build !js

package gemm

// macro would compute packed panels in one call, for a tier with a macro-kernel: see [Block].
func (s *shape) macro(*Tile, []float32, []float32, []float32, int, int) bool { return false }
