package peaks

import "github.com/wavelane/wavelane/internal/simd/kernels"

func flopsSSE(loops int)

func flopsAVX2(loops int)

func flopsAVX512(loops int)

//go:noescape
func readSSE(x *float32, loops int)

//go:noescape
func readAVX2(x *float32, loops int)

//go:noescape
func readAVX512(x *float32, loops int)

// flops returns how many operations a loop has, and what does loops.
func flops() (int, func(loops int)) {
	switch kernels.Active() {
	case kernels.AVX512:
		return 12 * 32, flopsAVX512
	case kernels.AVX2:
		return 12 * 16, flopsAVX2
	case kernels.SSE: // it has no multiply-add: half of them are products, half sums
		return 12 * 4, flopsSSE
	}
	return 24, flopsGo
}

func read(x []float32) {
	lanes, f := 0, readSSE
	switch kernels.Active() {
	case kernels.AVX512:
		lanes, f = 16, readAVX512
	case kernels.AVX2:
		lanes, f = 8, readAVX2
	case kernels.SSE:
		lanes = 4
	default:
		readGo(x)
		return
	}
	if loops := len(x) / (8 * lanes); loops > 0 {
		f(&x[0], loops)
		x = x[8*lanes*loops:]
	}
	readGo(x)
}
