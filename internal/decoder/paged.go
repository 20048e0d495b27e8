package decoder

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// PagedOptions parametrise [Weights.NewPaged].
type PagedOptions struct {
	SessionOptions     // Context is that of each sequence
	Sequences      int // that a step continues by one token, at most; 0 is 8
	Tokens         int // of all sequences together, at least Context; 0 is Sequences times Context
}

func (o *PagedOptions) complete(m *Model) error {
	if o.Chunk == 0 {
		o.Chunk = 64 // others wait for it
	}
	if err := o.SessionOptions.complete(m); err != nil {
		return err
	}
	if o.Sequences == 0 {
		o.Sequences = 8
	}
	if o.Tokens == 0 {
		o.Tokens = o.Sequences * o.Context
	}
	if o.Sequences < 1 || o.Tokens < o.Context {
		return fmt.Errorf("decoder: %d sequences of %d tokens, %d together: %w", o.Sequences, o.Context, o.Tokens, compute.ErrArgument)
	}
	return nil
}

// entries is the pages of the longest sequence: a chunk may be filled up with others after the context's end.
func (o *PagedOptions) entries() int { return pagesOf(o.capacity()) }

// rows are the tokens that a step computes apart from a chunk, at most.
func (o *PagedOptions) rows() int { return max(o.Sequences, o.Chunk) }

// pagesOf is how many pages tokens fill.
func pagesOf(tokens int) int { return (tokens + pageSize - 1) / pageSize }

// Paged is a cache of keys and values for many sequences, in pages (Kwon and others, "PagedAttention", 2023), and the plans that continue
// them together. It belongs to one goroutine.
type Paged struct {
	weights *Weights
	options PagedOptions
	caches  []compute.Tensor // [pages, pagesize, kvheads, headsize]
	pages   *pages
	plans   map[pagedKey]*pagedPlan
	runs
}

// Sequence is tokens whose keys and values are in a [Paged].
type Sequence struct {
	tokens  []int32
	pages   []int32
	serials []uint64 // of the content of each full page
}

// serial is that of the content of the last full page.
func (s *Sequence) serial() uint64 {
	if len(s.serials) == 0 {
		return 0
	}
	return s.serials[len(s.serials)-1]
}

// Position is the number of tokens so far.
func (s *Sequence) Position() int { return len(s.tokens) }

// Feed is tokens that continue a sequence.
type Feed struct {
	Sequence *Sequence
	Tokens   []int32
	Each     bool // what comes after each of them is wanted
}

// NewPaged makes an empty cache. The weights must stay open. Errors wrap [compute.ErrArgument] for options.
func (w *Weights) NewPaged(ctx context.Context, o PagedOptions) (*Paged, error) {
	if err := o.complete(w.Model); err != nil {
		return nil, err
	}
	if w.Encoder {
		return nil, fmt.Errorf("decoder: pages of %s: %w", w.Architecture, compute.ErrUnsupported)
	}
	p := &Paged{weights: w, options: o, plans: map[pagedKey]*pagedPlan{}, pages: newPages(pagesOf(o.Tokens))}
	var err error
	p.caches, err = w.makeCaches(ctx, &o.SessionOptions, len(p.pages.all), pageSize)
	for _, key := range []pagedKey{{1, false, o.Output}, {0, true, o.Output}} {
		if err == nil {
			_, err = p.plan(ctx, key)
		}
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("decoder: %w", err)
	}
	return p, nil
}

// Options returns the options, complete.
func (p *Paged) Options() PagedOptions { return p.options }

// Rows returns how many tokens a step computes apart from a chunk, at most: one of each sequence, or several of one that wants what comes after each.
func (p *Paged) Rows() int { return p.options.rows() }

// Room returns how many tokens there are pages for, and in how many of these pages belong to sequences.
func (p *Paged) Room() (tokens, used int) {
	all := len(p.pages.all)
	return pageSize * all, pageSize * (all - p.pages.free.Len())
}

