//go:build onnx

package main

import (
	"bytes"
	"errors"
	"fmt"
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

// modelTensor reads an element type, a shape, and the next array, or an array for each string.
func (m *message) modelTensor() onnx.Tensor {
	t := onnx.Tensor{Type: onnx.ElementType(m.int()), Shape: m.shape()}
	switch t.Type {
	case onnx.Float32:
		t.Data = elements[float32](m)
	case onnx.Float64:
		t.Data = elements[float64](m)
	case onnx.Int8:
		t.Data = elements[int8](m)
	case onnx.Int16:
		t.Data = elements[int16](m)
	case onnx.Int32:
		t.Data = elements[int32](m)
	case onnx.Int64:
		t.Data = elements[int64](m)
	case onnx.Uint8:
		t.Data = elements[uint8](m)
	case onnx.Uint16:
		t.Data = elements[uint16](m)
	case onnx.Uint32:
		t.Data = elements[uint32](m)
	case onnx.Uint64:
		t.Data = elements[uint64](m)
	case onnx.Float16:
		t.Data = elements[compute.F16](m)
	case onnx.BFloat16:
		t.Data = elements[compute.BF16](m)
	case onnx.Bool:
		codes := elements[uint8](m)
		data := make([]bool, len(codes))
		for i, x := range codes {
			data[i] = x != 0
		}
		t.Data = data
	case onnx.String:
		data := make([]string, t.Len())
		for i := range data {
			data[i] = m.text()
		}
		t.Data = data
	default:
		m.fail(fmt.Errorf("elements of type %v: %w", t.Type, compute.ErrDType))
	}
	return t
}

// plain is elements whose bytes in Go are those in JavaScript.
type plain interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | compute.F16 | compute.BF16 | bool
}

// elements copies the next array.
func elements[E plain](m *message) []E {
	a := m.nextArray()
	if err := reserve(a.Length()); err != nil {
		m.fail(err)
		return nil
	}
	s := make([]E, a.Length()/int(unsafe.Sizeof(*new(E))))
	js.CopyBytesToGo(bytesOf(s), a)
	return s
}

func bytesOf[E plain](s []E) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(E))))
}

// modelResult is the bytes of a tensor's elements, or an array of strings.
func modelResult(t onnx.Tensor) any {
	switch data := t.Data.(type) {
	case []float32:
		return arrayOf(data)
	case []float64:
		return arrayOf(data)
	case []int8:
		return arrayOf(data)
	case []int16:
		return arrayOf(data)
	case []int32:
		return arrayOf(data)
	case []int64:
		return arrayOf(data)
	case []uint8:
		return arrayOf(data)
	case []uint16:
		return arrayOf(data)
	case []uint32:
		return arrayOf(data)
	case []uint64:
		return arrayOf(data)
	case []compute.F16:
		return arrayOf(data)
	case []compute.BF16:
		return arrayOf(data)
	case []bool:
		return arrayOf(data)
	}
	texts := t.Data.([]string)
	list := make([]any, len(texts))
	for i, s := range texts {
		list[i] = s
	}
	return list
}

func arrayOf[E plain](data []E) any {
	b := bytesOf(data)
	to := page.uint8Array.New(len(b))
	js.CopyBytesToJS(to, b)
	return to
}
