package safetensors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"unicode/utf8"

	"github.com/wavelane/wavelane/compute"
)

const metadataKey = "__metadata__"

// Writer writes a file as a stream: [Writer.Set] and [Writer.AddTensor] say what is in it, then the data of all tensors is written
// with [Writer.Write], little-endian, one after the other in the order in which they were declared, and [Writer.Close] ends it. It
// belongs to one goroutine.
type Writer struct {
	out      io.Writer
	metadata map[string]string
	tensors  bytes.Buffer // their part of the header
	names    map[string]bool

	started     bool
	size, wrote int64 // bytes of data
	err         error
}

// NewWriter returns a writer to out. Nothing is written before the first Write or Close.
func NewWriter(out io.Writer) *Writer {
	return &Writer{out: out, metadata: map[string]string{}, names: map[string]bool{}}
}

// WriteFile writes a file: write says what is in it. It is written under another name in the same folder and renamed when all of it is on
// the disk. So a file of that name, if there is one, is replaced as a whole or not at all, even if the machine stops meanwhile: what
// that leaves ends in ".tmp".
func WriteFile(name string, write func(w *Writer) error) error {
	f, err := os.OpenFile(fmt.Sprintf("%s.%016x.tmp", name, rand.Uint64()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	if err = errors.Join(writeTo(f, write), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("safetensors: %s: %w", name, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

func writeTo(f *os.File, write func(w *Writer) error) error {
	buffered := bufio.NewWriterSize(f, 1<<20)
	w := NewWriter(buffered)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// Set adds a text to the metadata. The error wraps [compute.ErrArgument] for a key that is there already, and for what is not UTF-8.
func (w *Writer) Set(key, value string) error {
	_, double := w.metadata[key]
	switch {
	case w.started:
		return fmt.Errorf("safetensors: metadata %q after the data has begun: %w", key, compute.ErrArgument)
	case double || !utf8.ValidString(key) || !utf8.ValidString(value):
		return fmt.Errorf("safetensors: metadata %.80q is there already or not UTF-8: %w", key, compute.ErrArgument)
	}
	w.metadata[key] = value
	return nil
}

// AddTensor declares the next tensor. The type is named as in the file, such as BF16. Data is aligned where tensors of wide elements
// come first. Errors wrap [compute.ErrArgument] for the name and [compute.ErrDType] or [compute.ErrShape] for the rest.
func (w *Writer) AddTensor(name, dtype string, shape ...int) error {
	width, ok := widths[dtype]
	switch {
	case w.started:
		return fmt.Errorf("safetensors: tensor %q after the data has begun: %w", name, compute.ErrArgument)
	case name == metadataKey || w.names[name] || !utf8.ValidString(name):
		return fmt.Errorf("safetensors: the name of tensor %.80q is there already, that of the metadata or not UTF-8: %w", name, compute.ErrArgument)
	case !ok:
		return fmt.Errorf("safetensors: tensor %q with elements of type %q: %w", name, dtype, compute.ErrDType)
	}
	size := width
	for _, dim := range shape {
		if dim < 0 || size != 0 && int64(dim) > math.MaxInt/size {
			return fmt.Errorf("safetensors: tensor %q with the shape %v: %w", name, shape, compute.ErrShape)
		}
		size *= int64(dim)
	}
	if size > math.MaxInt64-w.size {
		return fmt.Errorf("safetensors: tensor %q with the shape %v: %w", name, shape, compute.ErrTooLarge)
	}
	w.member(name, struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}{dtype, append([]int{}, shape...), [2]int64{w.size, w.size + size}})
	w.names[name] = true
	w.size += size
	return nil
}

// member adds a member of the header's object. Maps would not keep the order.
func (w *Writer) member(name string, value any) {
	if w.tensors.Len() > 0 {
		w.tensors.WriteByte(',')
	}
	appendJSON(&w.tensors, name)
	w.tensors.WriteByte(':')
	appendJSON(&w.tensors, value)
}

// appendJSON writes values that cannot fail.
func appendJSON(out *bytes.Buffer, value any) {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.Encode(value)
	out.Truncate(out.Len() - 1) // the line's end
}

// Write writes the next bytes of tensor data; a call may hold part of a tensor, or several. More than was declared is an error
// that wraps [compute.ErrShape].
func (w *Writer) Write(p []byte) (int, error) {
	if err := w.begin(); err != nil {
		return 0, err
	}
	fits := p[:min(int64(len(p)), w.size-w.wrote)]
	n := w.put(fits)
	w.wrote += int64(n)
	if w.err == nil && n < len(p) {
		return n, fmt.Errorf("safetensors: %d bytes more than the tensors have: %w", len(p)-n, compute.ErrShape)
	}
	return n, w.err
}

// Close writes the header if nothing else was, and says whether all data has been written. It does not close the underlying writer.
func (w *Writer) Close() error {
	if err := w.begin(); err != nil {
		return err
	}
	if w.wrote < w.size {
		return fmt.Errorf("safetensors: %d of %d bytes of data are missing: %w", w.size-w.wrote, w.size, compute.ErrShape)
	}
	return nil
}

// begin writes the header once. Spaces after it align the data to eight bytes.
func (w *Writer) begin() error {
	if w.started {
		return w.err
	}
	w.started = true
	header := bytes.NewBuffer(append(make([]byte, 8), '{'))
	if len(w.metadata) > 0 {
		appendJSON(header, metadataKey)
		header.WriteByte(':')
		appendJSON(header, w.metadata)
		if w.tensors.Len() > 0 {
			header.WriteByte(',')
		}
	}
	header.Write(w.tensors.Bytes())
	header.WriteByte('}')
	for header.Len()%8 != 0 {
		header.WriteByte(' ')
	}
	n := header.Len() - 8
	if n > maxHeader {
		w.err = fmt.Errorf("safetensors: a header of %d bytes; at most %d are read: %w", n, maxHeader, compute.ErrTooLarge)
		return w.err
	}
	binary.LittleEndian.PutUint64(header.Bytes(), uint64(n))
	w.put(header.Bytes())
	return w.err
}

// put writes, and remembers that it failed.
func (w *Writer) put(b []byte) (n int) {
	if w.err == nil {
		var err error
		if n, err = w.out.Write(b); err != nil {
			w.err = fmt.Errorf("safetensors: %w", err)
		}
	}
	return n
}
