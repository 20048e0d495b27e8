package program

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// Varies reports whether the step has run-time scalars. Such a step is not constant, and it equals only a step with the same
// run-time scalars.
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

// AppendScalars appends the scalars of another step, run-time ones included, for rewrites that fuse two steps.
func (a *Attr) AppendScalars(b Attr) {
	if b.Varies() || a.Varies() {
		vary := make([]int, len(a.Scalars)+len(b.Scalars))
		copy(vary, a.Vary)
		copy(vary[len(a.Scalars):], b.Vary)
		a.Vary = vary
	}
	a.Scalars = append(a.Scalars[:len(a.Scalars):len(a.Scalars)], b.Scalars...)
}

// checkVary validates the indices of run-time scalars.
func (p *Program) checkVary(s *Step) error {
	if s.Attr.Vary != nil && len(s.Attr.Vary) != len(s.Attr.Scalars) {
		return fmt.Errorf("%d scalars and %d indices of run-time scalars: %w", len(s.Attr.Scalars), len(s.Attr.Vary), compute.ErrArgument)
	}
	for _, v := range s.Attr.Vary {
		if v < 0 || v > p.Variables {
			return fmt.Errorf("run-time scalar %d of %d: %w", v-1, p.Variables, compute.ErrArgument)
		}
	}
	return nil
}

// Recorded returns the IO.Scalars with which the program was recorded.
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

// Probe returns the step with run-time scalars replaced by distinct numbers, and for the bits of each the index in
// IO.Scalars. Devices compare the lowerings of both steps to find the words that hold run-time scalars.
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

// MatchScalars compares the words of a step's lowering with those of its probe. It calls found for each word that holds a
// run-time scalar, and reports whether there is no other difference.
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
