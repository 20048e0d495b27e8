//go:build !js

package main

import (
	"encoding/json"
	"math/rand/v2"
	"slices"

	"github.com/wavelane/wavelane/llm"
)

// common are the fields that requests for chats and for completions have.
type common struct {
	Model             string         `json:"model"`
	N                 *int           `json:"n"`
	Stream            bool           `json:"stream"`
	StreamOptions     *streamOptions `json:"stream_options"`
	MaxTokens         *int           `json:"max_tokens"`
	Stop              list[string]   `json:"stop"`
	Temperature       *float64       `json:"temperature"`
	TopP              *float64       `json:"top_p"`
	FrequencyPenalty  float64        `json:"frequency_penalty"`
	PresencePenalty   float64        `json:"presence_penalty"`
	Seed              *int64         `json:"seed"`
	TopK              int            `json:"top_k"` // this and the next two are not OpenAI's
	MinP              float64        `json:"min_p"`
	RepetitionPenalty float64        `json:"repetition_penalty"`

	LogitBias map[string]float64 `json:"logit_bias"`

	// What makes no difference here.
	User             string            `json:"user"`
	Metadata         map[string]string `json:"metadata"`
	Store            bool              `json:"store"`
	ServiceTier      string            `json:"service_tier"`
	SafetyIdentifier string            `json:"safety_identifier"`
}

type streamOptions struct {
	IncludeUsage       bool `json:"include_usage"`
	IncludeObfuscation bool `json:"include_obfuscation"`
}

// list is one or several.
type list[T any] []T

func (l *list[T]) UnmarshalJSON(text []byte) error {
	var one T
	if string(text) != "null" && json.Unmarshal(text, &one) == nil {
		*l = list[T]{one}
		return nil
	}
	return json.Unmarshal(text, (*[]T)(l))
}

// work is what a request has the model do: a text for each choice.
type work struct {
	prompts [][]int32
	choices int // for each prompt
	opts    []llm.GenerateOption
	sample  llm.Sampling // the seed is that of the first choice
}

// texts is how many choices there are.
func (w *work) texts() int { return len(w.prompts) * w.choices }

// options are those of a choice.
func (w *work) options(choice int) []llm.GenerateOption {
	s := w.sample
	s.Seed += uint64(choice)
	return append(slices.Clip(w.opts), llm.WithSampling(s))
}

// work checks the fields, and says what they ask for.
func (c *common) work(s *server) (*work, error) {
	w := &work{choices: 1, sample: llm.Sampling{Temperature: 1, TopK: c.TopK, MinP: c.MinP, RepetitionPenalty: c.RepetitionPenalty,
		FrequencyPenalty: c.FrequencyPenalty, PresencePenalty: c.PresencePenalty, Seed: rand.Uint64()}}
	switch {
	case c.Model == "":
		return nil, invalid("model", "model is missing")
	case c.Model != s.name:
		return nil, unknownModel(c.Model)
	case len(c.LogitBias) > 0:
		return nil, unsupported("logit_bias")
	case c.StreamOptions != nil && !c.Stream:
		return nil, invalid("stream_options", "stream_options are for requests with stream")
	case c.N != nil && *c.N < 1:
		return nil, invalid("n", "n is %d, must be 1 or more", *c.N)
	case c.MaxTokens != nil && *c.MaxTokens < 1:
		return nil, invalid("max_tokens", "max_tokens is %d, must be 1 or more", *c.MaxTokens)
	case len(c.Stop) > 4 || slices.Contains(c.Stop, ""):
		return nil, invalid("stop", "stop is up to 4 strings, none of them empty")
	case c.Temperature != nil && !(*c.Temperature >= 0 && *c.Temperature <= 2):
		return nil, invalid("temperature", "temperature is %v, must be from 0 to 2", *c.Temperature)
	case c.TopP != nil && !(*c.TopP >= 0 && *c.TopP <= 1):
		return nil, invalid("top_p", "top_p is %v, must be from 0 to 1", *c.TopP)
	case c.TopK < 0:
		return nil, invalid("top_k", "top_k is %d, must be 0 or more", c.TopK)
	case !(c.MinP >= 0 && c.MinP <= 1):
		return nil, invalid("min_p", "min_p is %v, must be from 0 to 1", c.MinP)
	case !(c.RepetitionPenalty >= 0 && c.RepetitionPenalty <= 10):
		return nil, invalid("repetition_penalty", "repetition_penalty is %v, must be from 0 to 10", c.RepetitionPenalty)
	case !(c.FrequencyPenalty >= -2 && c.FrequencyPenalty <= 2):
		return nil, invalid("frequency_penalty", "frequency_penalty is %v, must be from -2 to 2", c.FrequencyPenalty)
	case !(c.PresencePenalty >= -2 && c.PresencePenalty <= 2):
		return nil, invalid("presence_penalty", "presence_penalty is %v, must be from -2 to 2", c.PresencePenalty)
	}
	if c.N != nil {
		w.choices = *c.N
	}
	if c.Temperature != nil {
		w.sample.Temperature = *c.Temperature
	}
	if c.TopP != nil {
		w.sample.TopP = max(*c.TopP, 1e-9) // 0, which is the most likely token, would be none here
	}
	if c.Seed != nil {
		w.sample.Seed = uint64(*c.Seed)
	}
	if len(c.Stop) > 0 {
		w.opts = append(w.opts, llm.WithStop(c.Stop...))
	}
	most := s.limits.tokens
	if c.MaxTokens != nil && (most == 0 || *c.MaxTokens < most) {
		most = *c.MaxTokens
	}
	if most > 0 {
		w.opts = append(w.opts, llm.WithMaxTokens(most))
	}
	return w, nil
}

// check reports more texts, or longer prompts, than the server takes.
func (w *work) check(s *server, param string) error {
	if w.texts() > s.limits.choices {
		return invalid("n", "the request is for %d texts, at most %d", w.texts(), s.limits.choices)
	}
	for _, p := range w.prompts {
		if n := s.scheduler.Context(); len(p) >= n {
			return &apiError{status: 400, Param: param, Code: "context_length_exceeded",
				Message: "the prompt has " + plural(len(p), "token") + ", and with its answer there is room for " + plural(n, "token")}
		}
		if len(p) == 0 {
			return invalid(param, "the prompt has no tokens")
		}
	}
	return nil
}
