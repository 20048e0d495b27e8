package onnx

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/mapped"
	"github.com/wavelane/wavelane/onnx/internal/exec"
	"github.com/wavelane/wavelane/onnx/internal/format"
	"github.com/wavelane/wavelane/onnx/internal/host"
	"github.com/wavelane/wavelane/onnx/internal/symbolic"
)

// ErrFormat says that a file is no model, or a broken one.
var ErrFormat = format.ErrFormat

// LackError lists what a model needs and this package does not have, a line for each with the node's name. It is
// compute.ErrUnsupported.
type LackError struct{ Lacks []string }

func (e *LackError) Error() string { return (&exec.LackError{Lacks: e.Lacks}).Error() }

// Unwrap returns compute.ErrUnsupported.
func (e *LackError) Unwrap() error { return compute.ErrUnsupported }

// Model is a model as it is in a file. It is not changed by running it.
type Model struct {
	file    *format.Model
	program *exec.Program
	inputs  []Value
	outputs []Value
	bytes   int64

	mu     sync.Mutex
	source *mapped.Source // nil if the model was read
	data   map[string]*mapped.Source
	folder string
	closed bool
}

// Value is an input or an output of a model.
type Value struct {
	Name     string
	Type     ElementType // Undefined for what is no tensor
	Shape    []Dim       // nil if the model does not say it
	Optional bool        // the model has a value for it
	kind     format.TypeKind
}

// Dim is a dimension: a number, or −1 with the name that the model gives it, if any.
type Dim struct {
	Size int
	Name string
}

func (d Dim) String() string {
	switch {
	case d.Size >= 0:
		return fmt.Sprint(d.Size)
	case d.Name != "":
		return d.Name
	}
	return "?"
}

// Open reads a model file. Its external data is found below the file's folder.
func Open(path string) (*Model, error) {
	source, err := mapped.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := source.Bytes(0, source.Size())
	if err != nil {
		source.Close()
		return nil, err
	}
	m := &Model{source: source, folder: filepath.Dir(path), data: map[string]*mapped.Source{}}
	if err := m.decode(data, m.external); err != nil {
		m.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// mostRead bounds the bytes of Read: a file of protocol buffers has at most 2 GiB.
const mostRead = 1 << 31

// Read reads a model, which must not have external data.
func Read(r io.Reader) (*Model, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostRead+1))
	if err != nil {
		return nil, err
	}
	if len(data) > mostRead {
		return nil, fmt.Errorf("more than %d bytes: %w", mostRead, ErrFormat)
	}
	m := &Model{}
	if err := m.decode(data, nil); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Model) decode(data []byte, files exec.Files) error {
	m.bytes = int64(len(data))
	var err error
	if m.file, err = format.Decode(data); err != nil {
		return err
	}
	if m.program, err = exec.Prepare(m.file, files); err != nil {
		return err
	}
	for _, v := range m.file.Graph.Inputs {
		_, given := m.program.Main.Weights[v.Name]
		x := valueOf(v)
		x.Optional = given
		m.inputs = append(m.inputs, x)
	}
	for _, v := range m.file.Graph.Outputs {
		m.outputs = append(m.outputs, valueOf(v))
	}
	return nil
}

func valueOf(v format.Value) Value {
	x := Value{Name: v.Name}
	if v.Type == nil || v.Type.Kind != format.TensorType {
		return x
	}
	x.kind = v.Type.Kind
	x.Type = ElementType(v.Type.Elem)
	if v.Type.HasShape {
		x.Shape = []Dim{}
	}
	for _, d := range v.Type.Shape {
		dim := Dim{-1, d.Name}
		if d.Known && d.Size <= host.Most {
			dim.Size = int(d.Size)
		}
		x.Shape = append(x.Shape, dim)
	}
	return x
}

