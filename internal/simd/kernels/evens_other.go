//go:build !amd64

package kernels

// evens would copy by vectors and return how many words it did.
func evens(_, _ []uint32) int { return 0 }
