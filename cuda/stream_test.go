package cuda

import (
	"context"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx/args"
)

// What a stream's work can do at which time is a matter of types: the rest does not compile.
func TestLifeInTypes(t *testing.T) {
	methods := func(v any) (names []string) {
		for typ, i := reflect.TypeOf(v), 0; i < typ.NumMethod(); i++ {
			names = append(names, typ.Method(i).Name)
		}
		return names
	}
	require.Equal(t, []string{"Launch", "Replay", "Submit", "Wait"}, methods(&Recording{}))
	require.Equal(t, []string{"Done", "Wait"}, methods(&Submitted{}))
	require.Equal(t, []string{"Elapsed"}, methods(&Finished{}))
	require.Equal(t, []string{"Launch"}, methods(&Capture{}))
	recorder := reflect.TypeFor[Recorder]()
	for v, can := range map[any]bool{&Recording{}: true, &Capture{}: true, &Submitted{}: false, &Finished{}: false, &Stream{}: false} {
		require.Equal(t, can, reflect.TypeOf(v).Implements(recorder), "%T", v)
	}
	// A recording waits for other work, on the GPU; submitted work is waited for, on the host.
	wait := func(v any) reflect.Type { m, _ := reflect.TypeOf(v).MethodByName("Wait"); return m.Type }
	require.Equal(t, reflect.TypeFor[func(*Recording, *Submitted) error](), wait(&Recording{}))
	require.Equal(t, reflect.TypeFor[func(*Submitted, context.Context) (*Finished, error)](), wait(&Submitted{}))
}

// One stream does one thing after the other.
func TestStreamOrder(t *testing.T) {
	c := newCore(t)
	s := c.stream(StreamOptions{})
	rng := randomSource(t)
	x := randomFloats(rng, 1+rng.IntN(300))
	b := c.numbers(x...)
	want := slices.Clone(x)
	for range 5 {
		r := begun(t, s)
		for range 7 {
			a, add := float32(rng.IntN(3)), float32(rng.IntN(9))
			c.times(r, b, a, add)
			for i := range want {
				want[i] = float32(float64(want[i])*float64(a) + float64(add))
			}
		}
		finished(t, submitted(t, r))
	}
	require.Equal(t, want, c.read(b))
}

