package decoder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

// SessionOptions parametrise a session.
type SessionOptions struct {
	Context int // length of the context in tokens; 0 is that of the model's training
	Chunk   int // most tokens of a prompt that are computed at once; 0 is 512, and 64 beside other sequences
	// Exact multiplies quantised weights with float32. Otherwise activations are rounded to 8 bits before they meet such weights, as
	// llama.cpp does on every device: that is faster, and what it loses is small beside what the weights have lost.
	Exact  bool
	Cache  quant.Type // of keys and values: F32, F16 or Q8_0, for heads of whole blocks
	Output Output
}

// Session is a sequence of tokens with its keys and values on the device. It belongs to one goroutine.
type Session struct {
	weights  *Weights
	options  SessionOptions
	caches   []compute.Tensor
	plans    map[planKey]*plan
	position int // tokens so far
	runs
}

// planKey says what differs between the plans of a session.
type planKey struct {
	n      int // tokens
	output Output
}

// plan is the compiled network for a number of tokens.
type plan struct {
	*batch.Plan
	in     *inputs
	out    results
	marks  []mark
	lookup *lookup
}

// Next is what the model says about the token after those that it was given.
type Next struct {
	Logits  []float32 // of all tokens, or of the largest in descending order
	Indices []int32   // the tokens of those; the most likely alone if only that was asked for; nil with all logits
	States  []float32 // of the last chunk that was given, [tokens, width], if these were asked for
}

// NewSession makes an empty sequence. The weights must stay open. Errors wrap [compute.ErrArgument] for options.
func (w *Weights) NewSession(ctx context.Context, o SessionOptions) (*Session, error) {
	if err := o.complete(w.Model); err != nil {
		return nil, err
	}
	s := &Session{weights: w, options: o, plans: map[planKey]*plan{}}
	sizes := []int{1, o.shortChunk()}
	var err error
	if w.Encoder {
		sizes = sizes[:0] // texts have many
	} else {
		s.caches, err = w.makeCaches(ctx, &o, 1, o.capacity())
	}
	for _, n := range sizes {
		if err == nil {
			_, err = s.plan(ctx, planKey{n, o.Output})
		}
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("decoder: %w", err)
	}
	return s, nil
}

// complete fills defaults in.
func (o *SessionOptions) complete(m *Model) error {
	if o.Context == 0 {
		o.Context = m.Context
	}
	if o.Chunk == 0 {
		o.Chunk = 512
	}
	if m.Encoder {
		o.Chunk = o.Context
	}
	if o.Context < 1 || o.Chunk < 1 || o.Output.TopK < 0 {
		return fmt.Errorf("decoder: context %d, chunk %d, top %d: %w", o.Context, o.Chunk, o.Output.TopK, compute.ErrArgument)
	}
	if formats := []quant.Type{quant.F32, quant.F16, quant.Q8_0}; !slices.Contains(formats, o.Cache) || m.HeadSize%o.Cache.BlockLen() != 0 {
		return fmt.Errorf("decoder: keys and values in %v, with heads of %d elements: %w", o.Cache, m.HeadSize, compute.ErrUnsupported)
	}
	o.Output.TopK = min(o.Output.TopK, m.Vocabulary)
	return nil
}

// shortChunk is the rows of the plan that a session has from the start, beside the one for a token.
func (o *SessionOptions) shortChunk() int { return min(64, o.Chunk) }

// capacity is the keys that a cache has room for: a chunk may be filled up with others after the context's end.
func (o *SessionOptions) capacity() int { return o.Context + o.shortChunk() - 1 }

// cache is the type and the shape of keys, and of values, of a block.
func (m *Model) cache(o *SessionOptions, of, capacity int) (compute.DType, []int) {
	switch o.Cache {
	case quant.Q8_0:
		words, _ := quant.PackedWords(quant.Q8_0, m.KVHeads*m.HeadSize) // whole blocks
		return compute.Uint32, []int{of, capacity, words}
	case quant.F32:
		return compute.Float32, []int{of, capacity, m.KVHeads, m.HeadSize}
	}
	return compute.Float16, []int{of, capacity, m.KVHeads, m.HeadSize}
}

