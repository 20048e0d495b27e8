package llm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
)

// ErrBusy is the error of a text that a [Scheduler] has no room for: as many wait as [WithQueue] allows.
var ErrBusy = errors.New("too many texts wait")

// SchedulerOption is an option of [Weights.NewScheduler]: those of sessions, and [WithSequences], [WithCacheTokens], [WithQueue] and
// [WithDraftModel].
type SchedulerOption interface {
	scheduler(*schedulerOptions) error
}

type schedulerOptions struct {
	sessionOptions
	sequences, tokens, queue int
	drafting                 bool
	draft                    *Weights
	ahead                    int
}

func (f SessionOption) scheduler(o *schedulerOptions) error { return f.set(&o.sessionOptions) }

type schedulerOption func(*schedulerOptions)

func (f schedulerOption) scheduler(o *schedulerOptions) error {
	f(o)
	return nil
}

// WithSequences sets how many texts are continued at once, 8 by default.
func WithSequences(n int) SchedulerOption {
	return schedulerOption(func(o *schedulerOptions) { o.sequences = n })
}

// WithCacheTokens sets how many tokens there is memory for in all texts together: by default for as many texts as are continued at once, with
// full contexts; at least for one. If it runs out, the text that began last is put off and computed again later.
func WithCacheTokens(n int) SchedulerOption {
	return schedulerOption(func(o *schedulerOptions) { o.tokens = n })
}

// WithQueue sets how many texts may wait until others have ended, 100 by default.
func WithQueue(n int) SchedulerOption {
	return schedulerOption(func(o *schedulerOptions) { o.queue = n })
}

// WithDraftModel has a smaller model with the same vocabulary compute up to n tokens ahead of each text, 1 to 63, for all texts at once, as
// [WithDraft] does for one; the draft's caches are like those of the scheduler. A step computes as many tokens as a chunk at most, which the texts
// share: with many texts, drafts are short, and cost more than they bring. The draft may be on another device, and must stay open.
// Errors of [Weights.NewScheduler] wrap [compute.ErrArgument] for nil weights and those of another vocabulary, and [compute.ErrUnsupported]
// for weights that are spread over a group.
func WithDraftModel(draft *Weights, n int) SchedulerOption {
	return schedulerOption(func(o *schedulerOptions) { o.drafting, o.draft, o.ahead = true, draft, n })
}

// checkDraft reports drafts that cannot be.
func (o *schedulerOptions) checkDraft(w *Weights) error {
	switch {
	case o.draft == nil:
		return fmt.Errorf("llm: nil weights as draft: %w", compute.ErrArgument)
	case o.ahead < 1 || o.ahead > mostDrafted:
		return fmt.Errorf("llm: compute %d tokens ahead, must be 1 to %d: %w", o.ahead, mostDrafted, compute.ErrArgument)
	}
	if err := o.draft.model.continues(); err != nil {
		return err
	}
	return checkDraft(w, o.draft)
}

// Scheduler continues many texts at once: a step computes the next token of each, and beside them a chunk of one prompt. Texts join and
// leave between steps. That takes less time than the same texts one after the other, as each weight is read once for all of them.
// Texts that begin alike share the memory of what they have in common, and what one has computed the next needs not compute, also after
// the first has ended.
//
// Any number of goroutines may call its methods at the same time.
type Scheduler struct {
	weights  *Weights
	engine   *decoder.Paged
	drafts   *decoder.Paged // of the smaller model; nil without
	smaller  *Weights
	ahead    int // tokens that it computes ahead
	capacity int // texts that run and wait

	wake chan struct{} // something has changed for the goroutine that computes
	done chan struct{} // closed when it has ended

	mu      sync.Mutex
	arrived []*request
	stats   SchedulerStats
	err     error // why there is no more to come

	// Of the goroutine that computes.
	waiting, running []*request
}

// SchedulerStats are what a scheduler does and has done.
type SchedulerStats struct {
	Running, Waiting       int   // texts
	CacheTokens, CacheUsed int   // room in the cache, and how much of it belongs to running texts
	Steps                  int64 // so far
	Prompt                 int64 // tokens of prompts, of texts that were begun
	Known                  int64 // of these, tokens that were computed for another text
	Tokens                 int64 // that were chosen
	Drafted                int64 // tokens that were computed ahead
	Accepted               int64 // of these, tokens that were chosen
	PutOff                 int64 // times that a text was put off as the cache was full
}

