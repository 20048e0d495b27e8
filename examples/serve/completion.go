//go:build !js

package main

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/wavelane/wavelane/llm"
)

// completionRequest is the body of /v1/completions.
type completionRequest struct {
	common
	Prompt   prompts `json:"prompt"`
	LogProbs *int    `json:"logprobs"`

	Echo   bool   `json:"echo"`
	BestOf *int   `json:"best_of"`
	Suffix string `json:"suffix"`
}

// prompts are one or several, as texts or as tokens.
type prompts struct {
	texts  []string
	tokens [][]int32
	wrong  bool
}

// check reports what is none of these, in the field of a name.
func (p *prompts) check(name string) error {
	switch {
	case p.wrong:
		return invalid(name, "%s must be a string, a list of tokens, or a list of those", name)
	case len(p.texts)+len(p.tokens) == 0:
		return invalid(name, "%s is missing", name)
	}
	return nil
}

func (p *prompts) UnmarshalJSON(text []byte) error {
	var one []int32
	switch {
	case json.Unmarshal(text, (*list[string])(&p.texts)) == nil:
	case json.Unmarshal(text, &one) == nil:
		p.texts, p.tokens = nil, [][]int32{one}
	case json.Unmarshal(text, &p.tokens) == nil:
		p.texts = nil
	default:
		p.wrong = true
	}
	return nil
}

const (
	usualTokens       = 16 // of an answer, as in OpenAI's API
	mostCompletionTop = 5  // log-probabilities for a token

)

func (s *server) complete(rw http.ResponseWriter, r *http.Request) error {
	var q completionRequest
	if err := s.decode(rw, r, &q); err != nil {
		return err
	}
	if q.MaxTokens == nil {
		n := usualTokens
		q.MaxTokens = &n
	}
	w, err := q.work(s)
	switch {
	case err != nil:
		return err
	case q.Echo:
		return unsupported("echo")
	case q.BestOf != nil && *q.BestOf != w.choices:
		return unsupported("best_of")
	case q.Suffix != "":
		return unsupported("suffix")
	case q.LogProbs != nil && (*q.LogProbs < 0 || *q.LogProbs > mostCompletionTop):
		return invalid("logprobs", "logprobs is %d, must be from 0 to %d", *q.LogProbs, mostCompletionTop)
	}
	if q.LogProbs != nil {
		w.opts = append(w.opts, llm.WithLogProbs(*q.LogProbs))
	}
	w.prompts = q.Prompt.tokens
	for _, text := range q.Prompt.texts {
		w.prompts = append(w.prompts, s.model.Tokenize(text))
	}
	if err := q.Prompt.check("prompt"); err != nil {
		return err
	}
	if err := w.check(s, "prompt"); err != nil {
		return err
	}
	f := &completionForm{server: s, head: newHead("cmpl-", "text_completion", s.name), logProbs: q.LogProbs != nil, texts: make([]completionText, w.texts())}
	return s.answer(rw, r, w, &q.common, f)
}

// completionForm writes completions.
type completionForm struct {
	server *server
	head
	logProbs bool
	texts    []completionText
}

type completionText struct {
	text     strings.Builder
	length   int // bytes so far, also of streams
	logProbs *completionLogProbs
	finish   any
}

type completionAnswer struct {
	head
	Choices []completionChoice `json:"choices"`
	Usage   *usage             `json:"usage,omitempty"`
}

type completionChoice struct {
	Text     string              `json:"text"`
	Index    int                 `json:"index"`
	LogProbs *completionLogProbs `json:"logprobs"`
	Finish   any                 `json:"finish_reason"`
}

// completionLogProbs are lists with an element for each token.
type completionLogProbs struct {
	Tokens   []string             `json:"tokens"`
	LogProbs []float64            `json:"token_logprobs"`
	Top      []map[string]float64 `json:"top_logprobs"`
	Offsets  []int                `json:"text_offset"`
}

func (f *completionForm) spell(id int32) string {
	return strings.ToValidUTF8(string(f.server.model.TokenBytes(id)), "\uFFFD")
}

// token appends a token of a choice to a list, which may be nil.
func (f *completionForm) token(l *completionLogProbs, choice int, t llm.Token) *completionLogProbs {
	x := &f.texts[choice]
	defer func() { x.length += len(t.Text) }()
	if !f.logProbs {
		return nil
	}
	if l == nil {
		l = &completionLogProbs{}
	}
	top := map[string]float64{}
	for _, c := range t.Top {
		top[f.spell(c.ID)] = c.LogProb
	}
	l.Tokens, l.LogProbs = append(l.Tokens, f.spell(t.ID)), append(l.LogProbs, t.LogProb)
	l.Top, l.Offsets = append(l.Top, top), append(l.Offsets, x.length)
	return l
}

func (f *completionForm) add(choice int, t llm.Token) {
	x := &f.texts[choice]
	x.logProbs = f.token(x.logProbs, choice, t)
	x.text.WriteString(t.Text)
	x.finish = finishReason(t.Finish)
}

func (f *completionForm) whole(u usage) any {
	a := completionAnswer{head: f.head, Usage: &u}
	for i := range f.texts {
		x := &f.texts[i]
		a.Choices = append(a.Choices, completionChoice{x.text.String(), i, x.logProbs, x.finish})
	}
	return a
}

func (f *completionForm) first() []any { return nil }

func (f *completionForm) chunk(choice int, t llm.Token) any {
	l := f.token(nil, choice, t)
	if t.Text == "" && l == nil && t.Finish == llm.Unfinished {
		return nil
	}
	return completionAnswer{head: f.head, Choices: []completionChoice{{t.Text, choice, l, finishReason(t.Finish)}}}
}

func (f *completionForm) last(u usage) any {
	return completionAnswer{head: f.head, Choices: []completionChoice{}, Usage: &u}
}
