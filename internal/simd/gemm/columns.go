package gemm

import (
	"sync/atomic"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// few reports whether all rows of a block of A, packed, fit in the part of L2 that is for them. Then a panel of B is used only
// once, so that B is packed a few panels at a time, into L1 or L2, and not before. Matrices of more rows than columns are cut
// along their rows instead.
func (s *shape) few(p *Product) bool {
	return p.M <= max(p.N, 4*s.mr) && p.M*s.shallow(p) <= machine.l2/4/8
}

// shallow is the number of steps in a block of a product of few rows. For up to two panels of A, packed B stays in L1, and memory, read
// along rows of B, limits the product.
func (s *shape) shallow(p *Product) int {
	most := 256
	if p.M <= 2*s.mr && p.BN == 1 {
		most = 64
	}
	return ceilDiv(p.K, ceilDiv(p.K, min(most, s.depth(p.K))))
}

// groupCols is about the number of columns of B that are packed at a time.
const groupCols = 128

func (s *shape) group() int { return groupCols / s.nr * s.nr }

// unitCols is the least number of columns of a unit, where there are enough: beside them packing A costs little.
const unitCols = 512

// doColumns computes units of a product that is cut along its columns: a block of them, or the part of one that a part of the inner
// dimension makes.
func (pl *Plan) doColumns(lo, hi int, o *Operands, scratch []float32, stop *atomic.Bool) {
	size, group := pl.s.stripeBuffer(pl.kc), 0
	if pl.kind == few {
		group = pl.s.group()
		size = group*pl.kc + maxLanes + pl.workspace(o)
	}
	buffer := borrow(size)
	for u := lo; u < hi && !stopped(stop); u++ {
		split, item, j := u%pl.splits, u/pl.splits/pl.across, u/pl.splits%pl.across*pl.cols
		n := min(pl.cols, pl.N-j)
		a, b, c, ldc, beta := o.left().from(item*pl.StrideA), o.right().from(item*pl.StrideB), o.C[item*pl.StrideC:], pl.LDC, pl.Beta
		if pl.splits > 1 {
			c, ldc, beta = scratch[(split*pl.Batch+item)*pl.M*pl.N:], pl.N, 0
		}
		c = c[j:]
		k, end := split*pl.perSplit*pl.kc, min(pl.K, (split+1)*pl.perSplit*pl.kc)
		for ; k < end && !stopped(stop); k += pl.kc {
			steps := min(pl.kc, end-k)
			left, right := a.from(k*pl.AK), b.from(k*pl.BK+j*pl.BN)
			if pl.kind == direct {
				pl.s.stripe(&pl.Product, left.x, right.x, c, ldc, n, steps, beta, *buffer)
			} else {
				t := Tile{K: steps, LDC: ldc, Alpha: pl.Alpha, Beta: beta}
				panels := group*pl.kc + maxLanes
				pl.block(&t, left, right, pl.M, n, group, (*buffer)[:panels], c, (*buffer)[panels:], stop)
			}
			beta = 1
		}
		if pl.splits == 1 {
			pl.apply(o, c, 0, j, pl.M, n)
		}
	}
	buffers.Put(buffer)
}

// gather adds the parts of a split inner dimension and finishes rows of C. Parts lie in scratch memory, each like C.
func (pl *Plan) gather(lo, hi int, o *Operands, scratch []float32) {
	for u := lo; u < hi; u++ {
		item, i := u/pl.M, u%pl.M
		c := o.C[item*pl.StrideC+i*pl.LDC:]
		y := c[:pl.N]
		part := func(s int) []float32 { return scratch[((s*pl.Batch+item)*pl.M+i)*pl.N:][:pl.N] }
		first := part(0)
		for s := 1; s < pl.splits; s++ {
			kernels.Add(first, first, part(s))
		}
		if pl.Beta == 0 {
			copy(y, first)
		} else {
			kernels.Axpy(y, first, y, pl.Beta)
		}
		pl.apply(o, c, i, 0, 1, pl.N)
	}
}
