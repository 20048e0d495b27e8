package kernels

// Kernels in float64, for the eigen-decomposition. The first slice says how many elements there are.

func dot64Go(x, y []float64) float64 {
	var s0, s1, s2, s3 float64
	y = y[:len(x)]
	for len(x) >= 4 && len(y) >= 4 {
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		s0 += v * y[i]
	}
	return (s0 + s1) + (s2 + s3)
}

func axpy64Go(y, x []float64, f float64) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] += f * v
	}
}

func rank2x64Go(x, v, w []float64, fv, fw float64) {
	v, w = v[:len(x)], w[:len(x)]
	for i := range x {
		x[i] -= fv*w[i] + fw*v[i]
	}
}

// TurnColumns is the number of columns that Turn64 rotates.
const TurnColumns = 16

func turn64Go(z []float64, wide int, turns []float64) {
	at := len(z) - TurnColumns
	high := *(*[TurnColumns]float64)(z[at:])
	for ; len(turns) >= 2; turns = turns[2:] {
		c, s := turns[0], turns[1]
		to := (*[TurnColumns]float64)(z[at:])
		at -= wide
		low := (*[TurnColumns]float64)(z[at:])
		for i := range low {
			to[i] = s*low[i] + c*high[i]
			high[i] = c*low[i] - s*high[i]
		}
	}
	*(*[TurnColumns]float64)(z[at:]) = high
}
