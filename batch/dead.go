package batch

import (
	"slices"

	"github.com/wavelane/wavelane/internal/op"
)

// removeDead drops steps that no result depends on. Inputs stay, since runs are given data for all of them.
func removeDead(p *op.Program) *op.Program {
	live := make([]bool, len(p.Values))
	for _, s := range slices.Concat(p.Read, p.Keep) {
		live[s] = true
	}
	keep := make([]bool, len(p.Steps))
	n := 0
	for i := len(p.Steps) - 1; i >= 0; i-- {
		if !live[p.Steps[i].Out] {
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
	q.Steps = make([]op.Step, 0, n)
	for i, s := range p.Steps {
		if keep[i] {
			q.Steps = append(q.Steps, s)
		}
	}
	return &q
}
