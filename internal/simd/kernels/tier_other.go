//go:build !amd64 && !arm64 && !js

package kernels

func detect() []Tier { return []Tier{Scalar} }
