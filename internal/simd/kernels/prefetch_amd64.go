package kernels

import "unsafe"

//go:noescape
func prefetch(x *float32, n int)

//go:noescape
func prefetchWrite(x *float32, n int)

// Prefetch asks for elements that will soon be read, and PrefetchWrite for those that will be written. They do nothing where there
// is no such instruction.
func Prefetch(x []float32) {
	if len(x) > 0 {
		prefetch(unsafe.SliceData(x), len(x))
	}
}

// PrefetchWrite is as Prefetch says.
func PrefetchWrite(x []float32) {
	if len(x) > 0 {
		prefetchWrite(unsafe.SliceData(x), len(x))
	}
}
