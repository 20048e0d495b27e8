package dist

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// AllReduceTensor returns the reduction of all members' tensors, which have the same shape, as a tensor on the group's device. Like the other calls on
// tensors it reads the operand back and uploads the result.
func (g *Group) AllReduceTensor(ctx context.Context, t compute.Tensor, r Reduction) (compute.Tensor, error) {
	shape, src, err := g.read(ctx, t)
	if err == nil {
		err = g.AllReduce(ctx, src, src, r)
	}
	return g.upload(ctx, "AllReduceTensor", src, shape, err)
}

// AllGatherTensor returns all members' tensors, which have the same shape, along the first dimension.
func (g *Group) AllGatherTensor(ctx context.Context, t compute.Tensor) (compute.Tensor, error) {
	shape, src, err := g.read(ctx, t)
	if err == nil && len(shape) == 0 {
		err = fmt.Errorf("scalar: %w", compute.ErrShape)
	}
	var dst any
	if err == nil {
		shape[0] *= g.Size()
		dst = program.MakeSlice(program.Type{DType: t.DType(), Shape: shape})
		err = g.AllGather(ctx, dst, src)
	}
	return g.upload(ctx, "AllGatherTensor", dst, shape, err)
}

// ReduceScatterTensor cuts all members' tensors along the first dimension, and returns the reduction of this member's parts.
func (g *Group) ReduceScatterTensor(ctx context.Context, t compute.Tensor, r Reduction) (compute.Tensor, error) {
	shape, src, err := g.read(ctx, t)
	if err == nil {
		err = g.divides(shape)
	}
	var dst any
	if err == nil {
		shape[0] /= g.Size()
		dst = program.MakeSlice(program.Type{DType: t.DType(), Shape: shape})
		err = g.ReduceScatter(ctx, dst, src, r)
	}
	return g.upload(ctx, "ReduceScatterTensor", dst, shape, err)
}

// AllToAllTensor exchanges parts along the first dimension, as [Group.AllToAll] does.
func (g *Group) AllToAllTensor(ctx context.Context, t compute.Tensor) (compute.Tensor, error) {
	shape, src, err := g.read(ctx, t)
	if err == nil {
		err = g.divides(shape)
	}
	if err == nil {
		err = g.AllToAll(ctx, src, src)
	}
	return g.upload(ctx, "AllToAllTensor", src, shape, err)
}

// BroadcastTensor returns root's tensor. Those of the others give type and shape.
func (g *Group) BroadcastTensor(ctx context.Context, t compute.Tensor, root int) (compute.Tensor, error) {
	shape, src, err := g.read(ctx, t)
	if err == nil {
		err = g.Broadcast(ctx, src, root)
	}
	return g.upload(ctx, "BroadcastTensor", src, shape, err)
}

func (g *Group) divides(shape []int) error {
	if len(shape) == 0 || shape[0]%g.Size() != 0 {
		return fmt.Errorf("shape %v for %d members: %w", shape, g.Size(), compute.ErrShape)
	}
	return nil
}

func (g *Group) read(ctx context.Context, t compute.Tensor) (shape []int, data any, err error) {
	switch {
	case g.device == nil:
		return nil, nil, fmt.Errorf("a group without a device, see WithDevice: %w", compute.ErrArgument)
	case t == nil:
		return nil, nil, fmt.Errorf("nil tensor: %w", compute.ErrArgument)
	}
	if err := compute.CheckContext(ctx); err != nil {
		return nil, nil, err
	}
	shape = t.Shape()
	data = program.MakeSlice(program.Type{DType: t.DType(), Shape: shape})
	return shape, data, t.ReadAsync(data).AwaitOrAbandon(ctx)
}

func (g *Group) upload(ctx context.Context, call string, data any, shape []int, err error) (compute.Tensor, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call, err)
	}
	t, f := device.Upload(ctx, program.ExecutorOf(g.device), data, shape...)
	if err := f.AwaitOrAbandon(ctx); err != nil {
		if t != nil {
			t.Close()
		}
		return nil, fmt.Errorf("%s: %w", call, err)
	}
	return t, nil
}
