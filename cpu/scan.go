package cpu

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// cumSum sums blocks, adds up these sums, and scans each block from what comes before it. Sums between elements are float64.
func cumSum(c *call) work {
	o := c.attr.Options.(compute.CumSumOptions)
	rows, cols := program.RowsCols(c.in[0].Shape)
	size := engine.BlockLen()
	perRow := engine.CeilDiv(cols, size)
	const ns = 0.5
	block := func(a *args, u int) (y, x []float32) {
		lo := u % perRow * size
		at, n := u/perRow*cols+lo, min(size, cols-lo)
		return a.out.f32()[at : at+n], a.in[0].f32()[at : at+n]
	}
	scanUnits := func(before func(a *args, u int) float64) phase {
		return phase{units: rows * perRow, ns: 10 + ns*float64(min(cols, size)), do: func(a *args, lo, hi int) {
			for u := lo; u < hi; u++ {
				y, x := block(a, u)
				if o.Reverse {
					scanDown(y, x, before(a, u), o.Exclusive)
				} else {
					scanUp(y, x, before(a, u), o.Exclusive)
				}
			}
		}}
	}
	if perRow == 1 {
		return work{phases: []phase{scanUnits(func(*args, int) float64 { return 0 })}}
	}
	units := rows * perRow
	return work{scratch: 8 * units, phases: []phase{
		{units: units, ns: engine.SumFold.Cost.Ns() * float64(size), do: func(a *args, lo, hi int) {
			for u := lo; u < hi; u++ {
				_, x := block(a, u)
				a.scratch.f64()[u] = float64(kernels.Sum(x))
			}
		}},
		{units: rows, ns: float64(2 * perRow), do: func(a *args, lo, hi int) {
			for row := lo; row < hi; row++ {
				s, total := a.scratch.f64()[row*perRow:][:perRow], 0.0
				for i := range s {
					if o.Reverse {
						i = perRow - 1 - i
					}
					s[i], total = total, total+s[i]
				}
			}
		}},
		scanUnits(func(a *args, u int) float64 { return a.scratch.f64()[u] }),
	}}
}

// scanUp adds four elements before they meet the sum: what they wait for is one addition.
func scanUp(y, x []float32, s float64, exclusive bool) {
	x = x[:len(y)]
	i := 0
	for ; i+4 <= len(y); i += 4 {
		x0, x1, x2, x3 := float64(x[i]), float64(x[i+1]), float64(x[i+2]), float64(x[i+3])
		x1 += x0
		x2 += x1
		x3 += x2
		if exclusive {
			y[i], y[i+1], y[i+2], y[i+3] = float32(s), float32(s+x0), float32(s+x1), float32(s+x2)
		} else {
			y[i], y[i+1], y[i+2], y[i+3] = float32(s+x0), float32(s+x1), float32(s+x2), float32(s+x3)
		}
		s += x3
	}
	for ; i < len(y); i++ {
		v := float64(x[i])
		if exclusive {
			y[i] = float32(s)
		} else {
			y[i] = float32(s + v)
		}
		s += v
	}
}

func scanDown(y, x []float32, s float64, exclusive bool) {
	x = x[:len(y)]
	i := len(y)
	for ; i >= 4; i -= 4 {
		x0, x1, x2, x3 := float64(x[i-4]), float64(x[i-3]), float64(x[i-2]), float64(x[i-1])
		x2 += x3
		x1 += x2
		x0 += x1
		if exclusive {
			y[i-4], y[i-3], y[i-2], y[i-1] = float32(s+x1), float32(s+x2), float32(s+x3), float32(s)
		} else {
			y[i-4], y[i-3], y[i-2], y[i-1] = float32(s+x0), float32(s+x1), float32(s+x2), float32(s+x3)
		}
		s += x0
	}
	for i--; i >= 0; i-- {
		v := float64(x[i])
		if exclusive {
			y[i] = float32(s)
		} else {
			y[i] = float32(s + v)
		}
		s += v
	}
}
