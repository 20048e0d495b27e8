package llm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/llm/internal/grammar"
)

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

// GenerateOption is an option of Generate and Chat, of a [Session] or a [Scheduler].
type GenerateOption func(*generateOptions)

type generateOptions struct {
	sampling  Sampling
	most      int
	limited   bool
	stop      []string
	logProbs  int
	ignoreEnd bool
	shift     bool
	shiftKeep int
	drafted   int      // tokens that are computed ahead
	lookup    bool     // they are looked up
	draft     *Session // or this computes them
	drafting  bool     // with WithDraft
	variables map[string]any
	schema    []byte
	rules     *grammar.Grammar // of the schema
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

// WithContextShift goes on where the context is full: the first keep tokens stay, and of those after them the older half is forgotten. What is
// left is computed again, as a prompt: for n tokens in a context of n, about half of a prompt of n tokens. Keep is at least 0 and less than the
// context, else the error wraps [compute.ErrArgument]. A prompt must fit the context all the same.
func WithContextShift(keep int) GenerateOption {
	return func(o *generateOptions) { o.shift, o.shiftKeep = true, keep }
}

// WithVariables gives the chat template more variables, as [Model.ChatPrompt] takes them.
func WithVariables(v map[string]any) GenerateOption {
	return func(o *generateOptions) { o.variables = v }
}

// WithJSONSchema has the answer be JSON that a schema allows: tokens are chosen from those that can go on to such a text. An answer that
// [WithMaxTokens], a stop string or the context ends is a beginning of one. The schema true allows any JSON. Of JSON Schema there are type, enum,
// const, anyOf, oneOf, properties, required, additionalProperties, items, prefixItems, minItems, maxItems, minLength, maxLength, and $ref
// within the schema; others are an error that wraps [compute.ErrUnsupported], but for descriptions. Properties come in the order of the schema, and
// others only if additionalProperties says so or none are named. All logits are read from the device for each token.
func WithJSONSchema(schema []byte) GenerateOption {
	return func(o *generateOptions) { o.schema = schema }
}

// CheckJSONSchema returns the error that [WithJSONSchema] would have for a schema.
func CheckJSONSchema(schema []byte) error {
	if _, err := grammar.Schema(schema); err != nil {
		return fmt.Errorf("llm: JSON schema: %w", err)
	}
	return nil
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
	if err := o.checkAhead(); err != nil {
		return nil, err
	}
	if err := o.sampling.check(); err != nil {
		return nil, err
	}
	if o.schema != nil {
		var err error
		if o.rules, err = grammar.Schema(o.schema); err != nil {
			return nil, fmt.Errorf("llm: JSON schema: %w", err)
		}
	}
	return o, nil
}

// prompt makes the tokens of a prompt.
type prompt func(*generateOptions) ([]int32, error)

func (m *Model) textPrompt(text string) prompt {
	return func(*generateOptions) ([]int32, error) { return m.Tokenize(text), nil }
}

func tokenPrompt(tokens []int32) prompt {
	tokens = slices.Clone(tokens)
	return func(*generateOptions) ([]int32, error) { return tokens, nil }
}

func (m *Model) chatPrompt(messages []Message) prompt {
	return func(o *generateOptions) ([]int32, error) {
		text, err := m.ChatPrompt(messages, o.variables)
		if err != nil {
			return nil, err
		}
		return m.Tokenize(text), nil
	}
}

// checkPrompt reports prompts that a context has no room for.
func checkPrompt(tokens []int32, context int) error {
	switch {
	case len(tokens) == 0:
		return fmt.Errorf("llm: a prompt without tokens: %w", compute.ErrArgument)
	case len(tokens) > context:
		return fmt.Errorf("llm: a prompt of %d tokens, in a context of %d: %w", len(tokens), context, compute.ErrTooLarge)
	}
	return nil
}

// checkContext reports options that do not fit a context, and prompts.
func (o *generateOptions) checkContext(prompt []int32, context int) error {
	if o.shift && (o.shiftKeep < 0 || o.shiftKeep >= context) {
		return fmt.Errorf("llm: keep %d tokens of a full context of %d: %w", o.shiftKeep, context, compute.ErrArgument)
	}
	return checkPrompt(prompt, context)
}

// generation is a text that grows token by token, whoever computes it.
type generation struct {
	*generateOptions
	model  *Model
	output decoder.Output // that it needs at least
	choice *sampler
	form   *grammar.Matcher // nil if the answer may be anything
	answer *answer
	all    []int32 // tokens of prompt and answer
	n      int     // of the answer
}

func newGeneration(m *Model, o *generateOptions, prompt []int32) *generation {
	g := &generation{generateOptions: o, model: m, output: o.sampling.output(o.logProbs >= 0 || o.rules != nil), choice: newSampler(o.sampling, choiceStream),
		answer: &answer{stop: o.stop, stream: m.text.NewStream()}, all: slices.Clone(prompt)}
	if o.rules != nil {
		g.form = grammar.NewMatcher(o.rules, m.words())
		g.choice.allows = func(token int32) bool {
			if m.text.Ends(token) {
				return g.form.Complete()
			}
			return g.form.Allows(token)
		}
	}
	return g
}

// next chooses the token after all so far, and appends it. If one was drawn for its place from another distribution, that is given.
func (g *generation) next(n *decoder.Next, context int, drawn int32, from *distribution) (Token, error) {
	full := len(g.all) >= context && !g.shift // no room after it
	var t Token
	var err error
	if from == nil {
		t.ID, err = g.choice.pick(n, g.all)
	} else {
		t.ID, err = g.choice.verify(n, g.all, drawn, from)
	}
	if err != nil {
		return t, err
	}
	if g.logProbs >= 0 {
		t.LogProb, t.Top = logProbs(n.Logits, t.ID, g.logProbs)
	}
	g.all = append(g.all, t.ID)
	g.n++
	if g.model.text.Ends(t.ID) && (!g.ignoreEnd || g.form != nil) {
		t.Text, t.Finish = g.answer.end(), EndOfText
		return t, nil
	}
	whole := g.form != nil && g.form.Advance(t.ID) && g.form.Ended()
	var stopped bool
	switch t.Text, stopped = g.answer.next(t.ID); {
	case stopped:
		t.Finish = StopString
	case whole: // there is nothing that could come next
		t.Text, t.Finish = t.Text+g.answer.end(), EndOfText
	case g.limited && g.n == g.most:
		t.Text, t.Finish = t.Text+g.answer.end(), Limit
	case full:
		t.Text, t.Finish = t.Text+g.answer.end(), ContextFull
	}
	return t, nil
}

// verify chooses the tokens after all so far and a draft, as long as they are those of the draft, and gives them out. It returns how many of the
// draft were chosen, and whether the text goes on.
func (g *generation) verify(next []*decoder.Next, d *draft, context int, give func(Token) bool) (accepted int, more bool, err error) {
	for i, n := range next {
		drawn, from := d.at(i)
		t, err := g.next(n, context, drawn, from)
		if err != nil || !give(t) || t.Finish != Unfinished {
			return accepted, false, err
		}
		if i == len(d.tokens) || t.ID != d.tokens[i] {
			break
		}
		accepted++
	}
	return accepted, true, nil
}

// forget drops the older half of what a full context need not keep.
func (g *generation) forget() {
	n := max((len(g.all)-g.shiftKeep)/2, 1)
	g.all = slices.Delete(g.all, g.shiftKeep, g.shiftKeep+n)
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
