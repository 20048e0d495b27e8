package cpu

import (
	"math"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// normParts is the largest number of parts of the rows whose vector gradients are summed in parallel.
const normParts = 64

// normBackward is the gradient of a norm: for x row by row, and for the vectors, gamma and, of layer_norm, beta, in parts of the
// rows, whose sums are added up in order.
func normBackward(c *call) work {
	rows, cols := program.RowsCols(c.in[0].Shape)
	vectors := len(c.outs) - 1
	perPart := max(1, engine.CeilDiv(rows, normParts))
	parts := engine.CeilDiv(rows, perPart)
	eps, dy := float64(c.attr.Scalars[0]), len(c.in)-1
	sums := func(a *args, part, i int) []float32 { return words32(a)[(part*vectors+i)*cols:][:cols] }
	rowNS := 8*engine.Cheap.Ns()*float64(cols) + 40
	return work{scratch: (parts*vectors*cols + 1) / 2 * 8, phases: []phase{
		{units: parts, ns: rowNS * float64(perPart), do: func(a *args, lo, hi int) {
			buffer := engine.Borrow(2 * cols)
			defer engine.Scratch.Put(buffer)
			n := normGradient{g: (*buffer)[:cols], norm: (*buffer)[cols:], gamma: a.in[1].f32(), eps: eps, layer: vectors > 1}
			for part := lo; part < hi; part++ {
				for i := range vectors {
					clear(sums(a, part, i))
				}
				for r := part * perPart; r < min((part+1)*perPart, rows); r++ {
					from, to := r*cols, (r+1)*cols
					dy := a.in[dy].f32()[from:to]
					n.row(a.out.f32()[from:to], a.in[0].f32()[from:to], dy)
					kernels.MulAdd(sums(a, part, 0), n.norm, dy, sums(a, part, 0))
					if n.layer {
						kernels.Add(sums(a, part, 1), sums(a, part, 1), dy)
					}
				}
			}
		}},
		{units: cols, ns: engine.Cheap.Ns() * float64(parts*vectors), do: func(a *args, lo, hi int) {
			for i := range vectors {
				y := a.outs[1+i].f32()[lo:hi]
				clear(y)
				for part := range parts {
					kernels.Add(y, y, sums(a, part, i)[lo:hi])
				}
			}
		}},
	}}
}

// normGradient computes the gradient of one row after the other.
type normGradient struct {
	g, norm []float32 // gamma·dy and the norm without gamma and beta
	gamma   []float32
	eps     float64
	layer   bool
}

func (n *normGradient) row(dx, x, dy []float32) {
	kernels.Mul(n.g, n.gamma, dy)
	cols, meanG := float64(len(x)), 0.0
	var mean, rstd, product float64 // Σg·(x − mean)
	if size := engine.BlockLen(); n.layer {
		var all engine.Comoments
		for lo := 0; lo < len(x); lo += size {
			hi := min(lo+size, len(x))
			if part := engine.ComomentsOf(x[lo:hi], n.g[lo:hi], 0); lo == 0 {
				all = part
			} else {
				all = all.Plus(part)
			}
		}
		mean, rstd, product, meanG = all.A.Mean, 1/math.Sqrt(all.A.Variance()+n.eps), all.Products, all.B.Mean
	} else {
		sum := 0.0
		for lo := 0; lo < len(x); lo += size {
			hi := min(lo+size, len(x))
			sum += float64(kernels.SumSquares(x[lo:hi]))
			product += float64(kernels.Dot(x[lo:hi], n.g[lo:hi]))
		}
		rstd = 1 / math.Sqrt(sum/cols+n.eps)
	}
	kernels.Normalize(n.norm, x, float32(mean), float32(rstd))
	kernels.ScaleAdd(dx, n.g, float32(rstd), float32(-meanG*rstd))
	kernels.Axpy(dx, dx, n.norm, float32(-product*rstd*rstd/cols))
}
