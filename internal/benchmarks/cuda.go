//go:build !js

package benchmarks

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/internal/monotime"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/ir"
)

// clock measures by the events of a timed stream: the GPU's time, without what the host adds.
type clock struct {
	dev     *cuda.Device
	stream  *cuda.Stream
	info    cuda.Info
	caps    kit.Caps
	clean   *cleanups
	modules map[string]*cuda.Module
}

func newClock(dev *wavelane.Device, c *cleanups) (*clock, error) {
	d, ok := dev.Unwrap().(*cuda.Device)
	if !ok {
		return nil, fmt.Errorf("%s is no CUDA device: %w", dev.Info().Name, compute.ErrUnsupported)
	}
	s, err := d.NewStream(cuda.StreamOptions{Timed: true})
	if err != nil {
		return nil, err
	}
	c.add(s.Close)
	i := d.Info()
	caps := kit.Caps{Multiprocessors: i.Multiprocessors, Target: i.CodeTarget()}
	for axis, n := range i.MaxGrid {
		caps.MaxGrid[axis] = uint32(n)
	}
	return &clock{dev: d, stream: s, info: i, caps: caps, clean: c, modules: map[string]*cuda.Module{}}, nil
}

// run gives work to the stream and waits: what the GPU took, and the whole by the host's clock.
func (k *clock) run(ctx context.Context, f func(r *cuda.Recording) error) (onGPU, whole time.Duration, err error) {
	start := monotime.Now()
	r, err := k.stream.Begin()
	if err != nil {
		return 0, 0, err
	}
	recorded := f(r)
	x, err := r.Submit()
	if recorded != nil {
		return 0, 0, recorded
	}
	if err != nil {
		return 0, 0, err
	}
	done, err := x.Wait(ctx)
	if err != nil {
		return 0, 0, err
	}
	return done.Elapsed(), monotime.Since(start), nil
}

// act is work for a graph.
type act func(c *cuda.Capture) error

// A sample is at least this long, or this many calls: events have a resolution of half a microsecond.
const (
	sampleTime  = 2 * time.Millisecond
	sampleCalls = 200
)

// captured makes a way of work that is repeated within a graph, so that the GPU waits for no host: its time is that of one
// round.
func (k *clock) captured(ctx context.Context, name string, work float64, f act) (Way, error) {
	g, err := k.repeat(1, f)
	if err != nil {
		return Way{}, err
	}
	replay := func(ctx context.Context, g *cuda.Graph) (time.Duration, error) {
		t, _, err := k.run(ctx, func(r *cuda.Recording) error { return r.Replay(g) })
		return t, err
	}
	var once time.Duration
	for range 2 { // the first one warms up
		if once, err = replay(ctx, g); err != nil {
			return Way{}, err
		}
	}
	calls := max(1, min(sampleCalls, int(sampleTime/max(once, 1))))
	if calls > 1 {
		if g, err = k.repeat(calls, f); err != nil {
			return Way{}, err
		}
	}
	return Way{Name: name, Work: work, Clock: "gpu", calls: calls, timed: func(ctx context.Context) (time.Duration, error) {
		t, err := replay(ctx, g)
		return t / time.Duration(calls), err
	}}, nil
}

func (k *clock) repeat(n int, f act) (*cuda.Graph, error) {
	g, err := k.stream.Capture(func(c *cuda.Capture) error {
		for range n {
			if err := f(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		k.clean.add(g.Close)
	}
	return g, err
}

// buffer is memory of the device until the end.
func (k *clock) buffer(bytes int) (*cuda.Buffer[byte], error) {
	b, err := cuda.Alloc[byte](k.dev, bytes)
	if err == nil {
		k.clean.add(b.Close)
	}
	return b, err
}

// filled is a buffer of random numbers, of zeros, or of the given number where they are integers.
func (k *clock) filled(ctx context.Context, t program.Type, n int32, zeros bool) (*cuda.Buffer[byte], error) {
	b, err := k.buffer(t.Bytes())
	if err != nil {
		return nil, err
	}
	data := program.MakeSlice(t)
	if zeros {
		return b, b.Upload(ctx, program.Bytes(data))
	}
	switch s := data.(type) {
	case []float32:
		copy(s, random(len(s)))
	case []int32:
		for i := range s {
			s[i] = n
		}
	case []uint32: // weights, whose halves are below 1
		for i := range s {
			s[i] = rand.Uint32() & 0x3bff3bff
		}
	case []compute.F16:
		for i, v := range random(len(s)) {
			s[i] = compute.F16Of(v)
		}
	case []uint8:
		for i := range s {
			s[i] = uint8(rand.Uint32())
		}
	case []compute.BF16:
		for i, v := range random(len(s)) {
			s[i] = compute.BF16(math.Float32bits(v) >> 16)
		}
	}
	return b, b.Upload(ctx, program.Bytes(data))
}

// empty is a kernel that does nothing: what a launch costs by itself.
func (k *clock) empty() (*cuda.Kernel, error) {
	m := ptx.NewModule()
	m.Kernel("empty").RequireThreads(32, 1, 1)
	built, err := m.Build()
	if err != nil {
		return nil, err
	}
	return k.kernel("empty", "empty", built)
}

// kernel loads a module under a name, once, and returns a kernel of it.
func (k *clock) kernel(module, name string, m *ir.Module) (*cuda.Kernel, error) {
	if k.modules[module] == nil {
		loaded, err := k.dev.LoadModule(m)
		if err != nil {
			return nil, err
		}
		k.clean.add(loaded.Close)
		k.modules[module] = loaded
	}
	return k.modules[module].Kernel(name)
}

// deviceCopy is a way of copying half as many bytes as are moved, which moves as many: what memory can do.
func (k *clock) deviceCopy(ctx context.Context, moved int) (Way, error) {
	from, err := k.buffer(max(1, moved/2))
	if err != nil {
		return Way{}, err
	}
	to, err := k.buffer(max(1, moved/2))
	if err != nil {
		return Way{}, err
	}
	x := program.Bytes(random(moved/8 + 1))
	if err := from.Upload(ctx, x[:from.Len()]); err != nil {
		return Way{}, err
	}
	return k.captured(ctx, "device copy", float64(moved)/1e9, func(c *cuda.Capture) error {
		return cuda.CopyOnDevice(c, to, from)
	})
}
