package program

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// Varies reports whether some scalar differs from run to run. Such a step is no constant, and it is equal only to a step whose
// scalars vary alike.
func (a *Attr) Varies() bool {
	for _, v := range a.Vary {
		if v > 0 {
			return true
		}
	}
	return false
}

// At returns the attributes for a run with these IO.Scalars.
func (a Attr) At(values []float32) Attr {
	if values == nil || !a.Varies() {
		return a
	}
	scalars := make([]float32, len(a.Scalars))
	copy(scalars, a.Scalars)
	for i, v := range a.Vary {
		if v > 0 {
			scalars[i] = values[v-1]
		}
	}
	a.Scalars = scalars
	return a
}

// AppendScalars appends the scalars of another step, with what it says of their varying: for rewrites that make one step of two.
func (a *Attr) AppendScalars(b Attr) {
	if b.Varies() || a.Varies() {
		vary := make([]int, len(a.Scalars)+len(b.Scalars))
		copy(vary, a.Vary)
		copy(vary[len(a.Scalars):], b.Vary)
		a.Vary = vary
	}
	a.Scalars = append(a.Scalars[:len(a.Scalars):len(a.Scalars)], b.Scalars...)
}

// checkVary validates the marks of variable scalars in a program.
func (p *Program) checkVary(s *Step) error {
	if s.Attr.Vary != nil && len(s.Attr.Vary) != len(s.Attr.Scalars) {
		return fmt.Errorf("%d scalars and %d marks of varying: %w", len(s.Attr.Scalars), len(s.Attr.Vary), compute.ErrArgument)
	}
	for _, v := range s.Attr.Vary {
		if v < 0 || v > p.Variables {
			return fmt.Errorf("variable scalar %d of %d: %w", v-1, p.Variables, compute.ErrArgument)
		}
	}
	return nil
}

// Recorded returns the values of IO.Scalars with which the program is what its steps say.
func (p *Program) Recorded() []float32 {
	values := make([]float32, p.Variables)
	for i := range p.Steps {
		a := &p.Steps[i].Attr
		for k, v := range a.Vary {
			if v > 0 {
				values[v-1] = a.Scalars[k]
			}
		}
	}
	return values
}

// Probe returns the step with other numbers in the place of those that vary, and which of IO.Scalars stands for the bits of each.
// Devices find out by it where their code takes the scalars from: words that change between the lowerings of the two steps.
func (s *Step) Probe() (probe Step, marks map[uint32]int) {
	probe, marks = *s, map[uint32]int{}
	probe.Attr.Scalars = slices.Clone(s.Attr.Scalars)
	x := float32(1.25)
	for i, v := range s.Attr.Vary {
		if v == 0 {
			continue
		}
		for slices.Contains(s.Attr.Scalars, x) {
			x += 0.25
		}
		probe.Attr.Scalars[i], marks[math.Float32bits(x)] = x, v-1
		x += 0.25
	}
	return probe, marks
}

// MatchScalars compares two lowerings of a step and its probe word by word: it calls found for each word that is a scalar, and reports
// whether there is no other difference.
func MatchScalars(words, probed []uint32, marks map[uint32]int, found func(at, variable int)) bool {
	if len(words) != len(probed) {
		return false
	}
	for at, w := range probed {
		if w == words[at] {
			continue
		}
		variable, ok := marks[w]
		if !ok {
			return false
		}
		found(at, variable)
	}
	return true
}
