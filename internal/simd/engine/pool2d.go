package engine

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/gemm"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// Pooling is a max_pool2d or avg_pool2d. Its units are the rows of all planes of the result.
type Pooling struct {
	catalogue.ConvDims
	Mean bool
}

// Ns is the estimated cost of a unit.
func (p *Pooling) Ns() float64 {
	return 30 + Cheap.Ns()*float64(p.W*(min(p.KH, p.H)+min(p.KW, p.W))) + float64(p.OutW)
}

// poolBlock is how many elements the rows that are done together have, so that they stay in L1.
const poolBlock = 1 << 11

// Do computes units. Rows of a plane are done together: first the elements that lie below each other in their windows are
// combined, then shifted copies of what results, over the ends of rows, where nothing is read later.
func (p *Pooling) Do(y, x []float32, lo, hi int) {
	if p.W == 0 || p.Mean && p.KH+p.KW > 48 { // float32 would add up too many roundings
		for u := lo; u < hi; u++ {
			p.exact(y, x, u)
		}
		return
	}
	wide := p.W + 2*p.Pad[1] // of a line with its padding
	most := max(1, poolBlock/wide)
	b := Borrow(2 * most * wide)
	defer Scratch.Put(b)
	lines, across := (*b)[:most*wide], (*b)[most*wide:]
	nothing := float32(math.Inf(-1)) // does not take part in a maximum
	if p.Mean {
		nothing = 0
	}
	FillWith(lines, nothing)
	for u := lo; u < hi; {
		rows := min(most, hi-u, p.OutH-u%p.OutH)
		plane := x[u/p.OutH*p.H*p.W:][:p.H*p.W]
		p.down(lines, plane, u%p.OutH, rows, wide)
		n := rows*wide - (p.KW - 1)
		result := lines
		for k := 1; k < p.KW; k++ {
			p.combine(across[:n], result, lines[k:])
			result = across
		}
		whole := p.Pad == [2]int{} && p.H > 0 // no window is smaller than others
		if whole && p.Mean {
			kernels.Scale(result[:n], result[:n], 1/float32(p.KH*p.KW))
		}
		done := whole && (!p.Mean || kernels.MaxAbs(result[:n]) <= math.MaxFloat32)
		gemm.Spread(y[u*p.OutW:], result, p.OutW, rows, p.OutW, wide, p.Stride[1], 0)
		for r := range rows {
			to := y[(u+r)*p.OutW:][:p.OutW]
			if done {
				continue
			}
			y0, y1 := p.rows((u + r) % p.OutH)
			if p.Mean && !whole {
				p.divide(to, y1-y0)
			}
			if y0 >= y1 || p.Mean && !(kernels.MaxAbs(to) <= math.MaxFloat32) { // a sum may overflow where the mean does not
				p.exact(y, x, u+r)
			}
		}
		u += rows
	}
}

// rows are those of the input that row i of the result covers.
func (p *Pooling) rows(i int) (from, to int) {
	top := i*p.Stride[0] - p.Pad[0]
	return max(top, 0), min(top+p.KH, p.H)
}

// down combines the elements that lie below each other in the windows of rows of the result from a row on.
func (p *Pooling) down(lines, plane []float32, from, rows, wide int) {
	y0, _ := p.rows(from)
	_, y1 := p.rows(from + rows - 1)
	if p.Stride[0] == 1 && wide == p.W && y1-y0 == rows+p.KH-1 && p.KH > 1 { // lines of whole windows, one after the other
		x := plane[y0*p.W:]
		lines = lines[:rows*p.W]
		p.combine(lines, x, x[p.W:])
		for k := 2; k < p.KH; k++ {
			p.combine(lines, lines, x[k*p.W:])
		}
		return
	}
	for r := range rows {
		line := lines[r*wide+p.Pad[1]:][:p.W]
		y0, y1 := p.rows(from + r)
		if y0 >= y1 {
			continue
		}
		if y1-y0 == 1 {
			copy(line, plane[y0*p.W:])
			continue
		}
		p.combine(line, plane[y0*p.W:], plane[(y0+1)*p.W:])
		for k := y0 + 2; k < y1; k++ {
			p.combine(line, line, plane[k*p.W:])
		}
	}
}

func (p *Pooling) combine(y, a, b []float32) {
	if p.Mean {
		kernels.Add(y, a, b)
	} else {
		kernels.Maximum(y, a, b)
	}
}

// columns are those of the input that column i of the result covers.
func (p *Pooling) columns(i int) (from, to int) {
	left := i*p.Stride[1] - p.Pad[1]
	return max(left, 0), min(left+p.KW, p.W)
}

// divide makes means of sums over n rows.
func (p *Pooling) divide(y []float32, rows int) {
	lo, hi := 0, len(y)
	for lo < hi && p.divideClipped(y, lo, rows) {
		lo++
	}
	for lo < hi && p.divideClipped(y, hi-1, rows) {
		hi--
	}
	kernels.Scale(y[lo:hi], y[lo:hi], 1/float32(rows*p.KW))
}

// divideClipped divides element i if its window reaches beyond the plane, at one end of the row or the other.
func (p *Pooling) divideClipped(y []float32, i, rows int) bool {
	from, to := p.columns(i)
	if to-from == p.KW {
		return false
	}
	y[i] /= float32(rows * (to - from))
	return true
}

// exact computes a unit one element after the other, means in float64. Of an empty plane they are NaN.
func (p *Pooling) exact(y, x []float32, u int) {
	plane := x[u/p.OutH*p.H*p.W:][:p.H*p.W]
	y0, y1 := p.rows(u % p.OutH)
	for i := range p.OutW {
		x0, x1 := p.columns(i)
		s := 0.0
		for r := y0; r < y1; r++ {
			s += sum64(plane[r*p.W+x0 : r*p.W+max(x0, x1)])
		}
		if n := float64(max(0, y1-y0) * max(0, x1-x0)); p.Mean || n == 0 {
			y[u*p.OutW+i] = float32(s / n)
		}
	}
}

// sum64 is the sum of a row's elements, which may be beyond float32.
func sum64(x []float32) float64 {
	const block = 1 << 12 // float32 adds up few roundings
	s := 0.0
	for ; len(x) > 0; x = x[min(block, len(x)):] {
		part := x[:min(block, len(x))]
		if v := kernels.Sum(part); v-v == 0 {
			s += float64(v)
			continue
		}
		for _, v := range part {
			s += float64(v)
		}
	}
	return s
}