// The first error of a recording is that of all that follows, and of Submit; the stream goes on after it.
func TestRecordingErrors(t *testing.T) {
	c := newCore(t)
	s := c.stream(StreamOptions{})
	b := c.numbers(1, 2, 3)
	r := begun(t, s)
	c.times(r, b, 2, 0)
	first := r.Launch(c.scale, over(3), b.Arg())
	require.ErrorIs(t, first, compute.ErrArgument)
	require.ErrorContains(t, first, "kernel scale: 5 parameters, 1 arguments")
	require.Equal(t, first, r.Launch(c.scale, over(3), scaleArgs(b, b, 3, 0)...))
	require.ErrorIs(t, Fill(r, b, 7), first)
	require.Equal(t, first, r.Wait(nil))
	_, err := r.Submit()
	require.Equal(t, first, err)
	require.Equal(t, []float32{2, 4, 6}, c.read(b), "what came before the error runs")

	r = begun(t, s)
	c.times(r, b, 2, 0)
	x := submitted(t, r)
	for _, err := range []error{r.Launch(c.scale, over(3)), Fill(r, b, 1), r.Wait(x), r.Replay(nil)} {
		require.ErrorIs(t, err, compute.ErrClosed)
	}
	_, err = r.Submit()
	require.ErrorIs(t, err, compute.ErrClosed)
	finished(t, x)
	finished(t, x) // as often as one likes
	require.Equal(t, []float32{4, 8, 12}, c.read(b))

	other := newCore(t)
	for _, f := range []func(r *Recording) error{
		func(r *Recording) error { return r.Launch(nil, over(3)) },
		func(r *Recording) error { return r.Launch(c.scale, Launch{}, scaleArgs(b, b, 1, 1)...) },
		func(r *Recording) error {
			return r.Launch(c.scale, over(3), Result(), Operand(0), args.F32(1), args.F32(1), args.U32(3))
		},
		func(r *Recording) error { return r.Wait(nil) },
		func(r *Recording) error { return r.Replay(nil) },
		func(r *Recording) error { return r.Wait(&Submitted{}) },
		func(r *Recording) error { return r.Replay(&Graph{}) },
	} {
		r := begun(t, s)
		require.ErrorIs(t, f(r), compute.ErrArgument)
		_, err := r.Submit()
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	for _, f := range []func(r *Recording) error{
		func(r *Recording) error { return r.Launch(other.scale, over(3), scaleArgs(b, b, 1, 1)...) },
		func(r *Recording) error {
			return r.Wait(submitted(t, begun(t, other.stream(StreamOptions{}))))
		},
	} {
		r := begun(t, s)
		require.ErrorIs(t, f(r), compute.ErrForeignTensor)
		_, err := r.Submit()
		require.ErrorIs(t, err, compute.ErrForeignTensor)
	}
	finished(t, submitted(t, begun(t, s))) // nothing is work, too
}

func TestOneRecordingAtATime(t *testing.T) {
	c := newCore(t)
	s := c.stream(StreamOptions{})
	r := begun(t, s)
	_, err := s.Begin()
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = s.Capture(func(*Capture) error { return nil })
	require.ErrorIs(t, err, compute.ErrArgument)
	finished(t, submitted(t, r))
	_, err = s.Capture(func(*Capture) error {
		_, err := s.Begin()
		require.ErrorIs(t, err, compute.ErrArgument)
		return err
	})
	require.ErrorIs(t, err, compute.ErrArgument)
	finished(t, submitted(t, begun(t, s)))
}

// Streams run independently, unless one waits for another's work; then it waits for no more than that.
func TestStreamsWait(t *testing.T) {
	c := newCore(t)
	g := newGate(t, c.Device)
	a, b, free := c.stream(StreamOptions{}), c.stream(StreamOptions{}), c.stream(StreamOptions{})
	x, y := c.numbers(1, 2, 3), c.numbers(0, 0, 0)
	ready, err := AllocHost[float32](c.Device, 3)
	require.NoError(t, err)
	copy(ready.Slice(), []float32{5, 6, 7})

	c.in(t, func() { g.shut(a.handle) })
	ra := begun(t, a)
	require.NoError(t, CopyToDevice(ra, x, ready))
	sa := submitted(t, ra)
	rb := begun(t, b)
	require.NoError(t, rb.Wait(sa))
	require.NoError(t, rb.Launch(c.scale, over(3), scaleArgs(y, x, 10, 1)...))
	sb := submitted(t, rb)
	finished(t, submitted(t, begun(t, free)))
	pending(t, sa.Done())
	pending(t, sb.Done())
	g.open()
	finished(t, sb)
	finished(t, sa)
	require.Equal(t, []float32{51, 61, 71}, c.read(y))

	// Work that is done is not waited for, even where its stream has begun other work or is gone.
	c.in(t, func() { g.shut(a.handle) })
	blocked := submitted(t, begun(t, a))
	rb = begun(t, b)
	require.NoError(t, rb.Wait(sa))
	finished(t, submitted(t, rb))
	pending(t, blocked.Done())
	g.open()
	require.NoError(t, a.Close())
	rb = begun(t, b)
	require.NoError(t, rb.Wait(sa))
	require.NoError(t, rb.Wait(blocked))
	finished(t, submitted(t, rb))
}

// While a stream captures, others can wait for what it was given before.
func TestWaitForWorkOfACapturingStream(t *testing.T) {
	c := newCore(t)
	g := newGate(t, c.Device)
	a, b := c.stream(StreamOptions{}), c.stream(StreamOptions{})
	x := c.numbers(1)
	c.in(t, func() { g.shut(a.handle) })
	r := begun(t, a)
	c.times(r, x, 3, 0)
	before := submitted(t, r)
	var after *Submitted
	graph, err := a.Capture(func(k *Capture) error {
		r := begun(t, b)
		require.NoError(t, r.Wait(before))
		c.times(r, x, 5, 1)
		after = submitted(t, r)
		_, err := k.Launch(c.scale, over(1), scaleArgs(x, x, 7, 0)...)
		return err
	})
	require.NoError(t, err)
	require.Equal(t, 1, graph.Nodes())
	pending(t, after.Done())
	g.open()
	finished(t, after)
	require.Equal(t, []float32{16}, c.read(x))
}

func TestElapsed(t *testing.T) {
	c := newCore(t)
	g := newGate(t, c.Device)
	s := c.stream(StreamOptions{Timed: true})
	r := begun(t, s)
	c.in(t, func() {
		c.drv.EventSynchronize(r.start)
		g.shut(s.handle)
	})
	x := submitted(t, r)
	time.Sleep(5 * time.Millisecond)
	g.open()
	f := finished(t, x)
	require.GreaterOrEqual(t, f.Elapsed(), 5*time.Millisecond)
	for range 3 { // events serve again
		f = finished(t, submitted(t, begun(t, s)))
		require.GreaterOrEqual(t, f.Elapsed(), time.Duration(0))
	}
	require.Zero(t, finished(t, submitted(t, begun(t, c.stream(StreamOptions{})))).Elapsed())
}

// Who stops waiting stops nothing else.
func TestWaitIsAbandoned(t *testing.T) {
	c := newCore(t)
	g := newGate(t, c.Device)
	s := c.stream(StreamOptions{})
	b := c.numbers(1)
	c.in(t, func() { g.shut(s.handle) })
	r := begun(t, s)
	c.times(r, b, 9, 0)
	x := submitted(t, r)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := x.Wait(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	g.open()
	finished(t, x)
	_, err = x.Wait(ctx)
	require.NoError(t, err, "finished work is never reported as cancelled")
	require.Equal(t, []float32{9}, c.read(b))
}

// streams waits until the machine has n of them: Close does not.
func streams(t *testing.T, m *machine, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return m.Live().Streams == n }, time.Minute, time.Millisecond)
}

