package gemm

import "sync/atomic"

// Windows is a product C = A·B whose B is made of a convolution's windows and never exists as a whole: row p of B is what
// tap p reads at every output pixel. Columns come in lines: column j of row p is
//
//	x[Offsets[p] + (j/Width)*Step + j%Width]
//
// Element (i, p) of A is at i*AM + p, (i, j) of C at i*LDC + j.
type Windows struct {
	M, AM       int
	Offsets     []int32
	Width, Step int
	LDC         int
	Once        bool // few columns: A is not packed before
	// Apart lets the last columns be computed apart if they would fill little of a vector. They round otherwise, so which they are must
	// not depend on the number of threads.
	Apart bool
	// Taps is the number of offsets of a channel, Together how many channels x holds at a time if Multiply is given fill.
	Taps, Together int

	s          *shape
	kc, height int // steps of the inner dimension and rows in a block
}

// tallest is the most panels of A that a panel of B meets before the next one is packed: those of them that have been used
// stay in L2.
const tallest = 16

// Plan chooses the blocks for the active tier, with at least a given number along the rows; it must come before anything
// else.
func (w *Windows) Plan(down int) {
	w.s = active()
	w.kc = w.s.depth(len(w.Offsets))
	tall := tallest
	if w.Once {
		tall = 4
	}
	w.height = ceilDiv(w.M, max(down, ceilDiv(w.M, tall*w.s.mr)))
}

// NS is the estimated time for a column of C.
func (w *Windows) NS() float64 { return float64(len(w.Offsets)) * w.s.rate() * float64(w.M+4) }

// TileSize is the rows and columns of the active tier's tiles: cuts are best a multiple of them.
func TileSize() (rows, cols int) {
	s := active()
	return s.mr, s.nr
}

// Steps is how many of a convolution's taps are in a block.
func Steps(taps int) int { return active().depth(taps) }

func (w *Windows) blockSize() int { return w.height*w.kc + maxLanes }

// Down is the number of blocks along the rows.
func (w *Windows) Down() int { return ceilDiv(w.M, w.height) }

// Rows returns the rows of blocks lo to hi.
func (w *Windows) Rows(lo, hi int) (from, to int) {
	return min(lo*w.height, w.M), min(hi*w.height, w.M)
}

// Blocks is the number of blocks of A, which may be packed at the same time; none if Once.
func (w *Windows) Blocks() int {
	if w.Once {
		return 0
	}
	return w.Down() * ceilDiv(len(w.Offsets), w.kc)
}

// Packed is the number of elements that packed A takes.
func (w *Windows) Packed() int { return w.Blocks() * w.blockSize() }

// Pack packs one block of A.
func (w *Windows) Pack(dst, a []float32, block int) {
	k, r := block/w.Down()*w.kc, block%w.Down()*w.height
	m, steps := min(w.height, w.M-r), min(w.kc, len(w.Offsets)-k)
	w.s.packA(dst[block*w.blockSize():][:w.blockSize()], a[r*w.AM+k:], w.AM, 1, m, steps)
}

