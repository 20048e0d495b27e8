package cuda

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx/args"
)

// TestArgumentsOfALaunch: arguments that are in the wrong place or of a closed buffer are refused, not ignored.
func TestArgumentsOfALaunch(t *testing.T) {
	c := newCore(t)
	s, b := c.stream(StreamOptions{}), c.numbers(1, 2, 3)
	l := over(3)
	l.Args = []Arg{args.U32(1)}
	r := begun(t, s)
	err := r.Launch(c.scale, l, scaleArgs(b, b, 2, 0)...)
	require.ErrorIs(t, err, compute.ErrArgument)
	require.ErrorContains(t, err, "Launch.Args")
	_, again := r.Submit()
	require.Equal(t, err, again)
	_, err = s.Capture(func(k *Capture) error {
		_, err := k.Launch(c.scale, l, scaleArgs(b, b, 2, 0)...)
		return err
	})
	require.ErrorIs(t, err, compute.ErrArgument)

	closed := c.numbers(1, 2, 3)
	require.NoError(t, closed.Close())
	r = begun(t, s)
	err = r.Launch(c.scale, over(3), scaleArgs(closed, b, 2, 0)...)
	require.ErrorIs(t, err, compute.ErrClosed)
	require.ErrorContains(t, err, "kernel scale: argument 0, of a closed buffer, is given for ")
	_, err = r.Submit()
	require.ErrorIs(t, err, compute.ErrClosed)
	require.Equal(t, []float32{1, 2, 3}, c.read(b))
}

// TestOperandBelowZero: the error of a step does not show how operands are numbered inside.
func TestOperandBelowZero(t *testing.T) {
	c := newCore(t)
	l := over(1)
	l.Args = append([]Arg{Result(), Operand(-7)}, scaleArgs(nil, c.numbers(1), 1, 1)[2:]...)
	require.ErrorContains(t, c.scale.check(nil, program.Type{}, program.Attr{Options: l}), "argument 1 is an operand below 0")
}

// TestNothing: what is nil is an error where it is given, and nothing to close.
func TestNothing(t *testing.T) {
	c := newCore(t)
	b := c.numbers(1)
	h, err := AllocHost[float32](c.Device, 1)
	require.NoError(t, err)
	for _, r := range []Recorder{nil, (*Recording)(nil), (*Capture)(nil)} {
		for _, err := range []error{CopyToDevice(r, b, h), CopyToHost(r, h, b), CopyOnDevice(r, b, b), Fill(r, b, 1)} {
			require.ErrorIs(t, err, compute.ErrArgument)
			require.ErrorContains(t, err, "nil recording")
		}
	}
	require.ErrorIs(t, CopyPeer(nil, b, b), compute.ErrArgument)
	require.ErrorIs(t, Fill(&Recording{}, b, 1), compute.ErrClosed)
	_, err = c.stream(StreamOptions{}).Capture(nil)
	require.ErrorIs(t, err, compute.ErrArgument)

	var none *Buffer[float32]
	var noneHost *HostBuffer[float32]
	require.NoError(t, none.Close())
	require.NoError(t, noneHost.Close())
	require.Equal(t, Arg{}, none.Arg())
	require.ErrorIs(t, none.Upload(context.Background(), nil), compute.ErrArgument)
}

// TestPeerCopyOverlaps: two buffers of one GPU may be copied as if they were of two, but not over each other.
func TestPeerCopyOverlaps(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	d, same := m.device(t), m.device(t)
	b, err := Alloc[int64](d, 30)
	require.NoError(t, err)
	part := func(from, to int) *Buffer[int64] {
		x, err := b.Slice(from, to)
		require.NoError(t, err)
		return x
	}
	other, err := Alloc[int64](same, 20)
	require.NoError(t, err)
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	for _, c := range []struct {
		dst, src *Buffer[int64]
		err      error
	}{{part(0, 20), part(10, 30), compute.ErrArgument}, {part(10, 30), part(10, 30), compute.ErrArgument},
		{part(0, 15), part(15, 30), nil}, {part(0, 20), other, nil}} {
		r := begun(t, s)
		require.ErrorIs(t, CopyPeer(r, c.dst, c.src), c.err)
		_, err := r.Submit()
		require.ErrorIs(t, err, c.err)
	}
}

// TestNoSuchGPU: the error says which there are.
func TestNoSuchGPU(t *testing.T) {
	_, err := Open(context.Background(), WithSoftware(), WithDevice(7))
	require.ErrorIs(t, err, compute.ErrUnavailable)
	require.ErrorContains(t, err, "device 7: ")
	require.ErrorContains(t, err, "the driver knows 1, counted from 0")
}

// TestNotWhileCapturing: the error says why.
func TestNotWhileCapturing(t *testing.T) {
	c := newCore(t)
	_, err := c.stream(StreamOptions{}).Capture(func(*Capture) error {
		_, err := Alloc[byte](c.Device, 1<<22)
		return err
	})
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.ErrorContains(t, err, "not while a stream captures")
}
