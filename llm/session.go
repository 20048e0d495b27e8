package llm

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/quant"
)

// SessionOption is an option of [Weights.NewSession], [Weights.NewScheduler] and [Weights.NewEmbedder].
type SessionOption func(*sessionOptions)

func (f SessionOption) set(o *sessionOptions) error {
	if f == nil {
		return fmt.Errorf("llm: nil option: %w", compute.ErrArgument)
	}
	f(o)
	return nil
}

type sessionOptions struct{ decoder.SessionOptions }

func newSessionOptions(o decoder.Output) sessionOptions {
	return sessionOptions{decoder.SessionOptions{Cache: quant.F16, Output: o}}
}

func (o *sessionOptions) check(m *Model) error {
	if o.Context > m.engine.Context {
		return fmt.Errorf("llm: context of %d tokens, the model was trained on %d: %w", o.Context, m.engine.Context, compute.ErrTooLarge)
	}
	return nil
}

// WithContext sets how many tokens prompt and answer of a text have room for, which memory is reserved for: by default and at most as many as
// the model was trained on.
func WithContext(tokens int) SessionOption {
	return func(o *sessionOptions) { o.Context = tokens }
}

// WithChunk sets how many tokens of a prompt are computed at once at most: 512 by default, and 64 in a [Scheduler], whose other texts wait
// meanwhile.
func WithChunk(tokens int) SessionOption { return func(o *sessionOptions) { o.Chunk = tokens } }

// WithExact multiplies quantised weights with float32. Otherwise activations are rounded to 8 bits before they meet such weights, as
// llama.cpp does: that is faster, and what it loses is small beside what the weights have lost.
func WithExact() SessionOption { return func(o *sessionOptions) { o.Exact = true } }

