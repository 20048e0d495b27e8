package simd

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/simd/internal/kernels"
)

// pooling is a max_pool2d or avg_pool2d. Its units are the rows of all planes of the result.
type pooling struct {
	op.ConvDims
	mean bool
}

// pool2d lowers a pooling.
func pool2d(mean bool) func(*call) work {
	return func(c *call) work {
		d, _ := op.PoolShape(c.in[0].Shape, c.attr.Options.(compute.PoolOptions)) // checked
		p := &pooling{d, mean}
		return one(d.N*d.OutH, p.ns(), func(a *args, lo, hi int) { p.do(a.out.f32(), a.in[0].f32(), lo, hi) })
	}
}

// ns is the estimated cost of a unit.
func (p *pooling) ns() float64 {
	return 30 + cheap.ns()*float64(p.W*(min(p.KH, p.H)+min(p.KW, p.W))) + float64(p.OutW)
}

// do computes units: it combines the rows that a window covers element by element, then shifted copies of what results.
func (p *pooling) do(y, x []float32, lo, hi int) {
	before := p.Pad[1]
	wide := before + p.W + p.Pad[1] // of a line with its padding
	b := borrow(2 * wide)
	defer scratch.Put(b)
	padded, sums := (*b)[:wide], (*b)[wide:]
	line := padded[before : before+p.W]
	nothing := float32(math.Inf(-1)) // does not take part in a maximum
	if p.mean {
		nothing = 0
	}
	fillWith(padded, nothing)
	sums = sums[:(p.OutW-1)*p.Stride[1]+1]
	for u := lo; u < hi; u++ {
		to := y[u*p.OutW : (u+1)*p.OutW]
		plane := x[u/p.OutH*p.H*p.W:][:p.H*p.W]
		top := u%p.OutH*p.Stride[0] - p.Pad[0]
		y0, y1 := max(top, 0), min(top+p.KH, p.H)
		if y0 >= y1 || p.W == 0 { // an empty plane
			fillWith(to, float32(math.NaN()))
			continue
		}
		if p.mean && p.KH+p.KW > 48 { // float32 would add up too many roundings
			p.means(to, plane, y0, y1)
			continue
		}
		copy(line, plane[y0*p.W:])
		for r := y0 + 1; r < y1; r++ {
			p.combine(line, line, plane[r*p.W:])
		}
		across := sums
		if p.Stride[1] == 1 {
			across = to
		}
		copy(across, padded)
		for k := 1; k < p.KW; k++ {
			p.combine(across, across, padded[k:])
		}
		if s := p.Stride[1]; s > 1 {
			every(to, sums, s)
		}
		if p.mean {
			p.divide(to, y1-y0)
			if v := kernels.MaxAbs(to); !(v <= math.MaxFloat32) { // the sum may have overflowed where the mean does not
				p.means(to, plane, y0, y1)
			}
		}
	}
}

func (p *pooling) combine(y, a, b []float32) {
	if p.mean {
		kernels.Add(y, a, b)
	} else {
		kernels.Maximum(y, a, b)
	}
}

// columns are those of the input that column i of the result covers.
func (p *pooling) columns(i int) (from, to int) {
	left := i*p.Stride[1] - p.Pad[1]
	return max(left, 0), min(left+p.KW, p.W)
}

// divide makes sums over so many rows means.
func (p *pooling) divide(y []float32, rows int) {
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
func (p *pooling) divideClipped(y []float32, i, rows int) bool {
	from, to := p.columns(i)
	if to-from == p.KW {
		return false
	}
	y[i] /= float32(rows * (to - from))
	return true
}

// means computes a row of means over rows y0 to y1 in float64.
func (p *pooling) means(to, plane []float32, y0, y1 int) {
	for i := range to {
		x0, x1 := p.columns(i)
		s := 0.0
		for r := y0; r < y1; r++ {
			for _, v := range plane[r*p.W+x0 : r*p.W+x1] {
				s += float64(v)
			}
		}
		to[i] = float32(s / float64((y1-y0)*(x1-x0)))
	}
}
