package kernels

import "sync"

// Blocks that a transposition goes by, the fastest of many that were measured: dst is written in long runs, and the rows of
// both operands lie in few enough pages that the processor remembers where all of them are.
const (
	blockRows = 512
	blockCols = 256
)

// Transpose exchanges rows and columns of 4-byte words; rows of src are lds words apart, those of dst ldd. Dst and src must
// not overlap. No word is changed on the way, whatever number it is.
//
//	for i := range rows { for j := range cols { dst[j*ldd+i] = src[i*lds+j] } }
func Transpose(dst []uint32, ldd int, src []uint32, lds, rows, cols int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = dst[(cols-1)*ldd+rows-1], src[(rows-1)*lds+cols-1] // assembly checks nothing
	if rows == 2 && ldd == 2 {
		// Pixels of transposed convolutions are put between each other like this.
		interleave(dst[:2*cols], src[:cols], src[lds:])
		return
	}
	for j := 0; j < cols; j += blockCols {
		for i := 0; i < rows; i += blockRows {
			transposeBlock(dst[j*ldd+i:], ldd, src[i*lds+j:], lds, min(blockRows, rows-i), min(blockCols, cols-j))
		}
	}
}

// interleave sets y to a[0], b[0], a[1], b[1] and so on.
func interleave(y, a, b []uint32) {
	y, b = y[:2*len(a)], b[:len(a)]
	for i, v := range a {
		y[2*i], y[2*i+1] = v, b[i]
	}
}

// swapSide is the side of the blocks that TransposeInPlace exchanges.
const swapSide = 32

// swapBuffers hold one of them. They are not on the stack, where the side module of js could not reach them.
var swapBuffers = sync.Pool{New: func() any { return new([swapSide * swapSide]uint32) }}

// TransposeInPlace transposes n rows of n words in x that are ld words apart.
func TransposeInPlace(x []uint32, ld, n int) {
	const side = swapSide
	buffer := swapBuffers.Get().(*[side * side]uint32)
	defer swapBuffers.Put(buffer)
	for i := 0; i < n; i += side {
		rows := min(side, n-i)
		for j := 0; j <= i; j += side {
			cols := min(side, n-j)
			low, high := x[i*ld+j:], x[j*ld+i:]
			transposeBlock(buffer[:], side, low, ld, rows, cols)
			if i != j {
				transposeBlock(low, ld, high, ld, cols, rows)
			}
			for k := range cols {
				copy(high[k*ld:][:rows], buffer[k*side:])
			}
		}
	}
}

// transposeBlock goes by the tier's tiles. The last ones begin earlier if there is no room for whole ones, and do part of the
// others again.
func transposeBlock(dst []uint32, ldd int, src []uint32, lds, rows, cols int) {
	side := tileSide()
	for side > min(rows, cols) {
		side /= 2
	}
	if side < 4 {
		transposeGo(dst, ldd, src, lds, rows, cols)
		return
	}
	for j := 0; j < cols; j += side {
		j := min(j, cols-side)
		transposeTiles(side, &dst[j*ldd], &src[j], ldd, lds, rows/side)
		if rows%side > 0 {
			i := rows - side
			transposeTiles(side, &dst[j*ldd+i], &src[i*lds+j], ldd, lds, 1)
		}
	}
}

func transposeGo(dst []uint32, ldd int, src []uint32, lds, rows, cols int) {
	for j := range cols {
		to := dst[j*ldd:][:rows]
		at := j
		for i := range to {
			to[i] = src[at]
			at += lds
		}
	}
}
