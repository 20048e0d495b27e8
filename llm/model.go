package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/internal/pretrained"
	"github.com/wavelane/wavelane/internal/tokenizer"
	"github.com/wavelane/wavelane/llm/internal/grammar"
	"github.com/wavelane/wavelane/llm/internal/jinja"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// Model is what a file says of a model: its sizes, its vocabulary and its chat template. The weights stay in the file until
// [Model.Load].
type Model struct {
	file   *gguf.File
	closer io.Closer // of the file, or of the folder that it stands for
	engine *decoder.Model
	text   *tokenizer.Tokenizer

	template       func() (*jinja.Template, error)
	templateSource string
	words          func() *grammar.Vocabulary // made when it is first wanted
}

// OpenOption is an option of [Open].
type OpenOption func(*openOptions)

type openOptions struct{ pretrained.Options }

// WithQuantisation has the matrices of a folder become blocks of a format while they are loaded, except those whose rows are no whole blocks.
// A GGUF file has its weights as they are.
func WithQuantisation(f compute.BlockFormat) OpenOption {
	return func(o *openOptions) { o.Format = quant.Type(f) }
}

// Open reads a model: a GGUF file, of a split model the first, or a folder in the layout of Hugging Face, with config.json, weights in
// model.safetensors or the files of model.safetensors.index.json, and tokenizer.json or tokenizer.model. Errors wrap those of [gguf.Open], gguf.ErrMissing and
// [compute.ErrShape] for metadata and tensors that lack or do not fit, and [compute.ErrUnsupported] for what is not known here.
func Open(path string, opts ...OpenOption) (*Model, error) {
	var o openOptions
	for _, f := range opts {
		if f == nil {
			return nil, fmt.Errorf("llm: nil option: %w", compute.ErrArgument)
		}
		f(&o)
	}
	f, closer, err := openFile(path, o.Options)
	if err != nil {
		return nil, err
	}
	m, err := newModel(f)
	if err != nil {
		closer.Close()
		return nil, fmt.Errorf("llm: %s: %w", path, err)
	}
	m.closer = closer
	return m, nil
}

// openFile opens a file, or a folder as one.
func openFile(path string, o pretrained.Options) (*gguf.File, io.Closer, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		f, err := pretrained.Open(path, o)
		if err != nil {
			return nil, nil, fmt.Errorf("llm: %w", err)
		}
		return f.File, f, nil
	}
	if o != (pretrained.Options{}) {
		return nil, nil, fmt.Errorf("llm: %s is a file, whose weights are quantised as they are: %w", path, compute.ErrUnsupported)
	}
	f, err := gguf.Open(path)
	return f, f, err
}

// Read is [Open] for a file of a size that r reads. It reads from r while weights are loaded.
func Read(r io.ReaderAt, size int64) (*Model, error) {
	f, err := gguf.New(r, size)
	if err != nil {
		return nil, err
	}
	m, err := newModel(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("llm: %w", err)
	}
	return m, nil
}

func newModel(f *gguf.File) (*Model, error) {
	m := &Model{file: f, closer: f}
	var err error
	if m.engine, err = decoder.Read(f); err != nil {
		return nil, err
	}
	if m.text, err = tokenizer.New(f); err != nil {
		return nil, err
	}
	if m.text.Len() > m.engine.Vocabulary {
		return nil, fmt.Errorf("%d tokens, and the network knows %d: %w", m.text.Len(), m.engine.Vocabulary, compute.ErrShape)
	}
	m.templateSource, err = gguf.Value[string](f, chatTemplateKey)
	if err != nil && !errors.Is(err, gguf.ErrMissing) {
		return nil, err
	}
	m.template = sync.OnceValues(m.parseTemplate)
	m.words = sync.OnceValue(func() *grammar.Vocabulary { return grammar.NewVocabulary(m.text.Len(), m.TokenBytes) })
	return m, nil
}

// continues reports models that do not continue texts.
func (m *Model) continues() error {
	if m.engine.Encoder {
		return fmt.Errorf("llm: %s does not continue texts, it makes embeddings: %w", m.engine.Architecture, compute.ErrUnsupported)
	}
	return nil
}

// Close unmaps the file. Weights that were loaded do not need it. It is idempotent.
func (m *Model) Close() error { return m.closer.Close() }

