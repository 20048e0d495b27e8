package quant

import "math"

// The searches for scales follow GGML's make_qx_quants, make_q3_quants, make_qkx2_quants, make_qkx3_quants and make_qp_quants
// step by step, since the bytes depend on each rounding. Every product that is added to something is converted to float32: Go
// may otherwise fuse the two, as it does on arm64, and round once.

// tinyGroup is the largest magnitude below which a group of values counts as zeros.
const tinyGroup = 1e-15

// nearest rounds to the nearest integer, ties to even, for |x| < 2²². What lies beyond gives a number, too, the same on all
// processors, as GGML's.
func nearest(x float32) int32 {
	const magic = 3 << 22 // the sum has its last bit where x has the ones
	return int32(math.Float32bits(float32(x)+magic)&(1<<23-1)) - 1<<22
}

func clamp(x, low, high int32) int32 { return max(low, min(high, x)) }

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

func sumSquares(x []float32) float32 {
	var sum float32
	for _, v := range x {
		sum += float32(v * v)
	}
	return sum
}

// extreme returns the first value of largest magnitude, or zero.
func extreme(x []float32) float32 {
	var most, largest float32
	for _, v := range x {
		if a := abs(v); a > largest {
			most, largest = v, a
		}
	}
	return most
}

// searchSymmetric looks for the scale d and integers q with x ≈ d·(q − limit), 0 ≤ q < 2·limit, and returns d: the least
// weighted squares fit over 19 trial scales around that which maps the extreme value to −limit (make_qx_quants).
func searchSymmetric(q []uint8, x, w []float32, limit int32) float32 {
	w, q = w[:len(x)], q[:len(x)]
	most := extreme(x)
	if abs(most) < tinyGroup {
		clear(q)
		return 0
	}
	inverse := float32(-limit) / most
	var sumXQ, sumQQ float32
	for i, v := range x {
		l := clamp(nearest(inverse*v), -limit, limit-1)
		q[i] = uint8(l + limit)
		f := float32(l)
		sumXQ += float32(w[i] * v * f)
		sumQQ += float32(w[i] * f * f)
	}
	var scale float32
	if sumQQ != 0 {
		scale = sumXQ / sumQQ
	}
	best := float32(scale * sumXQ)
	for step := -9; step <= 9; step++ {
		if step == 0 {
			continue
		}
		inverse = -(float32(limit) + float32(0.1*float32(step))) / most
		sumXQ, sumQQ = 0, 0
		for i, v := range x {
			f := float32(clamp(nearest(inverse*v), -limit, limit-1))
			sumXQ += float32(w[i] * v * f)
			sumQQ += float32(w[i] * f * f)
		}
		if sumQQ > 0 && float32(sumXQ*sumXQ) > float32(best*sumQQ) {
			for i, v := range x {
				q[i] = uint8(limit + clamp(nearest(inverse*v), -limit, limit-1))
			}
			scale = sumXQ / sumQQ
			best = scale * sumXQ
		}
	}
	return scale
}

// searchByCoordinate is another search for x ≈ d·(q − limit), with weights x²: it starts with the scale that maps the extreme
// value to −limit, and moves one integer at a time as long as that makes the fit better (make_q3_quants).
func searchByCoordinate(q []uint8, x []float32, limit int32) float32 {
	most := extreme(x)
	if abs(most) < tinyGroup {
		clear(q[:len(x)])
		return 0
	}
	var levels [16]int32
	inverse := float32(-limit) / most
	var sumXQ, sumQQ float32
	for i, v := range x {
		l := clamp(nearest(inverse*v), -limit, limit-1)
		levels[i] = l
		w, f := float32(v*v), float32(l)
		sumXQ += float32(w * v * f)
		sumQQ += float32(w * f * f)
	}
	for range 5 {
		changed := false
		for i, v := range x {
			w, f := float32(v*v), float32(levels[i])
			xq := sumXQ - float32(w*v*f)
			if !(xq > 0) {
				continue
			}
			qq := sumQQ - float32(w*f*f)
			l := clamp(nearest(float32(v*qq)/xq), -limit, limit-1)
			if l == levels[i] {
				continue
			}
			f = float32(l)
			xq += float32(w * v * f)
			qq += float32(w * f * f)
			if qq > 0 && float32(float32(xq*xq)*sumQQ) > float32(float32(sumXQ*sumXQ)*qq) {
				levels[i], sumXQ, sumQQ, changed = l, xq, qq, true
			}
		}
		if !changed {
			break
		}
	}
	for i := range x {
		q[i] = uint8(levels[i] + limit)
	}
	if sumQQ > 0 {
		return sumXQ / sumQQ
	}
	return 0
}

// trials are the scales that searchAffine tries: (limit + first + step·i) / (max − min), i = 0 … count.
type trials struct {
	first, step float32
	count       int
	absolute    bool // least weighted absolute differences instead of squares
}

// importance are the trials where there are importance weights.
var importance = &trials{first: -0.9, step: 0.05, count: 36}

