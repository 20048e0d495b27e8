package kernels

// tileSide is the side of the tiles that the active tier transposes. Halves of it are sides of other tiles, down to 4.
func tileSide() int {
	switch active {
	case AVX512:
		return 16
	case AVX2:
		return 8
	case SSE:
		return 4
	}
	return 0
}

// transposeTiles transposes n tiles, one below the other in src and side by side in dst.
func transposeTiles(side int, dst, src *uint32, ldd, lds, n int) {
	switch side {
	case 16:
		transposeAVX512(dst, src, ldd, lds, n)
	case 8:
		transposeAVX2(dst, src, ldd, lds, n)
	default:
		transposeSSE(dst, src, ldd, lds, n)
	}
}

// evens does as many words as the active tier does without reading beyond the last one, and returns their number.
func evens(dst, src []uint32) int {
	switch n := len(dst) - 1; {
	case active == AVX512 && n >= 8:
		evensAVX512(&dst[0], &src[0], n/8)
		return n &^ 7
	case active == AVX2 && n >= 8:
		evensAVX2(&dst[0], &src[0], n/8)
		return n &^ 7
	case active == SSE && n >= 4:
		evensSSE(&dst[0], &src[0], n/4)
		return n &^ 3
	}
	return 0
}
