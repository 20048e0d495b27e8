package cuda

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
)

// write puts words into device memory in the order of a stream; the caller has entered the context and keeps the block.
func (d *state) write(t testing.TB, at driver.Ptr, words []uint32, s driver.Stream) *hostBlock {
	t.Helper()
	h, err := d.host.get(uint64(4 * len(words)))
	require.NoError(t, err)
	copy(unsafe.Slice((*uint32)(h.at), len(words)), words)
	require.Equal(t, driver.Success, d.drv.MemcpyHtoDAsync(at, h.at, uint64(4*len(words)), s))
	return h
}

// read returns words once the stream's work is done.
func (d *state) read(t testing.TB, at driver.Ptr, n int, s driver.Stream) []uint32 {
	t.Helper()
	h, err := d.host.get(uint64(4 * n))
	require.NoError(t, err)
	defer h.release()
	require.Equal(t, driver.Success, d.drv.MemcpyDtoHAsync(h.at, at, uint64(4*n), s))
	require.Equal(t, driver.Success, d.drv.StreamSynchronize(s))
	return slices.Clone(unsafe.Slice((*uint32)(h.at), n))
}

// The default stream's memory is used again while the GPU has still to read what was there.
func TestPoolReusesInStreamOrder(t *testing.T) {
	d := softDevice(t)
	g := newGate(t, d)
	r := randomSource(t)
	first, second := randomWords(r, 256), randomWords(r, 256)
	defaultStream := d.defaultStream.handle
	d.in(t, func() {
		result, err := d.pool.get(2048)
		require.NoError(t, err)
		a, err := d.pool.get(1024)
		require.NoError(t, err)
		g.shut(defaultStream)
		h1 := d.write(t, a.ptr, first, defaultStream)
		g.move(defaultStream, result.ptr, a.ptr)
		at := a.ptr
		a.release()
		b, err := d.pool.get(1000)
		require.NoError(t, err)
		require.Equal(t, at, b.ptr, "the memory is used again at once")
		h2 := d.write(t, b.ptr, second, defaultStream)
		g.move(defaultStream, result.ptr+1024, b.ptr)
		require.Equal(t, driver.NotReady, d.drv.StreamQuery(defaultStream), "nobody has waited")
		g.open()
		require.Equal(t, append(first, second...), d.read(t, result.ptr, 512, defaultStream))
		b.release()
		result.release()
		h1.release()
		h2.release()
	})
}

// When memory is short, the default stream has what is meant for all; they get it back only once it is done, and the wait holds
// nobody else up.
func TestPoolWaitsForOtherStreams(t *testing.T) {
	d := softDevice(t, WithMemoryLimit(smallSegment))
	g := newGate(t, d)
	wall, err := Alloc[byte](d, 4096) // takes the only segment
	require.NoError(t, err)
	r := randomSource(t)
	first, second := randomWords(r, 256), randomWords(r, 256)
	defaultStream := d.defaultStream.handle
	other, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	var result, a, b *block
	var h1 *hostBlock
	d.in(t, func() {
		a, err = d.pool.get(1024)
		require.NoError(t, err)
		result, err = d.pool.get(1024) // a wall between a and what is free
		require.NoError(t, err)
		g.shut(defaultStream)
		h1 = d.write(t, a.ptr, first, defaultStream)
		g.move(defaultStream, result.ptr, a.ptr)
		at := a.ptr
		a.release()
		done := make(chan error)
		go func() {
			err := d.enter()
			if err == nil {
				b, err = d.pool.getAny(1024)
				d.leave()
			}
			done <- err
		}()
		for got := false; !got; time.Sleep(time.Millisecond) {
			d.pool.mu.Lock()
			got = d.pool.arena.blocks > 1
			d.pool.mu.Unlock()
		}
		c, err := d.pool.getAny(4096) // what the default stream never had needs no waiting
		require.NoError(t, err)
		e, err := d.pool.get(1024)
		require.NoError(t, err)
		c.release()
		e.release()
		time.Sleep(5 * time.Millisecond)
		select {
		case <-done:
			require.Fail(t, "another stream got memory that is in use")
		default:
		}
		require.Equal(t, driver.NotReady, d.drv.StreamQuery(defaultStream))
		g.open()
		require.NoError(t, <-done)
		require.Equal(t, at, b.ptr)
		require.Equal(t, driver.Success, d.drv.StreamQuery(defaultStream))
		h2 := d.write(t, b.ptr, second, other.handle)
		require.Equal(t, second, d.read(t, b.ptr, 256, other.handle))
		require.Equal(t, first, d.read(t, result.ptr, 256, defaultStream))
		for _, x := range []interface{ release() }{b, result, h1, h2} {
			x.release()
		}
	})
	require.NoError(t, other.Close())
	require.NoError(t, wall.Close())
}

