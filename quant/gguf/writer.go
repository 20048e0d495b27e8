package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
)

// Writer writes a GGUF file of version 3 as a stream: [Writer.Set] and [Writer.AddTensor] say what is in it, then the data of
// all tensors is written with [Writer.Write], one after the other in the order in which they were declared, and
// [Writer.Close] ends it. The writer adds what lies between them. It belongs to one goroutine.
type Writer struct {
	out       io.Writer
	alignment int64
	pairs     []byte
	keys      map[string]bool
	tensors   []*Tensor
	names     map[string]bool

	started bool
	current int   // the tensor that is being written
	done    int64 // bytes of it
	err     error
}

// NewWriter returns a writer to out. Nothing is written before the first Write or Close.
func NewWriter(out io.Writer) *Writer {
	return &Writer{out: out, alignment: defaultAlignment, keys: map[string]bool{}, names: map[string]bool{}}
}

// Set adds metadata, which keeps its order: a value of the Go type of a [Kind], or a slice of such values for an array; an
// array of arrays is a slice of any, and [Array] a copy from another file. The key general.alignment, a uint32, sets the
// alignment. Errors wrap [compute.ErrArgument] for keys that are empty, too long or there already, and [compute.ErrDType] for
// other types.
func (w *Writer) Set(key string, value any) error {
	switch {
	case w.started:
		return fmt.Errorf("gguf: metadata %q after the data has begun: %w", key, compute.ErrArgument)
	case key == "" || len(key) > maxName || w.keys[key]:
		return fmt.Errorf("gguf: metadata %.80q is empty, too long or there already: %w", key, compute.ErrArgument)
	}
	if key == alignmentKey {
		a, err := checkAlignment(value)
		if err != nil || len(w.tensors) > 0 {
			return fmt.Errorf("gguf: %s is %v; it is a uint32, a power of two, and comes before the tensors: %w",
				key, value, compute.ErrArgument)
		}
		w.alignment = a
	}
	pairs := appendString(w.pairs, key)
	pairs, err := appendValue(pairs, value)
	if err != nil {
		return fmt.Errorf("gguf: metadata %q: %w", key, err)
	}
	w.pairs, w.keys[key] = pairs, true
	return nil
}

// AddTensor declares the next tensor, of one to four axes in row-major order, as [Tensor.Shape] returns them.
// Errors wrap [compute.ErrArgument] for the name and [compute.ErrShape], [compute.ErrTooLarge]
// or [compute.ErrDType] for the rest.
func (w *Writer) AddTensor(name string, t quant.Type, shape ...int) error {
	switch {
	case w.started:
		return fmt.Errorf("gguf: tensor %q after the data has begun: %w", name, compute.ErrArgument)
	case len(name) > maxName || w.names[name]:
		return fmt.Errorf("gguf: the name of tensor %.80q is too long or there already: %w", name, compute.ErrArgument)
	case len(shape) == 0 || len(shape) > maxDims || slices.Min(shape) < 0:
		return fmt.Errorf("gguf: tensor %q with the shape %v: %w", name, shape, compute.ErrShape)
	}
	dims := reversed(shape)
	elements, size, err := sizes(t, dims)
	if err != nil {
		return fmt.Errorf("gguf: tensor %q with the shape %v: %w", name, shape, err)
	}
	at := int64(0)
	if n := len(w.tensors); n > 0 {
		at = pad(w.tensors[n-1].at+w.tensors[n-1].size, w.alignment)
	}
	declared := &Tensor{name: name, typ: t, dims: dims, elements: elements, size: size, at: at}
	w.tensors = append(w.tensors, declared)
	w.names[name] = true
	return nil
}

// Write writes the next bytes of tensor data; a call may hold part of a tensor, or several. More than was declared is an
// error that wraps [compute.ErrShape].
func (w *Writer) Write(p []byte) (int, error) {
	n := 0
	if err := w.begin(); err != nil {
		return 0, err
	}
	for len(p) > 0 {
		if w.current == len(w.tensors) {
			return n, fmt.Errorf("gguf: %d bytes more than the tensors have: %w", len(p), compute.ErrShape)
		}
		part := p[:min(int64(len(p)), w.tensors[w.current].size-w.done)]
		if err := w.put(part); err != nil {
			return n, err
		}
		n += len(part)
		p = p[len(part):]
		w.done += int64(len(part))
		if err := w.finish(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Close writes the header if nothing else was, and says whether all data has been written. It does not close the underlying
// writer.
func (w *Writer) Close() error {
	if err := w.begin(); err != nil {
		return err
	}
	if w.current < len(w.tensors) {
		t := w.tensors[w.current]
		return fmt.Errorf("gguf: %d of the %d bytes of tensor %q are missing, and %d tensors after it: %w",
			t.size-w.done, t.size, t.name, len(w.tensors)-w.current-1, compute.ErrShape)
	}
	return nil
}

// begin writes the header once.
func (w *Writer) begin() error {
	if w.started {
		return w.err
	}
	w.started = true
	b := binary.LittleEndian.AppendUint32([]byte(magic), version)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(w.tensors)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(w.keys)))
	b = append(b, w.pairs...)
	for _, t := range w.tensors {
		b = appendString(b, t.name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.dims)))
		for _, dim := range t.dims {
			b = binary.LittleEndian.AppendUint64(b, uint64(dim))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(t.typ))
		b = binary.LittleEndian.AppendUint64(b, uint64(t.at))
	}
	if len(w.tensors) > 0 {
		b = append(b, make([]byte, pad(int64(len(b)), w.alignment)-int64(len(b)))...)
	}
	if err := w.put(b); err != nil {
		return err
	}
	return w.finish()
}

// finish fills up after tensors that are complete, the empty ones among them.
func (w *Writer) finish() error {
	for w.current < len(w.tensors) && w.done == w.tensors[w.current].size {
		if err := w.put(make([]byte, pad(w.done, w.alignment)-w.done)); err != nil {
			return err
		}
		w.current++
		w.done = 0
	}
	return nil
}

// put writes, and remembers that it failed.
func (w *Writer) put(b []byte) error {
	if w.err == nil {
		if _, err := w.out.Write(b); err != nil {
			w.err = fmt.Errorf("gguf: %w", err)
		}
	}
	return w.err
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}
