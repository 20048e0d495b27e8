package main

import (
	"fmt"
	"syscall/js"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu"
)

// adoptBuffer makes a tensor of a GPUBuffer, which stands among the arrays.
func adoptBuffer(m *message) (any, error) {
	handle, dtype, offset, shape, buffer := m.int(), m.dtype(), m.int(), m.shape(), m.nextArray()
	d, err := received(handle, m)
	if err != nil {
		return nil, err
	}
	if d.gpu == nil {
		return nil, fmt.Errorf("adopt a buffer: the CPU device has none: %w", compute.ErrUnsupported)
	}
	if offset < 0 {
		return nil, fmt.Errorf("adopt a buffer: offset %d: %w", offset, compute.ErrArgument)
	}
	t, err := d.gpu.ImportBuffer(buffer, uint64(offset), dtype, shape...)
	if err != nil {
		return nil, err
	}
	return js.ValueOf(tensorResult(d, t)), nil
}

// bufferOf returns buffer, offset and size.
func bufferOf(m *message) (any, error) {
	t, err := held[*tensor](m.int())
	if err != nil {
		return nil, err
	}
	x, ok := t.Tensor.(*gpu.Tensor)
	if !ok {
		return nil, fmt.Errorf("tensor %v: the CPU device has no buffers: %w", t.Shape(), compute.ErrUnsupported)
	}
	buffer, offset, size, err := x.GPUBuffer()
	if err != nil {
		return nil, err
	}
	return js.ValueOf([]any{buffer, offset, size}), nil
}

func gpuDevice(m *message) (any, error) {
	d, err := held[*opened](m.int())
	if err != nil || d.gpu == nil {
		return nil, err
	}
	return d.gpu.GPUDevice(), nil
}
