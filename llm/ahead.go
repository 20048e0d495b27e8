package llm

import (
	"context"
	"fmt"
	"sync"

	"github.com/wavelane/wavelane/internal/decoder"
)

// lookAhead sets what is expected of texts whose next token is computed next. They share the rows that a step has beside a token of each.
func (s *Scheduler) lookAhead() error {
	room := s.engine.Rows()/len(s.running) - 1
	var drafting []*request
	for _, r := range s.running {
		most := 0
		if r.expected = (draft{}); len(r.missing(r.sequence)) == 1 {
			most = r.ahead(min(room, s.Context()-len(r.all)))
		}
		switch {
		case r.drafter != nil:
			r.drafter.begin(most)
			drafting = append(drafting, r)
		case most > 0:
			r.expected = r.lookUp(most)
		}
	}
	for first := true; len(drafting) > 0; first = false {
		if more, err := s.draft(drafting, first); err != nil {
			return fmt.Errorf("llm: draft: %w", err)
		} else if !more {
			break
		}
	}
	for _, r := range drafting {
		r.expected = r.drafter.end()
	}
	return nil
}

// draft is a step of the smaller model: a token for each text that wants one, and first a chunk of a text that it has not followed, such as
// a prompt. It reports whether there was anything to do.
func (s *Scheduler) draft(texts []*request, first bool) (more bool, err error) {
	var feeds []decoder.Feed
	var fed []*request
	for _, r := range texts {
		d, given := r.drafter, r.drafter.all
		switch {
		case d.wants():
		case first && len(r.missing(r.sequence)) > 1:
			given = given[:len(given)-1]
		default:
			continue
		}
		given = given[r.smaller.Position():]
		if len(given) > 2 && first { // two after a draft that was chosen as a whole
			first, given = false, given[:min(len(given), s.drafts.Options().Chunk)]
		} else if len(given) > 2 {
			d.most = 0
			continue
		}
		if len(given) == 0 || !d.takes(r.all) || !s.drafts.Reserve(r.smaller, len(given)) {
			d.most = 0
			continue
		}
		feeds, fed = append(feeds, decoder.Feed{Sequence: r.smaller, Tokens: given, Each: len(given) == 2}), append(fed, r)
	}
	if len(feeds) == 0 {
		return false, nil
	}
	next, err := s.drafts.Step(context.Background(), widest(fed, func(r *request) decoder.Output { return r.drafter.output }), feeds...)
	if err != nil {
		return false, err
	}
	var all sync.WaitGroup
	for i, r := range fed {
		d := r.drafter
		if !d.wants() || r.smaller.Position() < len(d.all) {
			d.most = 0
			continue
		}
		all.Go(func() {
			if err := d.add(next[i][len(next[i])-1]); err != nil {
				d.most = 0
				r.give(Token{}, err)
				r.left.Store(true)
			}
		})
	}
	all.Wait()
	return true, nil
}