// Multiply computes columns 0 to n of C in the rows of blocks lo to hi, from packed A, or from A itself if Once. When stop,
// which may be nil, becomes true, it may return early. If fill is not nil, which is for A that is packed, x is where it puts some
// channels, Together at most, as if they were the first: what panels are made of is in L1 then.
func (w *Windows) Multiply(c, a, x []float32, n, lo, hi int, stop *atomic.Bool, fill func(channel, count int)) {
	if w.Once && n <= fewColumns {
		w.vectors(c, a, x, n, lo, hi)
		return
	}
	s := w.s
	rest := w.rest(n)
	n -= rest
	group := s.nr
	if hi-lo > 1 || w.Once || fill != nil {
		group = roundUp(n, s.nr) // every block of A meets all panels, so that it is read once
	}
	own := 0
	if w.Once && !s.column {
		own = w.blockSize()
	}
	buffer := borrow(w.kc*group + s.mr*s.nr + own + rest*w.kc + w.height)
	spare := (*buffer)[w.kc*group:]
	block := spare[s.mr*s.nr:]
	columns := block[own:]
	t := Tile{LDC: w.LDC, Alpha: 1}
	for k := 0; k < len(w.Offsets) && !stopped(stop); k += w.kc {
		offsets := w.Offsets[k:min(k+w.kc, len(w.Offsets))]
		t.K = len(offsets)
		for q := range rest {
			column := x[(n+q)/w.Width*w.Step+(n+q)%w.Width:]
			for p, at := range offsets {
				columns[q*t.K+p] = column[at]
			}
		}
		for j := 0; j < n; j += group {
			cols := min(group, n-j)
			for p := 0; p < t.K; {
				part := offsets
				if Fills && fill != nil {
					channel, first := (k+p)/w.Taps, (k+p)%w.Taps
					part = w.Offsets[first:min(w.Together*w.Taps, first+t.K-p)]
					fill(channel, ceilDiv(first+len(part), w.Taps))
				}
				for q := 0; q < cols; q += s.nr {
					width := min(s.nr, cols-q)
					w.gather((*buffer)[q*t.K+p*roundUp(width, s.lanes):], x, part, j+q, width)
				}
				p += len(part)
			}
			panels := (*buffer)[:t.K*roundUp(cols, s.lanes)]
			for i := lo; i < hi; i++ {
				from, to := w.Rows(i, i+1)
				y, rows := c[from*w.LDC+j:], to-from
				switch {
				case w.Once && s.column: // packing A would take as long as its few columns do
					t.AI, t.AK = w.AM, 1
					s.tiles(&t, a[from*w.AM+k:], w.AM, panels, y, rows, cols, spare)
				case w.Once:
					s.packA(block, a[from*w.AM+k:], w.AM, 1, rows, t.K)
					s.block(&t, block, panels, y, rows, cols, spare)
				default:
					s.block(&t, a[(k/w.kc*w.Down()+i)*w.blockSize():], panels, y, rows, cols, spare)
				}
				for q := range rest {
					w.column(y[cols+q:], a[from*w.AM+k:], columns[q*t.K:][:t.K], columns[rest*w.kc:][:rows], t.Beta != 0)
				}
			}
		}
		t.Beta = 1
	}
	buffers.Put(buffer)
}

// rest is how many of n columns, the last, are computed apart.
func (w *Windows) rest(n int) int {
	rest := n % w.s.lanes
	if !apart || !w.Apart || !w.Once || !w.s.column || n < w.s.lanes || 4*rest > w.s.lanes {
		return 0
	}
	return rest
}

// column sets a column of C, or adds to it, to the products of rows of A with v, four at a time however many there are, so that an
// element does not depend on which rows are computed together.
func (w *Windows) column(c, a, v, sums []float32, add bool) {
	m := matrix{x: a}
	whole := len(sums) &^ 3
	if whole > 0 {
		m.dotRows(sums[:whole], w.AM, v)
	}
	for i := whole; i < len(sums); i++ {
		var same [4]float32
		m.from(i*w.AM).dotRows(same[:], 0, v)
		sums[i] = same[0]
	}
	for i, sum := range sums {
		if add {
			sum += c[i*w.LDC]
		}
		c[i*w.LDC] = sum
	}
}

// fewColumns is the most columns that are products of A with a vector each, as A lies: packing it would take longer.
const fewColumns = 4

func (w *Windows) vectors(c, a, x []float32, n, lo, hi int) {
	from, to := w.Rows(lo, hi)
	buffer := borrow(len(w.Offsets) + to - from)
	v, y := (*buffer)[:len(w.Offsets)], (*buffer)[len(w.Offsets):]
	for j := range n {
		column := x[j/w.Width*w.Step+j%w.Width:]
		for p, at := range w.Offsets {
			v[p] = column[at]
		}
		(&vector{across: w.AM}).dots(y, v, matrix{x: a[from*w.AM:]})
		for i, sum := range y {
			c[(from+i)*w.LDC+j] = sum
		}
	}
	buffers.Put(buffer)
}

