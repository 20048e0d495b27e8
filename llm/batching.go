package llm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

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
			s.end(r)
		}
		return left
	})
	for err == nil && len(s.waiting) > 0 && len(s.running) < s.engine.Options().Sequences {
		r := s.waiting[0]
		s.begin(r)
		if !s.engine.Reserve(r.sequence, len(r.all)-r.sequence.Position()) {
			s.end(r)
			break
		}
		if !r.begun {
			r.begun = true
			s.mu.Lock()
			s.stats.Prompt += int64(len(r.all))
			s.stats.Known += int64(r.sequence.Position())
			s.mu.Unlock()
		}
		s.running, s.waiting = append(s.running, r), s.waiting[1:]
	}
	s.note()
	return err
}

// begin gives a text sequences that have what others have computed of it.
func (s *Scheduler) begin(r *request) {
	r.sequence, r.expected = s.engine.Begin(r.all), draft{}
	if r.drafter != nil {
		r.smaller = s.drafts.Begin(r.all)
	}
}

// end gives back what a text has in the caches.
func (s *Scheduler) end(r *request) {
	s.engine.End(r.sequence)
	if r.drafter != nil {
		s.drafts.End(r.smaller)
	}
}

// step computes the next token of each text, with what is expected to follow, or a chunk of its prompt: one at a time, that of the text which
// began first.
func (s *Scheduler) step() error {
	if err := s.lookAhead(); err != nil {
		return err
	}
	var feeds []decoder.Feed
	var fed []*request
	chunk := false
	for i := 0; i < len(s.running); i++ {
		r := s.running[i]
		given := r.missing(r.sequence)
		given = given[:min(len(given), s.engine.Options().Chunk)]
		if len(given) > 1 && chunk || !s.reserve(r, len(given)) {
			continue
		}
		chunk = chunk || len(given) > 1
		feeds, fed = append(feeds, decoder.Feed{Sequence: r.sequence, Tokens: given}), append(fed, r)
	}
	for i, r := range fed { // for which nothing is put off
		if len(r.expected.tokens) > 0 && s.engine.Reserve(r.sequence, 1+len(r.expected.tokens)) {
			feeds[i].Tokens, feeds[i].Each = slices.Concat(feeds[i].Tokens, r.expected.tokens), true
		} else {
			r.expected = draft{}
		}
	}
	next, err := s.engine.Step(context.Background(), widest(fed, func(r *request) decoder.Output { return r.output }), feeds...)
	if err != nil {
		return fmt.Errorf("llm: %w", err)
	}
	var all sync.WaitGroup
	more := make([]bool, len(fed))
	var chosen, drafted, accepted atomic.Int64
	for i, r := range fed {
		if more[i] = r.sequence.Position() < len(r.all); more[i] {
			continue // of the prompt
		}
		all.Go(func() {
			n, goes, err := r.verify(next[i], &r.expected, s.Context(), func(t Token) bool {
				chosen.Add(1)
				r.give(t, nil)
				return true
			})
			more[i] = goes
			drafted.Add(int64(len(r.expected.tokens)))
			if accepted.Add(int64(n)); err != nil {
				r.give(Token{}, err)
			}
		})
	}
	all.Wait()
	for i, r := range fed { // before anything begins with what was not chosen
		if feeds[i].Each {
			s.engine.Keep(r.sequence, r.all)
		}
		if r.drafter != nil {
			s.drafts.Keep(r.smaller, r.all)
		}
	}
	for i, r := range fed {
		switch {
		case !more[i]:
			s.end(r)
			s.running = slices.DeleteFunc(s.running, func(x *request) bool { return x == r })
		case len(r.all) > s.Context(): // it goes on with less
			r.forget()
			s.end(r)
			s.begin(r)
		}
	}
	s.mu.Lock()
	s.stats.Steps++
	s.stats.Tokens += chosen.Load()
	s.stats.Drafted += drafted.Load()
	s.stats.Accepted += accepted.Load()
	s.mu.Unlock()
	return nil
}

// missing is the tokens of a text that a sequence has not.
func (r *request) missing(s *decoder.Sequence) []int32 { return r.all[s.Position():] }

// widest is the output that has what each text needs.
func widest(texts []*request, of func(*request) decoder.Output) decoder.Output {
	widest := of(texts[0])
	for _, r := range texts[1:] {
		if o := of(r); widest.TopK > 0 && (o.TopK == 0 || o.TopK > widest.TopK) {
			widest = o
		}
	}
	return widest
}

// reserve sees to room for n more tokens of a text, and puts off texts that began later for it. It reports whether the text still runs: it
// may be the last itself.
func (s *Scheduler) reserve(r *request, n int) bool {
	for !s.engine.Reserve(r.sequence, n) {
		last := s.running[len(s.running)-1]
		s.end(last)
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
