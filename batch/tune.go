package batch

import (
	"context"
	"fmt"
	"time"

	"github.com/wavelane/wavelane/compute"
)

// Measurement is the outcome of measuring the variants of a kernel for one problem.
type Measurement struct {
	Class    string          `json:"class"`   // of operations: "matmul"
	Problem  string          `json:"problem"` // sizes rounded to powers of two
	Winner   string          `json:"winner"`
	Variants []string        `json:"variants"`
	Median   []time.Duration `json:"median"` // by variant; 0 if it was not possible
}

// Tuning is what [Plan.TuneAsync] has measured: valid when its future is done.
type Tuning struct{ list []Measurement }

// Measurements returns what was measured, in the order of the plan's steps.
func (t *Tuning) Measurements() []Measurement { return t.list }

// TuneAsync is [Plan.Tune] where functions must not wait, as in browsers. Measurements of browsers last as long as the page.
func (p *Plan) TuneAsync(ctx context.Context) (*Tuning, *compute.Future) {
	t := &Tuning{}
	f, resolve := compute.NewFuture(nil)
	go func() {
		var err error
		t.list, err = p.tune(ctx)
		resolve(err, nil)
	}()
	return t, f
}

func (p *Plan) tune(ctx context.Context) ([]Measurement, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	if err := p.usable(); err != nil {
		p.mu.Unlock()
		return nil, fmt.Errorf("tune a plan: %w", err)
	}
	device, compiled := p.exec.device, p.program
	p.mu.Unlock()
	at, err := placed(ctx, device, p.recorded)
	if err != nil {
		return nil, fmt.Errorf("tune a plan: %w", err)
	}
	measured, err := withCollectives(at, compiled).Tune(ctx, compiled)
	list := make([]Measurement, len(measured))
	for i, m := range measured {
		list[i] = Measurement(m)
	}
	if err != nil {
		return list, fmt.Errorf("tune a plan: %w", err)
	}
	return list, p.recompile(ctx, device)
}
