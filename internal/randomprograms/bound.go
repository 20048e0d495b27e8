package randomprograms

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// estimate is a value of the float64 reference with, for each element, how far a device may be from it. An infinite bound is no
// claim: what follows from a comparison that could have gone either way, from a pole, from an overflow.
type estimate struct {
	reference.Array
	bound []float64
}

// estimates computes every value of a program. The bound of a step's result is what its entry's tolerance allows, and what the
// bounds of its operands make of that: see spread.
func (p *randomProgram) estimates() []estimate {
	values := make([]estimate, len(p.Values))
	for s, a := range p.arrays() {
		values[s] = estimate{a, make([]float64, len(a.Data))}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		in := make([]estimate, len(s.In))
		for k, slot := range s.In {
			in[k] = values[slot]
		}
		for k, y := range estimateStep(s.Entry, in, s.Attr, p.Types(s.Out)) {
			values[s.Out[k]] = y
		}
	}
	return values
}

// Beyond huge, a rounding error away from overflow, nothing is claimed. Below tiny devices may flush to zero.
const (
	huge = 1e30
	tiny = 0x1p-125
)

func estimateStep(e *program.Entry, in []estimate, a program.Attr, out []program.Type) []estimate {
	arrays := make([]reference.Array, len(in))
	for k := range in {
		arrays[k] = in[k].Array
	}
	want := reference.Of(e, arrays, a, out)
	all := spread(e, in, a, out, want)
	tol := catalogue.ToleranceOf(e, a)
	var yardstick [][]float64
	if tol.Mag > 0 {
		yardstick = reference.Magnitudes(e, widened(in), a, out)
	}
	if beyond(e, in, tol) {
		for k := range all {
			fill(all[k], math.Inf(1))
		}
	}
	y := make([]estimate, len(out))
	for k := range y {
		for i, w := range want[k].Data {
			b := all[k][i]
			slack := tol.Abs + tol.Rel*(math.Abs(w)+b)
			if yardstick != nil {
				slack += tol.Mag * yardstick[k][i]
			}
			if out[k].DType == compute.Float32 && float64(float32(w)) != w || b > 0 {
				slack += 0x1p-23 * (math.Abs(w) + b)
			}
			if math.Abs(w) < tiny && w != 0 || b > 0 {
				slack += tiny
			}
			b += slack
			if !(math.Abs(w)+b < huge) || e.Class != program.Move && !finiteInputs(in) {
				b = math.Inf(1)
			}
			all[k][i] = b
		}
		y[k] = estimate{want[k], all[k]}
	}
	return y
}

// finiteInputs reports whether no operand holds what is no number or near the largest.
func finiteInputs(in []estimate) bool {
	for _, x := range in {
		for _, v := range x.Data {
			if !(math.Abs(v) < huge) {
				return false
			}
		}
	}
	return true
}

// beyond reports whether an operand may lie where the entry promises nothing. Tolerances of a rounding hold everywhere.
func beyond(e *program.Entry, in []estimate, tol program.Tolerance) bool {
	if tol.Abs == 0 && tol.Rel < 1e-6 || e.Class != program.Unary && e.Class != program.Binary && e.Class != program.Ternary && e.Domain == [2]float64{} {
		return false
	}
	if e.Class == program.Matrix || e.Class == program.Window {
		return false
	}
	low, high := e.Domain[0], e.Domain[1]
	if low == 0 && high == 0 {
		low, high = -4, 4
	}
	for _, x := range in {
		for i, v := range x.Data {
			if b := x.bound[i]; !(v-b >= low && v+b <= high) {
				return true
			}
		}
	}
	return false
}

// widened are the operands as far from zero as they may be.
func widened(in []estimate) []reference.Array {
	y := make([]reference.Array, len(in))
	for k, x := range in {
		y[k] = reference.Array{Shape: x.Shape, Data: slices.Clone(x.Data)}
		for i, b := range x.bound {
			if !math.IsInf(b, 0) {
				y[k].Data[i] = math.Copysign(math.Abs(x.Data[i])+b, x.Data[i])
			}
		}
	}
	return y
}

func fill(x []float64, v float64) {
	for i := range x {
		x[i] = v
	}
}
