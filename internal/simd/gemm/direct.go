package gemm

import (
	"sync/atomic"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// unpacked reports whether operands are best used as they lie, and whether that is so for all columns of B: they are near if
// all matrices fit in L2 together. Of other products those of few rows leave A as it lies.
func (s *shape) unpacked(p *Product) (near, few bool) {
	if p.AM != 1 && p.AK != 1 {
		return false, false
	}
	span := func(rows, row, cols, col int) int { return (rows-1)*row + (cols-1)*col }
	near = span(p.M, p.AM, p.K, p.AK)+span(p.K, p.BK, p.N, p.BN)+span(p.M, p.LDC, p.N, 1) < machine.l2/4*7/8
	return near, p.M <= fewRows*s.mr
}

// fewRows is the most panels of A whose rows are used as they lie wherever they lie.
const fewRows = 8

// small computes a product in one go if that is best, and reports whether it has.
func (s *shape) small(p *Product, o *Operands) bool {
	if p.Batch != 1 || p.K == 0 || p.Alpha == 0 {
		return false
	}
	if p.M == 1 || p.N == 1 {
		return p.smallVector(o)
	}
	if p.M*p.N*p.K > 64*64*64 || p.K > 256 {
		return false
	}
	if near, _ := s.unpacked(p); !near {
		return false
	}
	if p.BN == 1 && p.N%s.lanes == 0 {
		s.stripe(p, o.A, o.right(), o.C, p.LDC, p.N, p.K, p.Beta, 0, nil)
	} else {
		buffer := borrow(s.stripeBuffer(p.K, 0))
		s.stripe(p, o.A, o.right(), o.C, p.LDC, p.N, p.K, p.Beta, 0, *buffer)
		buffers.Put(buffer)
	}
	p.apply(o, o.C, 0, 0, p.M, p.N)
	return true
}

// doDirect computes units of a product whose rows of A are used as they lie: a block of columns, or the part of one that a
// part of the inner dimension makes.
func (pl *Plan) doDirect(lo, hi int, o *Operands, scratch []float32, stop *atomic.Bool) {
	buffer := borrow(pl.s.stripeBuffer(pl.kc, pl.group))
	for u := lo; u < hi && !stopped(stop); u++ {
		split, item, j := u%pl.splits, u/pl.splits/pl.across, u/pl.splits%pl.across*pl.cols
		n := min(pl.cols, pl.N-j)
		a, b, c, ldc, beta := o.A[item*pl.StrideA:], o.right().from(item*pl.StrideB), o.C[item*pl.StrideC:], pl.LDC, pl.Beta
		if pl.splits > 1 {
			c, ldc, beta = scratch[(split*pl.Batch+item)*pl.M*pl.N:], pl.N, 0
		}
		c = c[j:]
		k, end := split*pl.perSplit*pl.kc, min(pl.K, (split+1)*pl.perSplit*pl.kc)
		for ; k < end && !stopped(stop); k += pl.kc {
			steps := min(pl.kc, end-k)
			pl.s.stripe(&pl.Product, a[k*pl.AK:], b.from(k*pl.BK+j*pl.BN), c, ldc, n, steps, beta, pl.group, *buffer)
			beta = 1
		}
		if pl.splits == 1 {
			pl.apply(o, c, 0, j, pl.M, n)
		}
	}
	buffers.Put(buffer)
}

// stripeBuffer is the memory that stripe needs: panels of B and spare memory for a tile.
func (s *shape) stripeBuffer(steps, group int) int {
	return steps*s.nr*max(group, 1) + maxLanes + s.nr*s.mr
}

// stripe multiplies all rows of A with n columns of B over a block of the inner dimension. B is packed a group of panels at a
// time. With group 0 panels whose columns are contiguous and fill vectors are used as they lie, and the others packed.
func (s *shape) stripe(p *Product, a []float32, b matrix, c []float32, ldc, n, steps int, beta float32, group int, buffer []float32) {
	t := Tile{K: steps, AI: p.AM, AK: p.AK, LDC: ldc, Alpha: p.Alpha, Beta: beta}
	if p.M == 1 {
		t.AI = 1
	}
	_ = a[(p.M-1)*p.AM+(steps-1)*p.AK]
	b.check((steps-1)*p.BK + (n-1)*p.BN)
	count, height, tall := panels(p.M, s.mr)
	for j := 0; j < n; j += s.nr {
		t.Cols = min(s.nr, n-j)
		switch {
		case group == 0 && p.BN == 1 && t.Cols%s.lanes == 0:
			t.B, t.BK = &b.x[j], p.BK
		case group == 0:
			t.BK = roundUp(t.Cols, s.lanes)
			s.pack(buffer, b.x[j*p.BN:], p.BN, p.BK, t.Cols, steps, t.BK)
			t.B = &buffer[0]
		default:
			in := j % (group * s.nr)
			if in == 0 {
				s.packB(buffer, b.from(j*p.BN), p.BN, p.BK, min(group*s.nr, n-j), steps)
			}
			t.BK = roundUp(t.Cols, s.lanes)
			t.B = &buffer[in*steps]
		}
		i := 0
		for _, q := range [2]struct{ number, rows int }{{tall, height + 1}, {count - tall, height}} {
			if q.number == 0 {
				continue
			}
			t.Rows, t.Panels, t.NextA = q.rows, q.number, q.rows*p.AM
			t.A, t.C = &a[i*p.AM], &c[i*ldc+j]
			if s.masked || t.Cols%s.lanes == 0 {
				s.below(&t)
			} else {
				s.put(&t, buffer[len(buffer)-s.nr*s.mr:])
			}
			i += q.number * q.rows
		}
	}
}

// put computes t.Panels tiles, each on spare memory if the kernel takes only whole vectors and the tile has others.
func (s *shape) put(t *Tile, spare []float32) {
	if s.masked || t.Cols%s.lanes == 0 {
		s.below(t)
		return
	}
	whole := *t
	whole.Cols, whole.LDC, whole.Beta = roundUp(t.Cols, s.lanes), s.nr, 0
	for ; ; t.Panels-- {
		whole.A, whole.C, whole.Panels = t.A, &spare[0], 1
		s.tile(&whole)
		t.merge(spare, s.nr)
		if t.Panels == 1 {
			return
		}
		t.next()
	}
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
