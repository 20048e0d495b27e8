package cuda

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/args"
)

// captured is a graph of y = a·x + b for each pair of factors.
func (c *core) captured(s *Stream, y, x *Buffer[float32], factors ...[2]float32) (*Graph, []Node) {
	c.t.Helper()
	var nodes []Node
	g, err := s.Capture(func(k *Capture) error {
		for _, f := range factors {
			n, err := k.Launch(c.scale, over(x.Len()), scaleArgs(y, x, f[0], f[1])...)
			if err != nil {
				return err
			}
			nodes, x = append(nodes, n), y
		}
		return nil
	})
	require.NoError(c.t, err)
	return g, nodes
}

func (c *core) replay(s *Stream, g *Graph) {
	c.t.Helper()
	r := begun(c.t, s)
	require.NoError(c.t, r.Replay(g))
	finished(c.t, submitted(c.t, r))
}

func TestGraph(t *testing.T) {
	c := newCore(t)
	s := c.stream(StreamOptions{})
	rng := randomSource(t)
	n := 1 + rng.IntN(200)
	x, y := c.numbers(randomFloats(rng, n)...), c.numbers(make([]float32, n)...)
	in, err := AllocHost[float32](c.Device, n)
	require.NoError(t, err)
	out, err := AllocHost[float32](c.Device, n)
	require.NoError(t, err)
	g, err := s.Capture(func(k *Capture) error {
		require.NoError(t, CopyToDevice(k, x, in))
		require.NoError(t, Fill(k, y, 7)) // overwritten
		_, err := k.Launch(c.scale, over(n), scaleArgs(y, x, 2, 1)...)
		require.NoError(t, err)
		require.NoError(t, CopyOnDevice(k, x, y))
		_, err = k.Launch(c.scale, over(n), scaleArgs(y, x, 0.5, 0)...)
		require.NoError(t, err)
		return CopyToHost(k, out, y)
	})
	require.NoError(t, err)
	require.Equal(t, 2, g.Nodes())
	require.Equal(t, make([]float32, n), c.read(y), "nothing ran")
	for range 3 {
		data := randomFloats(rng, n)
		copy(in.Slice(), data)
		c.replay(s, g)
		for i, v := range data {
			require.Equal(t, float32(float64(float32(float64(v)*2+1))*0.5), out.Slice()[i])
		}
	}
	require.NoError(t, g.Close())
	require.NoError(t, g.Close())
	r := begun(t, s)
	require.ErrorIs(t, r.Replay(g), compute.ErrClosed)
	_, err = r.Submit()
	require.ErrorIs(t, err, compute.ErrClosed)
	require.Zero(t, c.m.Live().GraphExecs+c.m.Live().Graphs)
}

// New arguments are those of replays recorded afterwards, not of earlier ones that have yet to run.
func TestGraphSetArgs(t *testing.T) {
	c := newCore(t)
	gate := newGate(t, c.Device)
	s := c.stream(StreamOptions{})
	x, y, z := c.numbers(1, 2), c.numbers(0, 0), c.numbers(0, 0)
	g, nodes := c.captured(s, y, x, [2]float32{1, 10}, [2]float32{2, 0})
	c.in(t, func() { gate.shut(s.handle) })
	r := begun(t, s)
	require.NoError(t, r.Replay(g))
	require.NoError(t, CopyOnDevice(r, z, y))
	require.NoError(t, g.SetArgs(nodes[1], scaleArgs(y, y, 3, 0)...))
	require.NoError(t, r.Replay(g))
	first := submitted(t, r)
	require.NoError(t, g.SetArgs(nodes[0], scaleArgs(y, x, 1, 20)...))
	gate.open()
	finished(t, first)
	require.Equal(t, []float32{22, 24}, c.read(z))
	require.Equal(t, []float32{33, 36}, c.read(y))
	c.replay(s, g)
	require.Equal(t, []float32{63, 66}, c.read(y))

	for _, bad := range [][]Arg{nil, {y.Arg()}, {y.Arg(), x.Arg(), args.F64(1), args.F32(1), args.U32(2)}} {
		require.ErrorIs(t, g.SetArgs(nodes[0], bad...), compute.ErrArgument)
	}
	c.replay(s, g)
	require.Equal(t, []float32{63, 66}, c.read(y), "refused arguments change nothing")
	other, theirs := c.captured(s, y, x, [2]float32{1, 1})
	require.ErrorIs(t, g.SetArgs(theirs[0], scaleArgs(y, x, 1, 1)...), compute.ErrArgument)
	require.ErrorIs(t, g.SetArgs(Node{}, scaleArgs(y, x, 1, 1)...), compute.ErrArgument)
	require.NoError(t, other.Close())
	require.ErrorIs(t, other.SetArgs(theirs[0], scaleArgs(y, x, 1, 1)...), compute.ErrClosed)

	k, err := c.module.Kernel("clustered")
	require.NoError(t, err)
	var node Node
	g, err = s.Capture(func(k2 *Capture) (err error) {
		node, err = k2.Launch(k, Launch{Grid: xyz(2), Block: xyz(1), Cluster: xyz(2)}, y.Arg())
		return err
	})
	require.NoError(t, err)
	require.ErrorIs(t, g.SetArgs(node, y.Arg()), compute.ErrUnsupported)
}

