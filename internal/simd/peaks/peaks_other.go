//go:build !amd64 && !arm64

package peaks

// flops returns how many operations a loop has, and what does loops.
func flops() (int, func(loops int)) { return 24, flopsGo }

func read(x []float32) { readGo(x) }
