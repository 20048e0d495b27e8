package softgpu

import (
	"slices"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// graph is what a capture has recorded.
type graph struct {
	context *primary
	nodes   []*node
}

// node is an operation of a graph.
type node struct {
	graph  *graph
	handle driver.GraphNode // 0 until requested
	index  int
	op     operation
	after  []int // the nodes that come before it, directly
}

// graphExec is a graph that can be launched.
type graphExec struct {
	context *primary
	graph   *graph
	ops     []operation // never changed, but replaced
	last    *mark       // the end of the last launch: launches of the same graph do not overlap
}

// graphOp runs a graph.
type graphOp struct {
	recordOp
	before *mark
	ops    []operation
}

func (o *graphOp) run(c *primary) error {
	if o.before != nil {
		if err := (&waitOp{mark: o.before}).run(c); err != nil {
			return err
		}
	}
	for _, op := range o.ops {
		if err := op.run(c); err != nil {
			return err
		}
	}
	return nil
}

func (g *GPU) addGraph(gr *graph) driver.Graph { return driver.Graph(g.add(gr)) }

// GraphDestroy destroys the graph and its nodes. Its executables stay, but can no longer be changed.
func (g *GPU) GraphDestroy(h driver.Graph) driver.Result {
	c, r := g.enter("GraphDestroy", destroyCall)
	if c == nil {
		return r
	}
	defer g.mu.Unlock()
	gr, ok := lookup[*graph](g, uintptr(h))
	if !ok {
		return driver.InvalidValue
	}
	delete(g.handles, uintptr(h))
	for _, n := range gr.nodes {
		delete(g.handles, uintptr(n.handle))
	}
	return r
}

// GraphInstantiate makes an executable of the graph as it is.
func (g *GPU) GraphInstantiate(h driver.Graph) (driver.GraphExec, driver.Result) {
	c, r := g.enter("GraphInstantiate", unsafeCall)
	if r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	gr, ok := lookup[*graph](g, uintptr(h))
	if !ok || gr.context != c {
		return 0, driver.InvalidValue
	}
	x := &graphExec{context: c, graph: gr}
	for _, n := range gr.nodes {
		x.ops = append(x.ops, n.op)
	}
	return driver.GraphExec(g.add(x)), driver.Success
}

// GraphExecDestroy destroys the executable; launches that are queued still run.
func (g *GPU) GraphExecDestroy(h driver.GraphExec) driver.Result {
	c, r := g.enter("GraphExecDestroy", destroyCall)
	if c == nil {
		return r
	}
	defer g.mu.Unlock()
	if _, ok := lookup[*graphExec](g, uintptr(h)); !ok {
		return driver.InvalidValue
	}
	delete(g.handles, uintptr(h))
	return r
}

// executable begins a call about an executable and a stream.
func (g *GPU) executable(call string, h driver.GraphExec, sh driver.Stream) (*graphExec, *stream, driver.Result) {
	c, s, r := g.order(call, sh)
	if r != driver.Success {
		return nil, nil, r
	}
	x, ok := lookup[*graphExec](g, uintptr(h))
	switch {
	case !ok || x.context != c:
		r = driver.InvalidValue
	case s.capture != nil:
		s.capture.invalid = true
		r = driver.CaptureUnsupported
	default:
		return x, s, r
	}
	g.mu.Unlock()
	return nil, nil, r
}

// GraphUpload does nothing: there is nothing to upload.
func (g *GPU) GraphUpload(h driver.GraphExec, stream driver.Stream) driver.Result {
	_, _, r := g.executable("GraphUpload", h, stream)
	if r == driver.Success {
		g.mu.Unlock()
	}
	return r
}

// GraphLaunch queues the graph's operations, as they are now, as one.
func (g *GPU) GraphLaunch(h driver.GraphExec, stream driver.Stream) driver.Result {
	x, s, r := g.executable("GraphLaunch", h, stream)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	o := &graphOp{recordOp: recordOp{newMark()}, before: x.last, ops: x.ops}
	x.last = o.mark
	s.push(o)
	return driver.Success
}

// GraphExecKernelNodeSetParams changes the kernel of a node and its launch, for launches of the executable from now on. The
// graph that it was made of has to be there still.
func (g *GPU) GraphExecKernelNodeSetParams(h driver.GraphExec, nh driver.GraphNode, fh driver.Function,
	l *driver.Launch) driver.Result {
	c, r := g.enter("GraphExecKernelNodeSetParams", anyCall)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	x, ok := lookup[*graphExec](g, uintptr(h))
	n, ok2 := lookup[*node](g, uintptr(nh))
	if !ok || !ok2 || x.context != c || n.graph != x.graph || n.index >= len(x.ops) {
		return driver.InvalidValue
	}
	f, ok := lookup[*function](g, uintptr(fh))
	if !ok || f.module.context != c {
		return driver.InvalidHandle
	}
	old, ok := x.ops[n.index].(*kernelOp)
	if !ok || l == nil || l.Cluster != [3]uint32{} || l.Cooperative != old.launch.Cooperative {
		return driver.InvalidValue
	}
	if r := f.check(l, true); r != driver.Success {
		return r
	}
	x.ops = slices.Clone(x.ops)
	x.ops[n.index] = f.op(l)
	return driver.Success
}
