package batch

import "github.com/wavelane/wavelane/internal/program"

// placed returns the device that a program runs on: the batch's, or the one that a routing device chooses.
func placed(d program.Executor, p *program.Program) program.Executor {
	if r, ok := d.(program.Placer); ok {
		return r.Place(p)
	}
	return d
}

// Explain says on which device the plan runs, and why.
func (p *Plan) Explain() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.compiled(); err != nil {
		return err.Error()
	}
	if r, ok := p.exec.device.(program.Placer); ok {
		return r.ExplainPlace(p.recorded)
	}
	return "the batch's device"
}
