//go:build !amd64

package kernels

// Prefetch and PrefetchWrite do nothing here.
func Prefetch([]float32)      {}
func PrefetchWrite([]float32) {}
