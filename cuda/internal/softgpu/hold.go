package softgpu

import "github.com/wavelane/wavelane/cuda/internal/driver"

// holdOp keeps a stream from going on.
type holdOp struct {
	done
	release chan struct{}
}

func (o *holdOp) run(c *primary) error {
	select {
	case <-o.release:
	case <-c.alive.Done():
	}
	return nil
}

// Hold queues something in a stream of the current context that takes until release is called: tests of order, of what is
// above the driver, too, need no slow kernels then.
func (g *GPU) Hold(h driver.Stream) (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := &holdOp{release: make(chan struct{})}
	g.streamOf(g.current[thread()], h).push(o)
	return func() { close(o.release) }
}
