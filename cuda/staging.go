package cuda

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

const (
	stages     = 4
	stageBytes = 4 << 20  // so large that a transfer takes much longer than its call
	stageLeast = 64 << 10 // where less is enough

	// stagePatience is how long an upload waits for stages, all its pieces together. What takes longer is not the transfers: a kernel is in
	// front of them. Then more memory is pinned, so that starting a program never waits for another.
	stagePatience = 10 * time.Millisecond
)

// stager moves memory that is not pinned, such as any Go slice: the driver's asynchronous copies take pinned memory only. It
// goes in chunks through a few pinned stages, so that the host copies one while the GPU has another. It is safe for concurrent
// use; callers have entered the context.
type stager struct {
	p        *primary
	host     *hostPool
	events   events
	chunk    int // bytes of a stage
	patience time.Duration
	stream   driver.Stream // for transfers that nothing slow should be in front of

	mu   sync.Mutex
	idle []*stage // used by nobody, though the GPU may be at it; the first one has been so for longest
}

// stage is pinned memory on its way.
type stage struct {
	block *hostBlock
	done  driver.Event
	busy  bool // until done
	extra bool // beyond the few: used once
}

func newStager(p *primary, host *hostPool) (*stager, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	s, r := p.drv.StreamCreate(0)
	if err := p.check("cuStreamCreateWithPriority", r); err != nil {
		return nil, err
	}
	t := &stager{p: p, host: host, events: events{p: p}, chunk: stageBytes, patience: stagePatience, stream: s}
	for range stages {
		t.idle = append(t.idle, &stage{})
	}
	return t, nil
}

// upload submits the copy of data to the device. The data have been read when it returns. It waits for the device only where no more
// memory can be pinned.
func (t *stager) upload(dst driver.Ptr, data []byte, s driver.Stream) error {
	until := time.Now().Add(t.patience)
	for len(data) > 0 {
		n := min(len(data), t.chunk)
		if err := t.uploadChunk(dst, data[:n], s, until); err != nil {
			return err
		}
		dst, data = dst+driver.Ptr(n), data[n:]
	}
	return nil
}

func (t *stager) uploadChunk(dst driver.Ptr, data []byte, s driver.Stream, until time.Time) error {
	g, err := t.ready(len(data), until)
	if err != nil {
		return err
	}
	defer t.put(g)
	copyHost(g.block.bytes(), data)
	r := t.p.drv.MemcpyHtoDAsync(dst, g.block.pointer(0), uint64(len(data)), s)
	if err := t.p.check("cuMemcpyHtoDAsync", r); err != nil {
		return err
	}
	return t.sent(g, s)
}

// ready returns a stage for n bytes: one of the few if one is done in time, or else an extra one.
func (t *stager) ready(n int, until time.Time) (*stage, error) {
	for {
		g, err := t.takeDone()
		if err != nil {
			return nil, err
		}
		if g == nil && time.Now().Before(until) {
			time.Sleep(patience)
			continue
		}
		if g == nil {
			g = &stage{extra: true}
		}
		if err = t.prepare(g, n); err == nil {
			return g, nil
		}
		t.put(g)
		if !g.extra || !errors.Is(err, compute.ErrOutOfMemory) {
			return nil, err
		}
		if g = t.take(); g == nil { // others have them all
			return nil, err
		}
		if err := t.prepare(g, n); err != nil {
			t.put(g)
			return nil, err
		}
		return g, nil
	}
}

// download copies from the device once what the stream has been given is done, and waits for it.
func (t *stager) download(dst []byte, src driver.Ptr, s driver.Stream) (err error) {
	type chunk struct {
		*stage
		to []byte
	}
	var way []chunk // the oldest first
	for err == nil && len(dst)+len(way) > 0 {
		if len(dst) > 0 {
			g := t.take()
			if g == nil && len(way) == 0 {
				g = &stage{extra: true}
			}
			if g != nil {
				n := min(len(dst), t.chunk)
				if err = t.downloadChunk(g, src, n, s); err != nil {
					t.put(g)
					break
				}
				way = append(way, chunk{g, dst[:n]})
				dst, src = dst[n:], src+driver.Ptr(n)
				continue
			}
		}
		c := way[0]
		way = way[1:]
		if err = t.await(c.stage); err == nil {
			copyHost(c.to, c.block.bytes())
		}
		t.put(c.stage)
	}
	for _, c := range way {
		t.put(c.stage) // busy still
	}
	return err
}

