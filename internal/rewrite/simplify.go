package rewrite

import (
	"math"
	"reflect"
	"slices"

	"github.com/wavelane/wavelane/internal/program"
)

// Simplify computes no value twice and folds what is known, in one pass over the steps: value numbering (Cocke and Schwartz,
// "Programming Languages and Their Compilers", 1970). A step that copies, or is equal to an earlier one, is left out, and what used
// its result uses the other value.
func Simplify(p *program.Program) *program.Program {
	s := simplifier{p: p, fixed: make([]bool, len(p.Values)), same: make([]program.Slot, len(p.Values)),
		maker: make([]int32, len(p.Values)), steps: make([]*program.Step, 0, len(p.Steps)), next: make([]int32, 0, len(p.Steps)),
		known: make(map[valueKey]int32, len(p.Steps)),
		read:  make([]bool, len(p.Values)), updated: updated(p)}
	for i := range p.Values {
		s.same[i], s.maker[i] = program.Slot(i), none
	}
	for _, r := range p.Read {
		s.read[r] = true
	}
	for _, k := range p.Keep {
		s.fixed[k] = true
	}
	changed := false
	for i := range p.Steps {
		changed = s.add(&p.Steps[i]) || changed
	}
	if !changed {
		return p
	}
	q := *p
	q.Steps = make([]program.Step, len(s.steps))
	for i, step := range s.steps {
		q.Steps[i] = *step
	}
	q.Read = slices.Clone(p.Read)
	for i, r := range q.Read {
		q.Read[i] = s.same[r]
	}
	return &q
}

// simplifier holds the steps that remain.
type simplifier struct {
	p       *program.Program
	steps   []*program.Step
	next    []int32        // by step: the previous one of the same key, or none
	same    []program.Slot // by slot: the one to use instead
	maker   []int32        // by slot: the index in steps of the one that computes it, or none
	updated []int32
	read    []bool // values that are read at the end
	fixed   []bool // values that need memory of their own
	known   map[valueKey]int32
}

// valueKey is equal for equal steps. Different steps may share a key.
type valueKey struct {
	entry  *program.Entry
	in     [3]program.Slot
	inputs int
	scalar uint32
}

// add appends a step, and reports whether that changes the program.
func (s *simplifier) add(old *program.Step) bool {
	step := s.renamed(old)
	link := int32(none)
	if old.Entry.Updates == 0 && old.Kernel == nil {
		folded, same := s.fold(step)
		if same >= 0 && s.replace(step.Out[0], same) {
			return true
		}
		step = folded
		key := keyOf(step)
		if i, found := s.known[key]; found {
			link = i
		}
		for i := link; i >= 0; i = s.next[i] {
			if equalSteps(s.steps[i], step) && s.replaceAll(step.Out, s.steps[i].Out) {
				return true
			}
		}
		s.known[key] = int32(len(s.steps))
	}
	for _, out := range step.Out {
		s.maker[out] = int32(len(s.steps))
	}
	s.next = append(s.next, link)
	s.steps = append(s.steps, step)
	return step != old
}

// renamed returns the step with its operands replaced.
func (s *simplifier) renamed(step *program.Step) *program.Step {
	if !slices.ContainsFunc(step.In, func(in program.Slot) bool { return s.same[in] != in }) {
		return step
	}
	to := *step
	to.In = slices.Clone(step.In)
	for k, in := range to.In {
		to.In[k] = s.same[in]
	}
	return &to
}

// replace lets every later step use another value instead of v, if both permit it: a value that is updated in place has one name only,
// and a retained output needs memory of its own.
func (s *simplifier) replace(v, by program.Slot) bool {
	if s.fixed[v] || s.updated[v] >= 0 || s.updated[by] >= 0 || s.read[v] && s.p.Values[by].Source != program.FromStep {
		return false
	}
	s.read[by] = s.read[by] || s.read[v]
	s.same[v] = by
	return true
}

// replaceAll replaces all results of a step, or none.
func (s *simplifier) replaceAll(v, by []program.Slot) bool {
	for i := range v {
		if s.fixed[v[i]] || s.updated[v[i]] >= 0 || s.updated[by[i]] >= 0 {
			return false
		}
	}
	for i := range v {
		s.replace(v[i], by[i])
	}
	return true
}

// producer returns the step that computes a value if it is one of entry e, else nil.
func (s *simplifier) producer(v program.Slot, e *program.Entry) *program.Step {
	if i := s.maker[v]; i >= 0 && s.steps[i].Entry == e && !s.steps[i].Attr.Varies() {
		return s.steps[i]
	}
	return nil
}

func keyOf(s *program.Step) valueKey {
	k := valueKey{entry: s.Entry, inputs: len(s.In)}
	copy(k.in[:], s.In)
	if len(s.Attr.Scalars) > 0 {
		k.scalar = math.Float32bits(s.Attr.Scalars[0])
	}
	return k
}

// equalSteps reports whether two steps compute the same values.
func equalSteps(a, b *program.Step) bool {
	return a.Entry == b.Entry && slices.Equal(a.In, b.In) && sameScalars(a.Attr.Scalars, b.Attr.Scalars) &&
		!a.Attr.Varies() && !b.Attr.Varies() && (a.Attr.Options == nil || equal(reflect.ValueOf(a.Attr.Options), reflect.ValueOf(b.Attr.Options)))
}

// equal compares options: structs of numbers, entries, and slices of them. For reflect.DeepEqual, which knows every type, a program links 18 KB.
func equal(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
			return false
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
	return a.Interface() == b.Interface()
}

// sameScalars compares bits, so that −0 is not 0 and a NaN is itself.
func sameScalars(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}
