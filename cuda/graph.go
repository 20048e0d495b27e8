package cuda

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/device"
)

// Capture is work that is recorded into a graph instead of being run. It is valid during [Stream.Capture] only, on its
// goroutine. During a capture no memory can be allocated, no module loaded, and nothing waited for.
type Capture struct {
	work
	nodes []node
}

func (c *Capture) recorder() *work {
	if c == nil {
		return nil
	}
	return &c.work
}

// Node is a kernel's launch in a graph.
type Node struct {
	graph *Capture
	index int
}

// node is a launch with what is needed to change it.
type node struct {
	handle driver.GraphNode
	kernel *Kernel
	launch driver.Launch
}

// Launch records a kernel's launch. The node is for [Graph.SetArgs].
func (c *Capture) Launch(k *Kernel, l Launch, a ...Arg) (Node, error) {
	if err := c.enter(); err != nil {
		return Node{}, err
	}
	defer c.s.d.leave()
	if err := c.note(c.tryLaunch(k, &l, a)); err != nil {
		return Node{}, err
	}
	handle, r := c.s.d.drv.StreamCaptureNode(c.s.handle)
	if err := c.note(c.s.d.check("cuStreamGetCaptureInfo", r)); err != nil {
		return Node{}, err
	}
	launch := c.launch
	launch.Params = slices.Clone(launch.Params)
	c.nodes = append(c.nodes, node{handle, k, launch})
	return Node{c, len(c.nodes) - 1}, nil
}

// Graph is captured work that can be run again and again with one call. It is safe for concurrent use; its runs never
// overlap, on whatever streams. Buffers and kernels that it uses must stay open as long as it does.
type Graph struct{ *graph }

type graph struct {
	d       *state
	capture *Capture // identity of the nodes

	mu     sync.Mutex
	closed bool
	users  int          // its owner and the work that replays it; the last one destroys it
	of     driver.Graph // whose nodes can be changed as long as it is there
	exec   driver.GraphExec
	kept   []releaser
	// Replays of one graph do not overlap: the driver takes care of that.
	nodes []node
}

// Capture records what f does into a graph. Nothing runs. If f fails, so does Capture.
func (s *Stream) Capture(f func(c *Capture) error) (*Graph, error) {
	if f == nil {
		return nil, fmt.Errorf("capture: nil function: %w", compute.ErrArgument)
	}
	if err := s.d.life.Begin(); err != nil {
		return nil, err
	}
	defer s.d.life.End()
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.endRecording()
	g, err := s.capture(f)
	if err != nil {
		return nil, err
	}
	x := &Graph{g}
	runtime.AddCleanup(x, func(g *graph) { g.close() }, g) // a net under a forgotten Close
	return x, nil
}

func (s *Stream) capture(f func(c *Capture) error) (*graph, error) {
	d := s.d
	// A capture belongs to the thread that began it.
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	d.primary.capture.RLock()
	defer d.primary.capture.RUnlock()
	// The pool must not record events on a stream that is capturing.
	defer d.pool.watch(s.handle)
	if err := d.pool.unwatch(s.handle); err != nil {
		return nil, err
	}
	if err := d.check("cuStreamBeginCapture", d.drv.StreamBeginCapture(s.handle)); err != nil {
		return nil, err
	}
	c := &Capture{work: work{held: &held{s: s}, open: true, capturing: true}}
	err := s.record(c, f)
	c.open = false
	handle, e := d.endCapture(s.handle)
	if err == nil {
		err = e
	}
	discard := func() {
		if handle != 0 {
			d.drv.GraphDestroy(handle)
		}
		c.releaseKept()
	}
	if err != nil {
		discard()
		return nil, fmt.Errorf("capture: %w", err)
	}
	exec, r := d.drv.GraphInstantiate(handle)
	if err := d.check("cuGraphInstantiate", r); err != nil {
		discard()
		return nil, err
	}
	g := &graph{d: d, capture: c, users: 1, kept: c.kept, of: handle, exec: exec, nodes: c.nodes}
	if err := d.check("cuGraphUpload", d.drv.GraphUpload(exec, s.handle)); err != nil {
		g.destroy()
		return nil, err
	}
	d.graphs.Add(g)
	return g, nil
}

