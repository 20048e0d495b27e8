package kernels

// HasRows says whether there is a tier for which [SoftmaxRows] does something.
const HasRows = true

func softmaxRows(y, x []float32, rows, n int) bool {
	switch active {
	case AVX512:
		softmaxRowsAVX512(&y[0], &x[0], rows, n)
	case AVX2:
		softmaxRowsAVX2(&y[0], &x[0], rows, n)
	default:
		return false
	}
	return true
}