// NewScheduler makes a scheduler, and compiles the network for its device. Errors are those of [Weights.NewSession], and
// [compute.ErrUnsupported] for weights that are spread over a group, whose members would not compute the same texts together.
func (w *Weights) NewScheduler(ctx context.Context, opts ...SchedulerOption) (*Scheduler, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	o := schedulerOptions{sessionOptions: newSessionOptions(decoder.Output{TopK: 1}), queue: 100}
	for _, f := range opts {
		if f == nil {
			return nil, fmt.Errorf("llm: nil option: %w", compute.ErrArgument)
		}
		if err := f.scheduler(&o); err != nil {
			return nil, err
		}
	}
	if err := o.check(w.model); err != nil {
		return nil, err
	}
	if err := w.model.continues(); err != nil {
		return nil, err
	}
	if w.engine.Spread() {
		return nil, fmt.Errorf("llm: a scheduler on weights that are spread over a group, use a session: %w", compute.ErrUnsupported)
	}
	if o.queue < 0 {
		return nil, fmt.Errorf("llm: a queue of %d texts: %w", o.queue, compute.ErrArgument)
	}
	if o.drafting {
		if err := o.checkDraft(w); err != nil {
			return nil, err
		}
	}
	s := &Scheduler{weights: w, wake: make(chan struct{}, 1), done: make(chan struct{})}
	var err error
	s.engine, err = w.engine.NewPaged(ctx, decoder.PagedOptions{SessionOptions: o.SessionOptions, Sequences: o.sequences, Tokens: o.tokens})
	if err == nil && o.drafting {
		options := s.engine.Options()
		options.Context = min(options.Context, o.draft.model.engine.Context)
		s.smaller, s.ahead = o.draft, o.ahead
		if s.drafts, err = o.draft.engine.NewPaged(ctx, options); err != nil {
			s.engine.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	s.capacity = s.engine.Options().Sequences + o.queue
	s.note()
	go s.work()
	return s, nil
}

// Context is how many tokens each text has room for.
func (s *Scheduler) Context() int { return s.engine.Options().Context }

// Stats returns what the scheduler does and has done.
func (s *Scheduler) Stats() SchedulerStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Close ends all texts with [compute.ErrClosed], waits for the step under way, and frees what the scheduler has on its device. It is
// idempotent.
func (s *Scheduler) Close() error {
	s.stop(fmt.Errorf("llm: scheduler: %w", compute.ErrClosed))
	<-s.done
	err := s.engine.Close()
	if s.drafts != nil {
		err = errors.Join(err, s.drafts.Close())
	}
	return err
}

// Generate continues a prompt as [Session.Generate] does, beside others. Tokens are computed whether or not the caller asks for them, up to
// the end of the text, and the caller gets them when it asks. When ctx is done or the caller stops, the text ends, and others go on.
//
// Errors wrap [ErrBusy] if too many texts wait, [compute.ErrClosed] once the scheduler is closed, and those of [Session.Generate].
func (s *Scheduler) Generate(ctx context.Context, prompt string, opts ...GenerateOption) iter.Seq2[Token, error] {
	return s.sequence(ctx, opts, s.weights.model.textPrompt(prompt))
}

// GenerateTokens is [Scheduler.Generate] for a prompt of tokens.
func (s *Scheduler) GenerateTokens(ctx context.Context, prompt []int32, opts ...GenerateOption) iter.Seq2[Token, error] {
	return s.sequence(ctx, opts, tokenPrompt(prompt))
}

// Chat answers the last message of a conversation, which is given as a whole: [Scheduler.Generate] of [Model.ChatPrompt], with its errors.
func (s *Scheduler) Chat(ctx context.Context, messages []Message, opts ...GenerateOption) iter.Seq2[Token, error] {
	return s.sequence(ctx, opts, s.weights.model.chatPrompt(messages))
}

func (s *Scheduler) sequence(ctx context.Context, opts []GenerateOption, prompt prompt) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		r, err := s.submit(ctx, opts, prompt)
		if err != nil {
			yield(Token{}, err)
			return
		}
		defer s.leave(r)
		for {
			t, err := r.receive(ctx)
			if err != nil {
				yield(Token{}, err)
				return
			}
			if !yield(t, nil) || t.Finish != Unfinished {
				return
			}
		}
	}
}

// request is a text that runs or waits.
type request struct {
	*generation
	left atomic.Bool // nobody wants more of it

	// Of the goroutine that computes.
	sequence *decoder.Sequence // nil while the text waits
	begun    bool              // it was counted
	expected draft             // what the next step verifies
	drafter  *drafter          // nil without a smaller model
	smaller  *decoder.Sequence // of that, as sequence is

	mu     sync.Mutex
	tokens []Token
	err    error
	ready  chan struct{} // there are tokens or an error
}

// receive is the next token.
func (r *request) receive(ctx context.Context) (Token, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Token{}, fmt.Errorf("llm: %w", err)
		}
		r.mu.Lock()
		if len(r.tokens) > 0 {
			t := r.tokens[0]
			r.tokens = r.tokens[1:]
			r.mu.Unlock()
			return t, nil
		}
		err := r.err
		r.mu.Unlock()
		if err != nil {
			return Token{}, err
		}
		select {
		case <-r.ready:
		case <-ctx.Done():
		}
	}
}

// give hands a token or an error to the caller.
func (r *request) give(t Token, err error) {
	r.mu.Lock()
	if err != nil {
		r.err = err
	} else {
		r.tokens = append(r.tokens, t)
	}
	r.mu.Unlock()
	signal(r.ready)
}

// signal wakes who waits for c, which has room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// submit has a text wait for its turn.
func (s *Scheduler) submit(ctx context.Context, opts []GenerateOption, prompt prompt) (*request, error) {
	o, err := newGenerateOptions(opts)
	if err == nil {
		err = compute.CheckContext(ctx)
	}
	var tokens []int32
	if err == nil {
		tokens, err = prompt(o)
	}
	if err == nil {
		err = o.checkContext(tokens, s.Context())
	}
	if err != nil {
		return nil, err
	}
	if err := s.weights.engine.Check(tokens); err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	if o.drafting {
		return nil, fmt.Errorf("llm: a session as draft in a scheduler: %w", compute.ErrUnsupported)
	}
	r := &request{generation: newGeneration(s.weights.model, o, tokens), ready: make(chan struct{}, 1)}
	if s.drafts != nil && !o.lookup {
		o.drafted = s.ahead
		r.drafter = newDrafter(r.generation, s.smaller, s.drafts.Options().Context)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if s.stats.Running+s.stats.Waiting >= s.capacity {
		return nil, fmt.Errorf("llm: %d texts: %w", s.capacity, ErrBusy)
	}
	s.arrived = append(s.arrived, r)
	s.stats.Waiting++
	signal(s.wake)
	return r, nil
}

// leave says that nobody wants more of a text.
func (s *Scheduler) leave(r *request) {
	r.left.Store(true)
	signal(s.wake)
}

// stop has nothing more begin. The first error stays.
func (s *Scheduler) stop(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	signal(s.wake)
}
