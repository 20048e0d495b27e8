package kernels

// SoftmaxRows sets rows of y, of n elements each, to softmax of those of x, which may be y, and reports whether the active tier has
// instructions for it. If not, nothing is done. A row has at most as many elements as the engine's blocks: its sum is one of float32.
//
//	for each row {
//		m := max(x[0], …)
//		for i := range x { y[i] = exp(x[i] - m) }
//		for i := range y { y[i] /= y[0] + … }
//	}
//
// A row that holds NaN or +Inf, or only −Inf, becomes NaN.
func SoftmaxRows(y, x []float32, n int) bool {
	if n == 0 || len(x) == 0 {
		return true
	}
	_ = y[len(x)-1]
	return softmaxRows(y, x, len(x)/n, n)
}
