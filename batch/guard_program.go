package batch

import (
	"cmp"
	"maps"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/rewrite"
)

// watch holds the guards of a plan and the data for their reports.
type watch struct {
	device   program.Executor
	guards   []guard
	recorded *program.Program // without dead steps
	steps    []program.Step   // all as recorded, for their numbers
	sites    map[int]string
	coarse   bool // values within fused steps are not looked at: if something is found, the recorded program has to run
	program  *program.Program
	looks    []look
	alias    map[program.Slot]program.Slot // values in the program for those of guards, where they are others
}

// look is a value for which a program also reads the words of [catalogue.Inspect], after its own results.
type look struct {
	at   program.Slot // in the program that runs
	slot program.Slot // what guards call it
}

// words are those of catalogue.Inspect, by what guards call the values.
type words map[program.Slot][]int32

// guarded passes the recorded program through the rewrites, and adds what guards need if there are any.
func (rec *Batch) guarded(device program.Executor, p *program.Program) (*program.Program, wrap, error) {
	w := &watch{device: device, steps: p.Steps, sites: maps.Clone(rec.sites)}
	for _, g := range rec.guards {
		if int(g.slot) < len(p.Values) { // the batch may have been recorded further since
			w.guards = append(w.guards, g)
		}
	}
	whole := rec.options.guard != nil
	if whole {
		w.guards = append(w.guards, *rec.options.guard)
	}
	if len(w.guards) == 0 {
		return rec.rewrite(p, device), nil, nil
	}
	var pinned []program.Slot // values that have to be in memory
	for _, g := range w.guards {
		if err := g.check(); err != nil {
			return nil, nil, err
		}
		if g.slot != everything {
			pinned = append(pinned, w.needs(p, &g)...)
		}
	}
	read, own := len(p.Read), *p
	p = &own
	p.Read = slices.Concat(p.Read, pinned)
	recorded := rewrite.RemoveDead(p)
	w.recorded = without(recorded, read)
	w.coarse = whole && len(p.Changed()) == 0
	if whole && !w.coarse {
		pinned = values(recorded)
		p.Read = slices.Concat(p.Read[:read], pinned)
	}
	p = rec.rewrite(p, device)
	w.alias = map[program.Slot]program.Slot{}
	for i, s := range pinned {
		at := p.Read[read+i]
		if w.coarse {
			w.alias[s], s = at, at
		}
		w.looks = append(w.looks, look{at, s})
	}
	p = without(p, read)
	if w.coarse {
		for _, s := range w.worth(p) {
			w.looks = append(w.looks, look{s, s})
		}
	}
	seen := map[look]bool{}
	w.looks = slices.DeleteFunc(w.looks, func(l look) bool {
		again := seen[l]
		seen[l] = true
		return again || !visible(p, l.at)
	})
	var err error
	w.program, err = inspect(p, w.looks)
	return w.program, func(x program.Executable) program.Executable { return &guardedRun{Executable: x, watch: w} }, err
}

// without returns the program with the first n results only.
func without(p *program.Program, n int) *program.Program {
	q := *p
	q.Read = q.Read[:n:n]
	return &q
}

// visible reports whether a value can have elements that are not finite.
func visible(p *program.Program, s program.Slot) bool {
	t := p.Values[s].Type
	return slices.Contains([]compute.DType{compute.Float32, compute.Float16, compute.BFloat16}, t.DType) && t.Len() > 0
}

// needs lists the values that a guard of one value looks at.
func (w *watch) needs(p *program.Program, g *guard) []program.Slot {
	slots := []program.Slot{g.slot}
	if s := computes(p.Steps, g.slot); s != nil && g.checks&Overflow != 0 {
		slots = append(slots, s.In...)
	}
	return slots
}

// values lists all values of a program.
func values(p *program.Program) []program.Slot {
	slots := slices.Concat(p.Host, p.Tensor)
	for i := range p.Steps {
		slots = append(slots, p.Steps[i].Out...)
	}
	return slots
}

