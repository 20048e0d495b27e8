//go:build llm

package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"syscall/js"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// models are the further calls of the program for language models.
var models = []func(c *call, m *message, extra js.Value){
	(*call).openLanguageModel, (*call).beginText, (*call).nextToken, (*call).tokenize, (*call).detokenize, (*call).chatPrompt, (*call).embed,
}

// languageModel is a model on a device, with a session.
type languageModel struct {
	*llm.Session       // nil for an encoder
	silent       error // why
	model        *llm.Model
	weights      *llm.Weights
	device       *opened
	texts        map[*generation]bool
	options      []llm.SessionOption
	embedder     *llm.Embedder // nil before it is first wanted
}

func (l *languageModel) owner() *opened { return l.device }

func (l *languageModel) Close() error {
	for g := range l.texts {
		g.Close()
	}
	var err error
	if l.Session != nil {
		err = l.Session.Close()
	}
	if l.embedder != nil {
		err = errors.Join(err, l.embedder.Close())
	}
	return errors.Join(err, l.weights.Close(), l.model.Close())
}

// generation is a text that grows as the page asks for tokens.
type generation struct {
	model  *languageModel
	cancel context.CancelFunc
	next   func() (llm.Token, error, bool)
	stop   func()
	probs  bool          // tokens tell their probability
	turn   chan struct{} // has room for the goroutine that computes
}

func (g *generation) owner() *opened { return g.model.device }

func (g *generation) Close() error {
	g.cancel()
	g.turn <- struct{}{}
	g.stop()
	<-g.turn
	delete(g.model.texts, g)
	return nil
}

// openLanguageModel reads a model from what extra is and resolves to its handle, what it is, and the session's context.
func (c *call) openLanguageModel(m *message, extra js.Value) {
	d, err := held[*opened](m.int())
	tokens, chunk, exact, cache, size := m.int(), m.int(), m.bool(), quant.Type(m.int()), m.int()
	if err == nil {
		err = m.err
	}
	if err != nil {
		c.reject(err)
		return
	}
	go func() {
		defer c.guard()
		l, err := loadModel(c.ctx, d, source{extra.Get("read")}, int64(size), extra.Get("progress"), textOptions(tokens, chunk, exact, cache))
		if errors.Is(err, gguf.ErrMalformed) || errors.Is(err, gguf.ErrMissing) {
			err = fmt.Errorf("%w: %w", err, compute.ErrArgument)
		}
		if err == nil && c.ctx.Err() != nil {
			err = errors.Join(c.ctx.Err(), l.Close())
		}
		if err != nil {
			c.reject(err)
			return
		}
		c.resolve(hold(l), describeModel(l.model.Info()), l.context())
	}()
}

// defaultContext bounds the memory of a session that does not say how much text it is for.
const defaultContext = 4096

func textOptions(tokens, chunk int, exact bool, cache quant.Type) func(*llm.Model) []llm.SessionOption {
	return func(m *llm.Model) []llm.SessionOption {
		if tokens == 0 {
			tokens = min(defaultContext, m.Info().Context)
		}
		options := []llm.SessionOption{llm.WithContext(tokens), llm.WithCache(cache)}
		if chunk != 0 {
			options = append(options, llm.WithChunk(chunk))
		}
		if exact {
			options = append(options, llm.WithExact())
		}
		return options
	}
}

func loadModel(ctx context.Context, d *opened, from source, size int64, progress js.Value, options func(*llm.Model) []llm.SessionOption) (*languageModel, error) {
	m, err := llm.Read(from, size)
	if err != nil {
		return nil, err
	}
	w, err := m.Load(ctx, d.executor.(llm.Device), llm.WithProgress(func(done, total int64) { progress.Invoke(done, total) }))
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	l := &languageModel{model: m, weights: w, device: d, texts: map[*generation]bool{}, options: options(m)}
	if l.Session, err = w.NewSession(ctx, l.options...); err != nil && m.Info().Encoder {
		l.silent, err = err, l.prepareEmbedder(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close(), m.Close())
	}
	return l, nil
}

// context is how many tokens a text has room for.
func (l *languageModel) context() int {
	if l.Session == nil {
		return l.embedder.Context()
	}
	return l.Context()
}

// source reads through a function of JavaScript: read(offset, length) is a promise of a Uint8Array.
type source struct{ read js.Value }

func (s source) ReadAt(p []byte, at int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	bytes, err := await(s.read.Invoke(at, len(p)))
	if err != nil {
		return 0, err
	}
	if n := js.CopyBytesToGo(p, bytes); n < len(p) {
		return n, fmt.Errorf("%d bytes at %d, want %d: %w", n, at, len(p), gguf.ErrMalformed)
	}
	return len(p), nil
}

// await waits for a promise.
func await(promise js.Value) (js.Value, error) {
	done := make(chan error, 1)
	var result js.Value
	var kept, broken js.Func
	settled := func(err error) any {
		kept.Release()
		broken.Release()
		done <- err
		return nil
	}
	kept = js.FuncOf(func(_ js.Value, args []js.Value) any {
		result = args[0]
		return settled(nil)
	})
	broken = js.FuncOf(func(_ js.Value, args []js.Value) any { return settled(errors.New(args[0].Call("toString").String())) })
	promise.Call("then", kept, broken)
	err := <-done
	return result, err
}

