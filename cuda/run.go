package cuda

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// Start copies the inputs, gives the program to the GPU and returns; see [program.Executable]. Slices in io.Host may be reused at once.
func (x *executable) Start(io *program.IO) *compute.Future {
	fut, resolve := compute.NewFuture(nil)
	if err := x.start(x.dev, io, resolve); err != nil {
		return compute.Failed(err)
	}
	runtime.KeepAlive(x)
	return fut
}

func (e *compiled) start(dev *Device, io *program.IO, resolve compute.Resolve) (err error) {
	if err := e.d.life.Begin(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			e.d.life.End()
		}
	}()
	warm, err := e.begin()
	if err != nil {
		return err
	}
	defer e.end()
	if err := device.CheckIO(e.prog, io, func(t *Tensor) (program.Type, bool) { return t.typ, t.dev != nil && t.dev.state == e.d }); err != nil {
		return err
	}
	graph := warm && e.replayable() && io.Times == nil
	if t := e.together; t != nil {
		var end func(error) error
		if graph, end, err = t.begin(e, io); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				err = end(err)
				t.over()
			}
		}()
		future := resolve
		resolve = func(err error, deliver func()) { future(end(err), deliver) }
	}
	if err := e.d.enter(); err != nil {
		return err
	}
	defer e.d.leave()
	if graph {
		if done, err := e.replay(io, resolve); done || err != nil {
			return err
		}
	}
	m, err := e.acquire()
	if err == nil {
		m.clock = newClock(io.Times)
		err = e.run(dev, m, io, resolve)
	}
	if err != nil {
		return fmt.Errorf("run of a program of %d steps: %w", len(e.prog.Steps), err)
	}
	return nil
}

// run gives the program to the default stream, call by call.
func (e *compiled) run(dev *Device, m *memory, io *program.IO, resolve compute.Resolve) error {
	if err := e.bindTensors(m, io); err != nil {
		m.release()
		return err
	}
	e.fillUpload(m, io)
	err := e.stage(m, io)
	if err == nil {
		err = e.submit(dev, m, io, resolve)
	}
	if err != nil {
		e.d.settle() // what is under way uses the memory
		m.release()
		return err
	}
	e.count(uint64(e.launches()), 0)
	return nil
}

func (e *compiled) submit(dev *Device, m *memory, io *program.IO, resolve compute.Resolve) error {
	e.d.submit.Lock()
	defer e.d.submit.Unlock()
	if err := e.enqueue(m, e.d.defaultStream.handle, nil); err != nil {
		return err
	}
	kept := e.keep(m, dev)
	m.releaseDevice() // for work after this on the same stream
	if _, err := e.d.defaultStream.after(func(err error) { e.finish(m, io, resolve, err) }); err != nil {
		for _, t := range kept {
			t.Close()
		}
		return err
	}
	if kept != nil {
		io.Keep = kept
	}
	return nil
}

// settle waits for the default stream after a failure that is known.
func (d *state) settle() {
	_ = d.check("cuStreamSynchronize", d.drv.StreamSynchronize(d.defaultStream.handle))
}

func (e *compiled) count(launches, replays uint64) {
	e.d.mu.Lock()
	e.d.stats.Runs++
	e.d.stats.Launches += launches
	e.d.stats.Replays += replays
	e.d.mu.Unlock()
}

// finish is called when a run is done.
func (e *compiled) finish(m *memory, io *program.IO, resolve compute.Resolve, err error) {
	if err != nil {
		err = fmt.Errorf("run of a program of %d steps: %w", len(e.prog.Steps), err)
	}
	if read := m.clock.read(e.d); err == nil {
		err = read
	}
	resolve(err, func() {
		e.deliver(m.read, io.Read)
		m.release() // so that the memory is back when the future is done
	})
	m.release()
	e.together.over()
}

// Replays: a program that runs again and again becomes a graph, which the driver launches with one call.
const (
	warmUp     = 2 // runs before that
	mostGraphs = 2 // of one program, for runs that overlap
	worthwhile = 4 // launches and copies; below, the calls themselves cost as little
)

// replay is a graph of the program with memory of its own.
type replay struct {
	*memory
	at   []driver.Ptr // the tensors whose addresses are in the graph
	exec driver.GraphExec

	nodes   []varyingNode
	scalars []float32    // that they have
	of      driver.Graph // whose nodes can be changed as long as it is there
}

// replayable: retained outputs need new memory in each run.
func (e *compiled) replayable() bool {
	return len(e.prog.Keep) == 0 && len(e.actions) >= worthwhile && !e.fixed
}

// replay runs the program as a graph if it can: done is false if not, and then nothing has happened.
func (e *compiled) replay(io *program.IO, resolve compute.Resolve) (done bool, err error) {
	bound := &memory{}
	// What comes later on the default stream may have the tensors' memory.
	defer bound.releaseDevice()
	if err := e.bindTensors(bound, io); err != nil {
		return false, err
	}
	var g *replay
	if e.together == nil {
		g = e.idleGraph(bound)
	} else if g, err = e.onlyGraph(bound); err != nil {
		return false, err
	}
	if g == nil {
		return false, nil
	}
	e.fillUpload(g.memory, io)
	if err = e.stage(g.memory, io); err == nil {
		err = e.launch(g, bound, io, resolve)
	}
	if err != nil {
		e.d.settle()
		e.giveUp(g)
		return false, fmt.Errorf("replay of a program of %d steps: %w", len(e.prog.Steps), err)
	}
	e.count(uint64(e.launches()), 1)
	return true, nil
}