// Begin returns a sequence that has as many of these tokens as the cache still has from others that began with them: whole pages, and
// never all tokens.
func (p *Paged) Begin(tokens []int32) *Sequence {
	s := &Sequence{}
	for n := pageSize; n < len(tokens); n += pageSize {
		id, ok := p.pages.find(content{s.serial(), [pageSize]int32(tokens[n-pageSize : n])})
		if !ok {
			break
		}
		s.pages, s.serials = append(s.pages, id), append(s.serials, p.pages.all[id].serial)
	}
	s.tokens = append(s.tokens, tokens[:len(s.pages)*pageSize]...)
	return s
}

// Reserve sees to it that a sequence has pages for n more tokens. If there are not enough it gets none, and Reserve returns false.
func (p *Paged) Reserve(s *Sequence, n int) bool {
	missing := pagesOf(len(s.tokens)+n) - len(s.pages)
	if missing > p.pages.free.Len() {
		return false
	}
	for range missing {
		s.pages = append(s.pages, p.pages.take())
	}
	return true
}

// Keep has a sequence forget what a text does not begin with, and the text's last token, with the pages that only these were in. They must
// have been computed since [Paged.Begin] was last called, so that no other sequence has these pages.
func (p *Paged) Keep(s *Sequence, text []int32) {
	n := 0
	for n < min(len(s.tokens), len(text)-1) && s.tokens[n] == text[n] {
		n++
	}
	full, some := n/pageSize, pagesOf(n)
	for i := full; i < len(s.serials); i++ {
		p.pages.forget(s.pages[i])
	}
	p.pages.release(s.pages[some:])
	s.tokens, s.pages, s.serials = s.tokens[:n], s.pages[:some], s.serials[:min(full, len(s.serials))]
}

// End gives the pages of a sequence back; it is empty then.
func (p *Paged) End(s *Sequence) {
	p.pages.release(s.pages)
	*s = Sequence{}
}

