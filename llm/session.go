package llm

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
)

// SessionOption is an option of [Weights.NewSession].
type SessionOption func(*sessionOptions)

type sessionOptions struct{ decoder.SessionOptions }

// WithContext sets how many tokens prompt and answer have room for, which memory is reserved for: by default and at most as many as the
// model was trained on.
func WithContext(tokens int) SessionOption {
	return func(o *sessionOptions) { o.Context = tokens }
}

// WithChunk sets how many tokens of a prompt are computed at once, 64 by default.
func WithChunk(tokens int) SessionOption { return func(o *sessionOptions) { o.Chunk = tokens } }

// WithExact multiplies quantised weights with float32. Otherwise activations are rounded to 8 bits before they meet such weights, as
// llama.cpp does: that is faster, and what it loses is small beside what the weights have lost.
func WithExact() SessionOption { return func(o *sessionOptions) { o.Exact = true } }

// WithWideCache keeps keys and values in Float32. Otherwise they are rounded to Float16, which is half the memory.
func WithWideCache() SessionOption { return func(o *sessionOptions) { o.WideCache = true } }

// Session is one text with its keys and values on a device. One call at a time.
type Session struct {
	weights *Weights
	engine  *decoder.Session
	busy    atomic.Bool
	tokens  []int32 // whose keys and values the engine has
	context int
	stats   Stats
}

// NewSession makes a session, and compiles the network for its device. Errors wrap [compute.ErrArgument] for options,
// [compute.ErrTooLarge] for a context longer than the model's, and those of the device.
func (w *Weights) NewSession(ctx context.Context, opts ...SessionOption) (*Session, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	var o sessionOptions
	o.Output.TopK = 1
	for _, f := range opts {
		if f == nil {
			return nil, fmt.Errorf("llm: nil option: %w", compute.ErrArgument)
		}
		f(&o)
	}
	if o.Context > w.model.engine.Context {
		return nil, fmt.Errorf("llm: context of %d tokens, the model was trained on %d: %w", o.Context, w.model.engine.Context, compute.ErrTooLarge)
	}
	s := &Session{weights: w}
	var err error
	if s.engine, err = w.engine.NewSession(ctx, o.SessionOptions); err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	s.context = s.engine.Room()
	return s, nil
}

// Close frees what the session has on its device. It is idempotent. Calls under way must have ended.
func (s *Session) Close() error { return s.engine.Close() }

// Context is how many tokens the session has room for.
func (s *Session) Context() int { return s.context }

// Stats are what the last call of Generate or Chat took.
type Stats struct {
	Prompt   int           // tokens of the prompt
	Known    int           // of these, tokens that the session had computed before
	Prefill  time.Duration // for the others
	Steps    int           // tokens after the prompt that were computed
	Decoding time.Duration // for these
}

// Stats returns what the last call of Generate or Chat took.
func (s *Session) Stats() Stats { return s.stats }

// Finish says why a text has ended.
type Finish int

const (
	Unfinished  Finish = iota // there is more
	EndOfText                 // the model has ended the text, or its turn
	StopString                // one of those of WithStop has come
	Limit                     // as many tokens as WithMaxTokens says
	ContextFull               // the session has no room for more
)

// String returns the name in lower case, such as "end of text".
func (f Finish) String() string {
	switch f {
	case Unfinished:
		return "unfinished"
	case EndOfText:
		return "end of text"
	case StopString:
		return "stop string"
	case Limit:
		return "limit"
	case ContextFull:
		return "context full"
	}
	return fmt.Sprintf("Finish(%d)", int(f))
}

// Token is one that the model has chosen.
type Token struct {
	ID int32
	// Text is what can be said since the last token: nothing for a part of a character, or of what may become a stop string. It is
	// always valid UTF-8. The texts of all tokens are the answer.
	Text string
	// LogProb is the natural logarithm of the probability that the model gives the token, before sampling changes it; and Top are the
	// most likely tokens, the likeliest first. Only [WithLogProbs] sets them.
	LogProb float64
	Top     []Candidate
	// Finish is not Unfinished for the last token.
	Finish Finish
}

// GenerateOption is an option of [Session.Generate] and [Session.Chat].
type GenerateOption func(*generateOptions)

type generateOptions struct {
	sampling  Sampling
	most      int
	limited   bool
	stop      []string
	logProbs  int
	ignoreEnd bool
	variables map[string]any
}