// describeModel is in the form of ModelInfo in llm.d.ts.
func describeModel(i llm.Info) any {
	return map[string]any{"architecture": i.Architecture, "name": i.Name, "blocks": i.Blocks, "width": i.Width, "hidden": i.Hidden, "heads": i.Heads,
		"kvHeads": i.KVHeads, "headSize": i.HeadSize, "vocabulary": i.Vocabulary, "context": i.Context, "parameters": i.Parameters, "bytes": i.Bytes,
		"encoder": i.Encoder, "chatTemplate": i.ChatTemplate}
}

// beginText resolves to a text that continues a prompt or answers messages, of which nothing is computed yet. Extra is
// [prompt or messages, options].
func (c *call) beginText(m *message, extra js.Value) {
	l, err := held[*languageModel](m.int())
	if err != nil {
		c.reject(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	sequence, probs, err := l.text(ctx, extra.Index(0), extra.Index(1))
	if err != nil {
		cancel()
		c.reject(err)
		return
	}
	g := &generation{model: l, cancel: cancel, probs: probs, turn: make(chan struct{}, 1)}
	g.next, g.stop = iter.Pull2(sequence)
	l.texts[g] = true
	c.resolve(hold(g))
}

func (l *languageModel) text(ctx context.Context, input, given js.Value) (sequence iter.Seq2[llm.Token, error], probs bool, err error) {
	o, err := goMap(given, "options")
	if err == nil {
		err = l.silent
	}
	if err != nil {
		return nil, false, err
	}
	options, probs := generateOptions(o), o["logProbs"] != nil
	if input.Type() == js.TypeString {
		return l.Generate(ctx, input.String(), options...), probs, nil
	}
	messages, err := messagesOf(input)
	if err != nil {
		return nil, false, err
	}
	return l.Chat(ctx, messages, options...), probs, nil
}

// generateOptions are those of GenerateOptions in llm.d.ts, whose types JavaScript has checked.
func generateOptions(o map[string]any) []llm.GenerateOption {
	var options []llm.GenerateOption
	number := func(name string) float64 {
		switch x := o[name].(type) {
		case int64:
			return float64(x)
		case float64:
			return x
		}
		return 0
	}
	options = append(options, llm.WithSampling(llm.Sampling{Temperature: number("temperature"), TopK: int(number("topK")), TopP: number("topP"), MinP: number("minP"),
		RepetitionPenalty: number("repetitionPenalty"), FrequencyPenalty: number("frequencyPenalty"), PresencePenalty: number("presencePenalty"),
		PenaltyWindow: int(number("penaltyWindow")), Seed: uint64(number("seed"))}))
	if o["maxTokens"] != nil {
		options = append(options, llm.WithMaxTokens(int(number("maxTokens"))))
	}
	if o["logProbs"] != nil {
		options = append(options, llm.WithLogProbs(int(number("logProbs"))))
	}
	if o["contextShift"] != nil {
		options = append(options, llm.WithContextShift(int(number("contextShift"))))
	}
	if o["lookup"] != nil {
		options = append(options, llm.WithLookup(int(number("lookup"))))
	}
	if o["ignoreEnd"] == true {
		options = append(options, llm.WithIgnoreEnd())
	}
	if list, ok := o["stop"].([]any); ok {
		for _, s := range list {
			text, _ := s.(string) // an empty one is refused later
			options = append(options, llm.WithStop(text))
		}
	}
	if schema, ok := o["json"].(string); ok {
		options = append(options, llm.WithJSONSchema([]byte(schema)))
	}
	if v, ok := o["variables"].(map[string]any); ok {
		options = append(options, llm.WithVariables(v))
	}
	return options
}

// messagesOf are objects with role, content and further fields.
func messagesOf(v js.Value) ([]llm.Message, error) {
	x, err := goValue(v, 0)
	if err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	list, _ := x.([]any)
	messages := make([]llm.Message, 0, len(list))
	for i, x := range list {
		fields, _ := x.(map[string]any)
		role, ok := fields["role"].(string)
		if !ok {
			return nil, fmt.Errorf("message %d has no role: %w", i, compute.ErrArgument)
		}
		m := llm.Message{Role: role, Fields: fields}
		delete(fields, "role")
		if content, ok := fields["content"].(string); ok {
			m.Content = content
			delete(fields, "content")
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// nextToken resolves to the next token of a text, in the form of Token in llm.d.ts; the last one has what the text took.
func (c *call) nextToken(m *message, _ js.Value) {
	g, err := held[*generation](m.int())
	if err != nil {
		c.reject(err)
		return
	}
	g.model.device.enqueue(func() { // after the end of texts that were closed before
		go func() {
			defer c.guard()
			stop := context.AfterFunc(c.ctx, g.cancel)
			g.turn <- struct{}{}
			token, err, ok := g.next()
			<-g.turn
			stop()
			if err == nil && !ok {
				err = fmt.Errorf("the text has ended: %w", compute.ErrClosed)
			}
			if err != nil {
				c.reject(err)
				return
			}
			c.resolve(g.describe(token))
		}()
	})
}

func (g *generation) describe(t llm.Token) any {
	token := map[string]any{"id": t.ID, "text": t.Text, "finish": nil}
	if g.probs {
		top := make([]any, len(t.Top))
		for i, x := range t.Top {
			top[i] = map[string]any{"id": x.ID, "text": string(g.model.model.TokenBytes(x.ID)), "logProb": x.LogProb}
		}
		token["top"], token["logProb"] = top, t.LogProb
	}
	if t.Finish != llm.Unfinished {
		s := g.model.Stats()
		token["finish"] = t.Finish.String()
		token["stats"] = map[string]any{"prompt": s.Prompt, "known": s.Known, "prefill": s.Prefill.Seconds() * 1e3, "steps": s.Steps,
			"decoding": s.Decoding.Seconds() * 1e3, "drafted": s.Drafted, "accepted": s.Accepted}
	}
	return token
}

func (c *call) tokenize(m *message, _ js.Value) {
	l, err := held[*languageModel](m.int())
	if err != nil {
		c.reject(err)
		return
	}
	c.resolve(int32Array(l.model.Tokenize(m.text())))
}

func (c *call) detokenize(m *message, _ js.Value) {
	l, err := held[*languageModel](m.int())
	ids, _ := m.slice(compute.Int32).([]int32)
	if err == nil {
		err = m.err
	}
	if err != nil {
		c.reject(err)
		return
	}
	c.resolve(l.model.Detokenize(ids))
}

func int32Array(x []int32) any { return arrayResult(compute.Int32, x) }

// embed resolves to a vector of each text. It goes through the device's queue, so that there is one at a time.
func (c *call) embed(m *message, _ js.Value) {
	l, err := held[*languageModel](m.int())
	texts := make([]string, max(m.int(), 0))
	for i := range texts {
		texts[i] = m.text()
	}
	if err == nil {
		err = m.err
	}
	if err != nil {
		c.reject(err)
		return
	}
	l.device.enqueue(func() {
		defer c.guard()
		vectors, err := l.vectors(c.ctx, texts)
		if err != nil {
			c.reject(err)
			return
		}
		results := make([]any, len(vectors))
		for i, v := range vectors {
			results[i] = arrayResult(compute.Float32, v)
		}
		c.resolve(results...)
	})
}

func (l *languageModel) vectors(ctx context.Context, texts []string) ([][]float32, error) {
	if err := l.prepareEmbedder(ctx); err != nil {
		return nil, err
	}
	return l.embedder.Embed(ctx, texts...)
}

func (l *languageModel) prepareEmbedder(ctx context.Context) (err error) {
	if l.embedder != nil {
		return nil
	}
	var options []llm.EmbedderOption
	for _, o := range l.options {
		options = append(options, o)
	}
	l.embedder, err = l.weights.NewEmbedder(ctx, options...)
	return err
}

// chatPrompt resolves to the prompt for messages. Extra is [messages, variables].
func (c *call) chatPrompt(m *message, extra js.Value) {
	l, err := held[*languageModel](m.int())
	if err != nil {
		c.reject(err)
		return
	}
	text := ""
	messages, err := messagesOf(extra.Index(0))
	if err == nil {
		var variables map[string]any
		if variables, err = goMap(extra.Index(1), "variables"); err == nil {
			text, err = l.model.ChatPrompt(messages, variables)
		}
	}
	if err != nil {
		c.reject(err)
		return
	}
	c.resolve(text)
}

// goMap is an object, or nothing.
func goMap(v js.Value, what string) (map[string]any, error) {
	x, err := goValue(v, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	o, _ := x.(map[string]any)
	return o, nil
}

const deepest = 64 // nesting of what a page gives

// goValue is what JavaScript's null, booleans, numbers, strings, arrays and plain objects are in Go.
func goValue(v js.Value, depth int) (any, error) {
	if depth > deepest {
		return nil, fmt.Errorf("nested deeper than %d: %w", deepest, compute.ErrArgument)
	}
	switch v.Type() {
	case js.TypeUndefined, js.TypeNull:
		return nil, nil
	case js.TypeBoolean:
		return v.Bool(), nil
	case js.TypeString:
		return v.String(), nil
	case js.TypeNumber:
		if x := v.Float(); x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return x, nil
		}
		return int64(v.Float()), nil
	case js.TypeObject:
		if js.Global().Get("Array").Call("isArray", v).Bool() {
			list := make([]any, v.Length())
			for i := range list {
				var err error
				if list[i], err = goValue(v.Index(i), depth+1); err != nil {
					return nil, err
				}
			}
			return list, nil
		}
		keys := js.Global().Get("Object").Call("keys", v)
		object := map[string]any{}
		for i := range keys.Length() {
			key := keys.Index(i).String()
			x, err := goValue(v.Get(key), depth+1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			object[key] = x
		}
		return object, nil
	}
	return nil, fmt.Errorf("a %v: %w", v.Type(), compute.ErrArgument)
}