// makeCaches has the device make them, filled: attention does not see what nobody has written, but a product with NaN is one. After an
// error it returns those that there are.
func (w *Weights) makeCaches(ctx context.Context, o *SessionOptions, of, capacity int) ([]compute.Tensor, error) {
	dtype, shape := w.cache(o, of, capacity)
	fresh := func() (compute.Tensor, error) {
		b := batch.New(w.device)
		x := b.Fill(0, shape...)
		if dtype != compute.Float32 {
			x = b.Cast(x, dtype)
		}
		k := b.Keep(x)
		if err := b.Start().Await(ctx); err != nil {
			return nil, err
		}
		return k.Tensor(), nil
	}
	if dtype == compute.Uint32 { // which nothing is cast to
		zeros := program.MakeSlice(program.Type{DType: dtype, Shape: shape})
		fresh = func() (compute.Tensor, error) {
			x, uploaded := w.device.UploadAsync(zeros, shape...)
			return x, uploaded.Await(ctx)
		}
	}
	var caches []compute.Tensor
	for range 2 * w.Blocks {
		c, err := fresh()
		if c != nil {
			caches = append(caches, c)
		}
		if err != nil {
			return caches, err
		}
	}
	return caches, nil
}

// plan compiles the network when it is first needed.
func (s *Session) plan(ctx context.Context, key planKey) (*plan, error) {
	if p := s.plans[key]; p != nil {
		return p, nil
	}
	o := s.options
	o.Output = key.output
	p, err := s.weights.compile(ctx, batch.New(s.weights.device), key.n, s.caches, &o)
	if err != nil {
		return nil, err
	}
	s.plans[key] = p
	return p, nil
}

func (w *Weights) compile(ctx context.Context, b *batch.Batch, n int, caches []compute.Tensor, o *SessionOptions) (*plan, error) {
	g := w.graph(b, n, o)
	p := &plan{in: newInputs(n)}
	if w.Encoder {
		p.out = g.recordEncoder(p.in)
	} else {
		p.out = g.recordSequence(p.in, caches, o.Output)
	}
	p.marks, p.lookup = g.marks, g.lookup
	var err error
	p.Plan, err = g.Compile(ctx)
	return p, err
}

func (w *Weights) graph(b *batch.Batch, n int, o *SessionOptions) *graph {
	return &graph{Batch: b, model: w.Config, n: n, exact: o.Exact, long: o.Context > w.Original, on: w.on, group: w.group, add: w.sum}
}

// Position is the number of tokens so far.
func (s *Session) Position() int { return s.position }

// Room is the number of tokens that still fit the context.
func (s *Session) Room() int { return s.options.Context - s.position }

// Chunk is how many tokens [Session.FeedEach] takes at most, and how many have states.
func (s *Session) Chunk() int {
	if s.weights.Encoder {
		return s.options.Chunk
	}
	return s.options.shortChunk()
}

// chunk is how many of n tokens are computed next, and by a plan of how many rows: a power of 2 from 8 on, as far as the caches have
// room for it.
func (s *Session) chunk(n int) (tokens, rows int) {
	least := min(8, s.options.Chunk)
	rows = max(least, sizeClass(n, s.options.Chunk))
	for rows > least && s.position+rows > s.options.capacity() {
		rows = max(least, rows/2)
	}
	return min(n, rows), rows
}

// CacheBytes is the memory that keys and values take on the device.
func (s *Session) CacheBytes() (n int64) {
	for _, c := range s.caches {
		n += bytesOf(c)
	}
	return n
}

// Reset forgets all tokens.
func (s *Session) Reset() { s.position = 0 }

// Rewind forgets the tokens from a position on. Errors wrap [compute.ErrArgument] for a position that is not in the sequence.
func (s *Session) Rewind(position int) error {
	if position < 0 || position > s.position {
		return fmt.Errorf("decoder: position %d of %d: %w", position, s.position, compute.ErrArgument)
	}
	s.position = position
	return nil
}

// Feed continues the sequence with tokens and says what comes next: one by one, or in chunks where there are several. What it
// returns is valid until the next call. Errors wrap [compute.ErrArgument] for no tokens or tokens that are not in the
// vocabulary, and [compute.ErrTooLarge] where the context has no room for all, in which case nothing happens. When ctx is done first, the
// sequence ends with the last chunk that was waited for, see [Session.Position], and may be continued: the next call waits for the run
// that is under way. After any other error the session is of no use any more.
func (s *Session) Feed(ctx context.Context, tokens ...int32) (*Next, error) {
	return s.FeedFor(ctx, s.options.Output, tokens...)
}

