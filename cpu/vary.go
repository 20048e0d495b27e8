package cpu

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// varied is the code of the steps whose scalars differ from run to run, for the scalars that a run was last given.
type varied struct {
	scalars []float32
	phases  map[int][]phase // by step; none has the code of the program
}

func (v *varied) Of(step int, otherwise []phase) []phase {
	if own, ok := v.phases[step]; ok {
		return own
	}
	return otherwise
}

// vary lowers the steps that depend on scalars anew if these are not those of this run's last use.
func (r *run) vary(scalars []float32) error {
	x, v := r.x, &r.varied
	if len(x.varying) == 0 {
		return nil
	}
	if v.phases == nil {
		v.phases, v.scalars = map[int][]phase{}, slices.Clone(x.scalars)
	}
	if scalars == nil {
		scalars = x.scalars
	}
	if slices.Equal(v.scalars, scalars) {
		return nil
	}
	copy(v.scalars, scalars)
	for _, i := range x.varying {
		s := &x.steps[i]
		w, err := lower(s.entry, &call{in: s.types, outs: s.outs, out: s.outs[0], attr: s.attr.At(scalars)})
		if err != nil {
			v.phases = nil
			return err
		}
		if w.scratch > s.scratch {
			v.phases = nil
			return fmt.Errorf("%s with scalars for which it needs more scratch memory: %w", s.entry.Name, compute.ErrUnsupported)
		}
		v.phases[i] = w.phases
	}
	return nil
}
