package conformance

import (
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// expectation is what the reference says of one result of a call, and how far a device may be from it.
type expectation struct {
	entry *program.Entry
	out   program.Type
	tol   program.Tolerance
	bits  bool // movement of words: not even flushing subnormals is allowed
	half  bool // the result is Float16, or converted from it

	want []float64
	// flushed is the reference on inputs whose subnormals are zero; nil where there are none. Devices may flush.
	flushed []float64
	mag     []float64 // yardstick of tol.Mag; nil where that is zero
	finite  bool      // all inputs are
}

// smallestNormal is the smallest float32 that is not subnormal.
const smallestNormal = 0x1p-126

// expect computes what a call should give, for each of its results.
func expect(e *program.Entry, a program.Attr, operands []operand, out []program.Type) []*expectation {
	in := arrays(operands)
	flushed := make([]reference.Array, len(in))
	subnormal, allFinite := false, true
	for i, v := range in {
		var s, finite bool
		flushed[i], s, finite = flush(v, smallest(operands[i].DType))
		subnormal = subnormal || s
		allFinite = allFinite && finite
	}
	want := reference.Of(e, in, a, out)
	var wantFlushed []reference.Array
	if subnormal {
		wantFlushed = reference.Of(e, flushed, a, out)
	}
	tol := catalogue.ToleranceOf(e, a)
	var mags [][]float64
	if tol.Mag > 0 {
		mags = reference.Magnitudes(e, in, a, out)
	}
	all := make([]*expectation, len(out))
	for i, t := range out {
		x := &expectation{entry: e, out: t, tol: tol, finite: allFinite, want: want[i].Data}
		if subnormal {
			x.flushed = wantFlushed[i].Data
		}
		if mags != nil {
			x.mag = mags[i]
		}
		if e == catalogue.Cast {
			x.tol = program.Tolerance{} // rounding to nearest even is promised
		}
		x.half = t.DType == compute.Float16 || e == catalogue.Cast && operands[0].DType == compute.Float16
		x.bits = e.Class == program.Move && e != catalogue.Cast && t.DType != compute.Float32
		x.bits = x.bits || t.DType == compute.Int32 || t.DType == compute.Uint32 || t.DType == compute.Uint8
		all[i] = x
	}
	return all
}

// smallest is the smallest number of a type that is not subnormal.
func smallest(d compute.DType) float64 {
	if d == compute.Float16 {
		return 0x1p-14
	}
	return smallestNormal
}

// flush returns v with zeros for what is below the smallest normal number, and whether there is any and all is finite.
func flush(v reference.Array, smallest float64) (flushed reference.Array, subnormal, finite bool) {
	finite = true
	for _, f := range v.Data {
		switch a := math.Abs(f); {
		case a >= smallest && a <= math.MaxFloat64 || a == 0: // nearly always
		case a < smallest:
			subnormal = true
		default:
			finite = false
		}
	}
	if !subnormal {
		return v, false, finite
	}
	flushed = reference.Array{Shape: v.Shape, Data: make([]float64, len(v.Data))}
	for i, f := range v.Data {
		if flushed.Data[i] = f; math.Abs(f) < smallest {
			flushed.Data[i] = math.Copysign(0, f)
		}
	}
	return flushed, true, finite
}

// accepts reports whether a device may answer got for element i.
func (x *expectation) accepts(i int, got float64) bool {
	return x.near(x.want[i], got, i) || x.flushed != nil && x.near(x.flushed[i], got, i)
}

func (x *expectation) near(want, got float64, i int) bool {
	if want != want || got != got {
		return want != want && got != got
	}
	if x.bits {
		return got == want
	}
	if got == want || got == reference.Rounded(want, x.out.DType) {
		return true
	}
	if x.half && got == 0 && math.Abs(want) < 0x1p-14 { // subnormal halves may become 0
		return true
	}
	if got == 0 && math.Abs(want) < smallestNormal {
		return true
	}
	if x.tol == (program.Tolerance{}) {
		return false
	}
	slack := x.slack(i)
	if x.mag != nil && x.finite && x.mag[i] > math.MaxFloat32 {
		return true // intermediate overflow: the order of evaluation decides
	}
	if math.IsInf(got, 0) { // just below the edge of overflow
		return math.Copysign(math.Abs(want)+slack, want)*math.Copysign(1, got) > math.MaxFloat32
	}
	if x.out.DType.Size() == 2 { // what one rounding makes of the numbers that are near enough
		return reference.Rounded(want-slack, x.out.DType) <= got && got <= reference.Rounded(want+slack, x.out.DType)
	}
	return math.Abs(got-want) <= slack
}

// slack is the largest difference allowed at element i before it is stored; one flushed intermediate is always allowed for.
func (x *expectation) slack(i int) float64 {
	s := x.tol.Abs + smallestNormal
	if w := x.want[i]; !math.IsInf(w, 0) && w == w {
		s += x.tol.Rel * math.Abs(w)
	}
	if x.mag != nil && x.mag[i] <= math.MaxFloat64 { // neither Inf nor NaN
		s += x.tol.Mag * x.mag[i]
	}
	return s
}

// poison fills destinations before a run: a NaN that no computation produces.
const (
	poison     = 0x7fc0dead
	poisonF16  = 0x7cad // a signalling NaN: conversions make quiet ones
	poisonBF16 = 0x7fad // a signalling NaN too
	poisonU8   = 0xad   // which a result may be, but not all of one
)

// judge compares a result with the expectation. Its error counts the wrong elements and shows the first.
func (x *expectation) judge(data any) error {
	wrong, first, unwritten := 0, -1, 0
	floats, _ := data.([]float32)
	for i, want := range x.want {
		if floats != nil && floats[i] == float32(want) { // nearly always
			continue
		}
		poisoned := poisoned(data, i)
		if x.accepts(i, element(data, i)) && (!poisoned || x.out.DType == compute.Uint8) {
			continue
		}
		if poisoned {
			unwritten++
		}
		if wrong++; first < 0 {
			first = i
		}
	}
	if wrong == 0 {
		return nil
	}
	text := fmt.Sprintf("%d of %d elements wrong", wrong, len(x.want))
	if unwritten > 0 {
		text += fmt.Sprintf(", %d of them never written", unwritten)
	}
	return fmt.Errorf("%s; the first at %d %v: %s", text, first, index(x.out.Shape, first), x.explain(first, data))
}

func (x *expectation) explain(i int, data any) string {
	s := fmt.Sprintf("got %v, want %v", element(data, i), reference.Rounded(x.want[i], x.out.DType))
	if x.tol != (program.Tolerance{}) {
		s += fmt.Sprintf(" ± %.3g", x.slack(i))
	}
	return s
}

func poisoned(data any, i int) bool {
	switch s := data.(type) {
	case []float32:
		return math.Float32bits(s[i]) == poison
	case []int32:
		return uint32(s[i]) == poison
	case []uint32:
		return s[i] == poison
	case []compute.F16:
		return s[i] == poisonF16
	case []compute.BF16:
		return s[i] == poisonBF16
	case []uint8:
		return s[i] == poisonU8
	}
	return false
}

// element returns an element of a slice of any type as float64.
func element(data any, i int) float64 {
	switch s := data.(type) {
	case []float32:
		return float64(s[i])
	case []int32:
		return float64(s[i])
	case []uint32:
		return float64(s[i])
	case []compute.F16:
		return float64(float16.Frombits(uint16(s[i])).Float32())
	case []uint8:
		return float64(s[i])
	case []compute.BF16:
		return float64(s[i].Float32())
	}
	return math.NaN()
}

func arrays(in []operand) []reference.Array {
	out := make([]reference.Array, len(in))
	for i, o := range in {
		out[i] = array(o.data, o.Shape)
	}
	return out
}

func array(data any, shape []int) reference.Array {
	_, n, _ := program.TypeOf(data)
	a := reference.Array{Shape: shape, Data: make([]float64, n)}
	if f, ok := data.([]float32); ok { // by far the most frequent
		for i, v := range f {
			a.Data[i] = float64(v)
		}
		return a
	}
	for i := range a.Data {
		a.Data[i] = element(data, i)
	}
	return a
}

func index(shape []int, i int) []int {
	at := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		at[d] = i % shape[d]
		i /= shape[d]
	}
	return at
}
