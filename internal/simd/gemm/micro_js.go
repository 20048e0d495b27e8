package gemm

import (
	"unsafe"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

var shapeSIMD128 = shape{tier: kernels.SIMD128, mr: kernels.GemmRows, nr: kernels.GemmCols, lanes: 4, masked: true}

func active() *shape {
	if kernels.Active() == kernels.SIMD128 {
		return &shapeSIMD128
	}
	return &shapeGo
}

func (s *shape) tile(t *Tile) {
	if s.tier == kernels.Scalar {
		tileGo(t)
		return
	}
	kernels.GemmTile(t.A, t.B, t.C, t.K, t.AI, t.AK, t.BK, t.LDC, t.Rows, t.Cols, t.Alpha, t.Beta)
}

// macro computes packed panels in one call.
func (s *shape) macro(t *Tile, a, b, c []float32, m, n int) bool {
	if s.tier == kernels.Scalar {
		return false
	}
	kernels.GemmBlock(&a[0], &b[0], &c[0], m, n, t.K, t.LDC, t.Alpha, t.Beta)
	return true
}

func (s *shape) transpose(dst *float32, rows **float32, width, k int) {
	if s.tier == kernels.Scalar {
		transposeGo(dst, rows, width, k)
		return
	}
	kernels.GemmPack(dst, (*[4]*float32)(unsafe.Pointer(rows)), width, k)
}
