//go:build !js

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/wavelane/wavelane/llm"
)

// event is a token of a choice, or an error.
type event struct {
	choice int
	token  llm.Token
	err    error
}

// generate has all choices of some work computed at once. The events of each choice are in order, the last one says why it has finished or
// is an error. Once ctx is done nothing is computed any more.
func (s *server) generate(ctx context.Context, w *work) <-chan event {
	events := make(chan event)
	for choice := range w.texts() {
		go func() {
			for token, err := range s.scheduler.GenerateTokens(ctx, w.prompts[choice/w.choices], w.options(choice)...) {
				select {
				case events <- event{choice, token, err}:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return events
}

// usage is what the API counts.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// form is how a kind of answer is written.
type form interface {
	// add takes a token of a choice.
	add(choice int, t llm.Token)
	// whole is the answer after all tokens.
	whole(u usage) any
	// first are the chunks that begin a stream.
	first() []any
	// chunk is the part of a stream for a token, nil for none.
	chunk(choice int, t llm.Token) any
	// last is the chunk after all others, with what was used.
	last(u usage) any
}

// answer does some work and writes what comes: as a whole, or as a stream of events.
func (s *server) answer(rw http.ResponseWriter, r *http.Request, w *work, c *common, f form) error {
	begin := time.Now()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	u := usage{}
	for _, p := range w.prompts {
		u.Prompt += len(p)
	}
	events := s.generate(ctx, w)
	var out *stream
	for left := w.texts(); left > 0; {
		var e event
		select {
		case e = <-events:
		case <-ctx.Done():
			return ctx.Err()
		}
		if e.err != nil && out == nil {
			return e.err // there is nothing written yet, so the status can say it
		}
		if e.err != nil {
			if ctx.Err() == nil {
				s.log.Warn("a stream has broken off", "error", e.err)
			}
			return out.send(asError(e.err).body())
		}
		if u.Completion++; u.Completion == 1 {
			s.metrics.firstToken.observe(time.Since(begin))
		}
		if e.token.Finish != llm.Unfinished {
			left--
		}
		if !c.Stream {
			f.add(e.choice, e.token)
			continue
		}
		if out == nil {
			out = newStream(rw, s.limits.write)
			defer out.end()
			for _, x := range f.first() {
				if err := out.send(x); err != nil {
					return err
				}
			}
		}
		if x := f.chunk(e.choice, e.token); x != nil {
			if err := out.send(x); err != nil {
				return err
			}
		}
	}
	u.Total = u.Prompt + u.Completion
	s.metrics.answer.observe(time.Since(begin))
	if !c.Stream {
		return writeJSON(rw, f.whole(u))
	}
	if c.StreamOptions != nil && c.StreamOptions.IncludeUsage {
		if err := out.send(f.last(u)); err != nil {
			return err
		}
	}
	return out.line("[DONE]")
}

// stream is server-sent events.
type stream struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

func newStream(w http.ResponseWriter, timeout time.Duration) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	return &stream{w, http.NewResponseController(w), timeout}
}

func (s *stream) send(x any) error {
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return s.line(string(text))
}

// line writes an event. A client that has not read for a while is an error.
func (s *stream) line(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s, "data: %s\n\n", text); err != nil {
		return err
	}
	return s.control.Flush()
}

// end lets the connection be used on.
func (s *stream) end() { _ = s.control.SetWriteDeadline(time.Time{}) }

// finishReason is the API's name.
func finishReason(f llm.Finish) any {
	switch f {
	case llm.Unfinished:
		return nil
	case llm.EndOfText, llm.StopString:
		return "stop"
	}
	return "length"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
