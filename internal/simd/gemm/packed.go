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
		x := o.right().from((b.item+item)*pl.StrideB + (b.step+k)*pl.BK + b.col*pl.BN)
		to := scratch[item*pl.slabSize()+k*wide:]
		pl.s.packB(to[j*steps:], x.from(j*pl.BN), pl.BN, pl.BK, min(group, b.cols-j), steps)
	}
}

// multiply computes units of C from a packed slab of B: a block of C each, for which it packs A block by block.
func (pl *Plan) multiply(i, lo, hi int, o *Operands, scratch []float32, stop *atomic.Bool) {
	slab := pl.slab(i)
	wide := roundUp(slab.cols, pl.s.lanes)
	across := ceilDiv(slab.cols, pl.cols)
	last := slab.step+slab.steps == pl.K
	buffer := borrow(pl.workspace(o))
	for u := lo; u < hi; u++ {
		item, r, j := u/across/pl.down, u/across%pl.down*pl.rows, u%across*pl.cols
		m, n := min(pl.rows, pl.M-r), min(pl.cols, slab.cols-j)
		if m <= 0 {
			continue
		}
		x := o.left().from((slab.item+item)*pl.StrideA + r*pl.AM)
		from := scratch
		if pl.StrideB > 0 {
			from = scratch[item*pl.slabSize():]
		}
		c := o.C[(slab.item+item)*pl.StrideC+r*pl.LDC+slab.col+j:]
		t := Tile{LDC: pl.LDC, Alpha: pl.Alpha, Beta: pl.Beta}
		if slab.step > 0 {
			t.Beta = 1
		}
		for k := 0; k < slab.steps && !stopped(stop); k += pl.kc {
			t.K = min(pl.kc, slab.steps-k)
			group := stopGroup * pl.s.nr * max(1, 128/t.K)
			pl.block(&t, x.from((slab.step+k)*pl.AK), matrix{}, m, n, group, from[k*wide+j*t.K:], c, *buffer, stop)
			t.Beta = 1
		}
		if last {
			pl.apply(o, c, r, slab.col+j, m, n)
		}
	}
	buffers.Put(buffer)
}

// workspace is the memory that block needs: packed A, spare memory for a tile, and A if it is widened.
func (pl *Plan) workspace(o *Operands) int {
	size := pl.rows*pl.kc + maxLanes + pl.s.mr*pl.s.nr
	if o.A == nil {
		size += pl.rows * pl.kc
	}
	return size
}

// block adds to m×n elements of C the product of m rows of A and n columns of B over a block of the inner dimension. Where b is empty, B
// is packed already; otherwise some columns of b at a time, a group, are packed to the same place and multiplied.
func (pl *Plan) block(t *Tile, a, b matrix, m, n, group int, packed, c, buffer []float32, stop *atomic.Bool) {
	s, size := pl.s, pl.rows*pl.kc+maxLanes
	left, spare := buffer[:size], buffer[size:][:s.mr*s.nr]
	x, row, step := a.block(pl.AM, pl.AK, m, t.K, buffer[size+s.mr*s.nr:])
	asIs := pl.asIs(n)
	if asIs {
		_ = x[(m-1)*row+(t.K-1)*step]
		t.AI, t.AK = row, step
	} else {
		s.packA(left, x, row, step, m, t.K)
	}
	unpacked := b.x != nil || b.Bits != nil
	for j := 0; j < n && !stopped(stop); j += group {
		wide, right := min(group, n-j), packed
		if unpacked {
			s.packB(right, b.from(j*pl.BN), pl.BN, pl.BK, wide, t.K)
		} else {
			right = packed[j*t.K:]
		}
		if asIs {
			s.tiles(t, x, row, right, c[j:], m, wide, spare)
		} else {
			s.block(t, left, right, c[j:], m, wide, spare)
		}
	}
}

// asIs reports whether A is used without packing, by units of a number of columns: where packing costs more than it gains, as
// it meets few columns or lies in L2, unless its rows share sets of L1 there.
func (pl *Plan) asIs(cols int) bool {
	few := cols <= groupCols/2
	near := pl.M*pl.AM <= machine.l2/16 && pl.AM%1024 != 0
	return few && pl.AM == 1 || pl.AK == 1 && (few || near)
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
	t.AI = 1
	s.tiles(t, a, 0, b, c, m, n, spare)
}

// tiles computes m×n elements of C from packed panels of B. Rows of A are lane apart; 0 stands for packed panels.
//
// A panel of B in turn meets all of A, which L2 holds. If B is small it is the other way round: then C, which
// little is computed for, is written along its rows.
func (s *shape) tiles(t *Tile, a []float32, lane int, b, c []float32, m, n int, spare []float32) {
	count, height, tall := panels(m, s.mr)
	// put computes some panels from one on, of equal height.
	put := func(p, number, rows, j int) {
		i := p*height + min(p, tall)
		t.Rows, t.Cols, t.Panels = rows, min(s.nr, n-j), number
		t.B, t.BK, t.C = &b[j*t.K], roundUp(t.Cols, s.lanes), &c[i*t.LDC+j]
		if lane == 0 {
			t.A, t.AK, t.NextA = &a[i*t.K], rows, t.K*rows
		} else {
			t.A, t.NextA = &a[i*lane], rows*lane
		}
		s.put(t, spare)
	}
	t.Ahead, t.AheadEnd = nil, nil
	if t.K*n <= machine.l2/4/16 {
		for p := range count {
			rows := height
			if p < tall {
				rows++
			}
			for j := 0; j < n; j += s.nr {
				put(p, 1, rows, j)
			}
		}
		return
	}
	for j := 0; j < n; j += s.nr {
		next := (j + s.nr) * t.K // the next panel of B is fetched meanwhile
		ahead := func(tiles int) {
			t.Ahead, t.AheadEnd = nil, nil
			end := min(next+s.nr*t.K, len(b))
			if at := next + tiles*(t.K/tileSteps)*lineLen; at < end {
				t.Ahead, t.AheadEnd = &b[at], &b[end-1]
			}
		}
		if tall > 0 {
			ahead(0)
			put(0, tall, height+1, j)
		}
		if tall < count {
			ahead(tall)
			put(tall, count-tall, height, j)
		}
	}
}

// Tiles of packed panels ask for a line of memory that is needed soon every tileSteps steps.
const (
	tileSteps = 4
	lineLen   = 64 / 4
)

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
