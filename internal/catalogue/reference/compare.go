package reference

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// ArrayOf returns the elements of a slice accepted by [TypeOf] as float64.
func ArrayOf(data any, shape []int) Array {
	_, n, _ := program.TypeOf(data)
	a := Array{Shape: shape, Data: make([]float64, n)}
	for i := range a.Data {
		switch s := data.(type) {
		case []float32:
			a.Data[i] = float64(s[i])
		case []int32:
			a.Data[i] = float64(s[i])
		case []uint32:
			a.Data[i] = float64(s[i])
		case []compute.F16:
			a.Data[i] = half(s[i])
		case []uint8:
			a.Data[i] = float64(s[i])
		case []compute.BF16:
			a.Data[i] = float64(s[i].Float32())
		}
	}
	return a
}

// half is the number that the bits of a Float16 stand for.
func half(b compute.F16) float64 {
	exponent, fraction := int(b>>10&31), float64(b&1023)
	v := math.Ldexp(fraction, -24)
	switch {
	case exponent == 31 && fraction != 0:
		return math.NaN()
	case exponent == 31:
		v = math.Inf(1)
	case exponent > 0:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if b>>15 != 0 {
		return -v
	}
	return v
}

// Disagreement returns the first element at which two devices' answers to one call differ by more than either may be off from the
// reference, taken together; −1 if there is none. Result k of the call is x on one device and y on the other.
func Disagreement(e *program.Entry, in []Array, a program.Attr, out []program.Type, k int, x, y []float64) int {
	tol := catalogue.ToleranceOf(e, a)
	tiny, ulp := 0x1p-126, 0.0 // what may be flushed to zero, and the distance of neighbours by their size
	switch out[k].DType {
	case compute.Float16:
		tiny, ulp = 0x1p-14, 0x1p-10
	case compute.BFloat16:
		ulp = 0x1p-7
	case compute.Int32, compute.Uint32, compute.Uint8:
		tiny, tol = 0, program.Tolerance{}
	}
	finite := true
	for _, operand := range in {
		for _, v := range operand.Data {
			finite = finite && v-v == 0
		}
	}
	var magnitudes []float64 // which take long to compute
	for i, v := range x {
		w := y[i]
		if v == w || v != v && w != w {
			continue
		}
		if tol.Mag > 0 && magnitudes == nil {
			magnitudes = Magnitudes(e, in, a, out)[k]
		}
		size := math.Max(math.Abs(v), math.Abs(w))
		if math.IsInf(size, 0) { // at the edge of overflow
			size = math.MaxFloat32
		}
		slack := 2*(tol.Abs+tiny) + (2*tol.Rel+ulp)*size
		if tol.Mag > 0 {
			switch m := magnitudes[i]; {
			case finite && !(m <= math.MaxFloat32): // sums overflow in one order and not in another
				continue
			case m <= math.MaxFloat32:
				slack += 2 * tol.Mag * m
			}
		}
		edge := func(v float64) float64 { // an infinity is as far as the largest number
			return math.Max(-math.MaxFloat32, math.Min(v, math.MaxFloat32))
		}
		if !(math.Abs(edge(v)-edge(w)) <= slack) {
			return i
		}
	}
	return -1
}