func (e *compiled) launch(g *replay, bound *memory, io *program.IO, resolve compute.Resolve) error {
	e.d.submit.Lock()
	defer e.d.submit.Unlock()
	if err := e.varyNodes(g, bound.tensors); err != nil {
		return err
	}
	if err := e.d.check("cuGraphLaunch", e.d.drv.GraphLaunch(g.exec, e.d.defaultStream.handle)); err != nil {
		return err
	}
	_, err := e.d.defaultStream.after(func(err error) { e.replayed(g, io, resolve, err) })
	return err
}

// idleGraph returns a graph for these tensors that no run uses, or nil. It makes one if there are few yet, or in place of an
// older one if the last run that found none had the same tensors.
func (e *compiled) idleGraph(bound *memory) *replay {
	e.mu.Lock()
	for i, g := range e.graphs {
		if sameTensors(g.at, bound) {
			e.graphs = slices.Delete(e.graphs, i, i+1)
			e.mu.Unlock()
			return g
		}
	}
	again := sameTensors(e.missed, bound)
	if !again {
		e.missed = snapshot(bound)
	}
	var old *replay
	switch {
	case e.closed || e.refused:
		e.mu.Unlock()
		return nil
	case e.made < mostGraphs:
		e.made++
	case again && len(e.graphs) > 0:
		old = e.graphs[0]
		e.graphs = e.graphs[1:]
	default:
		e.mu.Unlock()
		return nil
	}
	e.mu.Unlock()
	if old != nil {
		e.destroyGraph(old)
	}
	g, err := e.record(bound)
	if err != nil {
		// It runs without a graph as well; whether something is wrong shows there. Another try would fail likewise.
		e.d.log.Debug("cuda: no graph of a program", "steps", len(e.prog.Steps), "error", err)
		e.mu.Lock()
		e.refused = true
		e.made--
		e.mu.Unlock()
		return nil
	}
	return g
}

// record captures the program into a graph.
func (e *compiled) record(bound *memory) (*replay, error) {
	m, err := e.acquire()
	if err != nil {
		return nil, err
	}
	m.tensors, m.scalars = bound.tensors, e.plan.scalars
	g := &replay{memory: m, at: snapshot(bound), scalars: slices.Clone(e.plan.scalars)}
	err = e.capture(g)
	m.tensors = nil
	if err != nil {
		m.release()
		return nil, err
	}
	return g, nil
}

func (e *compiled) capture(g *replay) error {
	d := e.d
	d.submit.Lock()
	defer d.submit.Unlock()
	s, err := d.captureStream()
	if err != nil {
		return err
	}
	d.primary.capture.RLock()
	defer d.primary.capture.RUnlock()
	if err := d.check("cuStreamBeginCapture", d.drv.StreamBeginCapture(s)); err != nil {
		return err
	}
	err = e.enqueue(g.memory, s, g)
	handle, ended := d.endCapture(s)
	if err == nil {
		err = ended
	}
	keep := false
	defer func() {
		if handle != 0 && !keep {
			d.drv.GraphDestroy(handle)
		}
	}()
	if err != nil {
		return err
	}
	exec, r := d.drv.GraphInstantiate(handle)
	if err := d.check("cuGraphInstantiate", r); err != nil {
		return err
	}
	g.exec = exec
	if err := d.check("cuGraphUpload", d.drv.GraphUpload(g.exec, d.defaultStream.handle)); err != nil {
		d.drv.GraphExecDestroy(g.exec)
		return err
	}
	if keep = len(g.nodes) > 0; keep {
		g.of = handle
	}
	return nil
}

// captureStream is a stream on which nothing ever runs; the caller holds the submit lock.
func (d *state) captureStream() (driver.Stream, error) {
	if d.captures == nil {
		s, err := d.newStream(StreamOptions{})
		if err != nil {
			return 0, err
		}
		d.captures = s
	}
	return d.captures.handle, nil
}

// replayed is called when a replay is done.
func (e *compiled) replayed(g *replay, io *program.IO, resolve compute.Resolve, err error) {
	if err != nil {
		err = fmt.Errorf("replay of a program of %d steps: %w", len(e.prog.Steps), err)
	}
	back := false
	resolve(err, func() {
		e.deliver(g.read, io.Read)
		back = e.putBack(g) // for who runs the program again when the future is done
	})
	if !back && (err != nil || !e.putBack(g)) {
		e.giveUp(g)
	}
	e.together.over()
}

// putBack keeps a graph for other runs, unless there will be none.
func (e *compiled) putBack(g *replay) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.graphs = append(e.graphs, g)
	}
	return !e.closed
}

// giveUp destroys a graph in use.
func (e *compiled) giveUp(g *replay) {
	e.mu.Lock()
	e.made--
	e.mu.Unlock()
	e.destroyGraph(g)
}

// destroyGraph frees a graph that no run uses.
func (e *compiled) destroyGraph(g *replay) {
	e.d.enterDead()
	e.d.drv.GraphExecDestroy(g.exec)
	if g.of != 0 {
		e.d.drv.GraphDestroy(g.of)
	}
	e.d.leave()
	g.release()
}

// dropGraphs frees the graphs that are idle. It reports whether there were any.
func (e *compiled) dropGraphs() bool {
	e.mu.Lock()
	idle := e.graphs
	e.graphs = nil
	e.made -= len(idle)
	e.mu.Unlock()
	for _, g := range idle {
		e.destroyGraph(g)
	}
	return len(idle) > 0
}
