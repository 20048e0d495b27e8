package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
)

// WithLookup computes up to n tokens ahead, 1 to 63: those that came after the last occurrence of the latest tokens. Where the model chooses
// them too, a step yields several tokens; where not, they are dropped. Texts that repeat what the prompt says, such as summaries and changed
// code, take less time; others may take a little more. The tokens are those without it, up to the rounding of sums: greedy texts part only
// where two logits are nearly the same. In a [Scheduler] texts share what a step has room for, see [WithDraftModel], which such a text goes without.
//
// The method is prompt lookup decoding (Saxena, 2023), a case of speculative decoding (Leviathan and others, 2023).
func WithLookup(n int) GenerateOption {
	return func(o *generateOptions) { o.drafted, o.lookup = n, true }
}

// WithDraft has the session of a smaller model compute up to n tokens ahead, 1 to 63, of which the model then computes all probabilities in one
// step: speculative decoding (Leviathan and others, "Fast Inference from Transformers via Speculative Decoding", 2023; Chen and others,
// "Accelerating Large Language Model Decoding with Speculative Sampling", 2023). A step yields the tokens up to the first one that is
// refused, one in its place, and one more if none is. That pays if the draft takes a small part of the model's time and the models agree often; see [Stats]. A
// step takes the time of the next power of 2 of tokens, so that 3 and 7 are good numbers.
//
// Greedy texts are those without a draft, up to the rounding of sums: they part only where two logits are nearly the same. With a temperature the
// draft draws by the same [Sampling], and what the model accepts is distributed as its own draws: the same seed gives another text than without a
// draft. A text that is longer than the draft's context goes on without.
//
// The draft belongs to the call until the sequence ends, and keeps what the next text may have in common with this one, as sessions do. It may be
// on another device. Errors wrap [compute.ErrArgument] for a nil session, and for a vocabulary that is not that of the model;
// [compute.ErrInFlight] if the draft is in use, and [compute.ErrUnsupported] for a draft beside [WithLookup], for weights that are
// spread over a group, and for a [Scheduler], which has [WithDraftModel].
func WithDraft(draft *Session, n int) GenerateOption {
	return func(o *generateOptions) { o.drafted, o.draft, o.drafting = n, draft, true }
}

const mostDrafted = 63

// checkAhead reports options of computing ahead that are wrong.
func (o *generateOptions) checkAhead() error {
	switch {
	case (o.lookup || o.drafting) && (o.drafted < 1 || o.drafted > mostDrafted):
		return fmt.Errorf("llm: compute %d tokens ahead, must be 1 to %d: %w", o.drafted, mostDrafted, compute.ErrArgument)
	case o.drafting && o.draft == nil:
		return fmt.Errorf("llm: nil session as draft: %w", compute.ErrArgument)
	case o.drafting && o.lookup:
		return fmt.Errorf("llm: lookup beside a draft: %w", compute.ErrUnsupported)
	}
	return nil
}

// draft is tokens that may come next.
type draft struct {
	tokens []int32
	from   []distribution // that each was drawn from; nil if they were looked up
}

// at is a token, and what it was drawn from; of no token nothing.
func (d *draft) at(i int) (int32, *distribution) {
	if i >= len(d.from) {
		return 0, nil
	}
	return d.tokens[i], &d.from[i]
}

// ahead is how many tokens are computed ahead, where there is room for so many.
func (g *generation) ahead(room int) int {
	n := min(room, g.drafted)
	if g.limited {
		n = min(n, g.most-g.n-1) // the last comes without
	}
	return n
}

// lookupTokens is how many of the latest tokens are looked up, if so many have come before.
const lookupTokens = 3

// lookUp returns up to so many tokens that came after the last occurrence of the latest ones.
func (g *generation) lookUp(most int) draft {
	for n := min(lookupTokens, len(g.all)-1); n > 0 && most > 0; n-- {
		latest := g.all[len(g.all)-n:]
		for at := len(g.all) - n - 1; at >= 0; at-- {
			if slices.Equal(g.all[at:at+n], latest) {
				return draft{tokens: slices.Clone(g.all[at+n : min(at+n+most, len(g.all))])}
			}
		}
	}
	return draft{}
}

