package cuda

import (
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

const (
	stages     = 4
	stageBytes = 4 << 20  // so large that a transfer takes much longer than its call
	stageLeast = 64 << 10 // where less is enough
)

// stager moves memory that is not pinned, such as any Go slice: the driver's asynchronous copies take pinned memory only. It
// goes in chunks through a few pinned stages, so that the host copies one while the GPU has another. It is safe for concurrent
// use; callers have entered the context.
type stager struct {
	p      *primary
	host   *hostPool
	events events
	idle   chan *stage
	chunk  int           // bytes of a stage
	stream driver.Stream // for transfers that nothing slow should be in front of
}

// stage is pinned memory on its way.
type stage struct {
	block *hostBlock
	done  driver.Event
	busy  bool // until done
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
	t := &stager{p: p, host: host, events: events{p: p}, idle: make(chan *stage, stages), chunk: stageBytes, stream: s}
	for range stages {
		t.idle <- &stage{}
	}
	return t, nil
}

// upload submits the copy of data to the device. The data have been read when it returns.
func (t *stager) upload(dst driver.Ptr, data []byte, s driver.Stream) error {
	for len(data) > 0 {
		n := min(len(data), t.chunk)
		if err := t.uploadChunk(dst, data[:n], s); err != nil {
			return err
		}
		dst, data = dst+driver.Ptr(n), data[n:]
	}
	return nil
}

func (t *stager) uploadChunk(dst driver.Ptr, data []byte, s driver.Stream) error {
	g := t.take(true)
	defer func() { t.idle <- g }()
	if err := t.prepare(g, len(data)); err != nil {
		return err
	}
	copy(g.block.bytes(), data)
	r := t.p.drv.MemcpyHtoDAsync(dst, g.block.pointer(0), uint64(len(data)), s)
	if err := t.p.check("cuMemcpyHtoDAsync", r); err != nil {
		return err
	}
	return t.sent(g, s)
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
			if g := t.take(len(way) == 0); g != nil {
				n := min(len(dst), t.chunk)
				if err = t.downloadChunk(g, src, n, s); err != nil {
					t.idle <- g
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
			copy(c.to, c.block.bytes())
		}
		t.idle <- c.stage
	}
	for _, c := range way {
		t.idle <- c.stage // busy still
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

// take returns a stage, or nil if there is none and the caller will not wait.
func (t *stager) take(wait bool) *stage {
	if wait {
		return <-t.idle
	}
	select {
	case g := <-t.idle:
		return g
	default:
		return nil
	}
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
	for range stages {
		if g := t.take(false); g != nil {
			if t.await(g) == nil {
				t.drop(g)
			}
			t.idle <- g
		}
	}
}

// close gives the stream and the events back. The stager is not in use, and will not be.
func (t *stager) close() error {
	t.p.drv.StreamSynchronize(t.stream) // fails in dead contexts, which do nothing either
	for range stages {
		g := <-t.idle
		if g.done != 0 {
			t.events.put(g.done, false)
		}
		t.drop(g)
	}
	t.events.close()
	return t.p.check("cuStreamDestroy", t.p.drv.StreamDestroy(t.stream))
}