// Whatever ends a capture early leaves a stream that works and nothing behind.
func TestCaptureFails(t *testing.T) {
	c := newCore(t)
	other := newCore(t)
	s := c.stream(StreamOptions{})
	b := c.numbers(1)
	mine := errors.New("mine")
	launch := func(k *Capture) {
		_, err := k.Launch(c.scale, over(1), scaleArgs(b, b, 2, 0)...)
		require.NoError(t, err)
	}
	check := func() {
		t.Helper()
		require.Zero(t, c.m.Live().Graphs+c.m.Live().GraphExecs)
		require.EqualValues(t, 1, c.module.holders.Load())
		finished(t, submitted(t, begun(t, s)))
	}
	for name, f := range map[string]struct {
		f   func(k *Capture) error
		err error
	}{
		"its own": {func(k *Capture) error { launch(k); return mine }, mine},
		"allocation": {func(k *Capture) error {
			_, err := Alloc[byte](c.Device, 1<<22)
			require.ErrorIs(t, err, compute.ErrUnsupported)
			return nil
		}, compute.ErrArgument},
		"synchronisation": {func(k *Capture) error {
			launch(k)
			return c.Synchronize()
		}, compute.ErrUnsupported},
		"a foreign kernel": {func(k *Capture) error {
			_, err := k.Launch(other.scale, over(1), scaleArgs(b, b, 2, 0)...)
			require.ErrorIs(t, err, compute.ErrForeignTensor)
			return nil
		}, compute.ErrForeignTensor},
		"a foreign buffer": {func(k *Capture) error { return Fill(k, other.numbers(1), 1) }, compute.ErrForeignTensor},
		"arguments": {func(k *Capture) error {
			launch(k)
			_, err := k.Launch(c.scale, over(1))
			require.ErrorIs(t, err, compute.ErrArgument)
			_, again := k.Launch(c.scale, over(1), scaleArgs(b, b, 2, 0)...)
			require.Equal(t, err, again)
			return nil
		}, compute.ErrArgument},
	} {
		g, err := s.Capture(f.f)
		require.ErrorIs(t, err, f.err, name)
		require.Nil(t, g)
		check()
	}

	require.PanicsWithValue(t, "oh", func() { s.Capture(func(k *Capture) error { launch(k); panic("oh") }) })
	check()
	var wg sync.WaitGroup
	wg.Go(func() { s.Capture(func(k *Capture) error { launch(k); runtime.Goexit(); return nil }) })
	wg.Wait()
	check()

	var escaped *Capture
	g, err := s.Capture(func(k *Capture) error { escaped = k; return nil })
	require.NoError(t, err)
	_, err = escaped.Launch(c.scale, over(1), scaleArgs(b, b, 2, 0)...)
	require.ErrorIs(t, err, compute.ErrClosed)
	require.ErrorIs(t, Fill(escaped, b, 2), compute.ErrClosed)
	c.replay(s, g) // of nothing
	r := begun(t, other.stream(StreamOptions{}))
	require.ErrorIs(t, r.Replay(g), compute.ErrForeignTensor)
	_, err = r.Submit()
	require.ErrorIs(t, err, compute.ErrForeignTensor)
	require.NoError(t, g.Close())
	require.Equal(t, []float32{1}, c.read(b))
}

// A graph that is closed while replays are under way goes when they are done; until then it keeps what it uses.
func TestGraphClosesUnderReplay(t *testing.T) {
	c := newCore(t)
	gate := newGate(t, c.Device)
	s := c.stream(StreamOptions{})
	x := c.numbers(5)
	h, err := AllocHost[float32](c.Device, 1)
	require.NoError(t, err)
	m, err := c.Load(coreText)
	require.NoError(t, err)
	k, err := m.Kernel("scale")
	require.NoError(t, err)
	g, err := s.Capture(func(cap *Capture) error {
		if _, err := cap.Launch(k, over(1), scaleArgs(x, x, 2, 1)...); err != nil {
			return err
		}
		return CopyToHost(cap, h, x)
	})
	require.NoError(t, err)
	require.NoError(t, m.Close())
	modules := c.m.Live().Modules
	result := h.Slice()
	require.NoError(t, h.Close())
	c.replay(s, g)
	require.Equal(t, []float32{11}, result, "the graph keeps module and memory")

	c.in(t, func() { gate.shut(s.handle) })
	r := begun(t, s)
	require.NoError(t, r.Replay(g))
	done := submitted(t, r)
	require.NoError(t, g.Close())
	pending(t, done.Done())
	require.Equal(t, 1, c.m.Live().GraphExecs)
	other, err := AllocHost[float32](c.Device, 1)
	require.NoError(t, err)
	other.Slice()[0] = -1
	gate.open()
	finished(t, done)
	require.Equal(t, []float32{23}, result)
	require.Equal(t, []float32{-1}, other.Slice(), "the graph's memory was nobody else's yet")
	require.Zero(t, c.m.Live().GraphExecs+c.m.Live().Graphs)
	again, err := c.Load(coreText) // an occasion to unload
	require.NoError(t, err)
	require.NoError(t, again.Close())
	require.Equal(t, modules-1, c.m.Live().Modules)
}

func TestForgottenGraph(t *testing.T) {
	c := newCore(t)
	s := c.stream(StreamOptions{})
	x := c.numbers(1)
	c.captured(s, x, x, [2]float32{1, 1})
	g, _ := c.captured(s, x, x, [2]float32{1, 1})
	require.Eventually(t, func() bool { runtime.GC(); return c.m.Live().GraphExecs == 1 }, time.Minute, time.Millisecond)
	c.replay(s, g)
	require.Equal(t, []float32{2}, c.read(x))
}

// Runs of one graph, on whatever streams, come one after the other.
func TestGraphOnManyStreams(t *testing.T) {
	c := newCore(t)
	x := c.numbers(0)
	g, _ := c.captured(c.stream(StreamOptions{}), x, x, [2]float32{1, 1}, [2]float32{1, 2})
	var wg sync.WaitGroup
	for range 4 {
		s := c.stream(StreamOptions{})
		wg.Go(func() {
			for range 10 {
				c.replay(s, g)
			}
		})
	}
	wg.Wait()
	require.Equal(t, []float32{120}, c.read(x))
}