// Ordinarily the two kinds of blocks have nothing to do with each other.
func TestPoolKeepsKindsApart(t *testing.T) {
	d := softDevice(t)
	g := newGate(t, d)
	d.in(t, func() {
		g.shut(d.defaultStream.handle)
		for _, n := range []uint64{1, 1000, 3 << 20} {
			a, err := d.pool.get(n)
			require.NoError(t, err)
			at := a.ptr
			a.release()
			b, err := d.pool.getAny(n) // would wait until the gate opens
			require.NoError(t, err)
			require.NotEqual(t, at, b.ptr)
			b.release()
		}
	})
	g.open()
}

// A closed buffer is not used again before every stream, open or closed since, is done with what it had been given.
func TestPoolFences(t *testing.T) {
	for _, unwatched := range []bool{false, true} {
		d := softDevice(t)
		g := newGate(t, d)
		s, err := d.NewStream(StreamOptions{})
		require.NoError(t, err)
		b, err := Alloc[uint32](d, 512)
		require.NoError(t, err)
		at := b.at
		d.in(t, func() {
			g.shut(s.handle)
			g.move(s.handle, at, at+1024)
			if unwatched {
				require.NoError(t, d.pool.unwatch(s.handle))
			}
		})
		require.NoError(t, b.Close())
		m, err := d.Memory()
		require.NoError(t, err)
		require.EqualValues(t, 2048, m.Pending)
		require.Zero(t, m.InUse)
		require.Equal(t, 1, m.Blocks)
		c, err := Alloc[uint32](d, 512)
		require.NoError(t, err)
		require.NotEqual(t, at, c.at)
		d.in(t, func() { require.Equal(t, driver.NotReady, d.drv.StreamQuery(s.handle), "nobody has waited") })
		g.open()
		d.memoryThen(t)
		e, err := Alloc[uint32](d, 512)
		require.NoError(t, err)
		require.Equal(t, at, e.at)
		require.NoError(t, c.Close())
		require.NoError(t, e.Close())
		if unwatched {
			d.pool.watch(s.handle)
		}
		require.NoError(t, s.Close())
	}
}

// Fences do not disturb a capture of one of the device's streams.
func TestPoolDuringCapture(t *testing.T) {
	d := softDevice(t)
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	a, err := Alloc[uint32](d, 4)
	require.NoError(t, err)
	b, err := Alloc[uint32](d, 4)
	require.NoError(t, err)
	g, err := s.Capture(func(c *Capture) error {
		if err := Fill(c, a, 7); err != nil {
			return err
		}
		// Another goroutine's thread is not capturing.
		failed := make(chan error)
		go func() {
			b.Close()
			x, err := Alloc[uint32](d, 4)
			if err == nil {
				err = x.Upload(t.Context(), []uint32{1, 2, 3, 4})
				x.Close()
			}
			failed <- err
		}()
		if err := <-failed; err != nil {
			return err
		}
		return CopyOnDevice(c, a, a)
	})
	require.ErrorIs(t, err, compute.ErrArgument, "overlap")
	require.Nil(t, g)
	g, err = s.Capture(func(c *Capture) error { return Fill(c, a, 7) })
	require.NoError(t, err)
	require.NoError(t, a.Close()) // the graph keeps it
	m, err := d.Memory()
	require.NoError(t, err)
	require.EqualValues(t, 256, m.InUse)
	require.NoError(t, g.Close())
	require.NoError(t, d.Synchronize())
	d.emptied(t)
}