// searchAffine looks for the scale d, the offset m ≥ 0 and integers q with x ≈ d·q − m, 0 ≤ q ≤ limit, and returns d and m:
// for each trial scale, the integers that it gives and the weighted least squares fit to them (make_qkx2_quants,
// make_qkx3_quants). As in GGML, a trial measures from the best offset so far.
func searchAffine(q []uint8, x, w []float32, limit int32, t *trials) (scale, offset float32) {
	w, q = w[:len(x)], q[:len(x)]
	low, high := x[0], x[0]
	sumW := w[0]
	sumX := float32(sumW * x[0])
	for i := 1; i < len(x); i++ {
		v := x[i]
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
		sumW += w[i]
		sumX += float32(w[i] * v)
	}
	low = min(low, 0)
	if high <= low {
		clear(q)
		return 0, -low
	}
	inverse := float32(limit) / (high - low)
	scale = 1 / inverse
	var levels [32]float32
	trial := levels[:len(x)]
	for i, v := range x {
		l := clamp(nearest(inverse*(v-low)), 0, limit)
		q[i] = uint8(l)
		trial[i] = float32(l)
	}
	best := t.misfit(trial, x, w, scale, low)
	for step := range t.count + 1 {
		inverse = (t.first + float32(t.step*float32(step)) + float32(limit)) / (high - low)
		var sumQ, sumQQ, sumXQ float32
		for i, v := range x {
			f := float32(clamp(nearest(inverse*(v-low)), 0, limit))
			trial[i] = f
			wq := w[i] * f
			sumQ += float32(wq)
			sumQQ += float32(wq * f)
			sumXQ += float32(wq * v)
		}
		determinant := float32(sumW*sumQQ) - float32(sumQ*sumQ)
		if !(determinant > 0) {
			continue
		}
		d := (float32(sumW*sumXQ) - float32(sumX*sumQ)) / determinant
		m := (float32(sumQQ*sumX) - float32(sumQ*sumXQ)) / determinant
		if m > 0 {
			m = 0
			d = sumXQ / sumQQ
		}
		if e := t.misfit(trial, x, w, d, m); e < best {
			for i, f := range trial {
				q[i] = uint8(f)
			}
			best, scale, low = e, d, m
		}
	}
	return scale, -low
}

// misfit is the weighted sum of the differences between d·q + m and x.
func (t *trials) misfit(q, x, w []float32, d, m float32) float32 {
	q, w = q[:len(x)], w[:len(x)]
	var sum float32
	if t.absolute {
		for i, v := range x {
			sum += float32(w[i] * abs(float32(d*q[i])+m-v))
		}
		return sum
	}
	for i, v := range x {
		e := float32(d*q[i]) + m - v
		sum += float32(w[i] * float32(e*e))
	}
	return sum
}

// searchPositive looks for the scale d and integers q with x ≈ d·q, 0 ≤ q ≤ limit, for x that are hardly ever negative, and
// returns d: the best of nine scales by weighted squares, then one integer at a time (make_qp_quants).
func searchPositive(q []uint8, x, w []float32, limit int32) float32 {
	var high float32
	for _, v := range x {
		high = max(high, v)
	}
	if high < tinyGroup {
		clear(q)
		return 0
	}
	inverse := float32(limit) / high
	scale := 1 / inverse
	var best float32
	for i, v := range x {
		d := v - float32(scale*float32(uint8(nearest(inverse*v))))
		best += float32(w[i] * d * d)
	}
	for step := -4; step <= 4; step++ {
		if step == 0 {
			continue
		}
		trial := (float32(0.1*float32(step)) + float32(limit)) / high
		scale := 1 / trial
		var sum float32
		for i, v := range x {
			d := v - float32(scale*float32(min(limit, nearest(trial*v))))
			sum += float32(w[i] * d * d)
		}
		if sum < best {
			best, inverse = sum, trial
		}
	}
	var sumXQ, sumQQ float32
	for i, v := range x {
		l := min(limit, nearest(inverse*v))
		q[i] = uint8(l)
		f := float32(l)
		sumXQ += float32(w[i] * v * f)
		sumQQ += float32(w[i] * f * f)
	}
	for range 5 {
		changed := false
		for i, v := range x {
			f := float32(q[i])
			xq := sumXQ - float32(w[i]*v*f)
			qq := sumQQ - float32(w[i]*f*f)
			if !(xq > 0 && qq > 0) {
				continue
			}
			l := min(limit, nearest(float32(v*qq)/xq))
			if l == int32(q[i]) {
				continue
			}
			f = float32(l)
			xq += float32(w[i] * v * f)
			qq += float32(w[i] * f * f)
			if float32(float32(xq*xq)*sumQQ) > float32(float32(sumXQ*sumXQ)*qq) {
				q[i], sumXQ, sumQQ, changed = uint8(l), xq, qq, true
			}
		}
		if !changed {
			break
		}
	}
	if sumQQ > 0 {
		return sumXQ / sumQQ
	}
	return 0
}

// weigh writes the weights of the search among values x with importance w: w·√(variance + x²).
func weigh(dst, x, w []float32, variance float32) {
	for i, v := range x {
		dst[i] = w[i] * sqrt(variance+float32(v*v))
	}
}

func sum(x []float32) float32 {
	var s float32
	for _, v := range x {
		s += v
	}
	return s
}
