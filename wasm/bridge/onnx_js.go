//go:build onnx

package main

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"syscall/js"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx"
)

// models are the further calls of the program for ONNX models.
var models = []func(c *call, m *message, extra js.Value){(*call).openModel, (*call).runModel}

// session is a model on a device.
type session struct {
	*onnx.Session
	model  *onnx.Model
	device *opened
}

func (s *session) owner() *opened { return s.device }

// openModel reads a model and resolves to its session, its inputs and its outputs.
func (c *call) openModel(m *message, _ js.Value) {
	d, err := held[*opened](m.int())
	shapes, file := m.int(), m.nextArray()
	if err == nil {
		err = m.err
	}
	if err == nil {
		err = reserve(2 * file.Length())
	}
	if err != nil {
		c.reject(err)
		return
	}
	data := make([]byte, file.Length())
	js.CopyBytesToGo(data, file)
	go func() {
		defer c.guard()
		model, err := onnx.Read(bytes.NewReader(data))
		if errors.Is(err, onnx.ErrFormat) {
			err = fmt.Errorf("%w: %w", err, compute.ErrArgument)
		}
		if err != nil {
			c.reject(err)
			return
		}
		s, err := model.Session(c.ctx, d.executor.(onnx.Device), onnx.WithShapes(shapes))
		if err != nil {
			c.reject(err)
			return
		}
		c.resolve(hold(&session{s, model, d}), describeValues(model.Inputs()), describeValues(model.Outputs()))
	}()
}

// describeValues is in the form of ValueInfo in onnx.d.ts.
func describeValues(values []onnx.Value) any {
	list := make([]any, len(values))
	for i, v := range values {
		var shape any
		if v.Shape != nil {
			dims := make([]any, len(v.Shape))
			for k, d := range v.Shape {
				if d.Size >= 0 {
					dims[k] = d.Size
				} else {
					dims[k] = d.Name
				}
			}
			shape = dims
		}
		list[i] = map[string]any{"name": v.Name, "type": v.Type.String(), "shape": shape, "optional": v.Optional}
	}
	return list
}

// runModel resolves to the outputs: name, element type, shape, and data each.
func (c *call) runModel(m *message, _ js.Value) {
	s, err := held[*session](m.int())
	if err != nil {
		c.reject(err)
		return
	}
	in := map[string]onnx.Tensor{}
	for n := m.int(); n > 0 && m.err == nil; n-- {
		name := m.text()
		in[name] = m.modelTensor()
	}
	if m.err != nil {
		c.reject(m.err)
		return
	}
	go func() {
		defer c.guard()
		out, err := s.Run(c.ctx, in)
		if err != nil {
			c.reject(err)
			return
		}
		results := make([]any, 0, len(out))
		for _, v := range s.model.Outputs() {
			t, given := out[v.Name]
			if !given {
				continue
			}
			shape := make([]any, len(t.Shape))
			for i, n := range t.Shape {
				shape[i] = n
			}
			results = append(results, []any{v.Name, int(t.Type), shape, modelResult(t)})
		}
		c.resolve(results...)
	}()
}

// sliceTypes are those of element types whose bytes in Go are those in JavaScript, and those of bool, which are 0 or 1.
var sliceTypes = map[onnx.ElementType]reflect.Type{
	onnx.Float32: reflect.TypeFor[[]float32](), onnx.Float64: reflect.TypeFor[[]float64](), onnx.Float16: reflect.TypeFor[[]compute.F16](),
	onnx.BFloat16: reflect.TypeFor[[]compute.BF16](), onnx.Int8: reflect.TypeFor[[]int8](), onnx.Int16: reflect.TypeFor[[]int16](),
	onnx.Int32: reflect.TypeFor[[]int32](), onnx.Int64: reflect.TypeFor[[]int64](), onnx.Uint8: reflect.TypeFor[[]uint8](),
	onnx.Uint16: reflect.TypeFor[[]uint16](), onnx.Uint32: reflect.TypeFor[[]uint32](), onnx.Uint64: reflect.TypeFor[[]uint64](),
	onnx.Bool: reflect.TypeFor[[]bool](),
}

// modelTensor reads an element type, a shape, and the next array, or an array for each string.
func (m *message) modelTensor() onnx.Tensor {
	t := onnx.Tensor{Type: onnx.ElementType(m.int()), Shape: m.shape()}
	if t.Type == onnx.String {
		data := make([]string, t.Len())
		for i := range data {
			data[i] = m.text()
		}
		t.Data = data
		return t
	}
	of, known := sliceTypes[t.Type]
	if !known {
		m.fail(fmt.Errorf("elements of type %v: %w", t.Type, compute.ErrDType))
		return t
	}
	a := m.nextArray()
	if err := reserve(a.Length()); err != nil {
		m.fail(err)
		return t
	}
	n := a.Length() / int(of.Elem().Size())
	data := reflect.MakeSlice(of, n, n)
	b := bytesOf(data)
	js.CopyBytesToGo(b, a)
	if t.Type == onnx.Bool {
		for i, x := range b {
			b[i] = min(x, 1)
		}
	}
	t.Data = data.Interface()
	return t
}

// bytesOf is the memory of a slice.
func bytesOf(slice reflect.Value) []byte {
	return unsafe.Slice((*byte)(slice.UnsafePointer()), slice.Len()*int(slice.Type().Elem().Size()))
}

// modelResult is the bytes of a tensor's elements, or an array of strings.
func modelResult(t onnx.Tensor) any {
	if texts, ok := t.Data.([]string); ok {
		list := make([]any, len(texts))
		for i, s := range texts {
			list[i] = s
		}
		return list
	}
	b := bytesOf(reflect.ValueOf(t.Data))
	to := page.uint8Array.New(len(b))
	js.CopyBytesToJS(to, b)
	return to
}
