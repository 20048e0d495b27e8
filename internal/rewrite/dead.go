package rewrite

import (
	"slices"

	"github.com/wavelane/wavelane/internal/program"
)

// RemoveDead drops the steps that no result depends on and that update no tensor. Inputs stay, because each run gets data for all of
// them, and so do collectives, for which other members wait.
func RemoveDead(p *program.Program) *program.Program {
	live := liveOut(p)
	keep := make([]bool, len(p.Steps))
	n := 0
	for i := len(p.Steps) - 1; i >= 0; i-- {
		if p.Steps[i].Collective() == nil && !slices.ContainsFunc(p.Steps[i].Out, func(s program.Slot) bool { return live[s] }) {
			continue
		}
		keep[i] = true
		n++
		for _, s := range p.Steps[i].In {
			live[s] = true
		}
	}
	if n == len(p.Steps) {
		return p
	}
	q := *p
	q.Steps = make([]program.Step, 0, n)
	for i, s := range p.Steps {
		if keep[i] {
			q.Steps = append(q.Steps, s)
		}
	}
	return &q
}
