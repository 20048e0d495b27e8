//go:build !amd64

package gemm

func detect() caches { return caches{} }
