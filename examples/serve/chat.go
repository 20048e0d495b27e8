//go:build !js

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/wavelane/wavelane/llm"
)

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	common
	Messages            []chatMessage  `json:"messages"`
	MaxCompletionTokens *int           `json:"max_completion_tokens"`
	LogProbs            bool           `json:"logprobs"`
	TopLogProbs         *int           `json:"top_logprobs"`
	Variables           map[string]any `json:"chat_template_kwargs"` // of the chat template; not OpenAI's

	Tools          []any           `json:"tools"`
	ToolChoice     any             `json:"tool_choice"`
	ParallelCalls  any             `json:"parallel_tool_calls"`
	Modalities     []any           `json:"modalities"`
	ResponseFormat *responseFormat `json:"response_format"`
}

// responseFormat is the form of an answer.
type responseFormat struct {
	Type   string `json:"type"`
	Schema *struct {
		Name        string          `json:"name"` // these two make no difference, nor does strict: a schema always binds
		Description string          `json:"description"`
		Strict      any             `json:"strict"`
		Schema      json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// option is the form for the model, nil for none.
func (f *responseFormat) option() (llm.GenerateOption, error) {
	switch {
	case f == nil || f.Type == "text":
		return nil, nil
	case f.Type == "json_object":
		return llm.WithJSONSchema([]byte(`{"type": "object"}`)), nil
	case f.Type != "json_schema":
		return nil, invalid("response_format", "response_format is %q, must be text, json_object or json_schema", f.Type)
	case f.Schema == nil || len(f.Schema.Schema) == 0:
		return nil, invalid("response_format", "response_format needs json_schema with a schema")
	}
	if err := llm.CheckJSONSchema(f.Schema.Schema); err != nil {
		return nil, invalid("response_format", "%v", err)
	}
	return llm.WithJSONSchema(f.Schema.Schema), nil
}

// chatMessage is a message of a conversation. What it has beside role and content is for the chat template.
type chatMessage struct {
	llm.Message
}

func (m *chatMessage) UnmarshalJSON(text []byte) error {
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		return invalid("messages", "a message must be a JSON object")
	}
	role, ok := fields["role"].(string)
	switch {
	case !ok:
		return invalid("messages", "a message needs a role, which is a string")
	case role == "developer": // what newer clients call it; templates do not know that
		role = "system"
	case role != "system" && role != "user" && role != "assistant" && role != "tool":
		return invalid("messages", "the role %q is none of system, developer, user, assistant and tool", role)
	}
	m.Role = role
	switch content := fields["content"].(type) {
	case nil:
		if role != "assistant" {
			return invalid("messages", "a message of the role %q needs content", role)
		}
	case string:
		m.Content = content
	case []any:
		for _, x := range content {
			part, _ := x.(map[string]any)
			text, ok := part["text"].(string)
			if part["type"] != "text" || !ok {
				return &apiError{status: http.StatusBadRequest, Message: "parts of content must be text", Param: "messages", Code: "unsupported_content"}
			}
			m.Content += text
		}
	default:
		return invalid("messages", "content must be a string, or a list of parts")
	}
	delete(fields, "role")
	delete(fields, "content")
	m.Fields = fields
	return nil
}

const mostTop = 20 // log-probabilities for a token

func (s *server) chat(rw http.ResponseWriter, r *http.Request) error {
	var q chatRequest
	if err := s.decode(rw, r, &q); err != nil {
		return err
	}
	if q.MaxCompletionTokens != nil {
		if q.MaxTokens != nil {
			return invalid("max_tokens", "max_tokens and max_completion_tokens: which one?")
		}
		q.MaxTokens = q.MaxCompletionTokens
	}
	w, err := q.work(s)
	top := 0
	if q.TopLogProbs != nil {
		top = *q.TopLogProbs
	}
	switch {
	case err != nil:
		return err
	case len(q.Messages) == 0:
		return invalid("messages", "messages are missing")
	case len(q.Tools) > 0 || q.ToolChoice != nil && q.ToolChoice != "none" && q.ToolChoice != "auto":
		return unsupported("tools")
	case len(q.Modalities) > 1 || len(q.Modalities) == 1 && q.Modalities[0] != "text":
		return unsupported("modalities")
	case q.TopLogProbs != nil && !q.LogProbs:
		return invalid("top_logprobs", "top_logprobs need logprobs")
	case top < 0 || top > mostTop:
		return invalid("top_logprobs", "top_logprobs is %d, must be from 0 to %d", top, mostTop)
	}
	form, err := q.ResponseFormat.option()
	if err != nil {
		return err
	}
	if form != nil {
		w.opts = append(w.opts, form)
	}
	if q.LogProbs {
		w.opts = append(w.opts, llm.WithLogProbs(top))
	}
	messages := make([]llm.Message, len(q.Messages))
	for i, m := range q.Messages {
		messages[i] = m.Message
	}
	prompt, err := s.model.ChatPrompt(messages, q.Variables)
	if err != nil {
		return err
	}
	w.prompts = [][]int32{s.model.Tokenize(prompt)}
	if err := w.check(s, "messages"); err != nil {
		return err
	}
	f := &chatForm{server: s, head: newHead("chatcmpl-", "chat.completion", s.name), logProbs: q.LogProbs, texts: make([]chatText, w.texts())}
	return s.answer(rw, r, w, &q.common, f)
}

// head is what answers and chunks have in common.
type head struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
}