// WithCache sets the format of keys and values: [quant.F16] by default, [quant.F32], which is twice the memory, or [quant.Q8_0], 8 bits in
// blocks of 32 that share a Float16 scale, which is 17/32 of the default's. For other formats, and for Q8_0 where heads are no multiple of 32 elements,
// the error wraps [compute.ErrUnsupported].
func WithCache(format quant.Type) SessionOption {
	return func(o *sessionOptions) { o.Cache = format }
}

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
// [compute.ErrTooLarge] for a context longer than the model's, [compute.ErrUnsupported] for an encoder, which only [Weights.NewEmbedder]
// takes, and those of the device.
func (w *Weights) NewSession(ctx context.Context, opts ...SessionOption) (*Session, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	o := newSessionOptions(decoder.Output{TopK: 1})
	for _, f := range opts {
		if err := f.set(&o); err != nil {
			return nil, err
		}
	}
	if err := o.check(w.model); err != nil {
		return nil, err
	}
	if err := w.model.continues(); err != nil {
		return nil, err
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

// CacheBytes is the memory that keys and values take on the device, of this member of a group.
func (s *Session) CacheBytes() int64 { return s.engine.CacheBytes() }

// Stats are what the last call of Generate or Chat took.
type Stats struct {
	Prompt   int           // tokens of the prompt
	Known    int           // of these, tokens that the session had computed before
	Prefill  time.Duration // for the others
	Steps    int           // of the network after the prompt, for a token each and its draft
	Decoding time.Duration // for these, and drafts
	Drafting time.Duration // of this, for what [WithDraft] takes
	Drafted  int           // tokens that [WithLookup] or [WithDraft] expected
	Accepted int           // of these, tokens that were chosen
}

// Stats returns what the last call of Generate or Chat took.
func (s *Session) Stats() Stats { return s.stats }

// Generate continues a prompt, token by token, as the caller asks for them. The prompt is the whole text, see [Model.Tokenize]. The sequence
// ends after a token that says why ([Token.Finish]), with an error, or when the caller stops; it may be used once or again, which is the same
// as another call.
//
// Errors wrap [compute.ErrArgument] for options and a prompt without tokens, [compute.ErrTooLarge] for a prompt that leaves no room in the
// context, [compute.ErrInFlight] beside another call, and those of the device. When ctx is done, the error is that of ctx; what was computed
// is kept, and the session can be used on.
func (s *Session) Generate(ctx context.Context, prompt string, opts ...GenerateOption) iter.Seq2[Token, error] {
	return s.sequence(ctx, opts, s.weights.model.textPrompt(prompt))
}

// GenerateTokens is [Session.Generate] for a prompt of tokens.
func (s *Session) GenerateTokens(ctx context.Context, prompt []int32, opts ...GenerateOption) iter.Seq2[Token, error] {
	return s.sequence(ctx, opts, tokenPrompt(prompt))
}

// Chat answers the last message of a conversation, which is given as a whole: [Session.Generate] of [Model.ChatPrompt], with its errors.
func (s *Session) Chat(ctx context.Context, messages []Message, opts ...GenerateOption) iter.Seq2[Token, error] {
	return s.sequence(ctx, opts, s.weights.model.chatPrompt(messages))
}

// LogProbs returns the natural logarithm of the probability that the model gives each token after those before it: len(tokens)−1 numbers, the
// first is the second token's. A text's perplexity is the exponential of their mean, negated. All tokens are computed, and all logits are read
// from the device.
//
// Errors wrap [compute.ErrArgument] for fewer than two tokens or tokens that are not in the vocabulary, [compute.ErrTooLarge] for more than the
// context has room for, [compute.ErrInFlight] beside another call, and those of the device.
func (s *Session) LogProbs(ctx context.Context, tokens []int32) ([]float64, error) {
	if !s.busy.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("llm: the session is in use: %w", compute.ErrInFlight)
	}
	defer s.busy.Store(false)
	if len(tokens) < 2 {
		return nil, fmt.Errorf("llm: log-probabilities of a text of %d tokens, need 2: %w", len(tokens), compute.ErrArgument)
	}
	if err := checkPrompt(tokens, s.context); err != nil {
		return nil, err
	}
	if err := s.weights.engine.Check(tokens); err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	s.keep(tokens[:1])
	p := make([]float64, 0, len(tokens)-1)
	for len(p) < len(tokens)-1 {
		at := len(p)
		next, err := s.feed(ctx, decoder.Output{}, tokens[at:at+1], tokens[at+1:min(at+s.engine.Chunk(), len(tokens)-1)])
		if err != nil {
			return nil, err
		}
		for _, n := range next {
			x, _ := logProbs(n.Logits, tokens[len(p)+1], 0)
			p = append(p, x)
		}
	}
	return p, nil
}

func (s *Session) sequence(ctx context.Context, opts []GenerateOption, prompt prompt) iter.Seq2[Token, error] {
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
		if err == nil && o.draft != nil {
			if !o.draft.busy.CompareAndSwap(false, true) {
				yield(Token{}, fmt.Errorf("llm: the draft's session is in use: %w", compute.ErrInFlight))
				return
			}
			defer o.draft.busy.Store(false)
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
	if err := o.checkContext(prompt, s.context); err != nil {
		return err
	}
	g := newGeneration(s.weights.model, o, prompt)
	var ahead *drafter
	if o.drafting {
		if err := checkDraft(s.weights, o.draft.weights); err != nil {
			return err
		}
		ahead = newDrafter(g, o.draft.weights, o.draft.context)
	}
	known := s.keep(prompt)
	s.stats = Stats{Prompt: len(prompt), Known: known}
	if ahead != nil {
		start := time.Now()
		err := o.draft.prefill(ctx, ahead, prompt)
		if s.stats.Prefill = time.Since(start); err != nil {
			return err
		}
	}
	took := &s.stats.Prefill
	var d draft
	for {
		start := time.Now()
		next, err := s.feed(ctx, g.output, g.all[known:], d.tokens)
		*took += time.Since(start)
		if err != nil {
			return err
		}
		if took == &s.stats.Decoding {
			s.stats.Steps++
			s.stats.Drafted += len(d.tokens)
		}
		took = &s.stats.Decoding
		accepted, more, err := g.verify(next, &d, s.context, func(t Token) bool { return yield(t, nil) })
		if s.stats.Accepted += accepted; err != nil || !more {
			return err
		}
		if len(g.all) > s.context {
			g.forget()
		}
		d = draft{}
		if known = s.keep(g.all); known < len(g.all)-1 {
			continue
		}
		most := g.ahead(min(s.context-len(g.all), s.engine.Chunk()-1))
		if ahead == nil {
			d = g.lookUp(most)
			continue
		}
		start = time.Now()
		d, err = o.draft.draft(ctx, ahead, most)
		drafting := time.Since(start)
		if s.stats.Drafting, s.stats.Decoding = s.stats.Drafting+drafting, s.stats.Decoding+drafting; err != nil {
			return err
		}
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

// feed gives tokens to the engine, and keeps account of those that it has. It returns what comes after the last one, or after each of one and
// its draft.
func (s *Session) feed(ctx context.Context, o decoder.Output, tokens, draft []int32) (next []*decoder.Next, err error) {
	if len(draft) > 0 {
		tokens = slices.Concat(tokens, draft)
		next, err = s.engine.FeedEach(ctx, o, tokens...)
	} else {
		next = make([]*decoder.Next, 1)
		next[0], err = s.engine.FeedFor(ctx, o, tokens...)
	}
	s.tokens = append(s.tokens, tokens[:s.engine.Position()-len(s.tokens)]...)
	if err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	return next, nil
}
