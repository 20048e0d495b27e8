package llm

import (
	"fmt"
	"io"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/quant/gguf"
)

// Adapter is what a LoRA adapter's file adds to matrices of a model. It may be used from many goroutines.
type Adapter struct {
	file   *gguf.File
	engine *decoder.Adapter
}

// OpenAdapter reads the file of an adapter, as llama.cpp's convert_lora_to_gguf.py writes it. Errors are those of [Open].
func OpenAdapter(path string) (*Adapter, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	a, err := newAdapter(f)
	if err != nil {
		return nil, fmt.Errorf("llm: %s: %w", path, err)
	}
	return a, nil
}

// ReadAdapter is [OpenAdapter] for a file of a size that r reads. It reads from r while weights are loaded.
func ReadAdapter(r io.ReaderAt, size int64) (*Adapter, error) {
	f, err := gguf.New(r, size)
	if err != nil {
		return nil, err
	}
	a, err := newAdapter(f)
	if err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	return a, nil
}

func newAdapter(f *gguf.File) (*Adapter, error) {
	engine, err := decoder.ReadAdapter(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Adapter{f, engine}, nil
}

// Close unmaps the file. Weights that were loaded do not need it. It is idempotent.
func (a *Adapter) Close() error { return a.file.Close() }

// WithAdapter adds an adapter to the weights, scaled: 1 as it was trained. Several are added to each other. The weights stay as they are
// in memory and on the device; each matrix that the adapter changes takes two small products more. Errors of [Model.Load] wrap
// [compute.ErrShape] for an adapter of another model, and [compute.ErrUnsupported] for one that changes the embedding of tokens.
func WithAdapter(a *Adapter, scale float32) LoadOption {
	return func(o *loadOptions) {
		if a == nil {
			o.err = fmt.Errorf("llm: nil adapter: %w", compute.ErrArgument)
			return
		}
		o.Adapters = append(o.Adapters, decoder.ScaledAdapter{Adapter: a.engine, Scale: scale})
	}
}
