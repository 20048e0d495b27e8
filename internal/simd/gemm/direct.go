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
	if p.BN == 1 && s.whole(p.N) {
		s.stripe(p, o.A, o.B, o.C, p.LDC, p.N, p.K, p.Beta, nil)
	} else {
		buffer := borrow(s.stripeBuffer(p.K))
		s.stripe(p, o.A, o.B, o.C, p.LDC, p.N, p.K, p.Beta, *buffer)
		buffers.Put(buffer)
	}
	p.apply(o, o.C, 0, 0, p.M, p.N)
	return true
}

// whole reports whether columns fill vectors.
func (s *shape) whole(cols int) bool { return cols&(s.lanes-1) == 0 }

// stripeBuffer is the memory that stripe needs: a panel of B and spare memory for a tile.
func (s *shape) stripeBuffer(steps int) int { return steps*s.nr + maxLanes + s.nr*s.mr }

// stripe multiplies all rows of A with n columns of B over a block of the inner dimension. Panels of B whose columns are
// contiguous and fill vectors are used as they lie, and the others packed.
func (s *shape) stripe(p *Product, a, b, c []float32, ldc, n, steps int, beta float32, buffer []float32) {
	var t Tile // not a literal, which would be copied from another place
	t.K, t.AI, t.AK, t.LDC, t.Alpha, t.Beta = steps, p.AM, p.AK, ldc, p.Alpha, beta
	_, _ = a[(p.M-1)*p.AM+(steps-1)*p.AK], b[(steps-1)*p.BK+(n-1)*p.BN]
	for j := 0; j < n; j += s.nr {
		t.Cols = min(s.nr, n-j)
		count, height, tall := panels(p.M, s.most(t.Cols))
		if p.BN == 1 && s.whole(t.Cols) {
			t.B, t.BK = &b[j], p.BK
		} else {
			t.BK = roundUp(t.Cols, s.lanes)
			s.pack(buffer, b[j*p.BN:], p.BN, p.BK, t.Cols, steps, t.BK)
			t.B = &buffer[0]
		}
		for i, rows, number := 0, height+1, tall; i < p.M; rows, number = height, count-tall {
			if number == 0 {
				continue
			}
			t.Rows, t.Panels, t.NextA = rows, number, rows*p.AM
			t.A, t.C = &a[i*p.AM], &c[i*ldc+j]
			if s.masked || s.whole(t.Cols) {
				s.below(&t)
			} else {
				s.put(&t, buffer[len(buffer)-s.nr*s.mr:])
			}
			i += number * rows
		}
	}
}

// put computes t.Panels tiles, each on spare memory if the kernel takes only whole vectors and the tile has others.
func (s *shape) put(t *Tile, spare []float32) {
	if s.masked || s.whole(t.Cols) {
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
