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