// gather packs the panel of columns j to j+n for some steps. It takes 4 to 9 % of a convolution, by loads that straddle lines of L1 and
// by stores.
func (w *Windows) gather(dst, x []float32, offsets []int32, j, n int) {
	if at := j % w.Width; at+n > w.Width && at+n <= 2*w.Width &&
		w.s.gatherTwo(dst, x[j/w.Width*w.Step+at:], offsets, w.Width-at, w.Step-w.Width, n) {
		return
	}
	width := roundUp(n, w.s.lanes)
	if n < width {
		clear(dst[:width*len(offsets)])
	}
	for lane := 0; lane < n; {
		line, at := (j+lane)/w.Width, (j+lane)%w.Width
		run := min(n-lane, w.Width-at, 2*w.s.lanes)
		w.s.gather(dst[lane:], x[line*w.Step+at:], offsets, width, run)
		lane += run
	}
}

func gatherGo(dst, x []float32, offsets []int32, width, n int) {
	for p, at := range offsets {
		copy(dst[p*width:][:n], x[at:])
	}
}

// Taps sets y[j] to the sum of w[p]·x[offsets[p]+j] over all p, added up in their order, for j < n in every row. Rows are ystep
// and xstep apart.
//
// Loads limit it: one of x for each multiply-add, which straddles lines of L1 more often than not.
func Taps(y, x, w []float32, offsets []int32, n, rows, ystep, xstep int) {
	if n == 0 || rows == 0 {
		return
	}
	_, _ = y[(rows-1)*ystep+n-1], w[:len(offsets)] // offsets are the caller's to get right
	taps(y, x, w, offsets, n, rows, ystep, xstep)
}

func tapsGo(y, x, w []float32, offsets []int32, n, rows, ystep, xstep int) {
	for r := range rows {
		y, x := y[r*ystep:][:n], x[r*xstep:]
		clear(y)
		for p, at := range offsets {
			f := w[p]
			for j, v := range x[at:][:n] {
				y[j] += f * v
			}
		}
	}
}

// HasFilter reports whether the active tier has the kernel of [Filter] for windows of size by size weights.
func HasFilter(size, stride int) bool { return Filters && hasFilter(size, stride) }

// Filter sums square windows of one channel, for which [HasFilter] must be true, several rows at a time: it sets
//
//	y[r*ystep+j] = sum of w[ky*size+kx] · x[(stride*r+ky)*xstep + offsets[kx] + j]
//
// for j < n and r < rows, over kx and, in it, ky. An element does not depend on which others are computed with it.
//
// Multiply-adds limit it together with loads. 144 planes of 56×56 by 3×3 take 1.3 times as long on Zen 4 as their multiply-adds, and with
// what spreads the planes out, and writes results to L3, 1.9 times.
func Filter(y, x, w []float32, offsets []int32, n, rows, ystep, xstep, stride int) {
	if n == 0 || rows == 0 {
		return
	}
	size := len(offsets)
	last := int32(0)
	for _, at := range offsets {
		last = max(last, at)
	}
	_, _ = y[(rows-1)*ystep+n-1], w[:size*size]
	_ = x[((rows-1)*stride+size-1)*xstep+int(last)+n-1]
	filter(y, x, w, offsets, n, rows, ystep, xstep, stride)
}

// Spread copies every stride-th element of some rows: it sets y[r*ystep+j] = x[r*xstep+j*stride] for j < n and r < rows. Loads and
// stores limit it, and mostly where x comes from: what lies so many elements ahead, if the caller knows that it is next, is asked for.
func Spread(y, x []float32, n, rows, ystep, xstep, stride, ahead int) {
	if n == 0 || rows == 0 {
		return
	}
	_, _ = y[(rows-1)*ystep+n-1], x[(rows-1)*xstep+(n-1)*stride]
	spreadLines(y, x, n, rows, ystep, xstep, stride, ahead)
}

func spreadLinesGo(y, x []float32, n, rows, ystep, xstep, stride int) {
	for r := range rows {
		y, x := y[r*ystep:][:n], x[r*xstep:]
		if stride == 1 {
			copy(y, x)
			continue
		}
		for j := range y {
			y[j] = x[j*stride]
		}
	}
}
