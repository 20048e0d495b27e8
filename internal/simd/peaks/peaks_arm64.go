package peaks

import "github.com/wavelane/wavelane/internal/simd/kernels"

func flopsNEON(loops int)

//go:noescape
func readNEON(x *float32, loops int)

// flops returns how many operations a loop has, and what does loops.
func flops() (int, func(loops int)) {
	if kernels.Active() == kernels.NEON {
		return 12 * 8, flopsNEON
	}
	return 24, flopsGo
}

func read(x []float32) {
	if loops := len(x) / 32; loops > 0 && kernels.Active() == kernels.NEON {
		readNEON(&x[0], loops)
		x = x[32*loops:]
	}
	readGo(x)
}
