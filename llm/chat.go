package llm

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/llm/internal/jinja"
	"github.com/wavelane/wavelane/quant/gguf"
)

const chatTemplateKey = "tokenizer.chat_template"

// TemplateError says what is wrong with a chat template. It is [compute.ErrUnsupported] for what is not understood, and
// [compute.ErrArgument] where the template itself refuses the messages.
type TemplateError struct {
	Line    int    // of the template, from 1
	Message string // names what is not understood, or is what the template says
	Refused bool   // by the template, with raise_exception
}

func (e *TemplateError) Error() string {
	if e.Refused {
		return "the chat template refuses the messages: " + e.Message
	}
	return fmt.Sprintf("chat template, line %d: %s", e.Line, e.Message)
}

// Unwrap returns compute.ErrArgument or compute.ErrUnsupported.
func (e *TemplateError) Unwrap() error {
	if e.Refused {
		return compute.ErrArgument
	}
	return compute.ErrUnsupported
}

// Message is what somebody says in a conversation.
type Message struct {
	Role    string // "system", "user", "assistant", "tool", or what else the template knows
	Content string
	// Fields are more of the message's fields for the template, such as "tool_calls", in place of those above where they have the
	// same name. Values are nil, booleans, numbers, strings, slices and maps with strings as keys, which are sorted.
	Fields map[string]any
}

// ChatPrompt returns the prompt for a conversation: what the file's chat template makes of it, up to where the assistant's answer
// begins. Variables are more of those that the template sees, such as "tools" or "enable_thinking"; values are as in [Message]. Errors are
// of type [*TemplateError], or wrap gguf.ErrMissing if the file has no chat template.
func (m *Model) ChatPrompt(messages []Message, variables map[string]any) (string, error) {
	t, err := m.template()
	if err != nil {
		return "", err
	}
	list := []any{}
	for _, x := range messages {
		d := jinja.NewDict("role", x.Role, "content", x.Content)
		for _, name := range slices.Sorted(maps.Keys(x.Fields)) {
			d.Set(name, x.Fields[name])
		}
		list = append(list, d)
	}
	all := map[string]any{"bos_token": m.text.BOS(), "eos_token": m.text.EOS(), "add_generation_prompt": true}
	maps.Copy(all, variables)
	all["messages"] = list
	s, err := t.Render(all)
	if err != nil {
		return "", templateError(err)
	}
	return s, nil
}

func (m *Model) parseTemplate() (*jinja.Template, error) {
	if m.templateSource == "" {
		return nil, fmt.Errorf("llm: metadata %q: the file has no chat template: %w", chatTemplateKey, gguf.ErrMissing)
	}
	t, err := jinja.Parse(m.templateSource)
	if err != nil {
		return nil, templateError(err)
	}
	return t, nil
}

func templateError(err error) error {
	var e *jinja.Error
	if errors.As(err, &e) {
		return fmt.Errorf("llm: %w", &TemplateError{e.Line, e.Message, e.Raised})
	}
	return fmt.Errorf("llm: chat template: %w: %w", err, compute.ErrArgument)
}
