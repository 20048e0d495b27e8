package llm

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/internal/decoder"
)

// work is the goroutine that computes: until the scheduler stops, a step of all texts that run, after those that arrived have joined and
// those that nobody wants any more have left.
func (s *Scheduler) work() {
	defer close(s.done)
	for {
		err := s.join()
		if err == nil && len(s.running) == 0 {
			<-s.wake
			continue
		}
		if err == nil {
			err = s.step()
		}
		if err != nil {
			s.stop(err)
			s.fail()
			return
		}
		s.note()
	}
}

// join begins texts that there is room for, in the order in which they came. Its error says that the scheduler stops.
func (s *Scheduler) join() error {
	s.mu.Lock()
	s.waiting, s.arrived = append(s.waiting, s.arrived...), nil
	err := s.err
	s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(r *request) bool { return r.left.Load() })
	s.running = slices.DeleteFunc(s.running, func(r *request) bool {
		left := r.left.Load()
		if left {
			s.engine.End(r.sequence)
		}
		return left
	})
	for err == nil && len(s.waiting) > 0 && len(s.running) < s.engine.Options().Sequences {
		r := s.waiting[0]
		sequence := s.engine.Begin(r.all)
		if !s.engine.Reserve(sequence, len(r.all)-sequence.Position()) {
			s.engine.End(sequence)
			break
		}
		if !r.begun {
			r.begun = true
			s.mu.Lock()
			s.stats.Prompt += int64(len(r.all))
			s.stats.Known += int64(sequence.Position())
			s.mu.Unlock()
		}
		r.sequence = sequence
		s.running, s.waiting = append(s.running, r), s.waiting[1:]
	}
	s.note()
	return err
}

// step computes a token of each text, or a chunk of its prompt: one at a time, that of the text which began first.
func (s *Scheduler) step() error {
	var feeds []decoder.Feed
	var fed []*request
	output := decoder.Output{TopK: 1}
	chunk := false
	for i := 0; i < len(s.running); i++ {
		r := s.running[i]
		given := r.all[r.sequence.Position():]
		given = given[:min(len(given), s.engine.Options().Chunk)]
		if len(given) > 1 && chunk || !s.reserve(r, len(given)) {
			continue
		}
		chunk = chunk || len(given) > 1
		feeds, fed = append(feeds, decoder.Feed{Sequence: r.sequence, Tokens: given}), append(fed, r)
		if output.TopK > 0 && (r.output.TopK == 0 || r.output.TopK > output.TopK) {
			output = r.output // which has what the others need
		}
	}
	next, err := s.engine.Step(context.Background(), output, feeds...)
	if err != nil {
		return fmt.Errorf("llm: %w", err)
	}
	var all sync.WaitGroup
	ended := make([]bool, len(fed))
	chosen := int64(0)
	for i, r := range fed {
		if r.sequence.Position() < len(r.all) {
			continue // there is more of the prompt
		}
		chosen++
		all.Go(func() {
			t, err := r.next(next[i], s.Context(), 0, nil)
			ended[i] = err != nil || t.Finish != Unfinished
			r.give(t, err)
		})
	}
	all.Wait()
	for i, r := range fed {
		switch {
		case len(r.all) > s.Context() && !ended[i]: // it goes on with less
			r.forget()
			s.engine.End(r.sequence)
			r.sequence = s.engine.Begin(r.all)
		case ended[i]:
			s.engine.End(r.sequence)
			s.running = slices.DeleteFunc(s.running, func(x *request) bool { return x == r })
		}
	}
	s.mu.Lock()
	s.stats.Steps++
	s.stats.Tokens += chosen
	s.mu.Unlock()
	return nil
}

// reserve sees to room for n more tokens of a text, and puts off texts that began later for it. It reports whether the text still runs: it
// may be the last itself.
func (s *Scheduler) reserve(r *request, n int) bool {
	for !s.engine.Reserve(r.sequence, n) {
		last := s.running[len(s.running)-1]
		s.engine.End(last.sequence)
		last.sequence = nil
		s.running = s.running[:len(s.running)-1]
		s.waiting = slices.Insert(s.waiting, 0, last)
		s.mu.Lock()
		s.stats.PutOff++
		s.mu.Unlock()
		if last == r {
			return false
		}
	}
	return true
}

// fail ends all texts with the scheduler's error.
func (s *Scheduler) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range slices.Concat(s.running, s.waiting, s.arrived) {
		r.give(Token{}, s.err)
	}
	s.running, s.waiting, s.arrived = nil, nil, nil
}

// note brings the numbers of texts and pages up to date.
func (s *Scheduler) note() {
	tokens, used := s.engine.Room()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Running, s.stats.Waiting = len(s.running), len(s.waiting)+len(s.arrived)
	s.stats.CacheTokens, s.stats.CacheUsed = tokens, used
}
