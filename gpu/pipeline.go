package gpu

import (
	"sync"
	"sync/atomic"

	"github.com/wavelane/wavelane/wgsl"
)

// pipelines caches compiled kernels by key until the device closes. Kernels of one key are compiled once, however many
// goroutines ask at the same time; failures are not given out again.
type pipelines struct {
	drv driver

	mu           sync.Mutex
	byKey        map[string]*pipeline
	failed       []*pipeline // after they had been given out
	hits, misses uint64
}

type pipeline struct {
	object
	ready chan struct{}
	err   error
	late  atomic.Pointer[error] // that the driver reported after ready
}

// fault returns why the pipeline does not work, as far as that is known.
func (p *pipeline) fault() error {
	if err := p.late.Load(); err != nil {
		return *err
	}
	return nil
}

func (c *pipelines) get(k *wgsl.Kernel) (*pipeline, error) {
	c.mu.Lock()
	if p := c.byKey[k.Key]; p != nil {
		c.hits++
		c.mu.Unlock()
		<-p.ready
		return p, p.err
	}
	p := &pipeline{ready: make(chan struct{})}
	c.byKey[k.Key] = p
	c.misses++
	c.mu.Unlock()

	if p.object, p.err = c.drv.newPipeline(k); p.err != nil {
		c.mu.Lock()
		delete(c.byKey, k.Key)
		c.mu.Unlock()
	} else {
		c.drv.ready(p.object, func(err error) {
			if err == nil {
				return
			}
			p.late.Store(&err)
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.byKey[k.Key] == p {
				delete(c.byKey, k.Key)
				c.failed = append(c.failed, p)
			}
		})
	}
	close(p.ready)
	return p, p.err
}

func (c *pipelines) counts() (hits, misses uint64, cached int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hits, c.misses, len(c.byKey)
}

func (c *pipelines) close() {
	for _, p := range c.byKey { // nobody else is left
		p.free()
	}
	for _, p := range c.failed {
		p.free()
	}
	c.byKey, c.failed = nil, nil
}