// Step continues sequences, for which there must be pages, all at once: by a token each, or by several after each of which something is
// wanted, [Paged.Rows] together, and one beside them by up to Chunk tokens. For each it returns what comes after its last token, or after each,
// which is valid until the next call. Errors wrap [compute.ErrArgument] for what
// does not fit, in which case nothing happens. When ctx is done first, the sequences are as they were; the next call waits for
// the run that is under way. After any other error the cache is of no use any more.
func (p *Paged) Step(ctx context.Context, o Output, feeds ...Feed) ([][]*Next, error) {
	if p.err != nil {
		return nil, p.err
	}
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	rows, chunk, err := p.split(feeds)
	if err != nil {
		return nil, err
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	o.TopK = min(o.TopK, p.weights.Vocabulary)
	key := pagedKey{p.sizeClass(len(rows)), chunk >= 0, o}
	plan, err := p.plan(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	plan.in.set(feeds, rows, chunk)
	plan.lookup.set()
	p.under = plan.Start()
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	for _, f := range feeds {
		p.advance(f)
	}
	next := plan.out.next(key.outputs())
	ordered := make([][]*Next, len(feeds))
	for i, r := range rows {
		ordered[r.feed] = append(ordered[r.feed], next[i])
	}
	if chunk >= 0 {
		ordered[chunk] = next[key.rows:]
	}
	return ordered, nil
}

// row is a token of a feed that is computed as a sequence of its own.
type row struct{ feed, token int }

// split returns the rows of feeds, and which of them is a chunk, −1 for none.
func (p *Paged) split(feeds []Feed) (rows []row, chunk int, err error) {
	chunk = -1
	for i, f := range feeds {
		n, position := len(f.Tokens), f.Sequence.Position()
		switch {
		case n == 1 || n > 1 && f.Each:
			for j := range n {
				rows = append(rows, row{i, j})
			}
		case n < 1 || n > p.options.Chunk || chunk >= 0:
			return nil, 0, fmt.Errorf("decoder: %d tokens in a step with chunks of %d: %w", n, p.options.Chunk, compute.ErrArgument)
		default:
			chunk = i
		}
		if err := p.weights.Check(f.Tokens); err != nil {
			return nil, 0, err
		}
		if position+n > p.options.Context || len(f.Sequence.pages) < pagesOf(position+n) {
			return nil, 0, fmt.Errorf("decoder: %d tokens after %d, with %d pages, in a context of %d: %w", n, position, len(f.Sequence.pages),
				p.options.Context, compute.ErrArgument)
		}
	}
	if len(feeds) == 0 || len(rows) > p.Rows() {
		return nil, 0, fmt.Errorf("decoder: %d sequences and %d rows in a step for %d: %w", len(feeds), len(rows), p.Rows(), compute.ErrArgument)
	}
	return rows, chunk, nil
}

// advance notes that tokens were computed, and which pages they have filled.
func (p *Paged) advance(f Feed) {
	s := f.Sequence
	s.tokens = append(s.tokens, f.Tokens...)
	for i := len(s.serials); (i+1)*pageSize <= len(s.tokens); i++ {
		s.serials = append(s.serials, p.pages.full(s.pages[i], content{s.serial(), [pageSize]int32(s.tokens[i*pageSize:])}))
	}
}

// Close frees caches and plans. It is idempotent.
func (p *Paged) Close() error {
	var all []error
	for _, x := range p.plans {
		all = append(all, x.Close())
	}
	clear(p.plans)
	for _, c := range p.caches {
		all = append(all, c.Close())
	}
	if p.err == nil {
		p.err = fmt.Errorf("decoder: paged cache: %w", compute.ErrClosed)
	}
	return errors.Join(all...)
}

// sizeClass is the rows of the plan for n sequences: a power of 2, the most there are, or none.
func sizeClass(n, most int) int {
	if n == 0 {
		return 0
	}
	return min(1<<bits.Len(uint(n-1)), most)
}

// sizeClass is the rows of the plan for n: as few as sequences alone need, as long as they do.
func (p *Paged) sizeClass(n int) int {
	if n <= p.options.Sequences {
		return sizeClass(n, p.options.Sequences)
	}
	return sizeClass(n, p.Rows())
}

// pagedKey says what differs between plans.
type pagedKey struct {
	rows   int // tokens that are computed as a sequence each
	chunk  bool
	output Output
}

// outputs is after how many tokens logits are wanted.
func (k *pagedKey) outputs() int {
	if k.chunk {
		return k.rows + 1
	}
	return k.rows
}

// pagedPlan is the network for some sequences and a chunk.
type pagedPlan struct {
	*batch.Plan
	in     *pagedInputs
	out    results
	lookup *lookup
}

func (p *Paged) plan(ctx context.Context, key pagedKey) (*pagedPlan, error) {
	if x := p.plans[key]; x != nil {
		return x, nil
	}
	chunk := 0
	if key.chunk {
		chunk = p.options.Chunk
	}
	g := p.weights.graph(batch.New(p.weights.device), key.rows+chunk, &p.options.SessionOptions)
	x := &pagedPlan{in: newPagedInputs(key.rows, chunk, p.options.entries())}
	x.out = g.recordPaged(x.in, p.caches, key.output)
	x.lookup = g.lookup
	var err error
	if x.Plan, err = g.Compile(ctx); err != nil {
		return nil, err
	}
	p.plans[key] = x
	return x, nil
}

// pagedInputs are what a plan reads in each run: of the rows, which are a token of a sequence each, and after them of the tokens of the
// chunk.
type pagedInputs struct {
	rows, chunk, entries int
	tokens, positions    []int32 // [rows + chunk]
	pages, slots         []int32 // [rows + chunk] where keys and values go
	table                []int32 // [rows, entries]
	lengths              []int32 // [rows]
	chunkTable           []int32 // [entries]
	chunkLength          []int32 // [1]
	wanted               []int32 // the rows and the last token of the chunk; nil without one
}

func newPagedInputs(rows, chunk, entries int) *pagedInputs {
	n := rows + chunk
	in := &pagedInputs{rows: rows, chunk: chunk, entries: entries, tokens: make([]int32, n), positions: make([]int32, n), pages: make([]int32, n),
		slots: make([]int32, n), table: make([]int32, rows*entries), lengths: make([]int32, rows)}
	if chunk > 0 {
		in.chunkTable, in.chunkLength, in.wanted = make([]int32, entries), make([]int32, 1), make([]int32, rows+1)
	}
	return in
}

// set sets the feeds. Rows beyond them see no keys, and write none.
func (in *pagedInputs) set(feeds []Feed, rows []row, chunk int) {
	for i := range in.rows {
		if i >= len(rows) {
			in.tokens[i], in.positions[i], in.pages[i], in.lengths[i] = 0, 0, -1, 0
			continue
		}
		f, token := feeds[rows[i].feed], rows[i].token
		position := len(f.Sequence.tokens) + token
		in.place(i, f.Tokens[token], f.Sequence, position)
		fillTable(in.table[i*in.entries:][:in.entries], f.Sequence)
		in.lengths[i] = int32(position + 1)
	}
	if in.chunk == 0 {
		return
	}
	f := feeds[chunk]
	position := len(f.Sequence.tokens)
	for i := range in.chunk { // those beyond the feed are seen by none of it, and written nowhere
		row := in.rows + i
		in.place(row, f.Tokens[min(i, len(f.Tokens)-1)], f.Sequence, position+i)
		if i >= len(f.Tokens) {
			in.pages[row] = -1
		}
	}
	fillTable(in.chunkTable, f.Sequence)
	in.chunkLength[0] = int32(position + in.chunk)
	for i := range in.wanted {
		in.wanted[i] = int32(i)
	}
	in.wanted[in.rows] = int32(in.rows + len(f.Tokens) - 1)
}

func (in *pagedInputs) place(row int, token int32, s *Sequence, position int) {
	in.tokens[row], in.positions[row], in.slots[row], in.pages[row] = token, int32(position), int32(position%pageSize), -1
	if i := position / pageSize; i < len(s.pages) {
		in.pages[row] = s.pages[i]
	}
}

func fillTable(table []int32, s *Sequence) {
	for i := range table[copy(table, s.pages):] {
		table[len(s.pages)+i] = -1
	}
}

// recordPaged is the network for sequences in pages. All keys and values are appended as sequences of one token, each with a table of
// the one page that it goes to; then the rows and the chunk attend apart.
func (g *graph) recordPaged(in *pagedInputs, caches []compute.Tensor, o Output) results {
	n, width := g.n, g.model.Heads*g.model.HeadSize
	pages, slots := g.Upload(in.pages, n, 1), g.Upload(in.slots)
	var table, lengths, chunkTable, chunkLength batch.Value
	if in.rows > 0 {
		table, lengths = g.Upload(in.table, in.rows, in.entries), g.Upload(in.lengths)
	}
	if in.chunk > 0 {
		chunkTable, chunkLength = g.Upload(in.chunkTable, 1, in.entries), g.Upload(in.chunkLength)
	}
	return g.record(in.tokens, in.positions, in.wanted, o, func(i int, q, k, v batch.Value) batch.Value {
		row := []int{n, 1, g.model.KVHeads, g.model.HeadSize}
		keys := g.KVAppendPaged(g.Import(caches[2*i]), g.Reshape(k, row...), slots, pages)
		values := g.KVAppendPaged(g.Import(caches[2*i+1]), g.Reshape(v, row...), slots, pages)
		part := func(from, of, each int, table, lengths batch.Value) batch.Value {
			x := q
			if of*each < n {
				x = g.Slice(q, compute.SliceOptions{Start: []int{0, from, 0, 0}, Size: []int{1, of * each, g.model.Heads, g.model.HeadSize}})
			}
			x = g.PagedAttention(g.Reshape(x, of, each, g.model.Heads, g.model.HeadSize), keys, values, table, lengths, g.attention(i))
			return g.Reshape(x, of*each, width)
		}
		switch {
		case in.chunk == 0:
			return part(0, in.rows, 1, table, lengths)
		case in.rows == 0:
			return part(0, 1, in.chunk, chunkTable, chunkLength)
		}
		return g.Concat(0, part(0, in.rows, 1, table, lengths), part(in.rows, 1, in.chunk, chunkTable, chunkLength))
	})
}