func TestStreamCloses(t *testing.T) {
	c := newCore(t)
	g := newGate(t, c.Device)
	before := c.m.Live().Streams
	s := c.stream(StreamOptions{Priority: -99})
	b := c.numbers(1)
	c.in(t, func() { g.shut(s.handle) })
	r := begun(t, s)
	c.times(r, b, 2, 0)
	x := submitted(t, r)
	time.AfterFunc(3*time.Millisecond, g.open)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	finished(t, x)
	streams(t, c.m, before)
	_, err := s.Begin()
	require.ErrorIs(t, err, compute.ErrClosed)
	_, err = s.Capture(func(*Capture) error { return nil })
	require.ErrorIs(t, err, compute.ErrClosed)

	s = c.stream(StreamOptions{Priority: 99})
	r = begun(t, s)
	require.NoError(t, s.Close())
	require.Equal(t, before+1, c.m.Live().Streams, "a recording keeps its stream")
	c.times(r, b, 2, 0)
	finished(t, submitted(t, r))
	streams(t, c.m, before)
	_, err = s.Begin()
	require.ErrorIs(t, err, compute.ErrClosed)

	s = c.stream(StreamOptions{})
	graph, err := s.Capture(func(k *Capture) error {
		require.NoError(t, s.Close())
		_, err := k.Launch(c.scale, over(1), scaleArgs(b, b, 2, 0)...)
		return err
	})
	require.NoError(t, err)
	streams(t, c.m, before)
	s = c.stream(StreamOptions{})
	r = begun(t, s)
	require.NoError(t, r.Replay(graph))
	finished(t, submitted(t, r))
	require.Equal(t, []float32{8}, c.read(b))
}

