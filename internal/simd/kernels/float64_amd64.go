package kernels

// Dot64 returns Σ x[i]·y[i], added up in several lanes.
func Dot64(x, y []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	switch active {
	case AVX512:
		return dot64AVX512(&x[0], &y[0], len(x))
	case AVX2:
		return dot64AVX2(&x[0], &y[0], len(x))
	}
	return dot64Go(x, y)
}

// Axpy64 adds f·x to y.
func Axpy64(y, x []float64, f float64) {
	if len(y) == 0 {
		return
	}
	switch active {
	case AVX512:
		axpy64AVX512(&y[0], &x[0], len(y), f)
	case AVX2:
		axpy64AVX2(&y[0], &x[0], len(y), f)
	default:
		axpy64Go(y, x, f)
	}
}

// Rank2x64 subtracts fv·w + fw·v from x.
func Rank2x64(x, v, w []float64, fv, fw float64) {
	if len(x) == 0 {
		return
	}
	switch active {
	case AVX512:
		rank2x64AVX512(&x[0], &v[0], &w[0], len(x), fv, fw)
	case AVX2:
		rank2x64AVX2(&x[0], &v[0], &w[0], len(x), fv, fw)
	default:
		rank2x64Go(x, v, w, fv, fw)
	}
}

// Turn64 rotates TurnColumns columns of rows that are wide apart, each with the row before it: first the last TurnColumns
// elements of z. Turns holds a cosine c and a sine s for each pair.
//
//	low, high = c·low − s·high, s·low + c·high
func Turn64(z []float64, wide int, turns []float64) {
	if len(turns) < 2 {
		return
	}
	_ = z[len(z)-TurnColumns-len(turns)/2*wide] // assembly checks nothing
	switch active {
	case AVX512:
		turn64AVX512(&z[len(z)-TurnColumns], wide, &turns[0], len(turns)/2)
	case AVX2:
		turn64AVX2(&z[len(z)-TurnColumns], wide, &turns[0], len(turns)/2)
	default:
		turn64Go(z, wide, turns)
	}
}
