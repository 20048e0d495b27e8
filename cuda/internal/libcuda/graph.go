//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import "github.com/wavelane/wavelane/cuda/internal/driver"

func (d *library) StreamBeginCapture(s driver.Stream) driver.Result {
	const threadLocal = 1 // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
	return call(d.cuStreamBeginCapture, uintptr(s), threadLocal)
}

func (d *library) StreamEndCapture(s driver.Stream) (driver.Graph, driver.Result) {
	f := take()
	r := f.call(d.cuStreamEndCapture, uintptr(s), f.at(0))
	graph := driver.Graph(f.handle(0))
	f.give()
	return graph, r
}

// StreamCaptureNode is the one node that the next call would depend on: NotFound if there is none or more than one,
// InvalidValue if the stream does not capture.
func (d *library) StreamCaptureNode(s driver.Stream) (driver.GraphNode, driver.Result) {
	const active, invalidated = 1, 2 // CU_STREAM_CAPTURE_STATUS_…
	const status, id, graph, nodes, count = 0, 1, 2, 3, 4
	f := take()
	defer f.give()
	r := f.call(d.cuStreamGetCaptureInfo, uintptr(s), f.at(status), f.at(id), f.at(graph), f.at(nodes), f.at(count))
	switch {
	case r != driver.Success:
		return 0, r
	case f.int(status) == invalidated:
		return 0, driver.CaptureInvalidated
	case f.int(status) != active:
		return 0, driver.InvalidValue
	case f.out[count] != 1 || f.pointer(nodes) == nil:
		return 0, driver.NotFound
	}
	return *(*driver.GraphNode)(f.pointer(nodes)), driver.Success
}

func (d *library) GraphDestroy(g driver.Graph) driver.Result {
	return call(d.cuGraphDestroy, uintptr(g))
}

func (d *library) GraphInstantiate(g driver.Graph) (driver.GraphExec, driver.Result) {
	h, r := create(d.cuGraphInstantiateWithFlags, uintptr(g), 0)
	return driver.GraphExec(h), r
}

func (d *library) GraphExecDestroy(x driver.GraphExec) driver.Result {
	return call(d.cuGraphExecDestroy, uintptr(x))
}

func (d *library) GraphUpload(x driver.GraphExec, s driver.Stream) driver.Result {
	return call(d.cuGraphUpload, uintptr(x), uintptr(s))
}

func (d *library) GraphLaunch(x driver.GraphExec, s driver.Stream) driver.Result {
	return call(d.cuGraphLaunch, uintptr(x), uintptr(s))
}
