//go:build !amd64 && !arm64

package kernels

func detect() []Tier { return []Tier{Scalar} }
