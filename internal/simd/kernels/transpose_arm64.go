package kernels

// tileSide is the side of the tiles that the active tier transposes.
func tileSide() int {
	if active == NEON {
		return 4
	}
	return 0
}

// transposeTiles transposes n tiles, one below the other in src and side by side in dst.
func transposeTiles(_ int, dst, src *uint32, ldd, lds, n int) { transposeNEON(dst, src, ldd, lds, n) }
