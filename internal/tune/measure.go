package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

const (
	rounds    = 7
	minRounds = 3                      // before patience counts
	patience  = 500 * time.Millisecond // for one problem
	cold      = 3.0                    // a variant that much slower than the best in the warm-up is dropped
	hopeless  = 1.5                    // a variant that much slower than the best later on is dropped
	advantage = 0.97                   // the default stays unless another is this much faster
)

// Question is a decision that a step leaves to the tuner.
type Question struct {
	Class, Problem string
	Candidates     []string
}

// Step is code whose variants can be measured.
type Step struct {
	// Lower makes the code with the decisions of a chooser.
	Lower func(choose Chooser) error
	// Prepare prepares the variants of a question to run on the same data. Variant i is the code that pick(i) chooses.
	Prepare func(ctx context.Context, q Question, pick func(i int) Chooser) (*Contest, error)
}

// Contest has the variants of a question.
type Contest struct {
	Variant func(ctx context.Context, i int) (*Variant, error) // an error says that it is not possible
	Close   func()
}

// Variant is compiled code.
type Variant struct {
	Run   func(ctx context.Context) (time.Duration, error) // returns how long it took
	Close func()

	samples []time.Duration
}

// Measure measures the variants of a step: all of them if again is set, else those of questions that have no measured answer. A
// decision may lead to further questions, so it goes on until there are none.
func (t *Tuner) Measure(ctx context.Context, s Step, again bool) ([]program.Measurement, error) {
	var list []program.Measurement
	answered := map[string]bool{}
	for {
		q, err := t.unanswered(s, answered, again)
		if err != nil || q == nil {
			return list, err
		}
		m, err := t.measure(ctx, s, *q)
		if err != nil {
			return list, err
		}
		key := t.key(q.Class, q.Problem, q.Candidates)
		t.cache.store(key, m.Winner)
		answered[key] = true
		list = append(list, m)
	}
}

// unanswered returns a question of a step that has no answer, or nil.
func (t *Tuner) unanswered(s Step, answered map[string]bool, again bool) (*Question, error) {
	var found *Question
	err := s.Lower(func(class, problem string, candidates []string) int {
		key := t.key(class, problem, candidates)
		v, why := t.decide(class, key, candidates)
		known := why == "forced" || answered[key] || why == "measured" && !again
		if found == nil && !known && len(candidates) > 1 {
			found = &Question{class, problem, slices.Clone(candidates)}
		}
		return max(slices.Index(candidates, v), 0)
	})
	return found, err
}

// pick returns the chooser that answers a question with candidate i, and decides everything else as usual.
func (t *Tuner) pick(q Question, i int) Chooser {
	key := t.key(q.Class, q.Problem, q.Candidates)
	return func(class, problem string, candidates []string) int {
		asked := t.key(class, problem, candidates)
		if asked == key {
			return slices.Index(candidates, q.Candidates[i])
		}
		v, _ := t.decide(class, asked, candidates)
		return max(slices.Index(candidates, v), 0)
	}
}

// measure alternates between the variants, so that what disturbs the machine disturbs all of them.
func (t *Tuner) measure(ctx context.Context, s Step, q Question) (program.Measurement, error) {
	t.measuring.Lock()
	defer t.measuring.Unlock()
	m := program.Measurement{Class: q.Class, Problem: roundSizes(q.Problem), Variants: q.Candidates, Median: make([]time.Duration, len(q.Candidates))}
	contest, err := s.Prepare(ctx, q, func(i int) Chooser { return t.pick(q, i) })
	if err != nil {
		return m, err
	}
	defer contest.Close()
	var list []*Variant // nil: not possible, or dropped
	for i := range q.Candidates {
		v, err := contest.Variant(ctx, i)
		if err == nil {
			defer v.Close()
			err = v.sample(ctx)
		}
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, compute.ErrDeviceLost) || errors.Is(err, compute.ErrClosed) {
				return m, err
			}
			t.config.Log.Info("tune: variant not possible", "class", q.Class, "problem", q.Problem, "variant", q.Candidates[i], "error", err)
			v = nil
		}
		list = append(list, v)
	}
	for i, v := range list { // the time of the warm-up stays for those that it drops
		if v != nil {
			m.Median[i] = v.median()
		}
	}
	drop(list, cold)
	for _, v := range list {
		if v != nil {
			v.samples = nil
		}
	}
	start := time.Now()
	for round := range rounds {
		for i, v := range list {
			if v == nil {
				continue
			}
			if err := v.sample(ctx); err != nil {
				return m, err
			}
			m.Median[i] = v.median()
		}
		if round > 0 {
			drop(list, hopeless)
		}
		if round+1 >= minRounds && time.Since(start) > patience {
			break
		}
	}
	best := fastest(list)
	if best < 0 {
		return m, fmt.Errorf("%s %s: no variant of %v works: %w", q.Class, q.Problem, q.Candidates, compute.ErrUnsupported)
	}
	if list[0] != nil && float64(list[best].median()) > advantage*float64(list[0].median()) {
		best = 0
	}
	m.Winner = q.Candidates[best]
	t.config.Log.Info("tune: measured", "class", m.Class, "problem", q.Problem, "winner", m.Winner, "variants", m.Variants, "median", m.Median)
	return m, nil
}

// drop removes variants slower than the best by a factor. The default, which is the first, stays for comparison unless it was dropped
// in the warm-up.
func drop(list []*Variant, factor float64) {
	best := fastest(list)
	for i, v := range list {
		if v != nil && (i > 0 || factor >= cold) && float64(v.median()) > factor*float64(list[best].median()) {
			list[i] = nil
		}
	}
}

func fastest(list []*Variant) int {
	best := -1
	for i, v := range list {
		if v != nil && (best < 0 || v.median() < list[best].median()) {
			best = i
		}
	}
	return best
}

func (v *Variant) sample(ctx context.Context) error {
	took, err := v.Run(ctx)
	if err == nil {
		v.samples = append(v.samples, took)
	}
	return err
}

func (v *Variant) median() time.Duration {
	if len(v.samples) == 0 {
		return math.MaxInt64
	}
	s := slices.Sorted(slices.Values(v.samples))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}