// FeedFor is [Session.Feed] with another output. The network of one token is compiled when an output is first wanted.
func (s *Session) FeedFor(ctx context.Context, o Output, tokens ...int32) (*Next, error) {
	if err := s.check(ctx, o, tokens); err != nil {
		return nil, err
	}
	o.TopK = min(o.TopK, s.weights.Vocabulary)
	if s.weights.Encoder {
		return s.encode(ctx, o, tokens)
	}
	var p *plan
	n := 0
	for len(tokens) > 0 {
		var rows int
		n, rows = s.chunk(len(tokens))
		key := planKey{1, o}
		if n == len(tokens) && n > 1 && o != s.options.Output {
			n-- // the last token is a step of its own, so that chunks have one output
		}
		if n > 1 {
			key = planKey{rows, s.options.Output}
		}
		var err error
		if p, err = s.run(ctx, key, tokens[:n]); err != nil {
			return nil, err
		}
		tokens = tokens[n:]
	}
	next := p.out.next(1)[0]
	if o.States {
		next.States = next.States[:n*s.weights.Width]
	}
	return next, nil
}

// FeedEach is [Session.FeedFor] for a chunk of tokens at most, and says what comes after each of them. A network is compiled for powers of 2 of
// tokens when it is first wanted.
func (s *Session) FeedEach(ctx context.Context, o Output, tokens ...int32) ([]*Next, error) {
	if err := s.check(ctx, o, tokens); err != nil {
		return nil, err
	}
	if s.weights.Encoder {
		return nil, fmt.Errorf("decoder: what comes after tokens of %s: %w", s.weights.Architecture, compute.ErrUnsupported)
	}
	if len(tokens) > s.Chunk() || o.States {
		return nil, fmt.Errorf("decoder: what comes after each of %d tokens, in chunks of %d: %w", len(tokens), s.Chunk(), compute.ErrArgument)
	}
	o.TopK, o.Each = min(o.TopK, s.weights.Vocabulary), true
	rows := sizeClass(len(tokens), s.Chunk())
	p, err := s.run(ctx, planKey{rows, o}, tokens)
	if err != nil {
		return nil, err
	}
	return p.out.next(rows)[:len(tokens)], nil
}

// check reports calls that cannot be made.
func (s *Session) check(ctx context.Context, o Output, tokens []int32) error {
	if s.err != nil {
		return s.err
	}
	if err := compute.CheckContext(ctx); err != nil {
		return err
	}
	if len(tokens) == 0 {
		return fmt.Errorf("decoder: no tokens: %w", compute.ErrArgument)
	}
	if err := s.weights.Check(tokens); err != nil {
		return err
	}
	if len(tokens) > s.Room() {
		return fmt.Errorf("decoder: %d tokens after %d, in a context of %d: %w", len(tokens), s.position, s.options.Context, compute.ErrTooLarge)
	}
	if o.TopK < 0 {
		return fmt.Errorf("decoder: top %d: %w", o.TopK, compute.ErrArgument)
	}
	return nil
}

// run continues the sequence with as many tokens as a plan takes, or fewer.
func (s *Session) run(ctx context.Context, key planKey, tokens []int32) (*plan, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	p, err := s.plan(ctx, key)
	if err != nil { // the caches are as they were
		return nil, fmt.Errorf("decoder: %w", err)
	}
	p.in.set(tokens, s.position)
	if s.weights.Encoder {
		p.in.length[0] = int32(len(tokens))
	}
	p.lookup.set()
	s.under = p.Start()
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	s.position += len(tokens)
	return p, nil
}

// Check reports tokens that are not in the vocabulary. Errors wrap [compute.ErrArgument].
func (m *Model) Check(tokens []int32) error {
	if i := slices.IndexFunc(tokens, func(t int32) bool { return t < 0 || int(t) >= m.Vocabulary }); i >= 0 {
		return fmt.Errorf("decoder: token %d is not in a vocabulary of %d: %w", tokens[i], m.Vocabulary, compute.ErrArgument)
	}
	return nil
}

// runs are those of plans over the same caches, one after the other.
type runs struct {
	under *compute.Future // a run that nobody has waited for to its end
	err   error           // of a run, after which the caches are undefined
}

// settle waits for the run under way. An error that is not of the run but of ctx leaves it under way.
func (r *runs) settle(ctx context.Context) error {
	if r.under == nil {
		return r.err
	}
	if err := r.under.Await(ctx); err != nil {
		select {
		case <-r.under.Done():
		default:
			return err
		}
	}
	if err := r.under.Err(); err != nil {
		r.err = fmt.Errorf("decoder: %w", err)
	}
	r.under = nil
	return r.err
}

// Close frees caches and plans. It is idempotent.
func (s *Session) Close() error {
	var all []error
	for _, p := range s.plans {
		all = append(all, p.Plan.Close())
	}
	clear(s.plans)
	for _, c := range s.caches {
		all = append(all, c.Close())
	}
	if s.err == nil {
		s.err = fmt.Errorf("decoder: session: %w", compute.ErrClosed)
	}
	return errors.Join(all...)
}
