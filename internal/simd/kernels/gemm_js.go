package kernels

import "unsafe"

// The side module's part of package gemm, which says what these compute: see gemm.Block, gemm.Tile and gemm.transposeGo.

// Rows and columns of the side module's tiles, which mask columns.
const (
	GemmRows = 4
	GemmCols = 12
)

// GemmBlock is the macro-kernel, for at least one row, column and step.
func GemmBlock(a, b, c *float32, m, n, k, ldc int, alpha, beta float32) {
	openBox(opBlock, 0)
	box.pointers[0], box.pointers[1], box.pointers[2] = unsafe.Pointer(a), unsafe.Pointer(b), unsafe.Pointer(c)
	box.words[0], box.words[1], box.words[2], box.words[3] = uint32(m), uint32(n), uint32(k), uint32(ldc)
	box.params[0], box.params[1] = alpha, beta
	runBox()
	closeBox()
}

// GemmTile is the micro-kernel.
func GemmTile(a, b, c *float32, k, ai, ak, bk, ldc, rows, cols int, alpha, beta float32) {
	openBox(opTile, 0)
	box.pointers[0], box.pointers[1], box.pointers[2] = unsafe.Pointer(a), unsafe.Pointer(b), unsafe.Pointer(c)
	box.words = [8]uint32{uint32(k), uint32(ai), uint32(ak), uint32(bk), uint32(ldc), uint32(rows), uint32(cols)}
	box.params[0], box.params[1] = alpha, beta
	runBox()
	closeBox()
}

// GemmPack packs four rows, k ≥ 1 elements of each.
func GemmPack(dst *float32, rows *[4]*float32, width, k int) {
	openBox(opPack, 0)
	box.pointers[0] = unsafe.Pointer(dst)
	for i, row := range rows {
		box.pointers[1+i] = unsafe.Pointer(row)
	}
	box.words[0], box.words[1] = uint32(width), uint32(k)
	runBox()
	closeBox()
}

// GemmTaps sets rows of n elements, which are at least one, as are taps: see gemm.Taps.
func GemmTaps(y, x, w *float32, offsets *int32, taps, n, rows, ystep, xstep int) {
	openBox(opTaps, 0)
	box.pointers[0], box.pointers[1], box.pointers[2], box.pointers[3] = unsafe.Pointer(y), unsafe.Pointer(x), unsafe.Pointer(w), unsafe.Pointer(offsets)
	box.words = [8]uint32{uint32(n), uint32(rows), uint32(ystep), uint32(xstep), uint32(taps)}
	runBox()
	closeBox()
}
