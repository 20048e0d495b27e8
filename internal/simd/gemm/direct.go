package gemm

// near reports whether operands are best used as they lie: if all matrices fit in L2 together, or are many and so small that packing them
// would cost more than it gains.
func (s *shape) near(p *Product) bool {
	if p.AM != 1 && p.AK != 1 {
		return false
	}
	span := func(rows, row, cols, col int) int { return (rows-1)*row + (cols-1)*col }
	items := 1
	if p.M*p.N*p.K >= 64*64*64 {
		items = p.Batch
	}
	return items*(span(p.M, p.AM, p.K, p.AK)+span(p.K, p.BK, p.N, p.BN)+span(p.M, p.LDC, p.N, 1)) < machine.l2/4*7/8
}

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
	if !s.near(p) {
		return false
	}
	if p.BN == 1 && p.N%s.lanes == 0 {
		s.stripe(p, o.A, o.right(), o.C, p.LDC, p.N, p.K, p.Beta, nil)
	} else {
		buffer := borrow(s.stripeBuffer(p.K))
		s.stripe(p, o.A, o.right(), o.C, p.LDC, p.N, p.K, p.Beta, *buffer)
		buffers.Put(buffer)
	}
	p.apply(o, o.C, 0, 0, p.M, p.N)
	return true
}

// stripeBuffer is the memory that stripe needs: a panel of B and spare memory for a tile.
func (s *shape) stripeBuffer(steps int) int { return steps*s.nr + maxLanes + s.nr*s.mr }

// stripe multiplies all rows of A with n columns of B over a block of the inner dimension. Panels of B whose columns are
// contiguous and fill vectors are used as they lie, and the others packed.
func (s *shape) stripe(p *Product, a []float32, b matrix, c []float32, ldc, n, steps int, beta float32, buffer []float32) {
	t := Tile{K: steps, AI: p.AM, AK: p.AK, LDC: ldc, Alpha: p.Alpha, Beta: beta}
	_ = a[(p.M-1)*p.AM+(steps-1)*p.AK]
	b.check((steps-1)*p.BK + (n-1)*p.BN)
	count, height, tall := panels(p.M, s.mr)
	for j := 0; j < n; j += s.nr {
		t.Cols = min(s.nr, n-j)
		if p.BN == 1 && t.Cols%s.lanes == 0 {
			t.B, t.BK = &b.x[j], p.BK
		} else {
			t.BK = roundUp(t.Cols, s.lanes)
			s.pack(buffer, b.x[j*p.BN:], p.BN, p.BK, t.Cols, steps, t.BK)
			t.B = &buffer[0]
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