// worth lists the values that have to be inspected to miss nothing. Inputs matter to overflows only, and moving data does not change it.
func (w *watch) worth(p *program.Program) (slots []program.Slot) {
	known := make([]bool, len(p.Values))
	take := func(s program.Slot) {
		known[s] = true
		slots = append(slots, s)
	}
	if w.guards[len(w.guards)-1].checks&Overflow != 0 {
		for _, s := range slices.Concat(p.Host, p.Tensor) {
			take(s)
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		moved := slices.Contains([]*program.Entry{catalogue.Reshape, catalogue.Transpose, catalogue.Copy, catalogue.Slice, catalogue.Concat}, s.Entry)
		if moved && !slices.ContainsFunc(s.In, func(in program.Slot) bool { return !known[in] }) {
			known[s.Out[0]] = true
			continue
		}
		for _, out := range s.Out {
			take(out)
		}
	}
	return slots
}

// inspect returns a program that also reads the words of catalogue.Inspect of values, as soon as they are there.
func inspect(p *program.Program, looks []look) (*program.Program, error) {
	q := *p
	q.Values, q.Steps, q.Read = slices.Clone(p.Values), nil, slices.Clone(p.Read)
	read := make([]program.Slot, len(looks))
	inspect := func(made []program.Slot) error {
		for i, l := range looks {
			if !slices.Contains(made, l.at) {
				continue
			}
			s, err := l.at, error(nil)
			if q.Values[s].DType != compute.Float32 {
				if s, err = q.Apply(catalogue.Cast, program.Attr{Options: compute.CastOptions{To: compute.Float32}}, s); err != nil {
					return err
				}
			}
			if read[i], err = q.Apply(catalogue.Inspect, program.Attr{Options: compute.AllAxes}, s); err != nil {
				return err
			}
		}
		return nil
	}
	if err := inspect(slices.Concat(p.Host, p.Tensor)); err != nil {
		return nil, err
	}
	for _, s := range p.Steps {
		q.Steps = append(q.Steps, s)
		if err := inspect(s.Out); err != nil {
			return nil, err
		}
	}
	q.Read = append(q.Read, read...)
	return &q, nil
}

// find returns what the guards find of a program whose values have these words, by the numbers of the steps.
func (w *watch) find(p *program.Program, of words) *GuardError {
	var all []*GuardError
	look := func(s *program.Step, out program.Slot) {
		for i := range w.guards {
			g := &w.guards[i]
			if g.slot == everything && s == nil || g.slot != everything && g.slot != out && (p != w.program || w.alias[g.slot] != out) {
				continue
			}
			if e := w.fails(g, p, s, out, of); e != nil {
				all = append(all, e)
			}
		}
	}
	for _, s := range slices.Concat(p.Host, p.Tensor) {
		look(nil, s)
	}
	for i := range p.Steps {
		for _, out := range p.Steps[i].Out {
			look(&p.Steps[i], out)
		}
	}
	if len(all) == 0 {
		return nil
	}
	first := slices.MinFunc(all, func(a, b *GuardError) int { return cmp.Compare(a.Step, b.Step) })
	first.Delivered = !slices.ContainsFunc(all, func(e *GuardError) bool { return !e.Delivered })
	return first
}

// fails says what a guard finds in a value: of several checks the one that fails first.
func (w *watch) fails(g *guard, p *program.Program, s *program.Step, out program.Slot, of words) *GuardError {
	word := of[out]
	if word == nil {
		return nil
	}
	var e *GuardError
	try := func(c Check, kind int, and bool) {
		if n, at := int(word[kind]), int(word[2+kind]); g.checks&c != 0 && n > 0 && and && (e == nil || at < e.Index) {
			e = &GuardError{Step: -1, Operation: "input", Shape: p.Values[out].Shape, Site: g.site, Check: c, Count: n, Index: at,
				Delivered: g.action == Report}
		}
	}
	finite := s != nil && !slices.ContainsFunc(s.In, func(in program.Slot) bool { return of[in] != nil && of[in][0]+of[in][1] > 0 })
	try(NaN, 0, true)
	try(Overflow, 1, finite)
	try(Inf, 1, true)
	if e == nil {
		return nil
	}
	e.Position = position(e.Index, e.Shape)
	if s == nil {
		return e
	}
	e.Operation, e.Operands, e.Step = s.Name(), shapes(p, s.In), recordedStep(w.steps, out)
	if site := w.sites[e.Step]; site != "" {
		e.Site = site
	}
	return e
}
