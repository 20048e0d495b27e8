//go:build !amd64 && !arm64

package gemm

func dotHalves(_ []float32, _ Half, _ int, _ []float32) bool { return false }

func axpyHalves(_ []float32, _ Half, _ int, _ []float32) bool { return false }
