package op

import (
	"fmt"

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
		return fmt.Errorf("%d scalars, of which %d are said to vary or not: %w", len(s.Attr.Scalars), len(s.Attr.Vary), compute.ErrArgument)
	}
	for _, v := range s.Attr.Vary {
		if v < 0 || v > p.Variables {
			return fmt.Errorf("variable scalar %d of %d: %w", v-1, p.Variables, compute.ErrArgument)
		}
	}
	return nil
}