func newHead(prefix, object, model string) head {
	return head{fmt.Sprintf("%s%016x", prefix, rand.Uint64()), object, time.Now().Unix(), model}
}

// chatForm writes answers of a chat.
type chatForm struct {
	server *server
	head
	logProbs bool
	texts    []chatText
}

type chatText struct {
	text     strings.Builder
	logProbs []chatLogProb
	finish   any
}

// chatLogProb is a token with its probability.
type chatLogProb struct {
	Token   string         `json:"token"`
	LogProb float64        `json:"logprob"`
	Bytes   []int          `json:"bytes"`
	Top     *[]chatLogProb `json:"top_logprobs,omitempty"`
}

type chatAnswer struct {
	head
	Choices []chatChoice `json:"choices"`
	Usage   *usage       `json:"usage,omitempty"`
}

type chatChoice struct {
	Index    int           `json:"index"`
	Message  *chatDelta    `json:"message,omitempty"`
	Delta    *chatDelta    `json:"delta,omitempty"`
	LogProbs *chatLogProbs `json:"logprobs"`
	Finish   any           `json:"finish_reason"`
}

type chatDelta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type chatLogProbs struct {
	Content []chatLogProb `json:"content"`
}

func (f *chatForm) logProb(id int32, p float64) chatLogProb {
	bytes := f.server.model.TokenBytes(id)
	x := chatLogProb{Token: strings.ToValidUTF8(string(bytes), "\uFFFD"), LogProb: p, Bytes: make([]int, len(bytes))}
	for i, b := range bytes {
		x.Bytes[i] = int(b)
	}
	return x
}

func (f *chatForm) token(t llm.Token) chatLogProb {
	x := f.logProb(t.ID, t.LogProb)
	top := []chatLogProb{}
	for _, c := range t.Top {
		top = append(top, f.logProb(c.ID, c.LogProb))
	}
	x.Top = &top
	return x
}

func (f *chatForm) add(choice int, t llm.Token) {
	x := &f.texts[choice]
	x.text.WriteString(t.Text)
	x.finish = finishReason(t.Finish)
	if f.logProbs {
		x.logProbs = append(x.logProbs, f.token(t))
	}
}

func (f *chatForm) whole(u usage) any {
	a := chatAnswer{head: f.head, Usage: &u}
	for i := range f.texts {
		x := &f.texts[i]
		text := x.text.String()
		c := chatChoice{Index: i, Message: &chatDelta{Role: "assistant", Content: &text}, Finish: x.finish}
		if f.logProbs {
			c.LogProbs = &chatLogProbs{x.logProbs}
		}
		a.Choices = append(a.Choices, c)
	}
	return a
}

func (f *chatForm) first() []any {
	f.Object = "chat.completion.chunk"
	var all []any
	for i := range f.texts {
		all = append(all, chatAnswer{head: f.head, Choices: []chatChoice{{Index: i, Delta: &chatDelta{Role: "assistant", Content: new(string)}}}})
	}
	return all
}

func (f *chatForm) chunk(choice int, t llm.Token) any {
	if t.Text == "" && !f.logProbs && t.Finish == llm.Unfinished {
		return nil
	}
	c := chatChoice{Index: choice, Delta: &chatDelta{}, Finish: finishReason(t.Finish)}
	if t.Text != "" {
		c.Delta.Content = &t.Text
	}
	if f.logProbs {
		c.LogProbs = &chatLogProbs{[]chatLogProb{f.token(t)}}
	}
	return chatAnswer{head: f.head, Choices: []chatChoice{c}}
}

func (f *chatForm) last(u usage) any {
	return chatAnswer{head: f.head, Choices: []chatChoice{}, Usage: &u}
}
