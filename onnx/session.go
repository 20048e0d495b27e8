package onnx

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/exec"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// Device is a device of this module.
type Device interface {
	batch.Device
	UploadAsync(data any, shape ...int) (compute.Tensor, *compute.Future)
}

// Session is a model on a device.
type Session struct {
	model *Model
	exec  *exec.Session
	names map[string]int
}

// Option is an option of a session.
type Option func(*options)

type options struct {
	shapes int
	batch  []batch.Option
}

// defaultShapes is how many sets of input shapes a session keeps compiled.
const defaultShapes = 16

// WithShapes sets how many sets of input shapes a session keeps compiled, 16 by default: of more, the one not used for longest is compiled
// again. It also bounds the outcomes of conditions that are kept for each.
func WithShapes(n int) Option { return func(o *options) { o.shapes = n } }

// WithBatch gives options to the batches that the session records, such as batch.WithoutFusion.
func WithBatch(opts ...batch.Option) Option {
	return func(o *options) { o.batch = append(o.batch, opts...) }
}

// Session prepares the model for a device, which must be open while the session is used. It fails with a [LackError] if the model needs
// what is not there.
func (m *Model) Session(ctx context.Context, dev Device, opts ...Option) (*Session, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	if dev == nil {
		return nil, fmt.Errorf("nil device: %w", compute.ErrArgument)
	}
	o := options{shapes: defaultShapes}
	for _, f := range opts {
		if f == nil {
			return nil, fmt.Errorf("nil option: %w", compute.ErrArgument)
		}
		f(&o)
	}
	if o.shapes < 1 {
		return nil, fmt.Errorf("%d sets of shapes: %w", o.shapes, compute.ErrArgument)
	}
	if len(m.program.Lacks) > 0 {
		return nil, &LackError{m.Lacks()}
	}
	s := &Session{model: m, names: map[string]int{}, exec: exec.NewSession(m.program, dev, dev, o.shapes, o.batch...)}
	for i, v := range m.inputs {
		s.names[v.Name] = i
	}
	return s, nil
}

// Run executes the model and returns its outputs by name; outputs that are absent optionals are left out. Inputs are checked against what the model
// says of their types and shapes. The slices are not used after Run has returned without an error; when ctx ends first they may still be read.
//
// Errors of operators name the node.
func (s *Session) Run(ctx context.Context, inputs map[string]Tensor) (map[string]Tensor, error) {
	in := make([]*host.Tensor, len(s.model.inputs))
	for name, t := range inputs {
		i, ok := s.names[name]
		if !ok {
			return nil, fmt.Errorf("the model has no input %q, but %s: %w", name, s.inputNames(), compute.ErrArgument)
		}
		x, err := t.internal()
		if err == nil {
			err = s.model.inputs[i].accepts(t)
		}
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", name, err)
		}
		in[i] = x
	}
	var missing []string
	for i, v := range s.model.inputs {
		if in[i] == nil && !v.Optional {
			missing = append(missing, fmt.Sprintf("%q", v.Name))
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("inputs %s are not given: %w", strings.Join(missing, ", "), compute.ErrArgument)
	}
	out, err := s.exec.Run(ctx, in)
	if err != nil {
		return nil, err
	}
	results := map[string]Tensor{}
	for i, v := range s.model.outputs {
		if out[i] != nil {
			results[v.Name] = external(out[i])
		}
	}
	return results, nil
}

func (s *Session) inputNames() string {
	var names []string
	for n := range s.names {
		names = append(names, fmt.Sprintf("%q", n))
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}

// accepts checks a tensor against what the model says.
func (v Value) accepts(t Tensor) error {
	if v.Type != Undefined && v.Type != t.Type {
		return fmt.Errorf("elements are %v, the model takes %v: %w", t.Type, v.Type, compute.ErrDType)
	}
	if v.Shape == nil {
		return nil
	}
	wrong := len(t.Shape) != len(v.Shape)
	for i := 0; !wrong && i < len(v.Shape); i++ {
		wrong = v.Shape[i].Size > 0 && v.Shape[i].Size != t.Shape[i] // some exporters write 0 for what is not known
	}
	if wrong {
		return fmt.Errorf("shape %v, the model takes %v: %w", t.Shape, v.Shape, compute.ErrShape)
	}
	return nil
}

// Close gives back what the session holds on its device. It may be called again.
func (s *Session) Close() error { return s.exec.Close() }

// Memory returns the bytes of weights on the device, and the most that a stage of the compiled plans needs beside them.
func (s *Session) Memory() (weights, peak int) { return s.exec.Memory() }

// Work returns what a call with the shapes of the latest one takes of the device.
func (s *Session) Work() batch.Work { return s.exec.Work() }

// Profiles returns the latest profiles of the stages that the device has run for the shapes of the latest call, in order. The session must have
// been made with WithBatch(batch.WithProfile()).
func (s *Session) Profiles() ([]*batch.Profile, error) { return s.exec.Profiles() }

// String lists what has been compiled: for each set of shapes the steps of the device and the operators of the host, in order.
func (s *Session) String() string { return s.exec.String() }

// Sizes returns a copy of the dimensions as numbers, -1 for those that are not known.
func (v Value) Sizes() []int {
	if v.Shape == nil {
		return nil
	}
	out := make([]int, len(v.Shape))
	for i, d := range v.Shape {
		out[i] = d.Size
	}
	return slices.Clip(out)
}