// WithSampling sets how tokens are chosen; otherwise always the most likely one.
func WithSampling(s Sampling) GenerateOption { return func(o *generateOptions) { o.sampling = s } }

// WithMaxTokens ends the answer after n tokens, at least 1. Otherwise only the context ends it, or the model.
func WithMaxTokens(n int) GenerateOption {
	return func(o *generateOptions) { o.most, o.limited = n, true }
}

// WithStop ends the answer before one of these texts, which are not empty.
func WithStop(texts ...string) GenerateOption {
	return func(o *generateOptions) { o.stop = append(o.stop, texts...) }
}

// WithLogProbs has tokens tell their probability and those of the n most likely ones, 0 to 100. All logits are then read from the device
// for each token.
func WithLogProbs(n int) GenerateOption { return func(o *generateOptions) { o.logProbs = n } }

// WithIgnoreEnd goes on where the model would end the text, as measurements do.
func WithIgnoreEnd() GenerateOption { return func(o *generateOptions) { o.ignoreEnd = true } }

// WithVariables gives the chat template more variables, as [Model.ChatPrompt] takes them.
func WithVariables(v map[string]any) GenerateOption {
	return func(o *generateOptions) { o.variables = v }
}

const mostLogProbs = 100

func newGenerateOptions(opts []GenerateOption) (*generateOptions, error) {
	o := &generateOptions{logProbs: -1}
	for _, f := range opts {
		if f == nil {
			return nil, fmt.Errorf("llm: nil option: %w", compute.ErrArgument)
		}
		f(o)
	}
	switch {
	case o.limited && o.most < 1:
		return nil, fmt.Errorf("llm: at most %d tokens, must be 1 or more: %w", o.most, compute.ErrArgument)
	case slices.Contains(o.stop, ""):
		return nil, fmt.Errorf("llm: an empty stop string: %w", compute.ErrArgument)
	case o.logProbs < -1 || o.logProbs > mostLogProbs:
		return nil, fmt.Errorf("llm: log-probabilities of %d tokens, must be 0 to %d: %w", o.logProbs, mostLogProbs, compute.ErrArgument)
	}
	return o, o.sampling.check()
}

// Generate continues a prompt, token by token, as the caller asks for them. The prompt is the whole text, see [Model.Tokenize]. The sequence
// ends after a token that says why ([Token.Finish]), with an error, or when the caller stops; it may be used once or again, which is the same
// as another call.
//
// Errors wrap [compute.ErrArgument] for options and a prompt without tokens, [compute.ErrTooLarge] for a prompt that leaves no room in the
// context, [compute.ErrInFlight] beside another call, and those of the device. When ctx is done, the error is that of ctx; what was computed
// is kept, and the session can be used on.
func (s *Session) Generate(ctx context.Context, prompt string, opts ...GenerateOption) iter.Seq2[Token, error] {
	return s.sequence(ctx, opts, func(*generateOptions) ([]int32, error) { return s.weights.model.Tokenize(prompt), nil })
}

// GenerateTokens is [Session.Generate] for a prompt of tokens.
func (s *Session) GenerateTokens(ctx context.Context, prompt []int32, opts ...GenerateOption) iter.Seq2[Token, error] {
	prompt = slices.Clone(prompt)
	return s.sequence(ctx, opts, func(*generateOptions) ([]int32, error) { return prompt, nil })
}

// Chat answers the last message of a conversation, which is given as a whole: [Session.Generate] of [Model.ChatPrompt], with its errors.
func (s *Session) Chat(ctx context.Context, messages []Message, opts ...GenerateOption) iter.Seq2[Token, error] {
	return s.sequence(ctx, opts, func(o *generateOptions) ([]int32, error) {
		prompt, err := s.weights.model.ChatPrompt(messages, o.variables)
		if err != nil {
			return nil, err
		}
		return s.weights.model.Tokenize(prompt), nil
	})
}

func (s *Session) sequence(ctx context.Context, opts []GenerateOption, prompt func(*generateOptions) ([]int32, error)) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		if !s.busy.CompareAndSwap(false, true) {
			yield(Token{}, fmt.Errorf("llm: the session is in use: %w", compute.ErrInFlight))
			return
		}
		defer s.busy.Store(false)
		o, err := newGenerateOptions(opts)
		if err == nil {
			err = compute.CheckContext(ctx)
		}
		var tokens []int32
		if err == nil {
			tokens, err = prompt(o)
		}
		if err == nil {
			err = s.generate(ctx, tokens, o, yield)
		}
		if err != nil {
			yield(Token{}, err)
		}
	}
}