// Info says what a model is.
type Info struct {
	Architecture string // as the file has it, such as "llama"
	Name         string // may be empty
	Blocks       int    // layers
	Width        int    // elements of the residual stream
	Hidden       int    // of a feed-forward layer
	Heads        int    // of queries
	KVHeads      int    // of keys and values
	HeadSize     int    // elements of a head
	Vocabulary   int    // tokens
	Context      int    // tokens that the model was trained on
	Experts      int    // of each layer of a mixture of experts; 0 for none
	UsedExperts  int    // of these, as many as a token takes
	Encoder      bool   // it makes embeddings, and does not continue texts
	Parameters   int64  // elements of all weights
	Bytes        int64  // of the weights in the file
	ChatTemplate string // as the file has it; may be empty
}

// Info says what the model is.
func (m *Model) Info() Info {
	e := m.engine
	i := Info{Architecture: e.Architecture, Name: e.Name, Blocks: e.Blocks, Width: e.Width, Hidden: e.Hidden, Heads: e.Heads,
		KVHeads: e.KVHeads, HeadSize: e.HeadSize, Vocabulary: e.Vocabulary, Context: e.Context, Experts: e.Experts, UsedExperts: e.UsedExperts, Encoder: e.Encoder,
		ChatTemplate: m.templateSource}
	for _, t := range m.file.Tensors() {
		i.Parameters += int64(t.Len())
		i.Bytes += t.Size()
	}
	return i
}

// Tokenize returns the tokens of a text, after the one that begins a text if the model wants that and the text has it not. Control
// tokens written in the text, such as <|im_start|>, are these tokens: text from a stranger may have them, too.
func (m *Model) Tokenize(text string) []int32 { return m.text.EncodeOnce(text) }

// Detokenize returns the text of tokens from the beginning of a text. Control tokens have none; bytes that are no UTF-8 become U+FFFD.
func (m *Model) Detokenize(tokens []int32) string { return m.text.Decode(tokens) }

// TokenBytes returns what a token stands for within a text, which may be part of a character; nothing for control tokens.
func (m *Model) TokenBytes(token int32) []byte { return m.text.Spell(token) }

// Device is a device of this module.
type Device interface {
	batch.Device
	UploadAsync(data any, shape ...int) (compute.Tensor, *compute.Future)
}

// LoadOption is an option of [Model.Load].
type LoadOption func(*loadOptions)

type loadOptions struct {
	decoder.LoadOptions
	err error
}

// WithDense makes Float32 of all quantised weights, which takes several times the memory. Otherwise they stay in their blocks.
func WithDense() LoadOption { return func(o *loadOptions) { o.Dense = true } }

// WithProgress has a function called after each tensor, with the bytes of the file that were read and all that will be.
func WithProgress(f func(done, total int64)) LoadOption {
	return func(o *loadOptions) { o.Progress = f }
}

// WithGroup spreads the weights over the members of a group, a [github.com/wavelane/wavelane/dist.Group] or World: each reads and has some of
// the heads, of the hidden elements and of the vocabulary, and what they compute is added twice in each block. Every member loads the same
// file, makes the same sessions and continues the same texts with the same options, in the same order, and gets the same tokens. All heads of
// keys are divided, or each by some members, else the error wraps [compute.ErrShape]. A mixture of experts cannot be spread, and a [Scheduler] cannot have such weights.
func WithGroup(g batch.Group) LoadOption {
	return func(o *loadOptions) {
		o.AllReduce = (*batch.Batch).AllReduce
		if o.Group = g; g == nil {
			o.err = fmt.Errorf("llm: nil group: %w", compute.ErrArgument)
		}
	}
}

// Weights are a model on a device.
type Weights struct {
	model  *Model
	engine *decoder.Weights
}

// Load brings the weights to a device, which must stay open while they are used. When ctx is done, it stops after the tensor under way.
// Errors wrap those of the device, such as [compute.ErrOutOfMemory].
func (m *Model) Load(ctx context.Context, dev Device, opts ...LoadOption) (*Weights, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	if dev == nil {
		return nil, fmt.Errorf("llm: nil device: %w", compute.ErrArgument)
	}
	var o loadOptions
	for _, f := range opts {
		if f == nil {
			return nil, fmt.Errorf("llm: nil option: %w", compute.ErrArgument)
		}
		f(&o)
	}
	if o.err != nil {
		return nil, o.err
	}
	w, err := m.engine.Load(ctx, dev, o.LoadOptions)
	if err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	return &Weights{m, w}, nil
}

// Model returns the model whose weights these are.
func (w *Weights) Model() *Model { return w.model }

// Bytes is the memory that the weights take on the device, of this member of a group.
func (w *Weights) Bytes() int64 { return w.engine.Bytes() }

// Close frees the memory on the device once the work that uses it is done; close sessions first. It is idempotent.
func (w *Weights) Close() error { return w.engine.Close() }
