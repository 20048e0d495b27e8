package cuda

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
)

func TestStaging(t *testing.T) {
	d := softDevice(t)
	r := randomSource(t)
	const chunk = stageLeast + 1000
	sizes := []int{0, 1, 3, stageLeast, stageLeast + 1, chunk - 1, chunk, chunk + 1, (stages+1)*chunk + r.IntN(chunk)}
	if !testing.Short() {
		sizes = append(sizes, 2*stageBytes+r.IntN(stageBytes))
	}
	require.Equal(t, stageBytes, d.stager.chunk)
	d.stager.patience = time.Minute
	for _, n := range sizes {
		d.stager.chunk = chunk
		if n > stageBytes {
			d.stager.chunk = stageBytes
		}
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		b, err := Alloc[byte](d, n)
		require.NoError(t, err)
		d.in(t, func() {
			mine := bytes.Clone(data)
			require.NoError(t, d.stager.upload(b.at, mine, d.defaultStream.handle))
			clear(mine) // the caller's again
			got := make([]byte, n)
			require.NoError(t, d.stager.download(got, b.at, d.defaultStream.handle))
			require.True(t, bytes.Equal(data, got), "%d bytes", n)
		})
		require.NoError(t, b.Close())
		require.Len(t, d.stager.idle, stages)
	}
	m, err := d.Memory()
	require.NoError(t, err)
	require.LessOrEqual(t, m.Host.InUse, uint64(stages*stageBytes))
	require.NoError(t, d.Trim())
	m, err = d.Memory()
	require.NoError(t, err)
	require.Zero(t, m.Host.InUse+m.Host.Cached)
}

// Many transfers share the stages, on streams of which some are slow.
func TestStagingConcurrently(t *testing.T) {
	d := softDevice(t)
	d.stager.chunk, d.stager.patience = 5000, time.Minute
	g := newGate(t, d)
	seeds := randomSource(t)
	var group sync.WaitGroup
	var held atomic.Int32
	for range 8 {
		r := rand.New(rand.NewPCG(seeds.Uint64(), 0))
		group.Go(func() {
			s, err := d.NewStream(StreamOptions{})
			if !noError(t, err) {
				return
			}
			defer s.Close()
			for range 3 {
				data := randomBytes(r, r.IntN(50_000)+2048)
				got := make([]byte, len(data))
				b, err := Alloc[byte](d, len(data))
				if !noError(t, err) || !noError(t, d.enter()) {
					return
				}
				if r.IntN(2) == 0 {
					g.shut(s.handle)
					time.AfterFunc(time.Millisecond, g.open)
					held.Add(1)
				}
				noError(t, d.stager.upload(b.at, data, s.handle))
				noError(t, d.stager.download(got, b.at, s.handle))
				d.leave()
				if !bytes.Equal(data, got) {
					t.Errorf("%d bytes are wrong", len(data))
				}
				noError(t, b.Close())
			}
		})
	}
	group.Wait()
	t.Logf("%d were held up", held.Load())
	require.Len(t, d.stager.idle, stages)
}

// A failure at any point loses no stage, and no stage is used while the GPU has it.
func TestStagingFails(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	d := m.device(t)
	d.stager.chunk, d.stager.patience = 5000, time.Minute
	n := 5*d.stager.chunk + 7
	data := bytes.Repeat([]byte("wavelane"), n/8+1)[:n]
	b, err := Alloc[byte](d, n)
	require.NoError(t, err)
	transfer := func() error {
		if err := d.enter(); err != nil {
			return err
		}
		defer d.leave()
		if err := d.stager.upload(b.at, data, d.stager.stream); err != nil {
			return err
		}
		got := make([]byte, n)
		if err := d.stager.download(got, b.at, d.stager.stream); err != nil {
			return err
		}
		require.True(t, bytes.Equal(data, got))
		return nil
	}
	failed := 0
	for stop := int64(0); ; stop++ {
		var calls atomic.Int64
		m.inject(func(call string) driver.Result {
			if call != "CtxGetCurrent" && calls.Add(1)-1 == stop {
				return driver.OutOfMemory
			}
			return driver.Success
		})
		err := transfer()
		m.inject(nil)
		require.Len(t, d.stager.idle, stages, "call %d", stop)
		if calls.Load() <= stop {
			require.NoError(t, err)
			require.Greater(t, failed, 10)
			break
		}
		if err != nil { // pinned memory is asked for twice
			failed++
			require.ErrorIs(t, err, compute.ErrOutOfMemory, "call %d", stop)
		}
		require.NoError(t, transfer(), "call %d", stop)
		require.NoError(t, d.Trim())
	}
	require.NoError(t, b.Close())
}

// Starting a program does not wait for another, however large its inputs are: they are pinned for as long as the device is busy.
func TestStagingOfABusyDevice(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	d := m.device(t)
	d.large, d.stager.chunk = 999, 5000
	g := newGate(t, d)
	data, got := randomFloats(randomSource(t), 20_000), make([]float32, 20_000)
	for _, full := range []bool{false, true} {
		require.NoError(t, d.Trim())
		d.in(t, func() { g.shut(d.defaultStream.handle) })
		if full { // no more memory can be pinned than the few stages: it has to wait
			allocated := 0
			m.inject(func(call string) driver.Result {
				if call == "MemHostAlloc" {
					if allocated++; allocated > 1 {
						return driver.OutOfMemory
					}
				}
				return driver.Success
			})
			g.late()
		}
		x, f := d.UploadAsync(data)
		m.inject(nil)
		select {
		case <-f.Done():
			require.True(t, full, "the gate is shut")
		default:
		}
		g.open()
		require.NoError(t, f.Await(t.Context()))
		require.NoError(t, x.ReadAsync(got).Await(t.Context()))
		require.Equal(t, data, got)
		require.NoError(t, x.Close())
	}
	require.NoError(t, d.Trim())
	require.Len(t, d.stager.idle, stages)
	require.Zero(t, d.memoryThen(t).Host.InUse)
}
