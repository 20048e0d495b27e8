package softgpu

import (
	"slices"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// Results that the library does not tell apart.
const (
	illegalState     driver.Result = 401
	captureUnmatched driver.Result = 903
	captureUnjoined  driver.Result = 904
	captureIsolation driver.Result = 905
	capturedEvent    driver.Result = 907
	captureMerge     driver.Result = 902
	noNode                         = -1
)

// capture is a graph that is being recorded.
type capture struct {
	origin  *stream
	thread  uint64
	graph   *graph
	invalid bool
	streams []*stream // origin, and those that have joined
}

// StreamBeginCapture records what follows on the stream. The default stream cannot be captured.
func (g *GPU) StreamBeginCapture(h driver.Stream) driver.Result {
	c, s, r := g.order("StreamBeginCapture", h)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	switch {
	case s == c.zero:
		return driver.CaptureUnsupported
	case s.capture != nil:
		return illegalState
	}
	id := thread()
	k := &capture{origin: s, thread: id, graph: &graph{context: c}}
	k.enter(s, nil)
	g.captures[id] = append(g.captures[id], k)
	return driver.Success
}

// StreamEndCapture ends the capture, on the thread that began it, and returns the graph.
func (g *GPU) StreamEndCapture(h driver.Stream) (driver.Graph, driver.Result) {
	c, r := g.enter("StreamEndCapture", destroyCall)
	if c == nil {
		return 0, r
	}
	defer g.mu.Unlock()
	s := g.streamOf(c, h)
	if s == nil {
		return 0, driver.InvalidHandle
	}
	k := s.capture
	switch {
	case k == nil:
		return 0, worse(r, illegalState)
	case k.thread != thread():
		return 0, driver.CaptureWrongThread
	case k.origin != s:
		k.invalid = true
		return 0, captureUnmatched
	}
	joined := k.joined()
	k.end()
	switch {
	case r != driver.Success:
		return 0, r
	case k.invalid:
		return 0, driver.CaptureInvalidated
	case !joined:
		return 0, captureUnjoined
	}
	return g.addGraph(k.graph), driver.Success
}

// StreamCaptureNode is the node that the last captured call on the stream made.
func (g *GPU) StreamCaptureNode(h driver.Stream) (driver.GraphNode, driver.Result) {
	_, s, r := g.order("StreamCaptureNode", h)
	if r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	switch {
	case s.capture == nil:
		return 0, illegalState
	case s.capture.invalid:
		return 0, driver.CaptureInvalidated
	case s.node == noNode:
		return 0, driver.InvalidValue
	}
	n := s.capture.graph.nodes[s.node]
	if n.handle == 0 {
		n.handle = driver.GraphNode(g.add(n))
	}
	return n.handle, driver.Success
}

// enter brings a stream into the capture.
func (k *capture) enter(s *stream, after []int) {
	s.capture, s.tail, s.node = k, after, noNode
	k.streams = append(k.streams, s)
}

// end lets all streams go.
func (k *capture) end() {
	g := k.origin.context.gpu
	for _, s := range k.streams {
		s.capture, s.tail = nil, nil
	}
	g.setCaptures(k.thread, slices.DeleteFunc(g.captures[k.thread], func(o *capture) bool { return o == k }))
}

func (g *GPU) setCaptures(id uint64, to []*capture) {
	if len(to) == 0 {
		delete(g.captures, id)
		return
	}
	g.captures[id] = to
}

// joined tells whether the origin comes after all nodes that other streams end with.
func (k *capture) joined() bool {
	before := make([]bool, len(k.graph.nodes))
	for _, i := range k.origin.tail {
		before[i] = true
	}
	for i := len(before) - 1; i >= 0; i-- { // nodes come after those that they depend on
		if before[i] {
			for _, j := range k.graph.nodes[i].after {
				before[j] = true
			}
		}
	}
	for _, s := range k.streams {
		for _, i := range s.tail {
			if !before[i] {
				return false
			}
		}
	}
	return true
}

// record adds an operation of the stream to the graph.
func (s *stream) record(o operation) driver.Result {
	k := s.capture
	if k.invalid {
		return driver.CaptureInvalidated
	}
	s.node = len(k.graph.nodes)
	k.graph.nodes = append(k.graph.nodes, &node{graph: k.graph, index: s.node, op: o, after: s.tail})
	s.tail = []int{s.node}
	return driver.Success
}

// join lets the stream wait for an event where either is captured.
func (s *stream) join(e *event) driver.Result {
	k := e.capture
	switch {
	case k == nil: // work outside a capture cannot be waited for in it; what is not recorded or complete is nothing to wait for
		if s.capture.invalid {
			return driver.CaptureInvalidated
		}
		if e.mark == nil {
			return driver.Success
		}
		s.capture.invalid = true
		return captureIsolation
	case k.invalid:
		return driver.CaptureInvalidated
	case k.origin.capture != k: // it has ended
		return capturedEvent
	case s.capture == nil && s.context != k.origin.context || s == s.context.zero:
		k.invalid = true
		return driver.CaptureImplicit
	case s.capture == nil:
		k.enter(s, slices.Clone(e.after))
	case s.capture != k:
		k.invalid, s.capture.invalid = true, true
		return captureMerge
	default:
		for _, i := range e.after {
			if !slices.Contains(s.tail, i) {
				s.tail = append(slices.Clip(s.tail), i)
			}
		}
	}
	return driver.Success
}
