//go:build !js

package kernels

// Missing says why kernels run as portable Go code on a platform that should have SIMD; nil if nothing is missing.
func Missing() error { return nil }
