package gemm

import "github.com/wavelane/wavelane/internal/simd/kernels"

// Half is a matrix of 16-bit elements: IEEE binary16 or, if Brain, bfloat16. They are widened a part at a time, as they are
// used; products are those of the widened numbers, to the bit.
type Half struct {
	Bits  []uint16
	Brain bool
}

func (h Half) widen(dst []float32, at int) {
	if h.Brain {
		kernels.WidenBF16(dst, h.Bits[at:])
	} else {
		kernels.WidenF16(dst, h.Bits[at:])
	}
}

// Halves reports whether A and B may be 16 bits wide, as [Operands].HalfA and HalfB. Where they may not they are small, or
// have no contiguous axis, and are best widened as a whole.
func (pl *Plan) Halves() (a, b bool) {
	contiguousA, contiguousB := pl.AM == 1 || pl.AK == 1, pl.BK == 1 || pl.BN == 1
	switch pl.kind {
	case vectors:
		return pl.N == 1 && contiguousA, pl.N != 1 && contiguousB
	case few, packed:
		return contiguousA, contiguousB
	}
	return false, false
}

// matrix is elements of an operand, of either width.
type matrix struct {
	x []float32
	Half
}

func (o *Operands) left() matrix { return matrix{o.A, o.HalfA} }

func (o *Operands) right() matrix { return matrix{o.B, o.HalfB} }

// from is the matrix from an element on.
func (m matrix) from(at int) matrix {
	if m.x != nil {
		return matrix{x: m.x[at:]}
	}
	m.Bits = m.Bits[at:]
	return m
}

// check panics if there is no element at an index: assembly checks nothing.
func (m matrix) check(at int) {
	if m.x != nil {
		_ = m.x[at]
	} else {
		_ = m.Bits[at]
	}
}

// row returns n elements from one on, in spare memory if they are 16 bits wide.
func (m matrix) row(at, n int, spare []float32) []float32 {
	if m.x != nil {
		return m.x[at:][:n]
	}
	m.widen(spare[:n], at)
	return spare[:n]
}

// block returns a block of lanes and steps and its strides: where it lies, or in spare memory if its elements are 16 bits wide.
func (m matrix) block(lane, step, lanes, steps int, spare []float32) (x []float32, newLane, newStep int) {
	if m.x != nil {
		return m.x, lane, step
	}
	newLane, newStep = m.widenBlock(spare, lane, step, lanes, steps)
	return spare, newLane, newStep
}

// widenBlock widens a block of lanes and steps, one of which is contiguous, and returns their strides in dst.
func (h Half) widenBlock(dst []float32, lane, step, lanes, steps int) (newLane, newStep int) {
	if step == 1 {
		for l := range lanes {
			h.widen(dst[l*steps:][:steps], l*lane)
		}
		return steps, 1
	}
	for p := range steps {
		h.widen(dst[p*lanes:][:lanes], p*step)
	}
	return 1, lanes
}

// packHalf packs columns of a matrix of 16 bits as packB does.
func (s *shape) packHalf(dst []float32, h Half, lane, step, cols, steps int) {
	if cols == 0 || steps == 0 {
		return
	}
	if lane == 1 { // step by step, since memory is read best along rows
		for p := range steps {
			for j := 0; j < cols; j += s.nr {
				n := min(s.nr, cols-j)
				width := roundUp(n, s.lanes)
				row := dst[j*steps+p*width:][:width]
				h.widen(row[:n], p*step+j)
				clear(row[n:])
			}
		}
		return
	}
	buffer := borrow(s.nr * steps)
	for j := 0; j < cols; j += s.nr {
		n := min(s.nr, cols-j)
		newLane, newStep := Half{h.Bits[j*lane:], h.Brain}.widenBlock(*buffer, lane, step, n, steps)
		s.pack(dst[j*steps:], *buffer, newLane, newStep, n, steps, roundUp(n, s.lanes))
	}
	buffers.Put(buffer)
}

// dotRows sets y to the dot products of rows of m, ld apart, with x.
func (m matrix) dotRows(y []float32, ld int, x []float32) {
	if m.x != nil {
		dotRows(&y[0], &m.x[0], ld, &x[0], len(x), len(y))
		return
	}
	if dotHalves(y, m.Half, ld, x) {
		return
	}
	buffer := borrow(4 * len(x))
	for i := 0; i < len(y); i += 4 {
		n := min(4, len(y)-i)
		m.from(i*ld).widenBlock(*buffer, ld, 1, n, len(x))
		dotRows(&y[i], &(*buffer)[0], len(x), &x[0], len(x), n)
	}
	buffers.Put(buffer)
}

// columns sets y to the sum of rows of m, ld apart, each times a factor, and reports whether the tier has it.
func (m matrix) columns(y []float32, ld int, f []float32) bool {
	if len(f) == 0 || len(y) == 0 || !hasColumns() {
		return false
	}
	if m.x != nil {
		columns(&y[0], &m.x[0], ld, &f[0], len(f), len(y))
		return true
	}
	buffer := borrow(len(f) * len(y))
	m.widenBlock(*buffer, 1, ld, len(y), len(f))
	columns(&y[0], &(*buffer)[0], len(y), &f[0], len(f), len(y))
	buffers.Put(buffer)
	return true
}

// axpyRows adds to y rows of m, ld apart and a multiple of eight, each times a factor.
func (m matrix) axpyRows(y []float32, ld int, f []float32) {
	eights := len(f) / 8
	if m.x != nil {
		axpyRows(&y[0], &m.x[0], ld, &f[0], len(y), eights)
		return
	}
	if axpyHalves(y, m.Half, ld, f) {
		return
	}
	buffer := borrow(8 * len(y))
	for i := range eights {
		m.from(8*i*ld).widenBlock(*buffer, ld, 1, 8, len(y))
		axpyRows(&y[0], &(*buffer)[0], len(y), &f[8*i], len(y), 1)
	}
	buffers.Put(buffer)
}
