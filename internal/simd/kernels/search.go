package kernels

// findGo is the index of the first element that equals v, or len(a). NaN equals nothing; zeros of both signs are equal.
func findGo(a []float32, v float32) int {
	for i, x := range a {
		if x == v {
			return i
		}
	}
	return len(a)
}

// findNaNGo is the index of the first NaN, or len(a).
func findNaNGo(a []float32) int {
	for i, x := range a {
		if x != x {
			return i
		}
	}
	return len(a)
}
