package gpu

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/recent"
	"github.com/wavelane/wavelane/wgsl"
)

// pipelines caches compiled kernels by key. Kernels of one key are compiled once, however many goroutines need them at the same time.
// Failures are not cached. Since there is no limit to the number of expressions, the cache forgets the least recently used ones, which
// are freed when no program has them.
type pipelines struct {
	drv webgpu.Driver

	mu           sync.Mutex
	byKey        *recent.Map[*pipeline]
	made         map[webgpu.Object]bool // to be freed
	hits, misses uint64
}

// mostPipelines is the limit of a device's cache, more than the operations of any program are likely to have.
const mostPipelines = 1024

func newPipelines(drv webgpu.Driver, limit int) *pipelines {
	return &pipelines{drv: drv, byKey: recent.New[*pipeline](limit), made: map[webgpu.Object]bool{}}
}

type pipeline struct {
	webgpu.Object
	ready chan struct{}
	err   error
	late  atomic.Pointer[error] // reported by the driver after ready
}

// done reports whether the pipeline is compiled, or has failed to be.
func (p *pipeline) done() bool {
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

// fault returns why the pipeline does not work, as far as that is known.
func (p *pipeline) fault() error {
	if err := p.late.Load(); err != nil {
		return *err
	}
	return nil
}

// compilerWaits tells whether NewPipeline of the driver returns only when a kernel is compiled. Those of browsers are used before.
const compilerWaits = runtime.GOOS != "js"

// get returns the pipeline of a kernel. If it has to be waited for and now is set, the error is program.ErrLater instead.
func (c *pipelines) get(k *wgsl.Kernel, now bool) (*pipeline, error) {
	c.mu.Lock()
	p, ok := c.byKey.Get(k.Key)
	if now && (!ok || !p.done()) {
		c.mu.Unlock()
		return nil, program.ErrLater
	}
	if ok {
		c.hits++
		c.mu.Unlock()
		<-p.ready
		return p, p.err
	}
	p = &pipeline{ready: make(chan struct{})}
	c.byKey.Put(k.Key, p)
	c.misses++
	c.mu.Unlock()

	var err error
	if p.Object, err = c.drv.NewPipeline(k); err != nil {
		p.err = explained(err)
		c.forget(k.Key, p)
	} else {
		c.mu.Lock()
		c.made[p.Object] = true
		c.mu.Unlock()
		// Programs hold p as long as they may run.
		runtime.AddCleanup(p, c.free, p.Object)
		c.drv.Ready(p.Object, func(err error) {
			if err == nil {
				return
			}
			err = explained(err)
			p.late.Store(&err)
			c.forget(k.Key, p)
		})
	}
	close(p.ready)
	return p, p.err
}

func (c *pipelines) counts() (hits, misses uint64, cached int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hits, c.misses, c.byKey.Len()
}

// forget makes sure that p is not given out again.
func (c *pipelines) forget(key string, p *pipeline) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, _ := c.byKey.Get(key); other == p {
		c.byKey.Delete(key)
	}
}

// free frees a pipeline unless close has.
func (c *pipelines) free(o webgpu.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made[o] {
		delete(c.made, o)
		o.Free()
	}
}

func (c *pipelines) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for o := range c.made {
		o.Free()
	}
	clear(c.made)
	c.byKey = recent.New[*pipeline](1)
}