// drafter draws tokens that may come next in a text, from what another model says.
type drafter struct {
	text    *generation
	weights *Weights // of the other model
	context int      // that it has room for
	output  decoder.Output
	choice  *sampler

	most    int // tokens ahead
	all     []int32
	drafted draft
	restore func() // undoes what the draft has done to the text's grammar
}

// checkDraft reports models that cannot draft for each other.
func checkDraft(w, smaller *Weights) error {
	if w.engine.Spread() || smaller.engine.Spread() {
		return fmt.Errorf("llm: a draft, and weights that are spread over a group: %w", compute.ErrUnsupported)
	}
	if a, b := w.model.text, smaller.model.text; !a.Same(b) {
		return fmt.Errorf("llm: a draft of another vocabulary, %d tokens instead of %d: %w", b.Len(), a.Len(), compute.ErrArgument)
	}
	return nil
}

func newDrafter(g *generation, smaller *Weights, context int) *drafter {
	model := g.model
	more := smaller.model.engine.Vocabulary > model.engine.Vocabulary // rows that stand for no token
	d := &drafter{text: g, weights: smaller, context: context, output: g.sampling.output(g.form != nil || more), choice: newSampler(g.sampling, draftStream)}
	if g.form != nil || more {
		d.choice.allows = func(token int32) bool {
			return int(token) < model.engine.Vocabulary && (g.choice.allows == nil || g.choice.allows(token))
		}
	}
	return d
}

// takes reports whether the draft can go on with a text: there is room, and its embedding has rows for all tokens, if some stand for nothing.
func (d *drafter) takes(text []int32) bool {
	return len(text) <= d.context && d.weights.engine.Check(text) == nil
}

// begin begins a draft of up to so many tokens after the text so far.
func (d *drafter) begin(most int) {
	d.most, d.all, d.drafted = most, append(d.all[:0], d.text.all...), draft{}
	d.restore = func() {}
	if d.text.form != nil {
		d.restore = d.text.form.Save()
	}
}

// wants reports whether the draft has not ended. What comes after all is wanted next.
func (d *drafter) wants() bool { return len(d.drafted.tokens) < d.most && d.takes(d.all) }

// add draws a token.
func (d *drafter) add(next *decoder.Next) error {
	p, err := d.choice.distribution(next, d.all)
	if errors.Is(err, compute.ErrUnsupported) {
		d.most = 0 // nothing is allowed here: the model will say so if it comes here, too
		return nil
	} else if err != nil {
		return err
	}
	p.all = slices.Clone(p.all)
	token := d.choice.draw(&p)
	d.drafted.tokens, d.drafted.from, d.all = append(d.drafted.tokens, token), append(d.drafted.from, p), append(d.all, token)
	g := d.text
	if g.model.text.Ends(token) && (!g.ignoreEnd || g.form != nil) || g.form != nil && (!g.form.Advance(token) || g.form.Ended()) {
		d.most = 0
	}
	return nil
}

// end returns the draft.
func (d *drafter) end() draft {
	d.restore()
	return d.drafted
}

// prefill has the draft's session compute all but the last token of a prompt.
func (s *Session) prefill(ctx context.Context, d *drafter, prompt []int32) error {
	if !d.takes(prompt) {
		return nil
	}
	known := s.keep(prompt)
	if known == len(prompt)-1 {
		return nil
	}
	_, err := s.feed(ctx, d.output, prompt[known:len(prompt)-1], nil)
	return err
}

// draft has the draft's session compute up to so many tokens that may come next, each after those before.
func (s *Session) draft(ctx context.Context, d *drafter, most int) (draft, error) {
	d.begin(most)
	defer d.end()
	for d.wants() {
		tokens := d.all[s.keep(d.all):]
		first := tokens
		if len(tokens) == 2 && s.engine.Chunk() >= 2 { // after a draft that was accepted as a whole; a chunk would take long
			first = tokens[:1]
		}
		next, err := s.feed(ctx, d.output, first, tokens[len(first):])
		if err == nil {
			err = d.add(next[len(next)-1])
		}
		if err != nil {
			return draft{}, err
		}
	}
	return d.drafted, nil
}