// external reads bytes of a file beside the model.
func (m *Model) external(location string, offset, length int64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.data[location]
	if s == nil {
		var err error
		if s, err = mapped.Open(filepath.Join(m.folder, filepath.FromSlash(location))); err != nil {
			return nil, err
		}
		m.data[location] = s
	}
	b, err := s.Bytes(offset, length)
	if err != nil {
		return nil, fmt.Errorf("external data %q: %w", location, err)
	}
	return b, nil
}

// Inputs lists the inputs, in the model's order.
func (m *Model) Inputs() []Value { return slices.Clone(m.inputs) }

// Outputs lists the outputs, in the model's order.
func (m *Model) Outputs() []Value { return slices.Clone(m.outputs) }

// InferOutputs lists the outputs of a model with the shapes that follow from those of the inputs, in the model's order. A dimension that depends on one of
// the inputs has Size −1, and its Name is a sum of products of the names of the inputs' dimensions, such as "2*height + 1" or
// "floor((height + 31)/32)"; input dimensions without a name are called by input and axis, "x[2]". Axes that are cut are taken to be long enough for it. What does not
// follow, because it depends on data or is too long, is as in [Model.Outputs]; where that has a number, the number stays.
//
// It is a function, so that programs that do not call it do not contain it.
func InferOutputs(m *Model) []Value {
	in := make([][]*symbolic.Int, len(m.inputs))
	for i, v := range m.inputs {
		if v.Shape != nil {
			in[i] = []*symbolic.Int{}
		}
		for d, n := range v.Shape {
			switch {
			case n.Size >= 0:
				in[i] = append(in[i], symbolic.Of(int64(n.Size)))
			case n.Name != "":
				in[i] = append(in[i], symbolic.Named(n.Name))
			default:
				in[i] = append(in[i], symbolic.Named(fmt.Sprintf("%s[%d]", v.Name, d)))
			}
		}
	}
	out := m.Outputs()
	for i, shape := range exec.Infer(m.program, in) {
		v := &out[i]
		if v.Type == Undefined || shape == nil || v.Shape != nil && len(v.Shape) != len(shape) {
			continue
		}
		dims := make([]Dim, len(shape))
		for d, n := range shape {
			said := Dim{Size: -1}
			if v.Shape != nil {
				said = v.Shape[d]
			}
			size, number := n.Number()
			switch {
			case number && 0 <= size && size <= host.Most:
				dims[d] = Dim{Size: int(size)}
			case number || n == nil || said.Size >= 0:
				dims[d] = said
			default:
				dims[d] = Dim{-1, n.String()}
			}
		}
		v.Shape = dims
	}
	return out
}

// Opsets returns the version of each domain's operators that the model uses; the domain of ONNX itself is "".
func (m *Model) Opsets() map[string]int64 { return maps.Clone(m.file.Opsets) }

// Metadata returns what the file says about itself.
func (m *Model) Metadata() map[string]string { return maps.Clone(m.file.Metadata) }

// Producer names the program that wrote the file, and its version.
func (m *Model) Producer() string {
	if m.file.Version == "" {
		return m.file.Producer
	}
	return m.file.Producer + " " + m.file.Version
}

// Lacks lists what the model needs and this package does not have, see [LackError].
func (m *Model) Lacks() []string { return slices.Clone(m.program.Lacks) }

// Operators counts the nodes of each operator, those in graphs of other nodes and in functions included. Names of other domains than
// ONNX's own begin with the domain and a colon.
func (m *Model) Operators() map[string]int {
	counts := map[string]int{}
	m.program.Main.Count(counts)
	return counts
}

// Parameters returns the number of elements of the model's weights, and their bytes.
func (m *Model) Parameters() (elements, bytes int) { return m.program.Main.Parameters() }

// Close ends the mappings of files. Sessions have to be closed before. It may be called again.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	var errs []error
	for _, s := range m.data {
		errs = append(errs, s.Close())
	}
	if m.source != nil {
		errs = append(errs, m.source.Close())
	}
	return errors.Join(errs...)
}