// The device waits neither for work in flight nor for a recording, but lets both come to their end.
func TestDeviceClosesUnderStreams(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	d, err := Open(t.Context(), m.on, WithoutCache())
	require.NoError(t, err)
	c := coreOn(t, m, d)
	s, open := c.stream(StreamOptions{Timed: true}), c.stream(StreamOptions{})
	b := c.numbers(3, 4)
	h, err := AllocHost[float32](d, 2)
	require.NoError(t, err)
	var release func()
	d.in(t, func() { release = m.Hold(s.handle) })
	r := begun(t, s)
	c.times(r, b, 2, 1)
	require.NoError(t, CopyToHost(r, h, b))
	x := submitted(t, r)
	late := begun(t, open)
	require.NoError(t, d.Close())
	require.NoError(t, s.Close())
	require.NotZero(t, m.Live().Streams)
	pending(t, x.Done())
	require.NoError(t, late.Wait(x))
	last := submitted(t, late)
	_, err = open.Begin()
	require.ErrorIs(t, err, compute.ErrClosed)
	release()
	finished(t, x)
	finished(t, last)
	require.Eventually(t, func() bool { return m.Live() == softgpu.Live{} }, time.Minute, time.Millisecond)
	_, err = s.Begin()
	require.ErrorIs(t, err, compute.ErrClosed)
}

// A recording that was forgotten blocks neither its stream nor the device for ever, and what it kept goes.
func TestForgottenRecording(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	d, err := Open(t.Context(), m.on, WithoutCache())
	require.NoError(t, err)
	c := coreOn(t, m, d)
	s := c.stream(StreamOptions{Timed: true})
	b := c.numbers(1, 2)
	forget := func() {
		r := begun(t, s)
		c.times(r, b, 2, 0)
		require.NoError(t, Fill(r, b, 5))
	}
	forget()
	require.Eventually(t, func() bool {
		runtime.GC()
		r, err := s.Begin()
		if err != nil {
			return false
		}
		finished(t, submitted(t, r))
		return true
	}, time.Minute, time.Millisecond)
	require.Equal(t, []float32{5, 5}, c.read(b))
	require.NoError(t, b.Close())
	require.Zero(t, d.memoryThen(t).InUse)
	b = c.numbers(1)
	forget()
	require.NoError(t, d.Close())
	require.Eventually(t, func() bool { runtime.GC(); return m.Live() == softgpu.Live{} }, time.Minute, time.Millisecond)
}

// inert is a driver whose calls for launches do nothing once it is on.
type inert struct {
	driver.Driver
	on bool
}

func (i *inert) CtxSetCurrent(c driver.Context) driver.Result {
	if i.on {
		return driver.Success
	}
	return i.Driver.CtxSetCurrent(c)
}

func (i *inert) LaunchKernel(f driver.Function, l *driver.Launch, s driver.Stream) driver.Result {
	if i.on {
		return driver.Success
	}
	return i.Driver.LaunchKernel(f, l, s)
}

// inertLaunch launches without a driver: what is left is what a launch costs above it.
func inertLaunch(t testing.TB) (launch func() error) {
	i := &inert{Driver: softgpu.New(softgpu.Config{})}
	d, err := Open(context.Background(), onDriver(i))
	require.NoError(t, err)
	c := coreOn(t, nil, d)
	b := c.numbers(1, 2, 3)
	r := begun(t, c.stream(StreamOptions{}))
	t.Cleanup(func() {
		i.on = false
		finished(t, submitted(t, r))
		require.NoError(t, d.Close())
	})
	i.on = true
	return func() error {
		return r.Launch(c.scale, Launch{Grid: xyz(1), Block: xyz(64)}, b.Arg(), b.Arg(), args.F32(2), args.F32(3), args.U32(3))
	}
}

func TestLaunchAllocatesNothing(t *testing.T) {
	launch := inertLaunch(t)
	require.NoError(t, launch())
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if err := launch(); err != nil {
			t.Error(err)
		}
	}))
}

func BenchmarkLaunch(b *testing.B) {
	launch := inertLaunch(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := launch(); err != nil {
			b.Fatal(err)
		}
	}
}
