package kernels

import "math"

// The portable fallbacks of folds keep sums in float64, in four lanes where that pays, and round once.

func sumGo(a []float32) float32 {
	var s0, s1, s2, s3 float64
	for len(a) >= 4 {
		s0 += float64(a[0])
		s1 += float64(a[1])
		s2 += float64(a[2])
		s3 += float64(a[3])
		a = a[4:]
	}
	for _, v := range a {
		s0 += float64(v)
	}
	return float32((s0 + s1) + (s2 + s3))
}

func sumAbsGo(a []float32) float32 {
	var s0, s1, s2, s3 float64
	for len(a) >= 4 {
		s0 += math.Abs(float64(a[0]))
		s1 += math.Abs(float64(a[1]))
		s2 += math.Abs(float64(a[2]))
		s3 += math.Abs(float64(a[3]))
		a = a[4:]
	}
	for _, v := range a {
		s0 += math.Abs(float64(v))
	}
	return float32((s0 + s1) + (s2 + s3))
}

func sumSquaresGo(a []float32) float32 { return dotGo(a, a) }

// dotGo adds products, which are exact in float64.
func dotGo(a, b []float32) float32 {
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(b) >= 4 {
		s0 += float64(a[0]) * float64(b[0])
		s1 += float64(a[1]) * float64(b[1])
		s2 += float64(a[2]) * float64(b[2])
		s3 += float64(a[3]) * float64(b[3])
		a, b = a[4:], b[4:]
	}
	for i, v := range a {
		s0 += float64(v) * float64(b[i])
	}
	return float32((s0 + s1) + (s2 + s3))
}

// maxGo is −Inf for no elements, NaN if any element is.
func maxGo(a []float32) float32 {
	m0 := float32(math.Inf(-1))
	m1, m2, m3 := m0, m0, m0
	for len(a) >= 4 {
		m0 = max(m0, a[0])
		m1 = max(m1, a[1])
		m2 = max(m2, a[2])
		m3 = max(m3, a[3])
		a = a[4:]
	}
	for _, v := range a {
		m0 = max(m0, v)
	}
	return max(m0, m1, m2, m3)
}

// minGo is +Inf for no elements, NaN if any element is.
func minGo(a []float32) float32 {
	m0 := float32(math.Inf(1))
	m1, m2, m3 := m0, m0, m0
	for len(a) >= 4 {
		m0 = min(m0, a[0])
		m1 = min(m1, a[1])
		m2 = min(m2, a[2])
		m3 = min(m3, a[3])
		a = a[4:]
	}
	for _, v := range a {
		m0 = min(m0, v)
	}
	return min(m0, m1, m2, m3)
}

// maxAbsGo compares bit patterns, whose order among non-negative floats is that of the numbers, NaN being the largest.
func maxAbsGo(a []float32) float32 {
	var m0, m1 uint32
	for len(a) >= 2 {
		m0 = max(m0, math.Float32bits(a[0])&^signBit)
		m1 = max(m1, math.Float32bits(a[1])&^signBit)
		a = a[2:]
	}
	for _, v := range a {
		m0 = max(m0, math.Float32bits(v)&^signBit)
	}
	return math.Float32frombits(max(m0, m1))
}

func sumSqDiffGo(a []float32, mean float32) float32 {
	m := float64(mean)
	var s0, s1 float64
	for len(a) >= 2 {
		d0, d1 := float64(a[0])-m, float64(a[1])-m
		s0 += d0 * d0
		s1 += d1 * d1
		a = a[2:]
	}
	for _, v := range a {
		d := float64(v) - m
		s0 += d * d
	}
	return float32(s0 + s1)
}

func sumProdDiffGo(a, b []float32, ma, mb float32) float32 {
	b = b[:len(a)]
	x, y := float64(ma), float64(mb)
	s := 0.0
	for i, v := range a {
		s += (float64(v) - x) * (float64(b[i]) - y)
	}
	return float32(s)
}

// sumKahanGo is Neumaier's form of Kahan's sum, with Knuth's exact addition, all in lane 0.
func sumKahanGo(lanes *[2 * Lanes]float32, a []float32) {
	var s, c float32
	for _, v := range a {
		t := s + v
		d := t - s
		c += (s - (t - d)) + (v - d)
		s = t
	}
	lanes[0], lanes[Lanes] = s, c
}

// KahanTotal is the sum that SumKahan left in lanes. Lanes must have been zero before.
func KahanTotal(lanes *[2 * Lanes]float32) float64 {
	var s, c float64
	for i := range Lanes {
		s += float64(lanes[i])
		c += float64(lanes[Lanes+i])
	}
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return s
	}
	return s + c
}
