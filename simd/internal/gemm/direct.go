package gemm

import "sync/atomic"

// doDirect computes units of a product with few rows: a block of columns, or the part of one that a part of the inner
// dimension makes. Rows of A are used as they lie. So are panels of B whose columns are contiguous and fill vectors; others
// are packed, each by the unit that uses it.
func (pl *Plan) doDirect(lo, hi int, o *Operands, scratch []float32, stop *atomic.Bool) {
	buffer := borrow(pl.kc*pl.s.nr + pl.s.nr*pl.s.mr)
	for u := lo; u < hi && !stopped(stop); u++ {
		split, item, j := u%pl.splits, u/pl.splits/pl.across, u/pl.splits%pl.across*pl.cols
		n := min(pl.cols, pl.N-j)
		a, b, c, ldc, beta := o.A[item*pl.StrideA:], o.B[item*pl.StrideB:], o.C[item*pl.StrideC:], pl.LDC, pl.Beta
		if pl.splits > 1 {
			c, ldc, beta = scratch[(split*pl.Batch+item)*pl.M*pl.N:], pl.N, 0
		}
		c = c[j:]
		k, end := split*pl.perSplit*pl.kc, min(pl.K, (split+1)*pl.perSplit*pl.kc)
		for ; k < end && !stopped(stop); k += pl.kc {
			pl.stripe(a[k*pl.AK:], b[k*pl.BK+j*pl.BN:], c, ldc, n, min(pl.kc, end-k), beta, *buffer)
			beta = 1
		}
		if pl.splits == 1 {
			pl.apply(o, c, 0, j, pl.M, n)
		}
	}
	buffers.Put(buffer)
}

// stripe multiplies all rows of A with n columns of B over a block of the inner dimension.
func (pl *Plan) stripe(a, b, c []float32, ldc, n, steps int, beta float32, buffer []float32) {
	s := pl.s
	spare := buffer[pl.kc*s.nr:]
	t := Tile{K: steps, AI: pl.AM, AK: pl.AK, LDC: ldc, Alpha: pl.Alpha, Beta: beta}
	if pl.M == 1 {
		t.AI = 1
	}
	count, height, tall := panels(pl.M, s.mr)
	for j := 0; j < n; j += s.nr {
		t.Cols = min(s.nr, n-j)
		if pl.BN == 1 && t.Cols%s.lanes == 0 {
			t.B, t.BK = &b[j], pl.BK
		} else {
			t.BK = roundUp(t.Cols, s.lanes)
			s.pack(buffer, b[j*pl.BN:], pl.BN, pl.BK, t.Cols, steps, t.BK)
			t.B = &buffer[0]
		}
		i := 0
		for p := range count {
			t.Rows = height
			if p < tall {
				t.Rows++
			}
			t.A, t.C = &a[i*pl.AM], &c[i*ldc+j]
			s.put(&t, spare)
			i += t.Rows
		}
	}
}

// put computes a tile, on spare memory if the kernel takes only whole vectors and the tile has others.
func (s *shape) put(t *Tile, spare []float32) {
	if s.masked || t.Cols%s.lanes == 0 {
		s.tile(t)
		return
	}
	whole := *t
	whole.Cols, whole.LDC, whole.Beta, whole.C = roundUp(t.Cols, s.lanes), s.nr, 0, &spare[0]
	s.tile(&whole)
	t.merge(spare, s.nr)
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
			for x, v := range part(s) {
				first[x] += v
			}
		}
		if pl.Beta == 0 {
			copy(y, first)
		} else {
			for x, v := range first {
				y[x] = pl.Beta*y[x] + v
			}
		}
		pl.apply(o, c, i, 0, 1, pl.N)
	}
}
