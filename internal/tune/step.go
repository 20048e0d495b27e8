package tune

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Single returns a program of one step of another program, on tensors, and the types of these.
func Single(p *program.Program, s *program.Step) (*program.Program, []program.Type) {
	single := &program.Program{}
	var types []program.Type
	step := *s
	step.In, step.Out, step.Attr.Vary = nil, nil, nil
	slots := map[program.Slot]program.Slot{}
	for _, in := range s.In {
		slot, ok := slots[in]
		if !ok {
			slot = single.Add(p.Values[in].Type, program.FromTensor)
			slots[in] = slot
			types = append(types, p.Values[in].Type)
		}
		step.In = append(step.In, slot)
	}
	for _, t := range p.Types(s.Out) {
		step.Out = append(step.Out, single.Add(t, program.FromStep))
	}
	single.Steps = []program.Step{step}
	return single, types
}

// Repeated returns the program with copies of its only step.
func Repeated(single *program.Program, copies int) *program.Program {
	p := *single
	p.Values, p.Steps = slices.Clone(p.Values), slices.Clone(p.Steps)
	for range copies - 1 {
		s := single.Steps[0]
		s.Out = nil
		for _, out := range single.Types(single.Steps[0].Out) {
			s.Out = append(s.Out, p.Add(out, program.FromStep))
		}
		p.Steps = append(p.Steps, s)
	}
	return &p
}

// Data returns a slice of made-up small numbers. Integers are zero, which is valid for every index.
func Data(t program.Type) any {
	data := program.MakeSlice(t)
	switch s := data.(type) {
	case []float32:
		for i := range s {
			s[i] = float32(i%13)/16 - 0.375
		}
	case []compute.F16:
		for i := range s {
			s[i] = 0x3400 + compute.F16(i%13) // just above a quarter
		}
	case []uint8:
		for i := range s {
			s[i] = uint8(i)
		}
	case []compute.BF16:
		for i := range s {
			s[i] = 0x3e80 + compute.BF16(i%13)
		}
	}
	return data
}

// tolerance is more than what rounding changes in results, relative to the largest.
const tolerance = 0.01

// Alike reports whether two lists of slices can be the results of the same computation. A variant that a driver compiles to other code,
// or wrong, must not win.
func Alike(a, b []any) bool {
	for i := range a {
		x, ok := a[i].([]float32)
		if !ok {
			continue // of 16 bits, or indices, which rounding may change altogether
		}
		y, largest, apart := b[i].([]float32), 0.0, 0.0
		for j := range x {
			if math.IsNaN(float64(x[j])) || math.IsInf(float64(x[j]), 0) {
				continue // from the small numbers of Data, such a result means nothing
			}
			largest = max(largest, math.Abs(float64(x[j])))
			apart = max(apart, math.Abs(float64(y[j])-float64(x[j]))) // NaN if either is
		}
		if !(apart <= tolerance*largest) {
			return false
		}
	}
	return true
}