// generate yields tokens. After an error that it returns, nothing was refused by the caller.
func (s *Session) generate(ctx context.Context, prompt []int32, o *generateOptions, yield func(Token, error) bool) error {
	switch {
	case len(prompt) == 0:
		return fmt.Errorf("llm: a prompt without tokens: %w", compute.ErrArgument)
	case len(prompt) > s.context:
		return fmt.Errorf("llm: a prompt of %d tokens, in a context of %d: %w", len(prompt), s.context, compute.ErrTooLarge)
	}
	known := s.keep(prompt)
	s.stats = Stats{Prompt: len(prompt), Known: known}
	choice := newSampler(o.sampling)
	output := o.sampling.output(o.logProbs >= 0)
	text := &answer{stop: o.stop, stream: s.weights.model.text.NewStream()}
	all := slices.Clone(prompt)
	given, took := prompt[known:], &s.stats.Prefill
	for n := 1; ; n++ {
		start := time.Now()
		next, err := s.feed(ctx, output, given)
		*took += time.Since(start)
		if err != nil {
			return err
		}
		if took == &s.stats.Decoding {
			s.stats.Steps++
		}
		took = &s.stats.Decoding
		t := Token{}
		if t.ID, err = choice.pick(next, all); err != nil {
			return err
		}
		if o.logProbs >= 0 {
			t.LogProb, t.Top = logProbs(next.Logits, t.ID, o.logProbs)
		}
		switch {
		case s.weights.model.text.Ends(t.ID) && !o.ignoreEnd:
			t.Text, t.Finish = text.end(), EndOfText
		default:
			var stopped bool
			if t.Text, stopped = text.next(t.ID); stopped {
				t.Finish = StopString
			} else if o.limited && n == o.most {
				t.Text, t.Finish = t.Text+text.end(), Limit
			} else if s.engine.Room() == 0 {
				t.Text, t.Finish = t.Text+text.end(), ContextFull
			}
		}
		if !yield(t, nil) || t.Finish != Unfinished {
			return nil
		}
		all = append(all, t.ID)
		given = all[len(all)-1:]
	}
}

// keep has the engine forget what a text does not begin with, and returns how many of its tokens are left: all but one at most, since
// what comes after the last is wanted.
func (s *Session) keep(text []int32) int {
	n := 0
	for n < min(len(s.tokens), len(text)-1) && s.tokens[n] == text[n] {
		n++
	}
	_ = s.engine.Rewind(n) // which has them all, as feed sees to
	s.tokens = s.tokens[:n]
	return n
}

// feed gives tokens to the engine and keeps account of those that it has.
func (s *Session) feed(ctx context.Context, o decoder.Output, tokens []int32) (*decoder.Next, error) {
	next, err := s.engine.FeedFor(ctx, o, tokens...)
	s.tokens = append(s.tokens, tokens[:s.engine.Position()-len(s.tokens)]...)
	if err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	return next, nil
}

// answer is the text so far that was not given out: parts of characters, and what may become a stop string.
type answer struct {
	stream interface {
		Next(token int32) string
		End() string
	}
	stop    []string
	pending string
}

// next is what can be said after a token, and whether a stop string has come.
func (a *answer) next(token int32) (text string, stopped bool) {
	a.pending += a.stream.Next(token)
	return a.take(false)
}

// end is what is left at the end.
func (a *answer) end() string {
	a.pending += a.stream.End()
	text, _ := a.take(true)
	return text
}

func (a *answer) take(all bool) (text string, stopped bool) {
	at := -1
	for _, s := range a.stop {
		if i := strings.Index(a.pending, s); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	if at >= 0 {
		text, a.pending = a.pending[:at], ""
		return text, true
	}
	held := 0
	for _, s := range a.stop {
		for n := min(len(s)-1, len(a.pending)); n > held && !all; n-- {
			if strings.HasSuffix(a.pending, s[:n]) {
				held = n
			}
		}
	}
	at = len(a.pending) - held
	text, a.pending = a.pending[:at], a.pending[at:]
	return text, false
}
