package kernels

import "math"

const signBit = 1 << 31

func addGo(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = a[i] + b[i]
	}
}

func subGo(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = a[i] - b[i]
	}
}

func mulGo(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = a[i] * b[i]
	}
}

func divGo(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = a[i] / b[i]
	}
}

// maximumGo: the builtin max gives NaN for NaN.
func maximumGo(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = max(a[i], b[i])
	}
}

func minimumGo(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = min(a[i], b[i])
	}
}

// truth is 1 or 0, without a branch.
func truth(t bool) float32 {
	bits := uint32(0)
	if t {
		bits = 0x3f800000
	}
	return math.Float32frombits(bits)
}

func lessGo(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = truth(a[i] < b[i])
	}
}

func lessEqualGo(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = truth(a[i] <= b[i])
	}
}

func equalGo(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = truth(a[i] == b[i])
	}
}

func selectGo(y, cond, a, b []float32) {
	cond, a, b = cond[:len(y)], a[:len(y)], b[:len(y)]
	for i := range y {
		v, other := math.Float32bits(a[i]), math.Float32bits(b[i])
		if cond[i] == 0 {
			v = other
		}
		y[i] = math.Float32frombits(v)
	}
}

func addScalarGo(y, a []float32, s float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = v + s
	}
}

func scaleGo(y, a []float32, f float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = f * v
	}
}

func scaleAddGo(y, a []float32, f, s float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = f*v + s
	}
}

func axpyGo(y, a, x []float32, f float32) {
	a, x = a[:len(y)], x[:len(y)]
	for i := range y {
		y[i] = a[i] + f*x[i]
	}
}

func mulAddGo(y, a, b, c []float32) {
	a, b, c = a[:len(y)], b[:len(y)], c[:len(y)]
	for i := range y {
		y[i] = a[i]*b[i] + c[i]
	}
}

func lerpGo(y, a, b, t []float32) {
	a, b, t = a[:len(y)], b[:len(y)], t[:len(y)]
	for i := range y {
		y[i] = a[i] + t[i]*(b[i]-a[i])
	}
}

func negGo(y, a []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = -v
	}
}

func absGo(y, a []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = abs32(v)
	}
}

func abs32(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ signBit) }

func sqrtGo(y, a []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = float32(math.Sqrt(float64(v)))
	}
}

func recipGo(y, a []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = 1 / v
	}
}

func floorGo(y, a []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = float32(math.Floor(float64(v)))
	}
}

func ceilGo(y, a []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = float32(math.Ceil(float64(v)))
	}
}

// roundGo rounds halves to even.
func roundGo(y, a []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = float32(math.RoundToEven(float64(v)))
	}
}

func truncGo(y, a []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = float32(math.Trunc(float64(v)))
	}
}

// signGo keeps zeros with their sign, and NaN.
func signGo(y, a []float32) {
	a = a[:len(y)]
	for i, v := range a {
		switch {
		case v > 0:
			v = 1
		case v < 0:
			v = -1
		}
		y[i] = v
	}
}

func copySignGo(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = math.Float32frombits(math.Float32bits(a[i])&^signBit | math.Float32bits(b[i])&signBit)
	}
}

func clipGo(y, a []float32, low, high float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = min(max(v, low), high)
	}
}

func reLUGo(y, a []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = max(v, 0)
	}
}

// leakyReLUGo chooses between bit patterns, which compiles to a conditional move: signs are hard to predict.
func leakyReLUGo(y, a []float32, alpha float32) {
	a = a[:len(y)]
	for i, v := range a {
		bits, scaled := math.Float32bits(v), math.Float32bits(alpha*v)
		if v < 0 {
			bits = scaled
		}
		y[i] = math.Float32frombits(bits)
	}
}

// hardSwishGo: the outer max keeps −Inf from meeting 0.
func hardSwishGo(y, a []float32) {
	a = a[:len(y)]
	for i, v := range a {
		x := float64(v)
		y[i] = float32(max(x, -4) * min(max(x+3, 0), 6) / 6)
	}
}

// fractGo keeps the sign: the fraction of −1.5 is −0.5.
func fractGo(y, a []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = v - float32(math.Trunc(float64(v)))
	}
}
