package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/program"
)

// Measurement is the outcome of measuring the variants of one problem.
type Measurement struct {
	Class    string          `json:"class"`
	Problem  string          `json:"problem"`
	Winner   string          `json:"winner"`
	Variants []string        `json:"variants"`
	Median   []time.Duration `json:"median"` // by variant; 0 if it was not possible
}

const (
	rounds    = 7
	atLeast   = 3                      // rounds before impatience counts
	patience  = 500 * time.Millisecond // for one problem
	cold      = 3.0                    // a variant that much slower than the best in the warm-up is dropped
	hopeless  = 1.5                    // a variant that much slower than the best later on is dropped
	advantage = 0.97                   // the default stays unless another is this much faster
)

// question is a choice that a step leaves to the tuner.
type question struct {
	class, problem string
	candidates     []string
}

// measureProgram measures what the cache does not know about a program's steps.
func (t *tuner) measureProgram(p *program.Program) error {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Kernel == nil {
			if _, err := t.measureStep(context.Background(), p, s, false); err != nil {
				return fmt.Errorf("tune %s %v: %w", s.Entry.Name, p.Types(s.In), err)
			}
		}
	}
	return nil
}

// measureStep measures the variants of a step: all of them if again, else those of questions without an answer. A choice
// may lead to further questions, so it asks until there is none.
func (t *tuner) measureStep(ctx context.Context, p *program.Program, s *program.Step, again bool) ([]Measurement, error) {
	var list []Measurement
	answered := map[string]bool{}
	for {
		q, err := t.open(p, s, answered, again)
		if err != nil || q == nil {
			return list, err
		}
		m, err := t.measure(ctx, p, s, q)
		if err != nil {
			return list, err
		}
		key := t.key(q.class, q.problem, q.candidates)
		t.cache.store(key, m.Winner)
		answered[key] = true
		list = append(list, m)
	}
}

// open returns a question of a step that nobody has answered, or nil.
func (t *tuner) open(p *program.Program, s *program.Step, answered map[string]bool, again bool) (*question, error) {
	var found *question
	_, err := t.d.lower(p, s, func(class, problem string, candidates []string) int {
		key := t.key(class, problem, candidates)
		v, why := t.decide(class, problem, candidates)
		known := why == "forced" || answered[key] || why == "measured" && !again
		if found == nil && !known && len(candidates) > 1 {
			found = &question{class, problem, slices.Clone(candidates)}
		}
		return max(slices.Index(candidates, v), 0)
	})
	return found, err
}

// contender is a variant being measured.
type contender struct {
	x       *Executable
	samples []float64 // seconds
}

func (c *contender) median() float64 {
	if len(c.samples) == 0 {
		return math.Inf(1)
	}
	s := slices.Sorted(slices.Values(c.samples))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}

// measure runs each variant on made-up data, in turns so that what disturbs the machine disturbs all of them.
func (t *tuner) measure(ctx context.Context, p *program.Program, s *program.Step, q *question) (Measurement, error) {
	t.measuring.Lock()
	defer t.measuring.Unlock()
	m := Measurement{Class: q.class, Problem: roundSizes(q.problem), Variants: q.candidates,
		Median: make([]time.Duration, len(q.candidates))}
	dev := &Device{core: t.d}
	alone, io, err := single(ctx, dev, p, s)
	if err != nil {
		return m, err
	}
	defer func() {
		for _, x := range io.Tensors {
			x.Close()
		}
	}()
	copies, err := t.copies(ctx, dev, alone, io, q)
	if err != nil {
		return m, err
	}
	var list []*contender // nil: not possible, or dropped
	var first []any       // results of the first that is possible
	for i := range q.candidates {
		results, err := t.results(ctx, dev, alone, io, q, i)
		if err == nil && first == nil {
			first = results
		}
		if err == nil && !alike(first, results) {
			err = fmt.Errorf("other results than those of %s: %w", q.candidates[0], compute.ErrUnsupported)
		}
		var c *contender
		if err == nil {
			c, err = t.contender(ctx, dev, repeated(alone, copies), io, q, i)
		}
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, compute.ErrDeviceLost) || errors.Is(err, compute.ErrClosed) {
				return m, err
			}
			t.d.log.Info("gpu: variant not possible", "class", q.class, "problem", q.problem, "variant", q.candidates[i], "error", err)
		} else {
			defer c.x.Close()
		}
		list = append(list, c)
	}
	for i, c := range list { // the warm-up counts only for those that it ends for
		if c != nil {
			m.Median[i] = time.Duration(c.median() * 1e9 / float64(copies))
		}
	}
	drop(list, cold)
	for _, c := range list {
		if c != nil {
			c.samples = nil
		}
	}
	start := time.Now()
	for round := range rounds {
		for i, c := range list {
			if c == nil {
				continue
			}
			if err := c.sample(ctx, io); err != nil {
				return m, err
			}
			m.Median[i] = time.Duration(c.median() * 1e9 / float64(copies))
		}
		if round > 0 {
			drop(list, hopeless)
		}
		if round+1 >= atLeast && time.Since(start) > patience {
			break
		}
	}
	best := fastest(list)
	if best < 0 {
		return m, fmt.Errorf("%s %s: no variant of %v works: %w", q.class, q.problem, q.candidates, compute.ErrUnsupported)
	}
	if list[0] != nil && list[best].median() > advantage*list[0].median() {
		best = 0
	}
	m.Winner = q.candidates[best]
	t.d.log.Info("gpu: measured", "class", m.Class, "problem", q.problem, "winner", m.Winner, "variants", m.Variants, "median", m.Median)
	return m, nil
}

// drop ends the contest for variants slower than the best by a factor; the default, the first, stays to compare with, unless
// it is out of the question.
func drop(list []*contender, factor float64) {
	best := fastest(list)
	for i, c := range list {
		if c != nil && (i > 0 || factor >= cold) && c.median() > factor*list[best].median() {
			list[i] = nil
		}
	}
}

func fastest(list []*contender) int {
	best := -1
	for i, c := range list {
		if c != nil && (best < 0 || c.median() < list[best].median()) {
			best = i
		}
	}
	return best
}

// contender compiles variant i and runs it once.
func (t *tuner) contender(ctx context.Context, dev *Device, p *program.Program, io *program.IO, q *question, i int) (*contender, error) {
	pl, err := t.planOf(p, q, i)
	if err != nil {
		return nil, err
	}
	c := &contender{x: newExecutable(dev, pl)}
	c.x.timed = t.d.info.has(webgpu.FeatureTimestamps)
	err = c.sample(ctx, io)
	if errors.Is(err, compute.ErrUnsupported) && c.x.timed { // the GPU's clock does not work: use ours
		c.x.timed = false
		err = c.sample(ctx, io)
	}
	if err != nil {
		c.x.Close()
		return nil, err
	}
	return c, nil
}

// planOf plans a program with variant i.
func (t *tuner) planOf(p *program.Program, q *question, i int) (*plan, error) {
	key := t.key(q.class, q.problem, q.candidates)
	return t.d.plan(p, func(class, problem string, candidates []string) int {
		if t.key(class, problem, candidates) == key {
			return i
		}
		v, _ := t.decide(class, problem, candidates)
		return max(slices.Index(candidates, v), 0)
	})
}

func (c *contender) sample(ctx context.Context, io *program.IO) error {
	run := *io
	start := time.Now()
	if err := c.x.Start(&run).Await(ctx); err != nil {
		return err
	}
	took := time.Since(start)
	if gpu := c.x.GPUTime(); gpu > 0 {
		took = gpu
	}
	c.samples = append(c.samples, took.Seconds())
	return nil
}
