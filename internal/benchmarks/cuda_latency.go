//go:build !js

package benchmarks

import (
	"context"
	"time"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/monotime"
)

// transfer is what copies between the host and the device are measured with.
type transfer struct {
	*clock
	bytes  int
	pinned *cuda.HostBuffer[byte]
	buffer *cuda.Buffer[byte]
	slice  []byte
}

func newTransfer(ctx context.Context, dev *wavelane.Device, c *cleanups) (*transfer, error) {
	k, err := newClock(dev, c)
	if err != nil {
		return nil, err
	}
	x := &transfer{clock: k, bytes: 256 * mega}
	if k.info.Software {
		x.bytes = mega
	}
	if x.pinned, err = cuda.AllocHost[byte](k.dev, x.bytes); err != nil {
		return nil, err
	}
	c.add(x.pinned.Close)
	if x.buffer, err = k.buffer(x.bytes); err != nil {
		return nil, err
	}
	x.slice = make([]byte, x.bytes)
	for i := range x.slice {
		x.slice[i] = byte(i * i >> 3)
	}
	copy(x.pinned.Slice(), x.slice)
	return x, x.buffer.Upload(ctx, x.slice)
}

// ways are a copy by pinned memory, on the GPU's clock, and one by a slice, on the host's.
func (x *transfer) ways(op string, record func(r *cuda.Recording) error, call func(ctx context.Context) error) []Way {
	work := float64(x.bytes) / 1e9
	return []Way{
		{Name: "pinned", Work: work, Clock: "gpu", peer: &Request{Op: op, Shapes: [][]int{{x.bytes / 4}}, DTypes: []string{"f32"}, Calls: 1},
			timed: func(ctx context.Context) (time.Duration, error) {
				t, _, err := x.run(ctx, record)
				return t, err
			}},
		{Name: "staged", Work: work, run: call},
	}
}

func uploads(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
	x, err := newTransfer(ctx, dev, c)
	if err != nil {
		return nil, err
	}
	return x.ways("upload", func(r *cuda.Recording) error { return cuda.CopyToDevice(r, x.buffer, x.pinned) },
		func(ctx context.Context) error { return x.buffer.Upload(ctx, x.slice) }), nil
}

func downloads(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
	x, err := newTransfer(ctx, dev, c)
	if err != nil {
		return nil, err
	}
	return x.ways("download", func(r *cuda.Recording) error { return cuda.CopyToHost(r, x.pinned, x.buffer) },
		func(ctx context.Context) error { return x.buffer.Download(ctx, x.slice) }), nil
}

// moves copies on the device, by the driver and by the catalogue's cheapest kernel with as many bytes.
func moves(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
	k, err := newClock(dev, c)
	if err != nil {
		return nil, err
	}
	n := 64 * mega
	if k.info.Software {
		n = 8 << 10
	}
	by, err := k.deviceCopy(ctx, 8*n)
	if err != nil {
		return nil, err
	}
	by.peer = &Request{Op: "copy", Shapes: [][]int{{n}}, DTypes: []string{"f32"}, Calls: by.calls}
	o, err := k.operation(ctx, measured{entry: catalogue.Neg, in: f32s([]int{n})}, "")
	if err != nil {
		return nil, err
	}
	kernel, err := k.captured(ctx, "kernel", float64(8*n)/1e9, o.capture)
	return []Way{by, kernel}, err
}

func launches(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
	k, err := newClock(dev, c)
	if err != nil {
		return nil, err
	}
	empty, err := k.empty()
	if err != nil {
		return nil, err
	}
	n := 500 // fewer than the driver queues before its calls wait
	if k.info.Software {
		n = 20
	}
	var calls time.Duration
	many := func(ctx context.Context) (onGPU time.Duration, err error) {
		onGPU, _, err = k.run(ctx, func(r *cuda.Recording) error {
			start := monotime.Now()
			defer func() { calls = monotime.Since(start) }()
			for range n {
				if err := r.Launch(empty, cuda.Launch{}); err != nil {
					return err
				}
			}
			return nil
		})
		return onGPU / time.Duration(n), err
	}
	return []Way{
		{Name: "the call", timed: func(ctx context.Context) (time.Duration, error) {
			_, err := many(ctx)
			return calls / time.Duration(n), err
		}},
		{Name: "back to back", Clock: "gpu", timed: many},
		{Name: "launched and awaited", run: func(ctx context.Context) error {
			_, _, err := k.run(ctx, func(r *cuda.Recording) error { return r.Launch(empty, cuda.Launch{}) })
			return err
		}},
	}, nil
}

// replays are ways to run n empty kernels.
func replays(n int) prepareFunc {
	return func(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
		k, err := newClock(dev, c)
		if err != nil {
			return nil, err
		}
		empty, err := k.empty()
		if err != nil {
			return nil, err
		}
		g, err := k.repeat(n, func(c *cuda.Capture) error {
			_, err := c.Launch(empty, cuda.Launch{})
			return err
		})
		if err != nil {
			return nil, err
		}
		replay := func(r *cuda.Recording) error { return r.Replay(g) }
		launch := func(r *cuda.Recording) error {
			for range n {
				if err := r.Launch(empty, cuda.Launch{}); err != nil {
					return err
				}
			}
			return nil
		}
		var ways []Way
		for _, w := range []struct {
			name   string
			record func(r *cuda.Recording) error
		}{{"graph", replay}, {"launches", launch}} {
			ways = append(ways,
				Way{Name: w.name, run: func(ctx context.Context) error {
					_, _, err := k.run(ctx, w.record)
					return err
				}},
				Way{Name: w.name + ", on the GPU", Clock: "gpu", timed: func(ctx context.Context) (time.Duration, error) {
					t, _, err := k.run(ctx, w.record)
					return t, err
				}})
		}
		return ways, nil
	}
}
