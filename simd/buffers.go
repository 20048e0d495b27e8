package simd

import "sync"

// grow returns a slice of n elements with undefined contents, s itself if it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// scratch lends kernels the float32 memory that one part of their work needs.
var scratch = sync.Pool{New: func() any { return new([]float32) }}

func borrow(n int) *[]float32 {
	s := scratch.Get().(*[]float32)
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	*s = (*s)[:n]
	return s
}
