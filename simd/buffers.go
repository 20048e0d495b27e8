package simd

// grow returns a slice of n elements with undefined contents, s itself if it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