func (t *stager) downloadChunk(g *stage, src driver.Ptr, n int, s driver.Stream) error {
	if err := t.prepare(g, n); err != nil {
		return err
	}
	r := t.p.drv.MemcpyDtoHAsync(g.block.pointer(0), src, uint64(n), s)
	if err := t.p.check("cuMemcpyDtoHAsync", r); err != nil {
		return err
	}
	return t.sent(g, s)
}

// take returns the stage that has been idle for longest, or nil.
func (t *stager) take() *stage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle) == 0 {
		return nil
	}
	g := t.idle[0]
	t.idle = slices.Delete(t.idle, 0, 1)
	return g
}

// takeDone returns one of the few stages that the GPU is done with, or nil. Extra ones that are done are freed.
func (t *stager) takeDone() (found *stage, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = slices.DeleteFunc(t.idle, func(g *stage) bool {
		if err != nil || found != nil && !g.extra {
			return false
		}
		if g.busy {
			r := t.p.drv.EventQuery(g.done)
			if r == driver.NotReady {
				return false
			}
			if err = t.p.check("cuEventQuery", r); err != nil {
				return false
			}
			g.busy = false
		}
		if g.extra {
			t.free(g)
		} else {
			found = g
		}
		return true
	})
	if err != nil && found != nil {
		t.idle, found = append(t.idle, found), nil
	}
	return found, err
}

// put takes a stage back.
func (t *stager) put(g *stage) {
	if g.extra && !g.busy {
		t.free(g)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = append(t.idle, g)
}

// free gives up what a stage consists of.
func (t *stager) free(g *stage) {
	if g.done != 0 {
		t.events.put(g.done, false)
		g.done = 0
	}
	t.drop(g)
}

// prepare makes a stage ready for n bytes.
func (t *stager) prepare(g *stage, n int) (err error) {
	if err := t.await(g); err != nil {
		return err
	}
	if g.done == 0 {
		if g.done, err = t.events.get(false); err != nil {
			return err
		}
	}
	if g.block != nil && g.block.size >= uint64(n) {
		return nil
	}
	t.drop(g)
	size := uint64(stageLeast)
	if n > stageLeast {
		size = stageBytes
	}
	g.block, err = t.host.get(size)
	return err
}

// sent marks a stage as busy until the stream has got here.
func (t *stager) sent(g *stage, s driver.Stream) error {
	err := t.p.check("cuEventRecord", t.p.drv.EventRecord(g.done, s))
	if err != nil {
		t.p.drv.StreamSynchronize(s) // the error is known; but the stage will be used again
		return err
	}
	g.busy = true
	return nil
}

// await waits for a stage; after an error it is still busy.
func (t *stager) await(g *stage) error {
	if !g.busy {
		return nil
	}
	err := t.p.check("cuEventSynchronize", t.p.drv.EventSynchronize(g.done))
	g.busy = err != nil
	return err
}

func (t *stager) drop(g *stage) {
	if g.block != nil {
		g.block.release()
		g.block = nil
	}
}

// trim frees the memory of unused stages.
func (t *stager) trim() {
	var kept []*stage
	for g := t.take(); g != nil; g = t.take() {
		if t.await(g) == nil {
			t.drop(g)
		}
		kept = append(kept, g)
	}
	for _, g := range kept {
		t.put(g)
	}
}

// close gives the stream and the events back. The stager is not in use, and will not be.
func (t *stager) close() error {
	t.p.drv.StreamSynchronize(t.stream) // fails in dead contexts, which do nothing either
	for g := t.take(); g != nil; g = t.take() {
		t.free(g)
	}
	t.events.close()
	return t.p.check("cuStreamDestroy", t.p.drv.StreamDestroy(t.stream))
}