// endCapture returns the graph of a capture, and in any case ends the capture.
func (d *state) endCapture(s driver.Stream) (driver.Graph, error) {
	graph, r := d.drv.StreamEndCapture(s)
	if r != driver.Success {
		if g, again := d.drv.StreamEndCapture(s); again == driver.Success { // it goes on otherwise
			d.drv.GraphDestroy(g)
		}
	}
	return graph, d.check("cuStreamEndCapture", r)
}

// record runs f and returns its error or the capture's; a panic ends the capture before it goes on.
func (s *Stream) record(c *Capture, f func(c *Capture) error) error {
	finished := false
	defer func() {
		if !finished {
			c.open = false
			if handle, _ := s.d.endCapture(s.handle); handle != 0 {
				s.d.drv.GraphDestroy(handle)
			}
			c.releaseKept()
		}
	}()
	err := f(c)
	finished = true
	if err == nil {
		err = c.err
	}
	return err
}

// launch runs the graph on a stream; the caller has entered the context.
func (g *Graph) launch(r *Recording, drv driver.Driver, s driver.Stream) error {
	switch {
	case g == nil || g.graph == nil:
		return fmt.Errorf("replay: nil graph: %w", compute.ErrArgument)
	case g.d != r.s.d:
		return fmt.Errorf("replay: the graph %w", compute.ErrForeignTensor)
	}
	defer runtime.KeepAlive(g)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return device.Closed("graph")
	}
	if err := g.d.check("cuGraphLaunch", drv.GraphLaunch(g.exec, s)); err != nil {
		return err
	}
	g.users++
	r.keep(g.graph)
	return nil
}

// SetArgs changes the arguments of a launch in replays that are recorded later. Errors wrap compute.ErrUnsupported for a launch
// with clusters, which the driver cannot change.
func (g *Graph) SetArgs(n Node, a ...Arg) error {
	if n.graph == nil || n.graph != g.capture {
		return fmt.Errorf("node of another graph: %w", compute.ErrArgument)
	}
	if err := g.d.life.Begin(); err != nil {
		return err
	}
	defer g.d.life.End()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return device.Closed("graph")
	}
	x := &g.nodes[n.index]
	if x.launch.Cluster != ([3]uint32{}) {
		return fmt.Errorf("kernel %s: the arguments of a launch with clusters are fixed: %w", x.kernel.name, compute.ErrUnsupported)
	}
	if err := x.kernel.layout.Pack(x.launch.Params, a...); err != nil {
		return fmt.Errorf("kernel %s: %w", x.kernel.name, err)
	}
	if err := g.d.enter(); err != nil {
		return err
	}
	defer g.d.leave()
	r := g.d.drv.GraphExecKernelNodeSetParams(g.exec, x.handle, x.kernel.function, &x.launch)
	return g.d.check("cuGraphExecKernelNodeSetParams", r)
}

// Nodes is the number of kernels that the graph launches.
func (g *Graph) Nodes() int { return len(g.nodes) }

// Close frees the graph; replays in flight finish. It is idempotent.
func (g *Graph) Close() error {
	g.close()
	return nil
}

func (g *graph) close() {
	if g.d.life.Hold() != nil {
		return // the device has closed it, or will
	}
	defer g.d.life.End()
	if g.d.graphs.Remove(g) {
		g.mu.Lock()
		g.closed = true
		g.mu.Unlock()
		g.release()
	}
}

// release ends one user's use. The last one's destroys the graph.
func (g *graph) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users--; g.users == 0 {
		g.destroy()
	}
}

// destroy frees the graph and what it keeps. Nobody uses it.
func (g *graph) destroy() {
	g.closed = true
	g.d.enterDead()
	g.d.drv.GraphExecDestroy(g.exec)
	g.d.drv.GraphDestroy(g.of)
	g.d.leave()
	for _, x := range g.kept {
		x.release()
	}
	g.kept = nil
}
