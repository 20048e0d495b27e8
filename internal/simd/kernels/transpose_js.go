package kernels

import "unsafe"

// tileSide is the side of the tiles that the active tier transposes.
func tileSide() int {
	if active == SIMD128 {
		return 4
	}
	return 0
}

// transposeTiles transposes n tiles, one below the other in src and side by side in dst. For a few a call does not pay.
func transposeTiles(side int, dst, src *uint32, ldd, lds, n int) {
	if n < 4 {
		rows := n * side
		to, from := unsafe.Slice(dst, (side-1)*ldd+rows), unsafe.Slice(src, (rows-1)*lds+side)
		transposeGo(to, ldd, from, lds, rows, side)
		return
	}
	openBox(opTranspose, 0)
	box.pointers[0], box.pointers[1] = unsafe.Pointer(dst), unsafe.Pointer(src)
	box.words[0], box.words[1], box.words[2] = uint32(ldd), uint32(lds), uint32(n)
	runBox()
	closeBox()
}
