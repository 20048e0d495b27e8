package engine

import "sync"

// Grow returns a slice of n elements with undefined contents, s itself if it is large enough.
func Grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Scratch lends kernels the float32 memory that one part of their work needs.
var Scratch = sync.Pool{New: func() any { return new([]float32) }}

func Borrow(n int) *[]float32 {
	s := Scratch.Get().(*[]float32)
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	*s = (*s)[:n]
	return s
}
