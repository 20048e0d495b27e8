package gemm

import "github.com/wavelane/wavelane/internal/simd/kernels"

var (
	shapeSSE    = shape{tier: kernels.SSE, mr: 4, nr: 8, lanes: 4, column: true}
	shapeAVX2   = shape{tier: kernels.AVX2, mr: 6, slim: 12, nr: 16, lanes: 8, masked: true, column: true}
	shapeAVX512 = shape{tier: kernels.AVX512, mr: 14, slim: 16, nr: 32, lanes: 16, masked: true, column: true}
)

// active is the shape of the active tier.
func active() *shape {
	switch kernels.Active() {
	case kernels.AVX512:
		return &shapeAVX512
	case kernels.AVX2:
		return &shapeAVX2
	case kernels.SSE:
		return &shapeSSE
	}
	return &shapeGo
}

// tile computes a tile of C.
func (s *shape) tile(t *Tile) {
	switch s.tier {
	case kernels.AVX512:
		tileAVX512(t)
	case kernels.AVX2:
		tileAVX2(t)
	case kernels.SSE:
		tileSSE(t)
	default:
		tileGo(t)
	}
}

// transpose packs s.lanes lanes; see transposeGo.
func (s *shape) transpose(dst *float32, rows **float32, width, k int) {
	switch s.tier {
	case kernels.AVX512:
		transposeAVX512(dst, rows, width, k)
	case kernels.AVX2:
		transposeAVX2(dst, rows, width, k)
	case kernels.SSE:
		transposeSSE(dst, rows, width, k)
	default:
		transposeGo(dst, rows, width, k)
	}
}

// copyPanels packs whole panels of B; see copyPanelsGo.
func (s *shape) copyPanels(dst, x *float32, ld, panels, k int) {
	switch s.tier {
	case kernels.AVX512:
		copyPanelsAVX512(dst, x, ld, panels, k)
	case kernels.AVX2:
		copyPanelsAVX2(dst, x, ld, panels, k)
	case kernels.SSE:
		copyPanelsSSE(dst, x, ld, panels, k)
	default:
		copyPanelsGo(dst, x, ld, panels, k, s.nr)
	}
}

// copyRim packs a panel of few columns; see copyRimGo.
func (s *shape) copyRim(dst, x *float32, ld, cols, width, k int) {
	switch s.tier {
	case kernels.AVX512:
		copyRimAVX512(dst, x, ld, cols, width, k)
	case kernels.AVX2:
		copyRimAVX2(dst, x, ld, cols, width, k)
	default:
		copyRimGo(dst, x, ld, cols, width, k)
	}
}

//go:noescape
func tileSSE(t *Tile)

//go:noescape
func tileAVX2(t *Tile)

//go:noescape
func tileAVX512(t *Tile)

//go:noescape
func transposeSSE(dst *float32, rows **float32, width int, k int)

//go:noescape
func transposeAVX2(dst *float32, rows **float32, width int, k int)

//go:noescape
func transposeAVX512(dst *float32, rows **float32, width int, k int)

//go:noescape
func copyPanelsSSE(dst *float32, x *float32, ld int, panels int, k int)

//go:noescape
func copyPanelsAVX2(dst *float32, x *float32, ld int, panels int, k int)

//go:noescape
func copyPanelsAVX512(dst *float32, x *float32, ld int, panels int, k int)

//go:noescape
func copyRimAVX2(dst *float32, x *float32, ld int, cols int, width int, k int)

//go:noescape
func copyRimAVX512(dst *float32, x *float32, ld int, cols int, width int, k int)

//go:noescape
func dotRowsSSE(y *float32, a *float32, ld int, x *float32, n, rows int)

//go:noescape
func axpyRowsSSE(y *float32, a *float32, ld int, f *float32, n, eights int)

//go:noescape
func dotRowsAVX2(y *float32, a *float32, ld int, x *float32, n, rows int)

//go:noescape
func axpyRowsAVX2(y *float32, a *float32, ld int, f *float32, n, eights int)

//go:noescape
func dotRowsAVX512(y *float32, a *float32, ld int, x *float32, n, rows int)

//go:noescape
func axpyRowsAVX512(y *float32, a *float32, ld int, f *float32, n, eights int)

//go:noescape
func columnsAVX2(y *float32, a *float32, ld int, f *float32, rows int, n int)

//go:noescape
func columnsAVX512(y *float32, a *float32, ld int, f *float32, rows int, n int)
