package gemm

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// stopGroup is the number of panels of B that are multiplied without a look whether to stop.
const stopGroup = 8

// packGroup is the number of panels of B that a unit packs.
const packGroup = 8

// slab is a part of B and of C: matrices, steps of the inner dimension and columns.
type slab struct{ item, items, step, steps, col, cols int }

// slab returns the part of B that is packed and multiplied at a time; successive ones go along the inner dimension first.
func (pl *Plan) slab(i int) slab {
	step, col, item := i%pl.byStep*pl.steps, i/pl.byStep%pl.byCol*pl.wide, i/pl.byStep/pl.byCol*pl.items
	return slab{item, min(pl.items, pl.Batch-item), step, min(pl.steps, pl.K-step), col, min(pl.wide, pl.N-col)}
}

// packB packs units of a slab of B: a block of the inner dimension of a group of panels. A packed matrix is block after block,
// each of them panel after panel.
func (pl *Plan) packB(i, lo, hi int, o *Operands, scratch []float32) {
	b := pl.slab(i)
	group := packGroup * pl.s.nr
	blocks, groups := ceilDiv(b.steps, pl.kc), ceilDiv(b.cols, group)
	wide := roundUp(b.cols, pl.s.lanes)
	for u := lo; u < hi; u++ {
		item, k, j := u/groups/blocks, u/groups%blocks*pl.kc, u%groups*group
		steps := min(pl.kc, b.steps-k)
		x := o.B[(b.item+item)*pl.StrideB+(b.step+k)*pl.BK+b.col*pl.BN:]
		to := scratch[item*pl.slabSize()+k*wide:]
		pl.s.packB(to[j*steps:], x[j*pl.BN:], pl.BN, pl.BK, min(group, b.cols-j), steps)
	}
}

// multiply computes units of C from a packed slab of B: a block of C each, for which it packs A block by block.
func (pl *Plan) multiply(i, lo, hi int, o *Operands, scratch []float32, stop *atomic.Bool) {
	b := pl.slab(i)
	wide := roundUp(b.cols, pl.s.lanes)
	across := ceilDiv(b.cols, pl.cols)
	last := b.step+b.steps == pl.K
	sizeA := pl.rows*pl.kc + maxLanes
	buffer := borrow(sizeA + pl.s.mr*pl.s.nr)
	left, spare := (*buffer)[:sizeA], (*buffer)[sizeA:]
	for u := lo; u < hi; u++ {
		item, r, j := u/across/pl.down, u/across%pl.down*pl.rows, u%across*pl.cols
		m, n := min(pl.rows, pl.M-r), min(pl.cols, b.cols-j)
		if m <= 0 {
			continue
		}
		x := o.A[(b.item+item)*pl.StrideA+r*pl.AM:]
		from := scratch
		if pl.StrideB > 0 {
			from = scratch[item*pl.slabSize():]
		}
		c := o.C[(b.item+item)*pl.StrideC+r*pl.LDC+b.col+j:]
		t := Tile{LDC: pl.LDC, Alpha: pl.Alpha, Beta: pl.Beta}
		if b.step > 0 {
			t.Beta = 1
		}
		for k := 0; k < b.steps && !stopped(stop); k += pl.kc {
			t.K = min(pl.kc, b.steps-k)
			pl.s.packA(left, x[(b.step+k)*pl.AK:], pl.AM, pl.AK, m, t.K)
			for q := 0; q < n && !stopped(stop); q += stopGroup * pl.s.nr {
				pl.s.block(&t, left, from[k*wide+(j+q)*t.K:], c[q:], m, min(stopGroup*pl.s.nr, n-q), spare)
			}
			t.Beta = 1
		}
		if last {
			pl.apply(o, c, r, b.col+j, m, n)
		}
	}
	buffers.Put(buffer)
}

// packA packs m rows of A in panels of equal height.
func (s *shape) packA(dst, x []float32, lane, step, m, steps int) {
	count, height, tall := panels(m, s.mr)
	i := 0
	for p := range count {
		rows := height
		if p < tall {
			rows++
		}
		s.pack(dst[i*steps:], x[i*lane:], lane, step, rows, steps, rows)
		i += rows
	}
}

// block adds the product of packed panels of A and B to m×n elements of C.
func (s *shape) block(t *Tile, a, b, c []float32, m, n int, spare []float32) {
	if s.macro(t, a, b, c, m, n) {
		return
	}
	count, height, tall := panels(m, s.mr)
	t.AI = 1
	for j := 0; j < n; j += s.nr {
		t.Cols = min(s.nr, n-j)
		t.BK = roundUp(t.Cols, s.lanes)
		t.B = &b[j*t.K]
		next := j*t.K + t.K*s.nr
		i := 0
		for p := range count {
			t.Rows = height
			if p < tall {
				t.Rows++
			}
			t.A, t.AK, t.C, t.Ahead = &a[i*t.K], t.Rows, &c[i*t.LDC+j], nil
			if next < len(b) && next < (j+2*s.nr)*t.K { // the first tiles fetch the next panel of B
				t.Ahead = &b[next]
				next += t.K * 16
			}
			s.put(t, spare)
			i += t.Rows
		}
	}
}

// merge adds a tile that was computed on spare memory, rows ld apart, to C.
func (t *Tile) merge(from []float32, ld int) {
	c := unsafe.Slice(t.C, (t.Rows-1)*t.LDC+t.Cols)
	for i := range t.Rows {
		y, x := c[i*t.LDC:][:t.Cols], from[i*ld:][:t.Cols]
		if t.Beta == 0 {
			copy(y, x)
			continue
		}
		for j, v := range x {
			y[j] = t.Beta*y[j] + v
		}
	}
}

// buffers lend units the memory in which they pack.
var buffers = sync.Pool{New: func() any { return new([]float32) }}

func borrow(n int) *[]float32 {
	b := buffers.Get().(*[]float32)
	if cap(*b) < n {
		*b = make([]float32, n)
	}
	*b = (*b)[:n]
	return b
}
