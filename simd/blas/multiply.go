package blas

import (
	"github.com/wavelane/wavelane/internal/simd/gemm"
)

// matrix is an operand of which element (i, j) is at i*row + j*col.
type matrix struct {
	data     []float32
	row, col int
}

// multiply computes C = alpha·A·B + beta·C, where A is m×k, B k×n and C m×n with rows ldc apart.
func multiply(m, n, k int, alpha float32, a, b matrix, beta float32, c []float32, ldc int) {
	gemm.Run(&gemm.Product{M: m, N: n, K: k, AM: a.row, AK: a.col, BK: b.row, BN: b.col, LDC: ldc, Batch: 1, Alpha: alpha, Beta: beta},
		&gemm.Operands{A: a.data, B: b.data, C: c}, 0)
}
