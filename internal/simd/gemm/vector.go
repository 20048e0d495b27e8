package gemm

import (
	"sync/atomic"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// A product of which one side is a vector reads its matrix once and needs no packing: rows of the matrix are multiplied with
// the vector, or added up with its elements as factors, whichever way they are contiguous.
//
// Reading the matrix limits it. On a core of Zen 4 with AVX-512 rows reach 0.84 to 0.86 of the bandwidth of L2 (256×256) and L3
// (1,024×1,024), columns 0.77 to 0.80, and both what a plain read does from memory; of 32×32, in L1, rows reach 0.53 of a read, since each
// ends with a sum of lanes, and columns 0.61. On Emerald Rapids 256×256 and 512×512, in L2, take as long as a sum of so many elements. Halves
// take from memory about half as long as float32 does; in caches widening limits them, with AVX-512 three operations of two ports for 16,
// of which 512×512 reaches 0.9. With NEON it is the same limit, and on WebAssembly multiplications and additions where the matrix is in L1;
// how near they are has not been measured.

const (
	vectorBlock = 1024    // outputs that are added up at a time where rows are: they stay in L1
	vectorRows  = 64      // outputs of a unit where they are dot products
	vectorSplit = 1 << 14 // length of the parts of a long inner dimension
	vectorSteps = 512     // rows that are added up before their sum is added to others, so that sums stay short
	vectorNear  = 1 << 13 // elements of a matrix that is read column by column: it fits in L1
	vectorNS    = 0.06    // for an element of the matrix
)

// vector is a product with a vector as its kernels see it: output i is the sum over p of v[p*step]·m[p*along+i*across].
type vector struct {
	v                      []float32
	m                      matrix
	n, step, along, across int
	inC                    int // from output to output in C
}

// vector returns the product's form; only the lengths if there are no data yet.
func (p *Product) vector(o *Operands, item int) vector {
	if p.N == 1 {
		w := vector{n: p.M, step: p.BK, along: p.AK, across: p.AM, inC: p.LDC}
		if o != nil {
			w.v, w.m = o.B[item*p.StrideB:], o.left().from(item*p.StrideA)
		}
		return w
	}
	w := vector{n: p.N, step: p.AK, along: p.BK, across: p.BN, inC: 1}
	if o != nil {
		w.v, w.m = o.A[item*p.StrideA:], o.right().from(item*p.StrideB)
	}
	return w
}

// smallVector computes a small product with a vector right in C, and reports whether it has.
func (p *Product) smallVector(o *Operands) bool {
	w := p.vector(o, 0)
	if p.Beta != 0 || w.inC != 1 || w.step != 1 || w.n*p.K > vectorSmall || w.along != 1 && (w.across != 1 || p.K > vectorSteps) {
		return false
	}
	y, v := o.C[:w.n], w.v[:p.K]
	if w.along == 1 {
		w.dots(y, v, w.m)
	} else {
		w.columns(y, v, w.m, nil, nil)
	}
	p.deliver(y, &w, o, 0, 0)
	return true
}

// vectorSmall is the most elements of a matrix that one call multiplies at once: long before several threads are worth it.
const vectorSmall = 1 << 18

// SmallMatVec is Run for y = a·x, where a has m rows of k elements, if it is so small that planning it would show, and reports whether
// it is.
func SmallMatVec(y, a, x []float32, m, k int) bool { return smallMatVec(y, matrix{x: a}, x, m, k) }

// SmallHalfMatVec is SmallMatVec for halves.
func SmallHalfMatVec(y []float32, a Half, x []float32, m, k int) bool {
	return smallMatVec(y, matrix{Half: a}, x, m, k)
}

func smallMatVec(y []float32, a matrix, x []float32, m, k int) bool {
	if n := m * k; n == 0 || n > vectorSmall {
		return false
	}
	w := vector{across: k, along: 1}
	w.dots(y[:m], x[:k], a)
	return true
}

// SmallVecMat is Run for y = x·b, where b has k rows of n elements, likewise.
func SmallVecMat(y, x, b []float32, k, n int) bool {
	if k*n == 0 || n == 1 || k*n > vectorSmall || k > vectorSteps {
		return false
	}
	w := vector{across: 1, along: n}
	w.columns(y[:n], x[:k], matrix{x: b}, nil, nil)
	return true
}

func (pl *Plan) planVector(threads int) {
	pl.kind = vectors
	w := pl.vector(nil, 0)
	pl.rows, pl.down = 1, 1
	pl.cols = vectorBlock
	if w.along == 1 {
		pl.cols = min(vectorRows, max(1, int(unitNS/(vectorNS*float64(pl.K)))))
	} else {
		for threads > 1 && pl.cols > w.n*pl.Batch/unitsPerThread && vectorNS*float64(pl.cols/2*pl.K) >= unitNS {
			pl.cols /= 2
		}
	}
	pl.cols = min(pl.cols, w.n)
	pl.across = ceilDiv(w.n, pl.cols)
	pl.kc = pl.K
	if pl.Batch*pl.across < 16 && pl.K > vectorSplit {
		pl.splits = ceilDiv(pl.K, vectorSplit)
		pl.kc = ceilDiv(pl.K, pl.splits)
		pl.splits = ceilDiv(pl.K, pl.kc)
	}
}

// doVector computes units: a block of outputs, or the part of one that a part of the inner dimension makes.
func (pl *Plan) doVector(lo, hi int, o *Operands, scratch []float32, stop *atomic.Bool) {
	buffer := borrow(2*pl.cols + pl.kc)
	for u := lo; u < hi && !stopped(stop); u++ {
		split, item, j := u%pl.splits, u/pl.splits/pl.across, u/pl.splits%pl.across*pl.cols
		w := pl.vector(o, item)
		n := min(pl.cols, w.n-j)
		k := split * pl.kc
		y := (*buffer)[:n]
		if pl.splits > 1 {
			y = scratch[(split*pl.Batch+item)*w.n+j:][:n]
		}
		w.multiply(y, j, k, min(pl.kc, pl.K-k), (*buffer)[pl.cols:], stop)
		if pl.splits == 1 {
			pl.deliver(y, &w, o, item, j)
		}
	}
	buffers.Put(buffer)
}

// gatherVector adds the parts of a split inner dimension, a block of outputs per unit.
func (pl *Plan) gatherVector(lo, hi int, o *Operands, scratch []float32) {
	for u := lo; u < hi; u++ {
		item, j := u/pl.across, u%pl.across*pl.cols
		w := pl.vector(o, item)
		n := min(pl.cols, w.n-j)
		part := func(s int) []float32 { return scratch[(s*pl.Batch+item)*w.n+j:][:n] }
		y := part(0)
		for i := range y {
			sum := float64(y[i])
			for s := 1; s < pl.splits; s++ {
				sum += float64(part(s)[i])
			}
			y[i] = float32(sum)
		}
		pl.deliver(y, &w, o, item, j)
	}
}

// multiply computes outputs from j on, over steps of the inner dimension from k on. Spare holds as many elements as y and
// steps.
func (w *vector) multiply(y []float32, j, k, steps int, spare []float32, stop *atomic.Bool) {
	v := w.v[k*w.step:]
	if w.step == 1 {
		v = v[:steps]
	} else {
		own := spare[len(y):][:steps]
		for i := range own {
			own[i] = v[i*w.step]
		}
		v = own
	}
	m := w.m.from(k*w.along + j*w.across)
	switch {
	case w.along == 1:
		w.dots(y, v, m)
	case w.across == 1:
		w.columns(y, v, m, spare[:len(y)], stop)
	default:
		for i := range y {
			sum := 0.0
			for p, f := range v {
				sum += float64(f) * float64(m.x[i*w.across+p*w.along])
			}
			y[i] = float32(sum)
		}
	}
}

// dots sets y to the dot products of rows of the matrix with v. Of long rows the sums of blocks are added in float64.
func (w *vector) dots(y, v []float32, m matrix) {
	const block = 8192
	m.check((len(y)-1)*w.across + len(v) - 1)
	if 0 < len(v) && len(v) <= block {
		m.dotRows(y, w.across, v)
		return
	}
	for i := 0; i < len(y); i += 4 {
		var part [4]float32
		var sum [4]float64
		n := min(4, len(y)-i)
		for k := 0; k < len(v); k += block {
			m.from(i*w.across+k).dotRows(part[:n], w.across, v[k:min(k+block, len(v))])
			for r, s := range part[:n] {
				sum[r] += float64(s)
			}
		}
		for r, s := range sum[:n] {
			y[i+r] = float32(s)
		}
	}
}

// columns sets y to the sum of v[p] times row p: columns by columns if the matrix is near, else eight rows at a time.
func (w *vector) columns(y, v []float32, m matrix, spare []float32, stop *atomic.Bool) {
	m.check((len(v)-1)*w.along + len(y) - 1)
	if len(v)*len(y) <= vectorNear && len(v) <= vectorSteps && m.columns(y, w.along, v) {
		return
	}
	var row []float32
	if m.x == nil {
		buffer := borrow(len(y))
		defer buffers.Put(buffer)
		row = *buffer
	}
	to := y
	for k := 0; k < len(v) && !stopped(stop); k += vectorSteps {
		clear(to)
		p, end := k, min(k+vectorSteps, len(v))
		if eights := (end - p) &^ 7; eights > 0 {
			m.from(p*w.along).axpyRows(to, w.along, v[p:p+eights])
			p += eights
		}
		for ; p < end; p++ {
			kernels.Axpy(to, to, m.row(p*w.along, len(to), row), v[p])
		}
		if k > 0 {
			kernels.Add(y, y, spare)
		}
		to = spare
	}
}

// deliver finishes sums and stores them as outputs from j on.
func (p *Product) deliver(y []float32, w *vector, o *Operands, item, j int) {
	c := o.C[item*p.StrideC+j*w.inC:]
	if p.Alpha != 1 {
		kernels.Scale(y, y, p.Alpha)
	}
	if p.Beta != 0 {
		if w.inC == 1 {
			kernels.Axpy(y, y, c[:len(y)], p.Beta)
		} else {
			for i := range y {
				y[i] += p.Beta * c[i*w.inC]
			}
		}
	}
	switch {
	case o.Bias == nil:
	case p.BiasRows == (p.N == 1):
		kernels.Add(y, y, o.Bias[j:][:len(y)])
	default: // one for all
		kernels.AddScalar(y, y, o.Bias[0])
	}
	if p.Finish != nil {
		p.Finish(o.Context, y, len(o.C)-len(c))
	}
	if w.inC == 1 {
		copy(c, y)
		return
	}
	for i, v := range y {
		c[i*w.inC] = v
	}
}