func TestPoolConcurrently(t *testing.T) {
	d := softDevice(t)
	streams := make([]*Stream, 8)
	for i := range streams {
		var err error
		streams[i], err = d.NewStream(StreamOptions{Priority: -i})
		require.NoError(t, err)
	}
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	var group sync.WaitGroup
	seeds := randomSource(t)
	for i, s := range streams {
		r := rand.New(rand.NewPCG(seeds.Uint64(), 0))
		group.Go(func() {
			for range rounds {
				n := r.IntN(3000)
				data := randomWords(r, n)
				b, err := Alloc[uint32](d, n)
				if !noError(t, err) {
					return
				}
				h, err := AllocHost[uint32](d, n)
				if !noError(t, err) {
					return
				}
				copy(h.Slice(), data)
				rec, err := s.Begin()
				if !noError(t, err) {
					return
				}
				noError(t, CopyToDevice(rec, b, h))
				c, err := Alloc[uint32](d, n)
				if !noError(t, err) {
					return
				}
				noError(t, CopyOnDevice(rec, c, b))
				noError(t, b.Close()) // all the memory is kept by the recording
				x, err := rec.Submit()
				if !noError(t, err) {
					return
				}
				noError(t, h.Close())
				got := make([]uint32, n)
				switch r.IntN(3) {
				case 0: // waits on its own
				case 1:
					_, err = x.Wait(t.Context())
					noError(t, err)
				case 2:
					if i%2 == 0 {
						noError(t, d.Trim())
					}
					runtime.Gosched()
				}
				noError(t, c.Download(t.Context(), got))
				if !slices.Equal(data, got) {
					t.Errorf("stream %d: %d words are wrong", i, n)
				}
				noError(t, c.Close())
				// The default stream's kind of memory.
				noError(t, func() error {
					if err := d.enter(); err != nil {
						return err
					}
					defer d.leave()
					m, err := d.pool.get(uint64(n))
					if err == nil {
						m.retain().release()
						m.release()
					}
					return err
				}())
			}
		})
	}
	group.Wait()
	require.NoError(t, d.Synchronize())
	d.emptied(t)
	for _, s := range streams {
		require.NoError(t, s.Close())
	}
}

// noError is require.NoError for goroutines.
func noError(t *testing.T, err error) bool {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

func TestPoolAllocatesNothing(t *testing.T) {
	d := softDevice(t)
	d.in(t, func() {
		step := func() {
			a, err := d.pool.get(1000)
			if err != nil {
				t.Fatal(err)
			}
			b, err := d.pool.get(3 << 20)
			if err != nil {
				t.Fatal(err)
			}
			a.release()
			h, err := d.host.get(5000)
			if err != nil {
				t.Fatal(err)
			}
			h.release()
			b.release()
		}
		step()
		require.Zero(t, testing.AllocsPerRun(1000, step))
	})
}

// A pool that was closed refuses, and takes blocks back without harm.
func TestPoolClosed(t *testing.T) {
	g := softgpu.New(softgpu.Config{})
	p, err := retainPrimary(g, 0)
	require.NoError(t, err)
	require.NoError(t, p.enter())
	defer p.leave()
	defaultStream, r := g.StreamCreate(0)
	require.Equal(t, driver.Success, r)
	m, h := newPool(p, defaultStream, 0), newHostPool(p)
	a, err := m.get(1)
	require.NoError(t, err)
	b, err := m.getAny(1)
	require.NoError(t, err)
	c, err := h.get(1)
	require.NoError(t, err)
	b.retain().release()
	b.release() // queued
	for range 2 {
		require.NoError(t, m.close())
		require.NoError(t, h.close())
	}
	a.release()
	c.release()
	_, err = m.get(1)
	require.ErrorIs(t, err, compute.ErrClosed)
	_, err = m.getAny(1)
	require.ErrorIs(t, err, compute.ErrClosed)
	_, err = h.get(1)
	require.ErrorIs(t, err, compute.ErrClosed)
	require.ErrorIs(t, m.trim(), compute.ErrClosed)
	require.ErrorIs(t, h.trim(), compute.ErrClosed)
	_, err = m.memory()
	require.ErrorIs(t, err, compute.ErrClosed)
	require.Equal(t, driver.Success, g.StreamDestroy(defaultStream))
	require.NoError(t, p.release())
	require.NoError(t, g.Leaks())
}

func BenchmarkPool(b *testing.B) {
	d := softDevice(b)
	require.NoError(b, d.enter())
	defer d.leave()
	b.ReportAllocs()
	for b.Loop() {
		m, err := d.pool.get(100_000)
		if err != nil {
			b.Fatal(err)
		}
		m.release()
	}
}
