package kernels

import "unsafe"

// HasRows says whether there is a tier for which [SoftmaxRows] does something.
const HasRows = true

func softmaxRows(y, x, scratch []float32, rows, n int) bool {
	e := &y[0]
	if len(scratch) >= n && n%16 == 0 && uintptr(unsafe.Pointer(e))%64 == 0 {
		e = &scratch[0]
	}
	switch active {
	case AVX512:
		softmaxRowsAVX512(&y[0], &x[0], e, rows, n)
	case AVX2:
		softmaxRowsAVX2(&y[0], &x[0], e, rows, n)
	default:
		return false
	}
	return true
}
