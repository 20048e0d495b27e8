package gemm

import "github.com/wavelane/wavelane/internal/simd/kernels"

// shapeNEON: 24 of the 32 registers accumulate 8×12 elements.
var shapeNEON = shape{tier: kernels.NEON, mr: 8, nr: 12, lanes: 4}

// active is the shape of the active tier.
func active() *shape {
	if kernels.Active() == kernels.NEON {
		return &shapeNEON
	}
	return &shapeGo
}

// tile computes a tile of C.
func (s *shape) tile(t *Tile) {
	if s.tier == kernels.NEON {
		tileNEON(t)
	} else {
		tileGo(t)
	}
}

// transpose packs s.lanes lanes; see transposeGo.
func (s *shape) transpose(dst *float32, rows **float32, width, k int) {
	if s.tier == kernels.NEON {
		transposeNEON(dst, rows, width, k)
	} else {
		transposeGo(dst, rows, width, k)
	}
}

//go:noescape
func tileNEON(t *Tile)

//go:noescape
func transposeNEON(dst *float32, rows **float32, width int, k int)

//go:noescape
func dotRowsNEON(y *float32, a *float32, ld int, x *float32, n int, rows int)

//go:noescape
func dotRowsF16NEON(y *float32, a *uint16, ld int, x *float32, n int, rows int)

//go:noescape
func dotRowsBF16NEON(y *float32, a *uint16, ld int, x *float32, n int, rows int)

//go:noescape
func axpyRowsNEON(y *float32, a *float32, ld int, f *float32, n int, eights int)

//go:noescape
func axpyRowsF16NEON(y *float32, a *uint16, ld int, f *float32, n int, eights int)

//go:noescape
func axpyRowsBF16NEON(y *float32, a *uint16, ld int, f *float32, n int, eights int)
