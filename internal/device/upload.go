package device

import (
	"context"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Upload makes a tensor of a slice on a device: a program without steps whose input is kept. Without a shape the tensor is a
// vector. It can be used at once, in work that will run after the copy. The tensor is nil if the upload did not begin; the
// future says why, and when the slice is the caller's again. It does not wait for the device longer than until ctx ends.
func Upload(ctx context.Context, d program.Executor, data any, shape ...int) (compute.Tensor, *compute.Future) {
	p, err := uploadProgram(data, shape)
	if err != nil {
		return nil, compute.Failed(fmt.Errorf("upload: %w", err))
	}
	io := &program.IO{Host: []any{data}, Keep: make([]compute.Tensor, 1)}
	f, err := Start(ctx, d, p, io)
	if err != nil {
		return nil, compute.Failed(fmt.Errorf("upload: %w", err))
	}
	return io.Keep[0], f
}

func uploadProgram(data any, shape []int) (*program.Program, error) {
	d, n, err := program.TypeOf(data)
	if err != nil {
		return nil, err
	}
	if shape == nil { // an empty one is that of a scalar
		shape = []int{n}
	}
	t := program.Type{DType: d, Shape: slices.Clone(shape)}
	if err := t.Check(); err != nil {
		return nil, err
	}
	if err := program.CheckSlice(data, t); err != nil {
		return nil, err
	}
	p := &program.Program{}
	p.Keep = []program.Slot{p.Add(t, program.FromHost)}
	return p, nil
}
